"""Profile and benchmark from the editor: code actions, progress, cancel, refusal; with a stand-in for ncu."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from kernel_lsp.build.kept_reports import kept_reports, reports_folder
from tests.e2e.conftest import SETTINGS, KernelClient, commands_of
from tests.e2e.raw_server import RawServer
from tests.e2e.test_documents import first_result, titles_of
from tests.e2e.test_lifecycle import _alive, _until
from tests.fakes import fake_ncu

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts of POSIX")

# Real reports of other people's runs, not part of this repository; where they are missing, that test is left out.
DATA = Path(__file__).parents[2].parent / "shared" / "data" / "ncu"
SOURCE = """template <int N> __global__ void __launch_bounds__(256) tile(float* x)
{
    x[threadIdx.x] *= N;
}
template __global__ void tile<4>(float*);

__global__ void __launch_bounds__(256) plain(float* x)
{
    x[threadIdx.x] += 1.0f;
}
"""
# One kernel of rtx3070_scan_samples.ncu-rep by its name: the code is another.
MEASURED = """__global__ void kernel(int const* in, int* out, unsigned long* a, unsigned int* b, unsigned int n)
{
    out[threadIdx.x] = in[threadIdx.x];
}
"""
TILE = "_Z4tileILi4EEvPf"


async def open_source(client: KernelClient, text: str = SOURCE) -> str:
    source = client.root / "k.cu"
    source.write_text(text)
    uri = client.open(source)
    await first_result(client, uri)
    return uri


async def configure(client: KernelClient, **settings: Any) -> None:
    """Change settings; on return the server has them: it asks on being told, and answers in order."""
    client.set_configuration({**SETTINGS, **settings}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    for _ in range(3):
        await actions_at(client, "file:///none.cu", 1)


def profile_command(uri: str, mangled: str | None) -> types.Command:
    return types.Command(title="Profile", command="kernelLsp.profileKernel", arguments=[uri, mangled])


async def actions_at(client: KernelClient, uri: str, line: int) -> dict[str, types.Command]:
    at = types.Position(line - 1, 4)
    found = await client.text_document_code_action_async(
        types.CodeActionParams(
            types.TextDocumentIdentifier(uri),
            types.Range(at, at),
            types.CodeActionContext(diagnostics=[], trigger_kind=types.CodeActionTriggerKind.Invoked),
        )
    )
    return commands_of(found)


async def run(client: KernelClient, command: types.Command) -> None:
    await client.workspace_execute_command_async(types.ExecuteCommandParams(command.command, command.arguments))


def kept(client: KernelClient) -> tuple[Path, ...]:
    return kept_reports(reports_folder(Path(os.environ["KERNEL_LSP_CACHE_DIR"]), client.root))


async def test_profile_asks_ncu_for_the_kernel_at_the_cursor(
    client: KernelClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    marks = tmp_path_factory.mktemp("marks")
    ncu = fake_ncu.install(marks / "bin", launches=["_Z5plainPf", TILE], marks=str(marks), run=True)
    await configure(client, profile={"command": [str(ncu)], "program": ["./app", "a b"], "launchCount": 2})
    app = client.root / "app"
    app.write_text('#!/bin/sh\necho "$PWD|$*" > said\n')
    app.chmod(0o755)
    uri = await open_source(client)
    actions = await actions_at(client, uri, 1)
    assert "Profile plain" not in actions
    await run(client, actions["Profile tile<4>"])
    await client.wait_until(lambda: kept(client), "the kept report")
    options, program = fake_ncu.parse(json.loads((marks / "argv").read_text()))
    assert options["--kernel-name"] == [TILE]
    assert options["--launch-count"] == ["2"]
    assert program == [str(app), "a b"]
    assert (client.root / "said").read_text() == f"{client.root}|a b\n"
    assert sorted(path.name for path in client.root.iterdir()) == ["app", "k.cu", "said"]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the reports are not there ({DATA})")
async def test_what_was_profiled_is_shown(client: KernelClient, tmp_path_factory: pytest.TempPathFactory) -> None:
    ncu = fake_ncu.install(
        tmp_path_factory.mktemp("bin"),
        launches=["_Z6kernelPKiPiPmPjj"],
        report=str(DATA / "rtx3070_scan_samples.ncu-rep"),
    )
    await configure(client, profile={"command": [str(ncu)], "program": ["true"]})
    uri = await open_source(client, MEASURED)
    assert not any("measured" in title for title in await titles_of(client, uri))
    await run(client, (await actions_at(client, uri, 1))["Profile kernel"])

    async def measured() -> bool:
        return any("measured" in title for title in await titles_of(client, uri))

    for _ in range(3000):
        if await measured():
            break
        await asyncio.sleep(0.02)
    assert await measured()


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"program": []}, "kernelLsp.profile.program is empty"),
        ({"command": ["/none/ncu"], "program": ["true"]}, "kernelLsp.profile.command: /none/ncu does not exist"),
        (
            {"program": ["true"], "says": "==ERROR== ERR_NVGPUCTRPERM - The user\n"},
            "NVreg_RestrictProfilingToAdminUsers",
        ),
        ({"program": ["true"]}, "it launched _Z5plainPf"),
    ],
)
async def test_a_failure_is_one_message(
    client: KernelClient, tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any], part: str
) -> None:
    says = {name: value for name, value in settings.items() if name == "says"}
    ncu = fake_ncu.install(tmp_path_factory.mktemp("bin"), launches=["_Z5plainPf"], **says)
    words = {name: value for name, value in settings.items() if name != "says"}
    await configure(client, profile={"command": [str(ncu)], **words})
    uri = await open_source(client)
    await run(client, profile_command(uri, TILE))
    await client.wait_until(lambda: client.messages, "a message")
    [message] = client.messages
    assert message.type == types.MessageType.Warning
    assert part in message.message
    assert kept(client) == ()


async def test_which_kernel_is_meant(client: KernelClient) -> None:
    uri = await open_source(client)
    await run(client, profile_command(uri, None))
    await client.wait_until(lambda: client.messages, "a message")
    assert "put the cursor into one" in client.messages[0].message
    await run(client, profile_command(uri, "_Z4gonePf"))
    await client.wait_until(lambda: len(client.messages) == 2, "another message")
    assert client.messages[1].message == "k.cu no longer holds this kernel."
    await run(client, profile_command("file:///none.cu", None))
    await client.wait_until(lambda: len(client.messages) == 3, "another message")
    assert client.messages[2].message.startswith("Open a CUDA file first")


async def test_benchmark_before_and_after(client: KernelClient) -> None:
    bench = client.root / "bench"
    bench.write_text('#!/bin/sh\necho "gemm: $(cat ms) ms"\n')
    bench.chmod(0o755)
    (client.root / "ms").write_text("2.0")
    await configure(
        client, benchmark={"command": ["./bench"], "pattern": r"(?P<name>\w+): (?P<ms>[\d.]+) ms", "warmup": 0}
    )
    uri = await open_source(client)
    command = (await actions_at(client, uri, 3))["Run the benchmark"]
    await run(client, command)
    await client.wait_until(lambda: client.shown_documents, "the page")
    page = Path(client.shown_documents[0].uri.removeprefix("file://"))
    assert page.name.endswith(".benchmark.md")
    assert "gemm: 2.00 ms." in page.read_text()
    (client.root / "ms").write_text("1.0")
    await run(client, command)
    await client.wait_until(lambda: len(client.shown_documents) == 2, "the page again")
    assert "gemm: 1.00 ms, 50.0 % less time (2.00 ms before)." in page.read_text()
    assert client.messages == []


# --- with a server of the test's own ----------------------------------------------------------------------------------


@pytest.fixture
async def hanging(tmp_path: Path) -> AsyncIterator[tuple[RawServer, list[int]]]:
    """A server with a profile under way that does not end, and the processes of it."""
    marks = tmp_path / "marks"
    marks.mkdir()
    ncu = fake_ncu.install(tmp_path / "bin", hang=True, marks=str(marks))
    server = await RawServer.start()
    await server.initialize(
        capabilities={"window": {"workDoneProgress": True}},
        initializationOptions={"settings": {**SETTINGS, "profile": {"command": [str(ncu)], "program": ["true"]}}},
    )
    source = tmp_path / "k.cu"
    source.write_text(SOURCE)
    server.open(source.as_uri(), SOURCE)
    await server.published(source.as_uri())
    command = {"command": "kernelLsp.profileKernel", "arguments": [source.as_uri(), TILE]}
    await server.request("workspace/executeCommand", command)
    await _until(lambda: len(list(marks.glob("[0-9]*"))) == 2)
    pids = [int(mark.name) for mark in marks.glob("[0-9]*")]
    assert len(_alive(pids)) == 2
    yield server, pids
    await server.kill()


async def test_cancel_ends_ncu(hanging: tuple[RawServer, list[int]]) -> None:
    server, pids = hanging

    def begins(message: dict[str, Any]) -> bool:
        value = message.get("params", {}).get("value", {}) if message.get("method") == "$/progress" else {}
        return value.get("title") == "Profiling"

    begun = (await server.message(begins))["params"]
    assert begun["value"]["message"] == "tile<4>"
    assert begun["value"]["cancellable"] is True
    server.notify("window/workDoneProgress/cancel", {"token": begun["token"]})
    await _until(lambda: not _alive(pids), timeout_s=5)
    ended = await server.message(
        lambda m: m.get("method") == "$/progress"
        and m["params"]["token"] == begun["token"]
        and m["params"]["value"]["kind"] == "end"
    )
    assert ended["params"]["value"]["message"] == "cancelled"
    assert not [m for m in server.messages if m.get("method") == "window/showMessage"]
    assert await server.end() == 0


@pytest.mark.parametrize("how", ["shutdown", "exit", "end of input"])
async def test_no_process_is_left(hanging: tuple[RawServer, list[int]], how: str) -> None:
    server, pids = hanging
    assert server.process.stdin is not None
    if how == "shutdown":
        assert await server.end() == 0
    elif how == "exit":
        server.notify("exit", None)
    else:
        server.process.stdin.close()
    await _until(lambda: not _alive(pids), timeout_s=5)
    await server.exit_code()


async def test_a_workspace_without_trust_runs_nothing(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text(f'#!/bin/sh\ntouch "{tmp_path}/ran"\n')
    canary.chmod(0o755)
    words = [str(canary)]
    server = await RawServer.start()
    try:
        await server.initialize(
            initializationOptions={
                "trusted": False,
                "settings": {
                    **SETTINGS,
                    "profile": {"command": words, "program": words},
                    "benchmark": {"command": words},
                },
            }
        )
        source = tmp_path / "k.cu"
        source.write_text(SOURCE)
        server.open(source.as_uri(), SOURCE)
        await server.published(source.as_uri())
        at = {"line": 0, "character": 4}
        asked = {
            "textDocument": {"uri": source.as_uri()},
            "range": {"start": at, "end": at},
            "context": {"diagnostics": [], "triggerKind": 1},
        }
        titles = [action["title"] for action in (await server.request("textDocument/codeAction", asked))["result"]]
        assert "Write bottleneck report of tile<4>" in titles
        assert not [title for title in titles if title.startswith(("Profile", "Run the benchmark"))]
        for n_said, (command, arguments) in enumerate(
            [("profileKernel", [source.as_uri(), TILE]), ("benchmark", [source.as_uri()])], 1
        ):
            await server.request(
                "workspace/executeCommand", {"command": f"kernelLsp.{command}", "arguments": arguments}
            )
            await _until_said(server, n_said)
        assert {text.partition(":")[0] for text in _said(server)} == {"This workspace is not trusted"}
        assert not (tmp_path / "ran").exists()
        assert await server.end() == 0
    finally:
        await server.kill()


async def _until_said(server: RawServer, n_messages: int) -> None:
    await _until(lambda: len(_said(server)) == n_messages)


def _said(server: RawServer) -> list[str]:
    return [m["params"]["message"] for m in server.messages if m.get("method") == "window/showMessage"]
