"""Which open documents a changed file renews, and that one change is told once however often the client tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest

from kernel_lsp.build.result import BuildResult
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.session import AnalysisSession
from kernel_lsp.session.uris import real_path
from kernel_lsp.source.message import CompilerMessage


class Pipeline:
    """Notes what it is asked for; each analysis ends when it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.let = asyncio.Event()
        self.reads: dict[str, list[Path]] = {}
        self.error = ""

    async def phases(self, request: PipelineRequest) -> AsyncGenerator[FileOutcome, None]:
        assert request.document is not None
        self.asked.append(request.document.name)
        await self.let.wait()
        path = str(request.document)
        read = [request.document, *self.reads.get(request.document.name, [])]
        messages = (CompilerMessage("gcc", "error", path, 1, None, None, self.error),) if self.error else ()
        build = BuildResult("failed", "", (), Path(), "sm_86", 0.0, False, None, messages, (), "")
        moment = datetime.now().astimezone()
        outcome = FileOutcome(path, "", None, build, None, None, None, (), (), moment, frozenset(map(real_path, read)))
        yield replace(outcome)

    def kept_reports(self, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        return ()

    async def end_gpu_runs(self) -> None: ...
    def close(self) -> None: ...


class Listener:
    def __init__(self) -> None:
        self.ended = asyncio.Semaphore(0)

    def findings_changed(self, publications: Iterable[Any]) -> None: ...
    def run_started(self, document: Any, run: Any) -> None: ...
    def first_numbers(self, document: Any) -> None: ...
    def reading_started(self, document: Any, reading: Any) -> None: ...
    def instructions_read(self, document: Any) -> None: ...
    def reading_reports(self, work: Any) -> None: ...
    def reading_report(self, name: str) -> None: ...
    def notice(self, text: str) -> None: ...

    def run_ended(self, document: Any, outcome: Any) -> None:
        if outcome is not None:
            self.ended.release()


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncGenerator[tuple[AnalysisSession, Pipeline, Listener, Path], None]:
    pipeline, listener = Pipeline(), Listener()
    for name in ("one.cu", "two.cu", "one.cuh"):
        (tmp_path / name).write_text(name)
    pipeline.reads = {"one.cu": [tmp_path / "one.cuh"]}
    session = AnalysisSession(cast(Any, pipeline), listener)
    yield session, pipeline, listener, tmp_path
    await session.end()


async def opened(parts: tuple[AnalysisSession, Pipeline, Listener, Path]) -> None:
    session, pipeline, listener, root = parts
    pipeline.let.set()
    for name in ("one.cu", "two.cu"):
        session.open((root / name).as_uri(), 1, name)
        await asyncio.wait_for(listener.ended.acquire(), 10)
    pipeline.asked.clear()


async def test_only_readers_are_renewed_and_once(parts: tuple[AnalysisSession, Pipeline, Listener, Path]) -> None:
    session, pipeline, listener, root = parts
    await opened(parts)
    (root / "one.cuh").write_text("changed")
    session.save((root / "one.cuh").as_uri())
    session.files_changed([root / "one.cuh"])  # the client's watcher
    await asyncio.wait_for(listener.ended.acquire(), 10)
    session.files_changed([root / "one.cuh"])
    assert not session.is_busy((root / "one.cu").as_uri())
    assert pipeline.asked == ["one.cu"]


async def test_a_save_that_the_watcher_told_first_goes_on(
    parts: tuple[AnalysisSession, Pipeline, Listener, Path],
) -> None:
    session, pipeline, listener, root = parts
    await opened(parts)
    pipeline.let.clear()
    (root / "one.cu").write_text("changed")
    session.files_changed([root / "one.cu"])
    while not pipeline.asked:
        await asyncio.sleep(0)
    session.save((root / "one.cu").as_uri())
    pipeline.let.set()
    await asyncio.wait_for(listener.ended.acquire(), 10)
    assert pipeline.asked == ["one.cu"]  # the run under way was not stopped


async def test_a_missing_header_that_comes_renews_who_missed_it(
    parts: tuple[AnalysisSession, Pipeline, Listener, Path],
) -> None:
    session, pipeline, listener, root = parts
    pipeline.error = "late.cuh: No such file or directory"
    await opened(parts)
    session.files_changed([root / "other.cuh"])
    assert pipeline.asked == []
    assert not session.is_busy((root / "one.cu").as_uri())
    (root / "late.cuh").write_text("")
    session.files_changed([root / "late.cuh"])
    for _ in range(2):
        await asyncio.wait_for(listener.ended.acquire(), 10)
    assert sorted(pipeline.asked) == ["one.cu", "two.cu"]


@pytest.mark.parametrize("name", ["compile_commands.json", "includes_CUDA.rsp", ".clangd"])
async def test_what_says_how_files_are_built_concerns_all(
    name: str, parts: tuple[AnalysisSession, Pipeline, Listener, Path]
) -> None:
    session, pipeline, listener, root = parts
    await opened(parts)
    session.files_changed([root / "build" / name])
    for _ in range(2):
        await asyncio.wait_for(listener.ended.acquire(), 10)
    assert sorted(pipeline.asked) == ["one.cu", "two.cu"]
