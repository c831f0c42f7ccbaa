"""A language client over stdio for measuring: starts a server, sends, and waits for what comes back."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

KERNEL_LSP = (sys.executable, "-m", "kernel_lsp", "serve")
BARE = (sys.executable, str(Path(__file__).with_name("bare_server.py")))


class MeasuringClient:
    """One server process; diagnostics are kept with the time they came."""

    def __init__(self) -> None:
        self._client = LanguageClient("benchmark", "1")
        self._diagnostics: dict[str, list[tuple[float, types.PublishDiagnosticsParams]]] = {}
        self._instructions: dict[str, list[float]] = {}
        self._titles: dict[str | int, str] = {}  # of progress items, by token
        self._ended: list[str] = []  # titles of those that have ended
        self._changed = asyncio.Condition()

        @self._client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def published(params: types.PublishDiagnosticsParams) -> None:
            self._diagnostics.setdefault(params.uri, []).append((time.perf_counter(), params))
            async with self._changed:
                self._changed.notify_all()

        @self._client.feature("kernelLsp/status")
        async def status(params: Any) -> None:
            if params.instructions:
                self._instructions.setdefault(params.uri, []).append(time.perf_counter())
                async with self._changed:
                    self._changed.notify_all()

        @self._client.feature(types.PROGRESS)
        async def progress(params: types.ProgressParams) -> None:
            value = params.value
            assert isinstance(value, dict)
            if value["kind"] == "begin":
                self._titles[params.token] = value["title"]
            elif value["kind"] == "end":
                self._ended.append(self._titles.get(params.token, ""))
                async with self._changed:
                    self._changed.notify_all()

        @self._client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def create_progress(_: types.WorkDoneProgressCreateParams) -> None:
            """Granted."""

        @self._client.feature(types.WORKSPACE_CONFIGURATION)
        def configuration(params: types.ConfigurationParams) -> list[Any]:
            return [None for _ in params.items]

    async def start(
        self, command: tuple[str, ...], folder: Path, env: dict[str, str], *, progress: bool = False
    ) -> float:
        """Start and initialize; seconds until the answer to `initialize`. `progress`: have it shown."""
        began = time.perf_counter()
        await self._client.start_io(*command, env=env)
        await self._client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    window=types.WindowClientCapabilities(work_done_progress=progress)
                ),
                root_uri=folder.as_uri(),
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name)],
                initialization_options={"status": True},
            )
        )
        took = time.perf_counter() - began
        self._client.initialized(types.InitializedParams())
        return took

    def open(self, path: Path) -> None:
        item = types.TextDocumentItem(path.as_uri(), "cuda-cpp", 1, path.read_text())
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def save(self, path: Path) -> None:
        self._client.text_document_did_save(
            types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
        )

    async def hover(self, path: Path, line: int, character: int) -> types.Hover | None:
        return await self._client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(line, character))
        )

    async def hovers_until(self, done: asyncio.Task[Any], path: Path) -> list[float]:
        """Seconds of each hover on the file's first kernel, one after another until something else is done."""
        took: list[float] = []
        while not done.done():
            began = time.perf_counter()
            answer = await self.hover(path, 1, 17)
            took.append(time.perf_counter() - began)
            assert answer is not None
            await asyncio.sleep(0.002)
        return took

    async def next_diagnostics(self, path: Path, after: float) -> float:
        """When diagnostics for the file came, after a moment of `time.perf_counter()`."""

        def come() -> list[float]:
            return [when for when, _ in self._diagnostics.get(path.as_uri(), []) if when > after]

        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(come), 120)
        return come()[0]

    async def next_instructions(self, path: Path, after: float) -> float:
        """When the instructions of the file's build were there, after a moment of `time.perf_counter()`."""

        def come() -> list[float]:
            return [when for when in self._instructions.get(path.as_uri(), []) if when > after]

        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(come), 120)
        return come()[0]

    async def progress_ended(self, title: str) -> None:
        """Wait until a progress item of this title has ended."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: title in self._ended), 120)

    async def stop(self) -> None:
        await self._client.shutdown_async(None)
        self._client.exit(None)
        await self._client.stop()
