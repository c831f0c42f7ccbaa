"""An analysis in two phases: the first without waiting, the second with the instructions, and none of it twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.findings.finding import Finding
from kernel_lsp.lsp.status import status_of
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.published import FilePublication
from kernel_lsp.session.session import AnalysisSession
from kernel_lsp.session.settings import Settings

TEXT = "__global__ void k(float* x) { x[threadIdx.x] *= 2.0f; }\n"


class Listener:
    """Keeps what a client is told."""

    def __init__(self) -> None:
        self.published: list[FilePublication] = []
        self.ended: list[FileOutcome | None] = []
        self.readings: list[asyncio.Task[object]] = []
        self.read: list[OpenDocument] = []
        self.notices: list[str] = []

    def findings_changed(self, publications: Iterable[FilePublication]) -> None:
        self.published += publications

    def run_started(self, document: OpenDocument, run: asyncio.Task[object]) -> None: ...
    def first_numbers(self, document: OpenDocument) -> None: ...
    def reading_reports(self, work: asyncio.Task[None]) -> None: ...
    def reading_report(self, name: str) -> None: ...

    def run_ended(self, document: OpenDocument, outcome: FileOutcome | None) -> None:
        self.ended.append(outcome)

    def reading_started(self, document: OpenDocument, reading: asyncio.Task[object]) -> None:
        self.readings.append(reading)

    def instructions_read(self, document: OpenDocument) -> None:
        self.read.append(document)

    def notice(self, text: str) -> None:
        self.notices.append(text)


async def until(condition: Any) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), 120)


@pytest.fixture
def slow_nvdisasm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """nvdisasm as a script that notes its process and then waits for the file `go`, like a large cubin's."""
    folder = tmp_path / "tools"
    folder.mkdir()
    found = Pipeline._toolchain

    async def slow(self: Pipeline, *arguments: Any) -> Toolchain:
        tools = await found(self, *arguments)
        assert tools.nvdisasm is not None
        script = folder / "nvdisasm"
        script.write_text(
            f"#!/bin/sh\necho $$ >> {folder}/pids\nwhile [ ! -e {folder}/go ]; do sleep 0.02; done\n"
            f'exec {tools.nvdisasm.path} "$@"\n'
        )
        script.chmod(0o755)
        return replace(tools, nvdisasm=replace(tools.nvdisasm, path=script))

    monkeypatch.setattr(Pipeline, "_toolchain", slow)
    yield folder
    (folder / "go").touch()


async def test_the_first_phase_waits_for_nothing(tmp_path: Path, pipeline: Pipeline, slow_nvdisasm: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(f"// first\n{TEXT}")
    phases = pipeline.phases(PipelineRequest(document=path, settings=Settings(arch="sm_86")))
    first = await anext(phases)
    assert first.more_to_come
    assert first.analysis is not None
    assert first.analysis.kernels[0].binary.resources.registers > 0
    assert first.analysis.kernels[0].sass is None
    assert first.analysis.kernels[0].sass_why == "the instructions are being read"
    assert not (slow_nvdisasm / "pids").exists()
    (slow_nvdisasm / "go").touch()
    second = await anext(phases)
    assert not second.more_to_come
    assert second.analysis is not None
    assert second.analysis.kernels[0].sass is not None
    # The same cubin again: known at once, no process.
    [again] = [each async for each in pipeline.phases(PipelineRequest(document=path, settings=Settings(arch="sm_86")))]
    assert again.analysis is not None
    assert again.analysis.kernels[0].sass is second.analysis.kernels[0].sass
    assert len((slow_nvdisasm / "pids").read_text().split()) == 1


async def test_a_new_save_stops_the_reading_and_a_close_too(
    tmp_path: Path, pipeline: Pipeline, slow_nvdisasm: Path
) -> None:
    path, listener = tmp_path / "k.cu", Listener()
    session = AnalysisSession(pipeline, listener)
    session.settings = Settings(arch="sm_86")
    pids = slow_nvdisasm / "pids"

    def started(count: int) -> bool:
        return pids.exists() and len(pids.read_text().split()) == count

    path.write_text(f"// one\n{TEXT}")
    session.open(path.as_uri(), 1, path.read_text())
    await until(lambda: started(1))
    assert [outcome.more_to_come for outcome in listener.ended if outcome] == [True]
    assert not session.is_busy(path.as_uri()), "the next build does not wait for the instructions"

    path.write_text(f"// two\n{TEXT}")
    session.save(path.as_uri())
    await until(lambda: started(2))
    first, second = (int(pid) for pid in pids.read_text().split())
    await until(lambda: not Path(f"/proc/{first}").exists())
    assert Path(f"/proc/{second}").exists()
    session.close(path.as_uri())
    await until(lambda: not Path(f"/proc/{second}").exists())
    assert listener.read == []
    await session.end()


async def test_instructions_are_added_to_the_same_document_once(tmp_path: Path, pipeline: Pipeline) -> None:
    path, listener = tmp_path / "k.cu", Listener()
    session = AnalysisSession(pipeline, listener)
    session.settings = Settings(arch="sm_86")
    path.write_text(f"// three\n{TEXT}")
    session.open(path.as_uri(), 1, path.read_text())
    await until(lambda: listener.read)
    [document] = listener.read
    assert document.coded is document.good is document.last
    own = [publication for publication in listener.published if publication.file == str(path)]
    assert len(own) == 1, "the second phase had nothing new to publish"
    findings: tuple[Finding, ...] = own[0].findings
    assert findings == document.last.findings if document.last else False
    assert listener.notices == []
    await session.end()


async def test_a_stopped_reading_says_so_and_a_save_reads_again(
    tmp_path: Path, pipeline: Pipeline, slow_nvdisasm: Path
) -> None:
    path, listener = tmp_path / "k.cu", Listener()
    session = AnalysisSession(pipeline, listener)
    session.settings = Settings(arch="sm_86")
    path.write_text(f"// five\n{TEXT}")
    session.open(path.as_uri(), 1, path.read_text())
    pids = slow_nvdisasm / "pids"
    await until(lambda: pids.exists() and pids.read_text().strip())
    document = session.document(path.as_uri())
    assert document is not None
    assert document.last is not None
    assert status_of(document, "idle")["instructionsWhy"] == "the instructions are being read"
    listener.readings[0].cancel()
    await until(lambda: listener.read)
    stopped = status_of(document, "idle")
    assert (stopped["state"], stopped["instructions"]) == ("idle", False)
    assert stopped["instructionsWhy"] == "reading the instructions was stopped; a save reads them again"
    assert not document.last.more_to_come
    assert document.last is document.good
    await until(lambda: not Path(f"/proc/{int(pids.read_text())}").exists())
    (slow_nvdisasm / "go").touch()
    path.write_text(f"// five and a half\n{TEXT}")
    session.save(path.as_uri())
    await until(lambda: len(listener.read) == 2)
    assert document.coded is document.last
    assert status_of(document, "idle")["instructionsWhy"] == ""
    await session.end()


async def test_end_leaves_no_nvdisasm(tmp_path: Path, pipeline: Pipeline, slow_nvdisasm: Path) -> None:
    path, listener = tmp_path / "k.cu", Listener()
    session = AnalysisSession(pipeline, listener)
    session.settings = Settings(arch="sm_86")
    path.write_text(f"// four\n{TEXT}")
    session.open(path.as_uri(), 1, path.read_text())
    pids = slow_nvdisasm / "pids"
    await until(lambda: pids.exists() and pids.read_text().strip())
    await session.end()
    assert not Path(f"/proc/{int(pids.read_text())}").exists()
