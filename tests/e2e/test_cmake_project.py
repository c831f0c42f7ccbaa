"""A real CMake project opened with no configuration: three targets, a generated source, a header library, two types."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cases.editor import Editor, errors
from tests.cmake_projects import copy_of

SOURCES = ("src/gemm.cu", "src/reduce.cu", "src/shared.cu", "src/bench.cu")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, toolkit: Path) -> Path:
    """The project with build/debug and build/release, and their generated sources."""
    return copy_of("folders", toolkit, tmp_path_factory.mktemp("cmake") / "project")


@pytest.fixture
async def editor(project: Path) -> AsyncIterator[Editor]:
    started = await Editor.start(project)
    yield started
    await started.server.kill()


async def test_everything_shows_its_numbers_on_opening(editor: Editor) -> None:
    root = editor.root
    generated = "build/release/generated_scale.cu"
    names = (*SOURCES, generated, "include/tiles/tile.cuh")
    for name in names:
        editor.open(name)
    for name in names:
        assert not errors(await editor.diagnostics(name)), name
    for name in ("src/gemm.cu", "src/reduce.cu", "src/bench.cu", generated):
        assert await editor.lenses(name), name
    assert not editor.said()
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}

    # A header of the library: exactly what reads it is built again.
    header = root / "include" / "tiles" / "load.cuh"
    readers = {name for name in names if name.endswith(".cu") and _reads(root, name, "load.cuh")}
    assert readers
    assert readers != set(names)
    n_before = {name: len(editor.published(name)) for name in names}
    text = header.read_text("utf-8")
    header.write_text(text + "\n#error not today\n", "utf-8")
    editor.server.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": header.as_uri(), "type": 2}]})
    # The error stands in the header, once; each reader says that it has no new numbers.
    params = await editor.server.published(header.as_uri(), lambda p: errors(p["diagnostics"]))
    [error] = errors(params["diagnostics"])
    assert error["range"]["start"]["line"] == text.count("\n") + 1
    header.write_text(text, "utf-8")
    editor.server.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": header.as_uri(), "type": 2}]})
    await editor.server.message(
        lambda m: m.get("method") == "textDocument/publishDiagnostics"
        and m["params"]["uri"] == header.as_uri()
        and m["params"]["diagnostics"] == []
    )
    untouched = set(names) - readers - {"include/tiles/tile.cuh"}
    assert {name for name in untouched if len(editor.published(name)) != n_before[name]} == set()
    after = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file() and path != header}
    assert after == {path: time for path, time in before.items() if path != header}


def _reads(root: Path, name: str, header: str) -> bool:
    """What the source includes, by its own lines or those of the library's other header."""
    text = (root / name).read_text("utf-8")
    through = (root / "include" / "tiles" / "tile.cuh").read_text("utf-8")
    return header in text or ("tile.cuh" in text and header in through)


async def test_the_database_is_read_again_when_it_changes(editor: Editor) -> None:
    editor.open("src/gemm.cu")
    assert not errors(await editor.diagnostics("src/gemm.cu"))
    for kind in ("debug", "release"):
        path = editor.root / "build" / kind / "compile_commands.json"
        entries = json.loads(path.read_text("utf-8"))
        for entry in entries:
            entry["command"] = entry["command"].replace("TILE_WIDTH=16", "TILE_WIDTH=missing")
        path.write_text(json.dumps(entries), "utf-8")
    editor.server.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": path.as_uri(), "type": 2}]})
    await editor.server.message(
        lambda m: m.get("method") == "textDocument/publishDiagnostics"
        and any("missing" in d["message"] for d in m["params"]["diagnostics"])
    )
