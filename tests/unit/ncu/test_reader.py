"""The reader's child: bad files, crashes, hangs and limits end in one message; good ones are kept by content."""

from __future__ import annotations

import ast
import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.build import process
from kernel_lsp.build.ncu_reader import ReaderLimits, ReportReader
from kernel_lsp.build.store import BuildStore
from kernel_lsp.ncu.answer import read_answer
from kernel_lsp.ncu.raw_report import NcuError

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "ncu"
PACKAGE = Path(__file__).parents[3] / "kernel_lsp"
HEAD = b"NVR\0\x02\0\0\0"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BuildStore]:
    made = BuildStore(tmp_path / "cache")
    yield made
    made.close()


@pytest.fixture
def report() -> Path:
    """A real report of 100 KB."""
    path = DATA / "gtx1660_divergence_basic.ncu-rep"
    if not path.is_file():
        pytest.skip(f"left out: there are no measured reports at {DATA}")
    return path


async def failure(store: BuildStore, path: Path, limits: ReaderLimits | None = None, fake: str | None = None) -> str:
    """The one message that reading `path` ends in; `fake` stands for NVIDIA's library."""
    environment = dict(os.environ)
    if fake is not None:
        folder = path.parent / "fake"
        folder.mkdir()
        (folder / "ncu_report.py").write_text(fake, "utf-8")
        environment["PYTHONPATH"] = str(folder)
    with pytest.raises(NcuError) as found:
        await ReportReader(store, environment, limits).read(path)
    said = str(found.value)
    assert said.startswith(str(path))
    assert "\n" not in said
    assert not list((store.folder or Path()).glob("tmp/*/run-*")), "the run's folder is gone"
    return said


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"hello", "no Nsight Compute report"),
        (b'"ID","Process ID"\n', "no Nsight Compute report"),
        (b"\x7fELF" + bytes(100), "no Nsight Compute report"),
        (HEAD, "damaged"),
        (HEAD + bytes(range(256)) * 400, "damaged"),
        (b"\x28\xb5\x2f\xfd" + bytes(100), "cut short"),
    ],
)
async def test_what_is_no_report(store: BuildStore, tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(data)
    assert words in await failure(store, path)


async def test_no_file_a_folder_and_a_large_file(store: BuildStore, tmp_path: Path) -> None:
    assert "No such file" in await failure(store, tmp_path / "none.ncu-rep")
    assert "folder" in await failure(store, tmp_path)
    path = tmp_path / "large.ncu-rep"
    path.write_bytes(HEAD + bytes(5 << 20))
    assert "5 MB are more than is read" in await failure(store, path, ReaderLimits(file_bytes=4 << 20))


async def test_cut_reports(store: BuildStore, report: Path, tmp_path: Path) -> None:
    data = report.read_bytes()
    for share in (0.05, 0.4, 0.9):
        path = tmp_path / "cut.ncu-rep"
        path.write_bytes(data[: int(share * len(data))])
        said = await failure(store, path)
        assert "cut short" in said or "damaged" in said


async def test_flipped_bits_end_in_values_or_one_message(store: BuildStore, report: Path, tmp_path: Path) -> None:
    """The format has no checksum: most flips are in the binary; none may crash or hang the server."""
    data = bytearray(report.read_bytes())
    for seed in range(4):
        flipped = bytearray(data)
        for step in range(200):
            flipped[8 + (seed * 7919 + step * 104729) % (len(flipped) - 8)] ^= 1 << (step % 8)
        path = tmp_path / f"flipped{seed}.ncu-rep"
        path.write_bytes(flipped)
        said = ""
        try:
            await ReportReader(store, dict(os.environ)).read(path)
        except NcuError as error:
            said = str(error)
        assert not said or said.startswith(str(path))


async def test_the_library_is_missing(store: BuildStore, tmp_path: Path) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(HEAD)
    said = await failure(store, path, fake="raise ImportError('no such module')")
    assert "pip install 'kernel-lsp[ncu]'" in said


@pytest.mark.parametrize(
    ("fake", "words"),
    [
        ("import os\nos.abort()", "SIGABRT"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("raise RuntimeError('odd')", "odd"),
        ("def load_report(path):\n    raise ValueError('bad file')", "bad file"),
        ("def load_report(path):\n    return bytearray(1 << 40)", "more memory"),
        ("import sys\nsys.stdout.write('noise ' * 10)\ndef load_report(path):\n    return []", "damaged"),
        ("import sys\ndef load_report(path):\n    sys.exit(3)", "failed"),
    ],
)
async def test_a_library_that_misbehaves(store: BuildStore, tmp_path: Path, fake: str, words: str) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(HEAD)
    assert words in await failure(store, path, fake=fake)


async def test_a_library_that_hangs_is_stopped(store: BuildStore, tmp_path: Path) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(HEAD)
    started = time.perf_counter()
    said = await failure(store, path, ReaderLimits(seconds=1.0), "import signal\nsignal.pause()")
    assert "longer than 1 s" in said
    assert time.perf_counter() - started < 10


async def test_a_cancelled_read_leaves_nothing(store: BuildStore, tmp_path: Path) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(HEAD)
    (tmp_path / "ncu_report.py").write_text("import signal\nsignal.pause()", "utf-8")
    reader = ReportReader(store, {**os.environ, "PYTHONPATH": str(tmp_path)})
    task = asyncio.create_task(reader.read(path))
    while not list((store.folder or Path()).glob("tmp/*/run-*")):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not list((store.folder or Path()).glob("tmp/*/run-*"))


async def test_kept_by_content(
    store: BuildStore, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0
    run = process.run

    async def counted(*arguments: Any, **options: Any) -> process.Finished:
        nonlocal runs
        runs += 1
        return await run(*arguments, **options)

    monkeypatch.setattr(process, "run", counted)
    reader = ReportReader(store, dict(os.environ))
    first = await reader.read(report)
    copy = tmp_path / "copy.ncu-rep"
    copy.write_bytes(report.read_bytes())
    again, same = await asyncio.gather(reader.read(copy), reader.read(report))
    assert again.actions is first.actions
    assert same.actions is first.actions
    assert (again.path, same.path) == (str(copy), str(report))
    assert runs == 1
    with_sass = await reader.read(report, sass=True)
    assert runs == 2
    assert with_sass.actions[0].sass
    assert "MOV" in with_sass.actions[0].sass[with_sass.actions[0].functions[0]]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}\n",
        b"[1]\n",
        b'{"blob_bytes": [5], "cubins": [], "actions": []}\nabc',
        b'{"blob_bytes": [-1, 4], "cubins": [], "actions": []}\nabc',
        b'{"blob_bytes": [3], "cubins": [7], "actions": [], "collector": null}\nabc',
        b'{"blob_bytes": [3], "cubins": [], "actions": [0], "collector": null, "unpacked": true}\nabc',
    ],
)
def test_a_broken_answer_is_one_message(answer: bytes) -> None:
    with pytest.raises(NcuError, match="broken"):
        read_answer(answer, "a.ncu-rep", "digest")


def test_only_the_child_loads_the_library() -> None:
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert "ncu_report" not in names or path.name == "worker.py", path
        assert "kernel_lsp.ncu.worker" not in names, path
