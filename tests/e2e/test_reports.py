"""Reports of Nsight Compute as the user meets them: found, shown on the right lines, followed, chosen, compared."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.e2e.conftest import SETTINGS, KernelClient, commands_of
from tests.e2e.raw_server import RawServer
from tests.e2e.test_documents import EXAMPLES, first_result, hover_text, insert, titles_of
from tests.e2e.test_instructions import hints_of
from tests.source_page import source_page

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "ncu"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"left out: there are no measured reports at {DATA}")

KERNEL = "transpose_conflicts(float *, const float *, int)"
MANGLED = "_Z19transpose_conflictsPfPKfi"
COPY, STORE = 13, 18  # lines of transpose.cu: global to shared, shared to global
WARMING_UP = "__global__ void warmingUp(float* c) { c[threadIdx.x] = 100.0f; }\n"  # of gtx1660_divergence_basic


def page(path: Path, waits: int, age_s: float = 100.0) -> Path:
    """A source page of transpose.cu: of 1,000 samples `waits` on l.18 for a long scoreboard, the rest on l.13."""
    text = (EXAMPLES / "transpose.cu").read_text()
    samples = {COPY: (0, 900 - waits, 100), STORE: (waits, 0, 0)}
    path.write_text(source_page(KERNEL, "/build/transpose.cu", text, samples))
    os.utime(path, (time.time() - age_s, time.time() - age_s))
    return path


def use(client: KernelClient, *names: Path, **reports: Any) -> None:
    """Name reports in the settings."""
    settings = {**SETTINGS, "reports": {"paths": [str(name) for name in names], **reports}}
    client.set_configuration(settings, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))


def watches(client: KernelClient) -> bool:
    return any(each.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES for each in client.registrations)


def changed(client: KernelClient, uri: str, *paths: Path) -> None:
    """Files came, changed or went: told by the client's watcher, or not at all before the next save."""
    if watches(client):
        kinds = types.FileChangeType
        changes = [types.FileEvent(p.as_uri(), kinds.Changed if p.exists() else kinds.Deleted) for p in paths]
        client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes=changes))
    else:
        client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))


async def measured_lens(client: KernelClient, uri: str) -> str:
    return next((title for title in await titles_of(client, uri) if "measured" in title), "")


async def until(condition: Any, what: str, timeout_s: float = 60.0) -> Any:
    """The first true value of a condition that asks the server."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    while not (value := await condition()):
        assert loop.time() < end, f"not within {timeout_s} s: {what}"
        await asyncio.sleep(0.05)
    return value


async def shown_share(client: KernelClient, uri: str, line: int = STORE) -> str:
    """The hint at the end of a line, where it tells a share of the samples."""
    hint = (await hints_of(client, uri)).get(line)
    return str(hint.label) if hint is not None and "%" in str(hint.label) else ""


async def open_transpose(client: KernelClient, root: Path) -> tuple[Path, str]:
    source = root / "transpose.cu"
    shutil.copy(EXAMPLES / "transpose.cu", source)
    return source, client.open(source)


async def choose(client: KernelClient, uri: str, command: str = "kernelLsp.chooseReport") -> tuple[str, list[str]]:
    """Run the command; the list that the user is shown."""
    client.picks.clear()
    await client.workspace_execute_command_async(types.ExecuteCommandParams(command, [uri, MANGLED]))
    return await client.wait_until(lambda: client.picks[0] if client.picks else None, "the list")


async def test_a_report_is_shown_on_its_lines_and_follows_edits(client: KernelClient, tmp_path: Path) -> None:
    use(client, page(tmp_path / "a.csv", 600))
    source, uri = await open_transpose(client, tmp_path)
    await until(lambda: measured_lens(client, uri), "the measured lens")
    await until(lambda: shown_share(client, uri), "the hot line's hint")
    assert "60 %" in await shown_share(client, uri)
    assert "long scoreboard" in await shown_share(client, uri)
    on_line = await hover_text(client, uri, STORE, 8)
    assert "600" in on_line
    assert "60 %" in on_line
    assert "long scoreboard" in on_line
    hot = [d for d in client.diagnostics[uri] if d.code == "KL601"]
    assert {d.range.start.line + 1 for d in hot} >= {STORE}

    insert(client, uri, 2, 1, "// one more\n")
    assert "60 %" in await shown_share(client, uri, STORE + 1)
    assert await shown_share(client, uri, STORE) == ""

    # Saved: the untouched line keeps its numbers, the edited one is unmeasured.
    lines = ["// one more", *source.read_text().splitlines()]
    lines[STORE] = lines[STORE].replace("tx] =", "tx] = 2 *")
    client.save(source, "\n".join(lines) + "\n", version=3)
    await client.wait_until(lambda: client.published[-1].version == 3, "the save's result")
    await until(lambda: _no_share(client, uri, STORE + 1), "the edited line without numbers")

    async def unmeasured() -> bool:
        return "unmeasured" in await hover_text(client, uri, STORE + 1, 8)

    await until(unmeasured, "the hover that says so")
    assert not [d for d in client.diagnostics[uri] if d.code == "KL601" and d.range.start.line == STORE]


async def _no_share(client: KernelClient, uri: str, line: int) -> bool:
    return not await shown_share(client, uri, line)


async def test_the_newest_takes_over_another_is_chosen_and_two_are_compared(
    client: KernelClient, tmp_path: Path
) -> None:
    old, new = page(tmp_path / "old.csv", 200, age_s=7200), tmp_path / "new.csv"
    use(client, old)
    _, uri = await open_transpose(client, tmp_path)
    await until(lambda: shown_share(client, uri), "the old report")
    assert "20 %" in await shown_share(client, uri)
    n_refreshes = len(client.refreshes)
    page(new, 500)
    use(client, old, new)
    await until(lambda: _says(client, uri, "50 %"), "the new report")

    title, items = await choose(client, uri)
    assert "transpose_conflicts" in title
    assert len(items) == 3
    assert items[0].startswith("Always the newest, new.csv now")
    assert items[1].startswith("new.csv")
    assert "shown now" in items[1]
    assert items[2].startswith("old.csv")
    assert "2 h ago" in items[2]
    assert "fits by line" in items[2]
    assert "50 %" in await shown_share(client, uri), "nothing was picked"
    client.picked.append(2)
    await choose(client, uri)
    await until(lambda: _says(client, uri, "20 %"), "the chosen report")
    client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
    await client.wait_until(lambda: client.statuses[-1].state == "idle", "the save")
    assert "20 %" in await shown_share(client, uri), "the choice holds"
    client.picked.append(0)
    await choose(client, uri)
    await until(lambda: _says(client, uri, "50 %"), "the newest again")
    if n_refreshes:
        assert len(client.refreshes) > n_refreshes

    name = types.Range(types.Position(6, 20), types.Position(6, 20))
    actions = await client.text_document_code_action_async(
        types.CodeActionParams(types.TextDocumentIdentifier(uri), name, types.CodeActionContext(diagnostics=[]))
    )
    commands = commands_of(actions)
    assert "Choose the measurement of transpose_conflicts" in commands
    compare = commands["Compare measurements of transpose_conflicts"]
    await client.workspace_execute_command_async(types.ExecuteCommandParams(compare.command, compare.arguments))
    compared = tmp_path / "transpose.cu.compare.md"
    await client.wait_until(lambda: compared.exists() and compared.read_text(), "the comparison")
    text = compared.read_text()
    assert text.index("old.csv") < text.index("new.csv")
    assert "| l.18 | 20 % | 50 % |" in " ".join(text.split()).replace("transpose.cu:18", "l.18")


async def _says(client: KernelClient, uri: str, words: str) -> bool:
    return words in await shown_share(client, uri)


async def test_what_is_said_where_there_is_nothing_to_choose(client: KernelClient, tmp_path: Path) -> None:
    bad = tmp_path / "bad.ncu-rep"
    bad.write_text("no report")
    os.utime(bad, (1, 1))
    _, uri = await open_transpose(client, tmp_path)
    await first_result(client, uri)
    for command in ("kernelLsp.chooseReport", "kernelLsp.compareReports"):
        client.messages.clear()
        await client.workspace_execute_command_async(types.ExecuteCommandParams(command, [uri, MANGLED]))
        await client.wait_until(lambda: client.messages, "the answer")
        [message] = client.messages
        assert "No report of Nsight Compute holds transpose_conflicts" in message.message
        assert f"{bad}: no Nsight Compute report" in message.message
    assert client.picks == []


@needs_data
async def test_reports_of_the_workspace_come_and_go(client: KernelClient, tmp_path: Path) -> None:
    use(client)
    source = tmp_path / "warm.cu"
    source.write_text(WARMING_UP)
    other = tmp_path / "other.cu"
    other.write_text(WARMING_UP.replace("warmingUp", "other"))
    uri, other_uri = client.open(source), client.open(other)
    await first_result(client, uri)
    await first_result(client, other_uri)
    await client.wait_until(lambda: client.statuses[-1].state == "idle", "rest")

    def builds(uri: str) -> int:
        return sum(status.uri == uri and status.state == "building" for status in client.statuses)

    n_other = builds(other_uri)

    # It grows, as ncu writes it: nothing is said, and the whole of it is shown.
    report = tmp_path / "profiles" / "run.ncu-rep"
    report.parent.mkdir()
    whole = (DATA / "gtx1660_divergence_basic.ncu-rep").read_bytes()
    client.messages.clear()
    for part in (b"", whole[: len(whole) // 2]):
        report.write_bytes(part)
        changed(client, uri, report)
        await asyncio.sleep(0.2)  # as ncu takes its time
    report.write_bytes(whole)
    changed(client, uri, report)
    lens = await until(lambda: measured_lens(client, uri), "the report")
    assert "1.60 us measured" in lens  # 1600 ns by NVIDIA's library
    assert client.messages == []
    if watches(client):
        assert builds(other_uri) == n_other, "it does not concern the other file"

    report.unlink()
    changed(client, uri, report)
    await until(lambda: _without_lens(client, uri), "the report to go")
    assert client.messages == []


async def _without_lens(client: KernelClient, uri: str) -> bool:
    return not await measured_lens(client, uri)


@needs_data
async def test_without_a_chosen_gpu_the_reports_device_is_the_machine(client: KernelClient, tmp_path: Path) -> None:
    client.set_configuration({}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    shutil.copy(DATA / "rtx2080ti_basic.ncu-rep", tmp_path / "run.ncu-rep")
    source = tmp_path / "a.cu"
    source.write_text("__global__ void kernel_A(double* x, int n, int m) { x[threadIdx.x] = n * m; }\n")
    uri = client.open(source)
    await until(lambda: measured_lens(client, uri), "the report")
    status = [each for each in client.statuses if each.uri == uri][-1]
    assert status.arch == "sm_75"
    assert status.gpu.startswith("GeForce RTX 2080 Ti")
    assert "the device of the report" in status.gpuWhy


def bad_files(folder: Path) -> list[Path]:
    """Files that are no reports; with measured data at hand also damaged real ones."""
    folder.mkdir()
    made = {
        "empty.ncu-rep": b"",
        "text.ncu-rep": b"this is a text\n",
        "elf.ncu-rep": b"\x7fELF\x02\x01\x01" + bytes(100),
        "magic.ncu-rep": b"NVR\0",
        "noise.ncu-rep": b"NVR\0" + bytes((7 * i * i + 13) % 256 for i in range(50_000)),
        "noise.ncu-repz": b"\x28\xb5\x2f\xfd" + bytes((5 * i * i + 3) % 256 for i in range(5_000)),
        "binary.csv": b"\x00\x01\x02\x03" * 1000,
        "renamed.csv": b"NVR\0" + bytes(1000),
        "program.csv": b"hello\nworld\n",
    }
    if DATA.is_dir():
        real = (DATA / "gtx1660_divergence_basic.ncu-rep").read_bytes()
        flipped = bytearray(real)
        for at in range(64, len(real), 997):
            flipped[at] ^= 0x40
        made |= {
            "truncated.ncu-rep": real[: len(real) // 2],
            "flipped.ncu-rep": bytes(flipped),
            "packed.ncu-repz": real,
        }
        made["report.csv"] = real
    for name, data in made.items():
        (folder / name).write_bytes(data)
    with (folder / "huge.ncu-rep").open("wb") as file:
        file.write(b"NVR\0")
        file.truncate(2 << 30)  # takes no room on disk
    for path in folder.iterdir():
        os.utime(path, (time.time() - 100, time.time() - 100))
    return sorted(folder.iterdir())


async def test_bad_reports_change_nothing_and_named_ones_are_told_once(client: KernelClient, tmp_path: Path) -> None:
    good = page(tmp_path / "good.csv", 600)
    use(client, good)
    _, uri = await open_transpose(client, tmp_path)
    await until(lambda: shown_share(client, uri), "the good report")
    client.messages.clear()
    bad = bad_files(tmp_path / "bad")
    changed(client, uri, *bad)

    async def tried() -> bool:
        await client.workspace_execute_command_async(
            types.ExecuteCommandParams("kernelLsp.chooseReport", [uri, MANGLED])
        )
        return bool(client.picks) and sum("is not read" in item for item in client.picks[-1][1]) >= 5

    await until(tried, "the bad reports in the list")
    assert client.messages == [], "reports that were only found are not spoken of"
    assert "60 %" in await shown_share(client, uri)

    use(client, good, *bad)
    readable = {"packed.ncu-repz", "flipped.ncu-rep"}  # by the library's leave; they hold no kernel of this file
    wanted = [path for path in bad if path.name not in readable]
    await client.wait_until(
        lambda: all(any(m.message.startswith(f"{path}: ") for m in client.messages) for path in wanted),
        "a message for each",
        120,
    )
    for path in bad:
        told = [m.message for m in client.messages if m.message.startswith(f"{path}: ")]
        assert len(told) == 1 or path.name in readable, told
        assert all("\n" not in each for each in told)
    assert "60 %" in await shown_share(client, uri)
    client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
    await client.wait_until(lambda: client.statuses[-1].state == "idle", "the save")
    assert len([m for m in client.messages if m.message.startswith(f"{wanted[0]}: ")]) == 1


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if (
                int(fields[1]) == pid
                and fields[0] != "Z"
                and b"kernel_lsp.ncu.worker" in (entry / "cmdline").read_bytes()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("how", ["shutdown", "exit", "end of input"])
async def test_no_reader_is_left(how: str, tmp_path: Path) -> None:
    (tmp_path / "run.ncu-rep").write_bytes(b"NVR\0" + bytes(50_000))
    source = tmp_path / "warm.cu"
    source.write_text(WARMING_UP)
    server = await RawServer.start()
    try:
        await server.initialize(rootUri=tmp_path.as_uri())
        server.open(source.as_uri(), WARMING_UP)
        loop = asyncio.get_running_loop()
        end = loop.time() + 30
        while not (readers := _children(server.process.pid)):
            assert loop.time() < end, "no reader was started"
            await asyncio.sleep(0.005)
        assert server.process.stdin is not None
        if how == "shutdown":
            assert await server.end() == 0
        else:
            server.process.stdin.close() if how == "end of input" else server.notify("exit", None)
            assert await server.exit_code() == 1
        assert [pid for pid in readers if Path(f"/proc/{pid}").exists()] == []
    finally:
        await server.kill()


async def test_an_untrusted_workspace_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "run.ncu-rep").write_bytes(b"NVR\0" + bytes(50_000))
    source = tmp_path / "warm.cu"
    source.write_text(WARMING_UP)
    server = await RawServer.start()
    try:
        await server.initialize(rootUri=tmp_path.as_uri(), initializationOptions={"trusted": False})
        server.open(source.as_uri(), WARMING_UP)
        await server.published(source.as_uri())
        arguments = [source.as_uri(), "_Z9warmingUpPf"]
        await server.request("workspace/executeCommand", {"command": "kernelLsp.chooseReport", "arguments": arguments})
        said = await server.message(lambda m: m.get("method") == "window/showMessage")
        assert said["params"]["message"] == (
            "No report of Nsight Compute holds warmingUp. None was found. "
            "This workspace is not trusted: reports in it are not read."
        )
        assert await server.end() == 0
    finally:
        await server.kill()
