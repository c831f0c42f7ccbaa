"""Reports reach the open documents that they concern, once, and no others; what is shown can be chosen."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from kernel_lsp.build.kept_reports import reports_folder
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, LaunchRef
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.outcome import FileOutcome
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.published import FilePublication
from kernel_lsp.session.session import AnalysisSession
from kernel_lsp.session.settings import Settings
from tests.source_page import source_page

SCALE = """__global__ void scale(const float* x, float* y)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    y[i] = x[i] * 3.0f;
}
"""
OTHER = SCALE.replace("scale", "other")


class Listener:
    def __init__(self) -> None:
        self.runs: list[str] = []
        self.notices: list[str] = []

    def findings_changed(self, publications: Iterable[FilePublication]) -> None: ...
    def reading_started(self, document: OpenDocument, reading: asyncio.Task[object]) -> None: ...
    def first_numbers(self, document: OpenDocument) -> None: ...
    def instructions_read(self, document: OpenDocument) -> None: ...
    def run_ended(self, document: OpenDocument, outcome: FileOutcome | None) -> None: ...
    def reading_reports(self, work: asyncio.Task[None]) -> None: ...
    def reading_report(self, name: str) -> None: ...

    def run_started(self, document: OpenDocument, run: asyncio.Task[object]) -> None:
        self.runs.append(document.name)

    def notice(self, text: str) -> None:
        self.notices.append(text)


class Desk:
    """A session with two sources open, and pages of ncu in a folder that the settings name."""

    def __init__(self, root: Path, pipeline: Pipeline) -> None:
        self.root = root
        self.listener = Listener()
        self.session = AnalysisSession(pipeline, self.listener)
        for name, text in (("scale.cu", SCALE), ("other.cu", OTHER)):
            (root / name).write_text(text)

    def use(self, *pages: str, **settings: str) -> None:
        self.session.configure(Settings(arch="sm_86", reports_paths=tuple(pages), **settings))  # type: ignore[arg-type]

    def page(self, name: str, kernel: str, waits: int, age_s: float = 100) -> Path:
        """A page with samples on line 4: `waits` of 100 for a long scoreboard."""
        path = self.root / name
        text = source_page(
            f"{kernel}(float const *, float *)",
            f"/home/ci/{kernel}.cu",
            SCALE.replace("scale", kernel),
            {4: (waits, 100 - waits, 0), 3: (0, 0, 10)},
        )
        path.write_text(text)
        os.utime(path, (time.time() - age_s, time.time() - age_s))
        return path

    def open(self, name: str) -> None:
        path = self.root / name
        self.session.open(path.as_uri(), 1, path.read_text())

    def save(self, name: str, text: str) -> None:
        path = self.root / name
        self.session.change(path.as_uri(), 2, text)
        path.write_text(text)
        self.session.save(path.as_uri())

    async def rest(self) -> None:
        """Until nothing is under way, and nothing follows from what has just ended."""
        session, n_quiet = self.session, 0
        while n_quiet < 5:
            keys = [path.as_uri() for path in self.root.glob("*.cu") if session.document(path.as_uri())]
            quiet = all(session.is_at_rest(key) for key in keys) and not session.reports.shelf.is_working
            n_quiet = n_quiet + 1 if quiet else 0
            await asyncio.sleep(0.001 if quiet else 0.01)

    def measured(self, name: str = "scale.cu") -> KernelMeasurement | None:
        document = self.session.document((self.root / name).as_uri())
        assert document is not None
        assert document.good is not None
        assert document.good.analysis is not None
        return document.good.analysis.kernels[0].measured

    def waits(self, line: int = 4) -> int | None:
        """Samples of the line that wait for a long scoreboard; None: unmeasured."""
        measured = self.measured()
        placed = None if measured is None else measured.placed.line(line)
        return None if placed is None else placed.here.by_reason.get("long_scoreboard", 0)


@pytest.fixture
async def desk(tmp_path: Path, pipeline: Pipeline) -> AsyncIterator[Desk]:
    made = Desk(tmp_path, pipeline)
    yield made
    await made.session.end()


async def test_a_report_reaches_the_document_that_it_concerns_once(desk: Desk) -> None:
    page = desk.page("a.csv", "scale", 80)
    desk.use()
    desk.open("scale.cu")
    desk.open("other.cu")
    await desk.rest()
    assert desk.measured() is None
    desk.listener.runs.clear()
    desk.use(str(page))
    await desk.rest()
    runs = desk.listener.runs
    assert runs.count("other.cu") == 1, "the settings changed"
    assert runs.count("scale.cu") <= 2, "the settings, then the report"
    assert desk.waits() == 80
    assert desk.measured("other.cu") is None

    runs.clear()
    desk.page("a.csv", "scale", 60, age_s=50)
    desk.session.reports.shelf.look(search=False)
    await desk.rest()
    assert (desk.waits(), runs) == (60, ["scale.cu"])

    runs.clear()
    desk.save("other.cu", OTHER + "// more\n")
    await desk.rest()
    assert runs == ["other.cu"]

    runs.clear()
    page.unlink()
    desk.session.reports.shelf.look(search=False)
    await desk.rest()
    assert (desk.measured(), runs) == (None, ["scale.cu"])
    assert desk.listener.notices == [f"kernelLsp.reports.paths: {page}: no such file or folder"]


async def test_a_report_of_other_kernels_costs_no_run(desk: Desk) -> None:
    desk.use(str(desk.page("a.csv", "scale", 80)), str(desk.root / "b.csv"))
    desk.open("scale.cu")
    await desk.rest()
    assert desk.waits() == 80
    desk.listener.runs.clear()
    desk.page("b.csv", "somebody_elses", 10)
    desk.session.reports.shelf.look(search=False)
    await desk.rest()
    assert len(desk.session.reports.shelf.reports) == 2
    assert desk.listener.runs == []


async def test_the_newest_takes_over_and_another_can_be_chosen(desk: Desk) -> None:
    old, new = desk.page("old.csv", "scale", 10, age_s=500), desk.page("new.csv", "scale", 90)
    desk.use(str(old), str(new))
    desk.open("scale.cu")
    await desk.rest()
    measured = desk.measured()
    assert measured is not None
    assert (desk.waits(), measured.reports) == (90, (str(new), str(old)))

    key, mangled = (desk.root / "scale.cu").as_uri(), "_Z5scalePKfPf"
    desk.listener.runs.clear()
    desk.session.reports.choose(key, mangled, LaunchRef(str(old), 0))
    await desk.rest()
    assert (desk.waits(), desk.listener.runs) == (10, ["scale.cu"])
    desk.session.close(key)
    desk.open("scale.cu")
    await desk.rest()
    assert desk.waits() == 10, "the choice holds for the session"
    old.unlink()
    desk.session.reports.shelf.look(search=False)
    await desk.rest()
    assert desk.waits() == 90, "what is gone is not shown"
    desk.session.reports.choose(key, mangled, None)
    await desk.rest()
    assert desk.waits() == 90


async def test_edits_leave_untouched_lines_measured(desk: Desk) -> None:
    desk.use(str(desk.page("a.csv", "scale", 80)))
    desk.open("scale.cu")
    await desk.rest()
    desk.save("scale.cu", "// one more\n" + SCALE)
    await desk.rest()
    assert (desk.waits(5), desk.waits(1)) == (80, None)
    desk.save("scale.cu", SCALE.replace("3.0f", "4.0f"))
    await desk.rest()
    assert desk.waits(4) is None
    measured = desk.measured()
    assert measured is not None
    assert (measured.placed.edited_lines, measured.placed.lost_samples) == ((4,), 100)
    assert measured.placed.line(3) is not None


async def test_a_report_that_comes_while_the_build_fails_is_there_when_it_is_mended(desk: Desk) -> None:
    page = desk.root / "a.csv"
    desk.use(str(page))
    desk.open("scale.cu")
    await desk.rest()
    desk.save("scale.cu", SCALE + "broken\n")
    await desk.rest()
    desk.listener.runs.clear()
    desk.page("a.csv", "scale", 70)
    desk.session.reports.shelf.look(search=False)
    await desk.rest()
    assert desk.listener.runs == []
    desk.save("scale.cu", SCALE)
    await desk.rest()
    assert desk.waits() == 70


async def test_an_untrusted_workspace_is_not_searched(desk: Desk) -> None:
    desk.page("found.ncu-rep", "scale", 80)
    desk.session.trusted = False
    desk.session.roots = (desk.root,)
    desk.use()
    desk.open("scale.cu")
    await desk.rest()
    assert desk.session.reports.shelf.shelved == ()
    desk.use(str(desk.page("named.csv", "scale", 70)))
    await desk.rest()
    assert desk.waits() == 70, "what the user's own settings name is read"


async def test_searching_can_be_switched_off(desk: Desk) -> None:
    bad = desk.page("found.ncu-rep", "scale", 80)
    desk.session.roots = (desk.root,)
    desk.use()
    desk.open("scale.cu")
    await desk.rest()
    [shelved] = desk.session.reports.shelf.shelved
    assert (shelved.file.path, shelved.report) == (bad, None)
    assert "no Nsight Compute report" in shelved.problem
    assert desk.listener.notices == []
    desk.session.configure(Settings(arch="sm_86", reports_enable=False))
    await desk.rest()
    assert desk.session.reports.shelf.shelved == ()


async def test_a_file_without_a_workspace_finds_the_reports_of_its_profiles(desk: Desk, tmp_path: Path) -> None:
    folder = reports_folder(Path(os.environ["KERNEL_LSP_CACHE_DIR"]), tmp_path)
    folder.mkdir(parents=True)
    kept = folder / "scale-20260101.ncu-rep"
    kept.write_bytes(b"cut short")
    assert desk.session.roots == ()
    desk.open("scale.cu")
    await desk.rest()
    assert [each.file.path for each in desk.session.reports.shelf.shelved] == [kept]
