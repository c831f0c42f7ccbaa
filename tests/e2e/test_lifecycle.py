"""Start, malformed input and end of a conversation, with what a client library would never send."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.e2e.raw_server import INITIALIZE, RawServer

KERNEL = "__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }\n"
HANGING_NVCC = """#!{python}
import os, subprocess, sys, time
if "--version" in sys.argv or "--list-gpu-code" in sys.argv:
    os.execv("{nvcc}", ["{nvcc}", *sys.argv[1:]])
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf])
open("{marks}/" + str(os.getpid()), "w").write(str(child.pid))
time.sleep(600)
"""


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    started = await RawServer.start()
    yield started
    await started.kill()


async def test_proper_end_has_code_0(server: RawServer) -> None:
    answer = await server.initialize()
    assert answer["result"]["serverInfo"]["name"] == "kernel-lsp"
    assert await server.end() == 0


async def test_exit_without_shutdown_has_code_1(server: RawServer) -> None:
    await server.initialize()
    server.notify("exit", None)
    assert await server.exit_code() == 1


async def test_end_of_input_ends_the_server(server: RawServer) -> None:
    await server.initialize()
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert await server.exit_code() == 1


async def test_sigterm_ends_the_server(server: RawServer) -> None:
    await server.initialize()
    server.process.send_signal(signal.SIGTERM)
    assert await server.exit_code() == 1


async def test_enum_numbers_of_the_future_are_no_obstacle(server: RawServer) -> None:
    capabilities = {
        "general": {"positionEncodings": ["utf-99", "utf-16"]},
        "textDocument": {
            "documentSymbol": {"symbolKind": {"valueSet": [1, 999]}, "tagSupport": {"valueSet": [77]}},
            "publishDiagnostics": {"tagSupport": {"valueSet": [1, 2, 44]}},
            "completion": {"completionItemKind": {"valueSet": [1, 500]}},
            "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "novel.kind"]}}},
        },
        "workspace": {"workspaceEdit": {"resourceOperations": ["create", "teleport"], "failureHandling": "hope"}},
    }
    answer = await server.initialize(capabilities=capabilities, trace="shouting")
    assert answer["result"]["capabilities"]["positionEncoding"] == "utf-16"
    assert await server.end() == 0


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {"textDocument": 3},
        {"textDocument": {"uri": "file:///a.cu"}, "position": {"line": -1, "character": 0}},
    ],
)
async def test_a_malformed_request_is_answered(server: RawServer, params: object) -> None:
    await server.initialize()
    answer = await server.request("textDocument/hover", params)
    assert answer["error"]["code"] == -32602
    assert await server.end() == 0


async def test_noise_is_survived(server: RawServer) -> None:
    await server.initialize()
    server.send_bytes(b"{not json")
    server.send_bytes(b"[]")
    server.send_bytes(json.dumps({"jsonrpc": "2.0", "id": "x", "method": "no/such/method"}).encode())
    server.send_bytes(json.dumps({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {}}).encode())
    server.notify(
        "textDocument/didChange", {"textDocument": {"uri": "file:///x.cu", "version": 2}, "contentChanges": []}
    )
    server.notify("textDocument/didClose", {"textDocument": {"uri": "file:///never/opened.cu"}})
    answer = await server.answer("x")  # type: ignore[arg-type]
    assert answer["error"]["code"] == -32601
    assert not [m for m in server.messages if m.get("method") == "window/showMessage"]
    assert await server.end() == 0


async def test_requests_before_initialize_do_no_harm(server: RawServer) -> None:
    await server.request(
        "textDocument/hover", {"textDocument": {"uri": "file:///a.cu"}, "position": {"line": 0, "character": 0}}
    )
    await server.initialize()
    assert await server.end() == 0


async def test_shutdown_with_a_command_in_flight(server: RawServer, tmp_path: Path) -> None:
    await server.initialize()
    server.send_request("workspace/executeCommand", {"command": "kernelLsp.rebuild", "arguments": []})
    assert await server.end() == 0


async def _hanging(tmp_path: Path, toolkit: Path) -> tuple[RawServer, Callable[[], list[int]]]:
    """A server that builds with a compiler that never ends and whose child ignores SIGTERM."""
    marks = tmp_path / "marks"
    marks.mkdir()
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(HANGING_NVCC.format(python=sys.executable, nvcc=toolkit / "bin" / "nvcc", marks=marks))
    nvcc.chmod(0o755)
    server = await RawServer.start(TMPDIR=str(tmp_path))
    await server.initialize(initializationOptions={"settings": {"tools": {"nvcc": str(nvcc)}}})
    source = tmp_path / "hang.cu"
    source.write_text(KERNEL)
    server.open(source.as_uri(), KERNEL)

    def pids() -> list[int]:
        return [pid for mark in marks.iterdir() if mark.read_text() for pid in (int(mark.name), int(mark.read_text()))]

    await _until(pids)
    return server, pids


async def _until(condition: Callable[[], object], timeout_s: float = 20) -> None:
    """Poll for something outside of this process, which has no event to await."""
    for _ in range(int(timeout_s / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


def _alive(pids: list[int]) -> list[int]:
    def lives(pid: int) -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    return [pid for pid in pids if lives(pid)]


@pytest.mark.parametrize("how", ["close", "shutdown", "exit", "end of input", "SIGTERM"])
async def test_no_process_is_left(how: str, tmp_path: Path, toolkit: Path) -> None:
    server, pids = await _hanging(tmp_path, toolkit)
    try:
        started = pids()
        assert len(_alive(started)) == 2
        assert server.process.stdin is not None
        if how == "close":
            server.notify("textDocument/didClose", {"textDocument": {"uri": (tmp_path / "hang.cu").as_uri()}})
        elif how == "shutdown":
            await server.request("shutdown", None)
        elif how == "exit":
            server.notify("exit", None)
        elif how == "end of input":
            server.process.stdin.close()
        else:
            server.process.send_signal(signal.SIGTERM)
        await _until(lambda: not _alive(started), timeout_s=2)
        if how == "shutdown":
            server.notify("exit", None)
        if how != "close":
            assert await server.exit_code() == (0 if how == "shutdown" else 1)
        scratch = Path(os.environ["KERNEL_LSP_CACHE_DIR"]) / "tmp"
        assert not scratch.exists() or not [p for run in scratch.iterdir() for p in run.glob("*/steps")]
    finally:
        await server.kill()


async def test_a_hanging_compiler_meets_its_time_limit(tmp_path: Path, toolkit: Path) -> None:
    server, pids = await _hanging(tmp_path, toolkit)
    try:
        uri = (tmp_path / "hang.cu").as_uri()
        nvcc = str(tmp_path / "nvcc")
        server.notify(
            "workspace/didChangeConfiguration",
            {"settings": {"kernelLsp": {"tools": {"nvcc": nvcc}, "build": {"timeLimit": 1}}}},
        )
        params = await server.published(uri, lambda p: p["diagnostics"])
        [diagnostic] = params["diagnostics"]
        assert diagnostic["code"] == "KL902"
        assert "1 s" in diagnostic["message"]
        await _until(lambda: not _alive(pids()), timeout_s=2)
        assert await server.end() == 0
    finally:
        await server.kill()


async def test_tcp(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kernel_lsp", "serve", "--tcp", "127.0.0.1:0"), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    line = (await process.stderr.readline()).decode()
    port = int(line.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode()
    writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    assert (await asyncio.wait_for(reader.readline(), 20)).startswith(b"Content-Length")
    writer.close()
    assert await asyncio.wait_for(process.wait(), 10) == 1


async def test_a_request_of_our_own_may_leave_out_its_params(server: RawServer) -> None:
    await server.initialize()
    server.send_bytes(json.dumps({"jsonrpc": "2.0", "id": "gpus", "method": "kernelLsp/gpus"}).encode())
    answer = await server.answer("gpus")  # type: ignore[arg-type]
    assert {"name": "GeForce RTX 3070 Ti", "arch": "sm_86"} in answer["result"]
    assert await server.end() == 0
