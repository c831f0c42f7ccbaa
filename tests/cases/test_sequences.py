"""The cases of kind lsp, and what others say of an editor: sequences of opens, edits and saves with the real server."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.editor import PROGRESS, Editor, errors
from tests.cases.test_cases import HERE, Case, lay_out

SM_90 = {"build": {"flags": ["-arch=sm_90"]}}
Start = Callable[..., Awaitable[Editor]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts editors, and ends their servers afterwards whatever happened."""
    started: list[Editor] = []

    async def start(root: Path, settings: dict[str, Any] | None = None, **more: Any) -> Editor:
        started.append(await Editor.start(root, settings, **more))
        return started[-1]

    yield start
    for editor in started:
        await editor.server.kill()


def laid(number: str, tmp_path: Path) -> Case:
    [folder] = HERE.glob(f"{number}-*")
    return lay_out(folder, yaml.safe_load((folder / "case.yaml").read_text("utf-8")), tmp_path / "case")


async def test_38_five_saves_one_result(start: Start, tmp_path: Path, toolkit: Path) -> None:
    case = laid("38", tmp_path)
    wrapper = case.root / "bin" / "nvcc"
    wrapper.chmod(0o755)
    versions = {n: (case.root / "versions" / f"v{n}.cu").read_text("utf-8") for n in range(1, 6)}
    (case.root / "gain.cu").write_text(versions[1], "utf-8")
    editor = await start(
        case.root,
        {"tools": {"nvcc": str(wrapper)}, **SM_90},
        capabilities=PROGRESS,
        NVCC_REAL=str(toolkit / "bin" / "nvcc"),
    )
    editor.open("gain.cu")
    editor.open("other.cu")
    await editor.diagnostics("gain.cu")
    await editor.diagnostics("other.cu")
    log = case.root / "bin" / "calls.log"
    n_before = len(log.read_text().splitlines())
    last = max(editor.save("gain.cu", versions[n]) for n in range(1, 6))
    done = asyncio.ensure_future(editor.diagnostics("gain.cu", last))
    took = []
    while not done.done():
        began = time.perf_counter()
        assert await editor.hover("other.cu", 1, 18)
        took.append(time.perf_counter() - began)
        await asyncio.wait([done], timeout=0.1)
    assert sorted(took)[int(0.95 * (len(took) - 1))] < 0.1

    calls = log.read_text().splitlines()
    assert len([call for call in calls[n_before:] if call.startswith("start")]) <= 2
    # One at a time: what began ended (or was stopped, which leaves no end) before the next began.
    pids_ended = [call.split()[1] for call in calls if call.startswith("end")]
    pids_begun = [call.split()[1] for call in calls if call.startswith("start")]
    assert [pid for pid in pids_begun if pid in pids_ended] == pids_ended
    versions_told = [params["version"] for params in editor.published("gain.cu")]
    assert versions_told == sorted(versions_told)
    assert versions_told[-1] == last
    assert [line for line, _ in await editor.lenses("gain.cu")] == [1]
    kinds = [m["params"]["value"]["kind"] for m in editor.server.messages if m.get("method") == "$/progress"]
    assert kinds.count("begin") == kinds.count("end") > 0
    assert await editor.server.end() == 0


async def test_39_unsaved_edits(start: Start, tmp_path: Path) -> None:
    case = laid("39", tmp_path)
    editor = await start(case.root, SM_90)
    editor.open("scale.cu")
    await editor.diagnostics("scale.cu")
    text = (case.root / "scale.cu").read_text("utf-8")
    [(first, _), (second, _)] = at_start = await editor.lenses("scale.cu")
    name = text.splitlines()[first - 1].index("scale")
    hover_at_start = await editor.hover("scale.cu", first, name)

    editor.change("scale.cu", "// a\n// b\n// c\n" + text)
    assert await editor.hover("scale.cu", 2, 1) is None
    assert [line for line, _ in await editor.lenses("scale.cu")] == [first + 3, second + 3]
    moved = await editor.hover("scale.cu", first + 3, name)
    assert moved
    assert "edited since" in moved["contents"]["value"]
    editor.change("scale.cu", "// a\n// b\n// c\n" + text.replace("3.0f", "5.0f", 1))
    assert [line for line, _ in await editor.lenses("scale.cu")] == [first + 3, second + 3]
    editor.change("scale.cu", text)
    assert await editor.lenses("scale.cu") == at_start
    assert await editor.hover("scale.cu", first, name) == hover_at_start
    assert [params["version"] for params in editor.published()] == [1]  # one build, and nothing for other versions


async def test_40_errors_then_fixed(start: Start, tmp_path: Path) -> None:
    case = laid("40", tmp_path)
    (case.root / "main.cu").write_text((case.root / "broken.cu").read_text("utf-8"), "utf-8")
    editor = await start(case.root, SM_90)
    editor.open("main.cu")
    step = case.expect["step 1"]
    n_errors = 0
    for name in ("main.cu", "inc/helper.cuh"):
        found = errors(await editor.diagnostics(name))
        n_errors += len(found)
        for wanted in step["diagnostics"]:
            if wanted["file"] == name:
                [at] = [d for d in found if d["range"]["start"]["line"] + 1 == wanted["line"]]
                assert all(word in at["message"] for word in wanted["message_has"])
    assert n_errors == step["count_errors"]

    editor.save("main.cu", (case.root / "fixed.cu").read_text("utf-8"))
    assert not errors(await editor.diagnostics("main.cu", 2))
    await editor.server.published(editor.uri("inc/helper.cuh"), lambda p: not errors(p["diagnostics"]))
    assert [line for line, _ in await editor.lenses("main.cu")] == [case.expect["step 2"]["kernels"][0]["line"]]

    for step_name, name in (("step 3", "template_error.cu"), ("step 4", "asm_error.cu")):
        editor.open(name)
        found = errors(await editor.diagnostics(name))
        for wanted in case.expect[step_name]["diagnostics"]:
            assert {d["range"]["start"]["line"] + 1 for d in found} == {wanted["line"]}
            assert all(word in found[0]["message"] for word in wanted["message_has"])
            related = {
                place["location"]["range"]["start"]["line"] + 1 for place in found[0].get("relatedInformation", ())
            }
            assert set(wanted.get("related_lines", ())) <= related
    assert not [params for params in editor.published() if "tmpxft" in params["uri"]]
    assert not editor.said()


@pytest.mark.parametrize("run", range(3))
async def test_41_columns(run: int, start: Start, tmp_path: Path) -> None:
    case = laid("41", tmp_path)
    offered = case.input["runs"][run]["client_positionEncodings"]
    editor = await start(
        case.root, SM_90, capabilities={"general": {"positionEncodings": offered}} if offered else None
    )
    answer = await editor.server.answer(1)
    encoding = answer["result"]["capabilities"].get("positionEncoding", "utf-16")
    assert encoding in (offered or ["utf-16"])
    editor.open("rowsum.cu")
    for diagnostic in await editor.diagnostics("rowsum.cu"):
        assert diagnostic["range"]["end"]["character"] <= 80
    wanted = case.expect["kernel_name_range"]
    start_at, end_at = wanted[encoding]
    for character in (start_at, end_at - 1):
        hover = await editor.hover("rowsum.cu", wanted["line"], character)
        assert hover
        assert [hover["range"][edge]["character"] for edge in ("start", "end")] == [start_at, end_at]
    assert await editor.hover("rowsum.cu", wanted["line"], start_at - 1) is None
    assert await editor.hover("rowsum.cu", wanted["line"], end_at + 1) is None
    lenses = await editor.server.request("textDocument/codeLens", {"textDocument": {"uri": editor.uri("rowsum.cu")}})
    assert {(lens["range"]["start"]["character"], lens["range"]["end"]["character"]) for lens in lenses["result"]} == {
        (start_at, end_at)
    }


WITHOUT_CUDA = (
    "-c",
    "import sys\nfrom kernel_lsp.project import toolchain\n"
    "toolchain.machine_places = lambda environment: ()\n"
    "toolchain.own_wheel_places = lambda: (toolchain.Place(toolchain.Path('/nowhere'), 'PyPI packages'),)\n"
    "from kernel_lsp.cli.main import main\nsys.exit(main(['serve']))",
)


async def test_44_no_nvcc_is_said_once_and_a_setting_cures_it(start: Start, tmp_path: Path, toolkit: Path) -> None:
    case = laid("44", tmp_path)
    (case.root / "second.cu").write_text((case.root / "k.cu").read_text("utf-8"), "utf-8")
    editor = await start(case.root, argv=WITHOUT_CUDA, PATH="/usr/bin:/bin", CUDA_HOME="", CUDA_PATH="")
    editor.open("k.cu")
    editor.open("second.cu")
    assert await editor.diagnostics("k.cu") == []
    assert await editor.diagnostics("second.cu") == []
    version = editor.save("k.cu", (case.root / "k.cu").read_text("utf-8") + "\n")
    assert await editor.diagnostics("k.cu", version) == []
    [said] = editor.said()
    for words in ("nvcc not found", "kernelLsp.tools.nvcc", "PATH", "pip install"):
        assert words in said
    editor.configure({"tools": {"nvcc": str(toolkit / "bin" / "nvcc")}})
    version = editor.save("k.cu", (case.root / "k.cu").read_text("utf-8") + "\n")
    await editor.diagnostics("k.cu", version)
    assert [line for line, _ in await editor.lenses("k.cu")] == [case.expect["kernels"][0]["line"]]


@pytest.mark.parametrize("where", ["CUDA_HOME", "CUDA_PATH", "PATH", "entry"])
async def test_44_places_of_nvcc(where: str, start: Start, tmp_path: Path, toolkit: Path) -> None:
    case = laid("44", tmp_path)
    environment = {"PATH": "/usr/bin:/bin", "CUDA_HOME": "", "CUDA_PATH": ""}
    if where == "entry":
        database = (case.root / "with_path.json").read_text("utf-8").replace("/usr/local/cuda", str(toolkit))
        (case.root / "compile_commands.json").write_text(database, "utf-8")
    elif where == "PATH":
        environment["PATH"] = f"{toolkit / 'bin'}:/usr/bin:/bin"
    else:
        environment[where] = str(toolkit)
    editor = await start(case.root, argv=WITHOUT_CUDA, **environment)
    editor.open("k.cu")
    await editor.diagnostics("k.cu")
    assert [line for line, _ in await editor.lenses("k.cu")] == [case.expect["kernels"][0]["line"]]
    assert not editor.said()


def _ours(cache: Path) -> list[str]:
    """Programs that work in a folder under `cache`: the parts of running builds."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = f"\0TMPDIR={cache}".encode() in b"\0" + (entry / "environ").read_bytes()
            if is_ours and " Z " not in (entry / "stat").read_text():
                found.append((entry / "comm").read_text().strip())
        except OSError:
            continue
    return found


async def _until(condition: Callable[[], object], limit_s: float) -> None:
    """Poll for something outside of this process, which has no event to await."""
    end = time.perf_counter() + limit_s
    while not condition():
        assert time.perf_counter() < end, "not in time"
        await asyncio.sleep(0.02)


async def _until_told_once_more(editor: Editor, name: str, n_before: int) -> None:
    await _until(lambda: len(editor.published(name)) == n_before + 1, 30)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
async def test_45_cancel_leaves_nothing(start: Start, tmp_path: Path) -> None:
    case, cache = laid("45", tmp_path), tmp_path / "cache"
    environment = {"KERNEL_LSP_CACHE_DIR": str(cache)}

    def working() -> bool:
        return any(name in ("cicc", "ptxas") for name in _ours(cache))

    def nothing() -> bool:
        # os.walk passes over a folder that is removed meanwhile; Path.rglob raises.
        files = [name for _, _, names in os.walk(cache / "tmp") for name in names]
        return not _ours(cache) and set(files) <= {"lock"}

    editor = await start(case.root, SM_90, capabilities=PROGRESS, **environment)
    editor.open("heavy.cu")
    await _until(working, 30)
    editor.close("heavy.cu")
    await _until(nothing, 2)

    text = (case.root / "heavy.cu").read_text("utf-8")
    editor.open("heavy.cu")
    await _until(working, 30)
    editor.save("heavy.cu", text + "\n")
    await _until(lambda: _ours(cache).count("nvcc") <= 1, 2)
    await _until(working, 30)
    begin = await editor.server.message(
        lambda m: m.get("method") == "$/progress" and m["params"]["value"]["kind"] == "begin"
    )
    assert begin["params"]["value"]["cancellable"]
    tokens = [
        m["params"]["token"] for m in editor.server.messages
        if m.get("method") == "$/progress" and m["params"]["value"]["kind"] == "begin"
    ]  # fmt: skip
    editor.server.notify("window/workDoneProgress/cancel", {"token": tokens[-1]})
    end = await editor.server.message(
        lambda m: m.get("method") == "$/progress"
        and m["params"]["token"] == tokens[-1]
        and m["params"]["value"]["kind"] == "end"
    )
    assert end["params"]["value"]["message"] == "cancelled"
    await _until(nothing, 2)

    editor.save("heavy.cu", text + "\n\n")
    await _until(working, 30)
    await editor.server.request("shutdown", None)
    await _until(nothing, 2)
    assert not [d for params in editor.published() for d in errors(params["diagnostics"])]
    assert not editor.said()

    other = await start(case.root, SM_90, **environment)
    other.open("heavy.cu")
    await _until(working, 30)
    await other.server.kill()
    # The next one cleans up behind it, when it has started (what it loads first takes its time on a busy machine).
    await start(case.root, SM_90, **environment)
    await _until(nothing, 20)


async def test_published_to_the_uri_that_the_editor_opened(start: Start, tmp_path: Path) -> None:
    """16 and 18: letters that are escaped in several ways, and a workspace behind a symbolic link."""
    case = laid("16", tmp_path)
    editor = await start(case.root)
    name = case.input["open"]
    text = (case.root / name).read_text("utf-8")
    uri = case.rooted(case.input["uri"])
    for spelling in (uri, uri.replace("%28", "(").replace("%29", ")").replace("%27", "'")):
        editor.server.open(spelling, text)
        await editor.server.published(spelling)
        editor.server.notify("textDocument/didClose", {"textDocument": {"uri": spelling}})
    assert {params["uri"] for params in editor.published()} <= {uri, spelling}

    linked = laid("18", tmp_path / "second")
    editor = await start(linked.root / "link")
    for opened in ("src/clip.cu",):
        editor.open(opened)
        await editor.diagnostics(opened)
        assert await editor.lenses(opened)
    assert {params["uri"] for params in editor.published()} == {case_uri(linked.rooted(linked.expect["published_to"]))}


def case_uri(sentence: str) -> str:
    return re.split(r",\s", sentence)[0]


async def test_22_nothing_is_published_to_a_name_that_is_no_file(start: Start, tmp_path: Path) -> None:
    case = laid("22", tmp_path)
    text = (case.root / "string_kernel.cu").read_text("utf-8")
    # So that there is something to say of it: its numbers are of one launch that cannot be.
    (case.root / "string_kernel.cu").write_text(
        text + "\nvoid go(float* x) { from_string<<<1, 2048>>>(x); }\n", "utf-8"
    )
    editor = await start(case.root, SM_90)
    for name in case.input["open"]:
        editor.open(name)
        n_lines = len((case.root / name).read_text("utf-8").splitlines())
        for diagnostic in await editor.diagnostics(name):
            assert diagnostic["range"]["end"]["line"] < n_lines
    assert {params["uri"] for params in editor.published()} == {editor.uri(name) for name in case.input["open"]}


async def test_31_old_numbers_are_marked_after_a_failed_build(start: Start, tmp_path: Path) -> None:
    case = laid("31", tmp_path)
    whole = (case.root / "tile_sum.cu").read_text("utf-8")
    lines = whole.splitlines(keepends=True)
    lines[11] = "// " + lines[11]
    (case.root / "tile_sum.cu").write_text("".join(lines), "utf-8")
    editor = await start(case.root, SM_90)
    editor.open("tile_sum.cu")
    assert not errors(await editor.diagnostics("tile_sum.cu"))
    version = editor.save("tile_sum.cu", whole)
    [error] = errors(await editor.diagnostics("tile_sum.cu", version))
    assert error["range"]["start"]["line"] + 1 == 2
    related = {place["location"]["range"]["start"]["line"] + 1 for place in error["relatedInformation"]}
    assert related == {3, 12}
    lenses = await editor.lenses("tile_sum.cu")
    assert lenses
    assert all("before the failed build" in text for _, text in lenses)


async def test_49_header_through_its_includers(start: Start, tmp_path: Path) -> None:
    """The header alone; saving it renews exactly what reads it; its unsaved text is built when that is asked for."""
    case = laid("49", tmp_path)
    (case.root / "lone.cu").write_text("__global__ void lone(float* x) { x[threadIdx.x] = 1.f; }\n", "utf-8")
    editor = await start(case.root)
    header = case.input["open"]
    editor.open(header)
    assert not errors(await editor.diagnostics(header))
    [(line, text)] = await editor.lenses(header)
    assert line == 10
    assert text
    assert not [params for params in editor.published() if params["uri"] != editor.uri(header)]

    for name in ("src/warp.cu", "src/quad.cu", "lone.cu"):
        editor.open(name)
        await editor.diagnostics(name)
    n_before = {name: len(editor.published(name)) for name in ("src/warp.cu", "src/quad.cu", "lone.cu")}
    version = editor.save(header, (case.root / header).read_text("utf-8") + "\n// one more line\n")
    await editor.diagnostics(header, version)
    for name in ("src/warp.cu", "src/quad.cu"):
        await _until_told_once_more(editor, name, n_before[name])
    assert len(editor.published("lone.cu")) == n_before["lone.cu"]

    # The editor's watcher tells of the same save once more: nothing is built for it.
    n_before = {name: len(editor.published(name)) for name in ("src/warp.cu", "src/quad.cu", header)}
    change = {"uri": editor.uri(header), "type": 2}
    editor.server.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
    text = (case.root / header).read_text("utf-8")
    editor.configure({"build": {"onType": True}})
    for name in n_before:
        await _until_told_once_more(editor, name, n_before[name])

    # Unsaved text of the header: built where the includer reads it, with the header's lines.
    version = editor.change(header, "// unsaved\n" + text + "__device__ int wrong = missing;\n")
    [error] = errors(await editor.diagnostics(header, version))
    assert error["range"]["start"]["line"] == text.count("\n") + 1
    assert "missing" in error["message"]
    version = editor.change(header, "// unsaved\n// again\n" + text)
    assert not errors(await editor.diagnostics(header, version))
    assert [line for line, _ in await editor.lenses(header)] == [12]
    hover = await editor.hover(header, 12, 18)
    assert hover is None or "edited since" not in hover["contents"]["value"]
    assert (case.root / header).read_text("utf-8") == text
