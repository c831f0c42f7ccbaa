"""Talks to the real server in raw JSON over pipes: for what a well-behaved client library cannot send."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

INITIALIZE: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}


class RawServer:
    """One server process. Every message that comes is kept; waiting sees what came before."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.messages: list[dict[str, Any]] = []
        self._came = asyncio.Condition()
        self._next_id = 0
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, *, argv: tuple[str, ...] = ("-m", "kernel_lsp", "serve"), **env: str) -> RawServer:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **env},
        )
        return cls(process)

    def send_bytes(self, body: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def send_request(self, method: str, params: Any) -> int:
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        self.send_bytes(json.dumps(message).encode())
        return self._next_id

    async def request(self, method: str, params: Any) -> dict[str, Any]:
        return await self.answer(self.send_request(method, params))

    async def answer(self, id_: int) -> dict[str, Any]:
        return await self.message(lambda m: m.get("id") == id_ and "method" not in m)

    async def message(self, wanted: Callable[[dict[str, Any]], object], timeout_s: float = 180) -> dict[str, Any]:
        """The first message, past or coming, that is wanted."""

        def found() -> list[dict[str, Any]]:
            return [message for message in self.messages if wanted(message)]

        async with self._came:
            await asyncio.wait_for(self._came.wait_for(found), timeout_s)
        return found()[0]

    async def initialize(self, **overrides: Any) -> dict[str, Any]:
        answer = await self.request("initialize", {**INITIALIZE, **overrides})
        self.notify("initialized", {})
        return answer

    async def published(
        self, uri: str, condition: Callable[[dict[str, Any]], object] = lambda params: True
    ) -> dict[str, Any]:
        message = await self.message(
            lambda m: m.get("method") == "textDocument/publishDiagnostics"
            and m["params"]["uri"] == uri
            and condition(m["params"])
        )
        params: dict[str, Any] = message["params"]
        return params

    def open(self, uri: str, text: str, version: int = 1) -> None:
        document = {"uri": uri, "languageId": "cuda-cpp", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    async def end(self) -> int:
        """A proper end; the exit code."""
        await self.request("shutdown", None)
        self.notify("exit", None)
        return await self.exit_code()

    async def exit_code(self, timeout_s: float = 15) -> int:
        code = await asyncio.wait_for(self.process.wait(), timeout_s)
        await asyncio.wait_for(self._reader, 5)
        return code

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.exit_code()

    async def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        try:
            while header := await stdout.readline():
                length = int(header.split(b":")[1])
                while (await stdout.readline()).strip():
                    pass
                message = json.loads(await stdout.readexactly(length))
                if "method" in message and "id" in message:  # whatever the server asks is granted
                    self.send_bytes(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": None}).encode())
                async with self._came:
                    self.messages.append(message)
                    self._came.notify_all()
        except asyncio.IncompleteReadError:
            pass
        async with self._came:
            self._came.notify_all()
