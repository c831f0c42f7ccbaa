"""Joins the reports on the shelf with the open documents: which documents they concern, and which launch is shown.

A document is analysed again when the reports that hold its kernels are others than its last run knew. While reports
are still being read that is done once, with the first that concerns it, and once more when all are there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.launch_options import LaunchOption, launch_options
from kernel_lsp.session.measuring import BuiltKernelName
from kernel_lsp.session.report_files import ReportPlaces, is_report
from kernel_lsp.session.report_shelf import ReportShelf
from kernel_lsp.session.settings import Settings

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, LaunchRef
    from kernel_lsp.ncu.measured_report import MeasuredReport
    from kernel_lsp.session.outcome import FileOutcome
    from kernel_lsp.session.pipeline import Pipeline

logger = logging.getLogger(__name__)


class DocumentRuns(Protocol):
    """What is asked of the session."""

    def is_at_rest(self, key: str) -> bool:
        """Whether no run of the document, nor the reading of its instructions, waits or is under way."""

    def analyse_again(self, key: str) -> None:
        """Analyse the text of a document's last run again."""

    def say_once(self, text: str) -> None:
        """A notice to the user."""


class ReadingListener(Protocol):
    """Who shows the user that reports are being read."""

    def reading_reports(self, work: asyncio.Task[None]) -> None:
        """Reports are being looked for and read; cancelling `work` leaves the rest unread."""

    def reading_report(self, name: str) -> None:
        """A file's turn has come."""


class SessionReports:
    """The reports of a session, as its documents see them."""

    def __init__(
        self,
        pipeline: Pipeline,
        documents: Mapping[str, OpenDocument],
        runs: DocumentRuns,
        listener: ReadingListener,
    ) -> None:
        self.shelf = ReportShelf(self._load, self)
        self._pipeline = pipeline
        self._documents = documents
        self._runs = runs
        self._listener = listener
        self._settings = Settings()
        self._roots: tuple[Path, ...] = ()
        self._trusted = False
        self._added: tuple[Path, ...] = ()
        self._chosen: dict[str, dict[str, LaunchRef]] = {}
        self._names_of_report: dict[MeasuredReport, frozenset[str]] = {}
        self._names_of_build: dict[str, tuple[FileOutcome, frozenset[str]]] = {}

    # --- where reports are -----------------------------------------------------------------------------------------

    def use(self, settings: Settings, roots: tuple[Path, ...], *, trusted: bool, kept: tuple[Path, ...] = ()) -> None:
        """Take reports from where the settings say. Nothing is read before a document is open.

        `kept`: folders with those of profile commands.
        """
        self._settings, self._roots, self._trusted = settings, roots, trusted
        if not self._documents:
            return
        self.shelf.use(
            ReportPlaces(
                searched=(*roots, *kept) if trusted and settings.reports_enable else (),
                names=settings.reports_paths,
                names_from=roots,
                added=self._added,
            )
        )

    def add(self, path: Path) -> None:
        """A report that a command of ours has made, wherever it lies. `use` takes it up."""
        self._added = (*(each for each in self._added if each != path), path)

    def without_reports(self, paths: list[Path]) -> list[Path]:
        """Changed files that are no reports; where some are, the shelf looks what became of them."""
        others = [path for path in paths if not is_report(path)]
        if len(others) < len(paths):
            self.shelf.look(search=True)
        return others

    # --- what a run needs to know ----------------------------------------------------------------------------------

    def chosen(self, key: str) -> Mapping[str, LaunchRef]:
        """The launches that the user chose for a document's kernels, by mangled name."""
        return dict(self._chosen.get(key, {}))

    def choose(self, key: str, mangled: str, launch: LaunchRef | None) -> None:
        """Show this launch of a kernel from now on; None: the newest report's by itself."""
        chosen = self._chosen.setdefault(key, {})
        if chosen.get(mangled) == launch:
            return
        if launch is None:
            chosen.pop(mangled, None)
        else:
            chosen[mangled] = launch
        self._runs.analyse_again(key)

    async def measured_kernels(self, document: OpenDocument) -> frozenset[str]:
        """Mangled names of the kernels in the document's last good build that some report holds."""
        if document.good is None or document.good.analysis is None:
            return frozenset()
        from kernel_lsp.session.report_kernels import kernels_in

        names = {kernel.binary.mangled: kernel.binary.name for kernel in document.good.analysis.kernels}
        return await asyncio.to_thread(kernels_in, self.shelf.reports, names)

    async def options(self, document: OpenDocument, mangled: str) -> tuple[LaunchOption, ...]:
        """The launches among which one is shown for a kernel of the document's last good build."""
        kernel = _built_kernel(document, mangled)
        if kernel is None:
            return ()
        found = launch_options(kernel, self.shelf.reports, {})
        reports = tuple(dict.fromkeys(option.report for option in found))
        measured = await self._pipeline.measured(kernel, [(report, None) for report in reports])
        fits = {each.ref.report_path: each.placed.fit for each in measured if each is not None}
        return launch_options(kernel, reports, fits)

    async def measurements(
        self, document: OpenDocument, mangled: str, options: Sequence[LaunchOption]
    ) -> tuple[KernelMeasurement, ...]:
        """Some of these launches, as they would be shown."""
        kernel = _built_kernel(document, mangled)
        if kernel is None:
            return ()
        found = await self._pipeline.measured(kernel, [(option.report, option.ref) for option in options])
        return tuple(each for each in found if each is not None)

    def accepted(self, key: str, document: OpenDocument, reports: tuple[MeasuredReport, ...]) -> None:
        """A run that knew these reports has ended."""
        document.reports = self._concerning(key, document, reports)
        document.reports_asked = None

    def follow(self, key: str) -> None:
        """Analyse a document again where other reports concern it than its last run knew."""
        document = self._documents.get(key)
        if document is None or document.last is None or document.last.analysis is None:
            return
        concerning = self._concerning(key, document, self.shelf.reports)
        # The second: that run was stopped by the user, and is not started again for the same reports.
        if not self._runs.is_at_rest(key) or concerning in (document.reports, document.reports_asked):
            return
        if self.shelf.is_working and document.reports_batch == self.shelf.n_batches:
            return
        document.reports_asked, document.reports_batch = concerning, self.shelf.n_batches
        self._runs.analyse_again(key)

    def closed(self, key: str) -> None:
        """A document was closed. What was chosen stays for when it is opened again."""
        self._names_of_build.pop(key, None)

    async def end(self) -> None:
        """Stop reading."""
        await self.shelf.end()

    # --- ShelfListener ---------------------------------------------------------------------------------------------

    def reports_changed(self) -> None:
        for key in tuple(self._documents):
            self.follow(key)

    def reports_settled(self) -> None:
        on_shelf = set(self.shelf.reports)
        self._names_of_report = {report: names for report, names in self._names_of_report.items() if report in on_shelf}
        self.reports_changed()

    def reading_reports(self, work: asyncio.Task[None]) -> None:
        self._listener.reading_reports(work)

    def reading_report(self, name: str) -> None:
        self._listener.reading_report(name)

    def report_problem(self, text: str) -> None:
        self._runs.say_once(text)

    async def _load(self, path: Path) -> MeasuredReport:
        return await self._pipeline.load_report(path, self._settings, self._roots, trusted=self._trusted)

    # --- which reports concern a document --------------------------------------------------------------------------

    def _concerning(
        self, key: str, document: OpenDocument, reports: tuple[MeasuredReport, ...]
    ) -> tuple[MeasuredReport, ...]:
        outcome = document.last
        if not reports or outcome is None or outcome.analysis is None:
            return ()
        from kernel_lsp.session.report_kernels import built_names, report_names

        known = self._names_of_build.get(key)
        if known is None or known[0] is not outcome:
            kernels = ((kernel.binary.mangled, kernel.binary.name) for kernel in outcome.analysis.kernels)
            known = self._names_of_build[key] = (outcome, built_names(kernels))
        concerning = []
        for report in reports:
            if report not in self._names_of_report:
                self._names_of_report[report] = report_names(report)
            if not known[1].isdisjoint(self._names_of_report[report]):
                concerning.append(report)
        return tuple(concerning)


def _built_kernel(document: OpenDocument, mangled: str) -> BuiltKernelName | None:
    """A kernel of the document's last good build; None where there is none of that name."""
    if document.good is None or document.good.analysis is None:
        return None
    names = {kernel.binary.mangled: kernel.binary.name for kernel in document.good.analysis.kernels}
    good = document.good
    return BuiltKernelName(good.path, good.text, mangled, names) if mangled in names else None
