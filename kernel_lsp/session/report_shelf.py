"""Keeps the reports of Nsight Compute that are there loaded: found, read one at a time, forgotten when they go.

All reading is done by one background task, which ends when there is nothing left to read. A report that cannot be read
stays listed with its reason; it is tried again when its file changes. One that ncu is still writing is looked at again
a moment later, and nothing is said of it before it has come to rest.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kernel_lsp.ncu.raw_report import NcuError, ReaderMissingError
from kernel_lsp.session.report_files import FoundReports, ReportFile, ReportPlaces, find_reports

if TYPE_CHECKING:
    from kernel_lsp.ncu.measured_report import MeasuredReport

logger = logging.getLogger(__name__)

MOST_FOUND = 16  # of those that no setting names, the newest
MOST_NAMED = 64
MOST_FOUND_BYTES = 64 << 20  # a larger one is read where a setting names it
SETTLED_S = 3.0  # a file that was written to since may not be complete


@dataclass(frozen=True, slots=True, eq=False)
class ShelvedReport:
    """A report's file with what was read of it, or why it is not.

    Of a file that has changed, what was read before stays until the new content has been.
    """

    file: ReportFile
    report: MeasuredReport | None = None
    problem: str = ""
    is_due: bool = True  # its turn to be read has not come yet
    is_left_out: bool = False  # by the limits
    settles_at: float | None = None  # by the loop's clock; until then `problem` may go by itself


class ShelfListener(Protocol):
    """What the shelf tells; called on the event loop."""

    def reports_changed(self) -> None:
        """A report was read, or has gone; more may follow at once while the shelf is at work."""

    def reports_settled(self) -> None:
        """There is nothing left to read."""

    def reading_reports(self, work: asyncio.Task[None]) -> None:
        """Reading began; cancelling `work` leaves the rest unread."""

    def reading_report(self, name: str) -> None:
        """A file's turn has come."""

    def report_problem(self, text: str) -> None:
        """What is wrong with a report, or a name, of the user's settings."""


class ReportShelf:
    """The reports of one session. Belongs to one event loop."""

    def __init__(self, load: Callable[[Path], Awaitable[MeasuredReport]], listener: ShelfListener) -> None:
        self._load = load
        self._listener = listener
        self._places = ReportPlaces()
        self._shelved: dict[Path, ShelvedReport] = {}
        self._search_wanted = False
        self._look_wanted = False
        self._work: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._ended = False
        self.n_batches = 0
        self.is_cut = False  # the search ended at its limit

    @property
    def reports(self) -> tuple[MeasuredReport, ...]:
        """All that were read, the newest first."""
        return tuple(each.report for each in self.shelved if each.report is not None)

    @property
    def shelved(self) -> tuple[ShelvedReport, ...]:
        """Every report file that is known, the newest first."""
        return tuple(sorted(self._shelved.values(), key=lambda each: (-each.file.modified_ns, str(each.file.path))))

    @property
    def is_working(self) -> bool:
        """Whether reports are being looked for or read."""
        return self._work is not None

    def use(self, places: ReportPlaces) -> None:
        """Look in these places from now on."""
        if places != self._places:
            self._places = places
            self.look(search=True)

    def look(self, *, search: bool) -> None:
        """See what is new: by a search of the workspace, or only of the files that are known and those named."""
        if self._ended or not (self._places.is_somewhere or self._shelved):
            return
        self._look_wanted = True
        self._search_wanted = self._search_wanted or search
        if self._work is None:
            self.n_batches += 1
            self._work = asyncio.get_running_loop().create_task(self._look_and_read())
            self._listener.reading_reports(self._work)

    def retry(self) -> None:
        """Read once more what could not be read."""
        self._shelved = {path: each for path, each in self._shelved.items() if not each.problem}
        self.look(search=True)

    async def settled(self) -> None:
        """Wait until there is nothing left to read."""
        while self._work is not None:
            await asyncio.wait([self._work])

    async def end(self) -> None:
        """Stop reading; no process is left afterwards."""
        self._ended = True
        if self._again is not None:
            self._again.cancel()
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    # --- the background task ---------------------------------------------------------------------------------------

    async def _look_and_read(self) -> None:
        try:
            while self._look_wanted or self._next() is not None:
                if self._look_wanted:
                    known = None if self._search_wanted else self._found_before()
                    self._look_wanted = self._search_wanted = False
                    self._take(await asyncio.to_thread(find_reports, self._places, known), searched=known is None)
                elif (waiting := self._next()) is not None:
                    await self._read(waiting)
        except asyncio.CancelledError:
            self._leave_unread("reading was stopped")
            raise
        except Exception:
            logger.exception("looking for reports failed")
            self._leave_unread("reading it failed, see the log")
        finally:
            self._work = None
            if not self._ended:
                self._listener.reports_settled()

    def _found_before(self) -> tuple[Path, ...]:
        return tuple(each.file.path for each in self._shelved.values() if not each.file.is_named)

    def _take(self, found: FoundReports, *, searched: bool) -> None:
        """Shelve what is new or changed, forget what is gone, and put down what the limits leave out."""
        if searched:
            self.is_cut = found.is_cut
        for problem in found.problems:
            self._listener.report_problem(problem)
        now = asyncio.get_running_loop().time()
        before, self._shelved = self._shelved, {}
        n_named = n_found = 0
        for file in found.files:
            shelved = before.get(file.path)
            if shelved is None or shelved.is_left_out:
                shelved = ShelvedReport(file)
            elif _stamp(shelved.file) != _stamp(file):
                shelved = ShelvedReport(file, shelved.report)
            elif shelved.settles_at is not None and now >= shelved.settles_at:
                shelved = self._rested(replace(shelved, file=file, settles_at=None))
            elif shelved.problem and shelved.settles_at is None and file.is_named and not shelved.file.is_named:
                self._listener.report_problem(shelved.problem)
            n_named, n_found = n_named + file.is_named, n_found + (not file.is_named)
            if limit := _beyond(file, n_named if file.is_named else n_found):
                shelved = ShelvedReport(file, problem=limit, is_due=False, is_left_out=True)
            self._shelved[file.path] = replace(shelved, file=file)
        if any(
            each.report is not None and (path not in self._shelved or self._shelved[path].report is not each.report)
            for path, each in before.items()
        ):
            self._listener.reports_changed()

    def _next(self) -> ShelvedReport | None:
        """The newest whose turn has come."""
        return next((each for each in self.shelved if each.is_due), None)

    async def _read(self, waiting: ShelvedReport) -> None:
        file = waiting.file
        waiting = replace(waiting, is_due=False)
        self._listener.reading_report(file.path.name)
        try:
            report = await self._load(file.path)
        except ReaderMissingError as error:
            self._shelve(self._rested(replace(waiting, problem=str(error))))
            self._leave_unread(str(error).removeprefix(f"{file.path}: "))
            return
        except NcuError as error:
            self._shelve(self._failed(replace(waiting, problem=str(error))))
            return
        except Exception:  # a fault of ours in one report must not cost the others
            logger.exception("the report %s could not be read", file.path)
            self._shelve(self._rested(replace(waiting, problem=f"{file.path}: reading it failed, see the log")))
            return
        self._shelve(replace(waiting, report=report))

    def _shelve(self, read: ShelvedReport) -> None:
        """Keep it, unless its file has gone or changed meanwhile."""
        now = self._shelved.get(read.file.path)
        if now is not None and _stamp(now.file) == _stamp(read.file):
            self._shelved[read.file.path] = read
            if read.report is not now.report:
                self._listener.reports_changed()

    def _failed(self, failed: ShelvedReport) -> ShelvedReport:
        if time.time() - failed.file.modified_ns / 1e9 >= SETTLED_S:
            return self._rested(failed)
        logger.info("%s (it was just written to, and is looked at again)", failed.problem)
        loop = asyncio.get_running_loop()
        if self._again is not None:
            self._again.cancel()
        self._again = loop.call_later(SETTLED_S, lambda: self.look(search=False))
        return replace(failed, settles_at=loop.time() + SETTLED_S)

    def _rested(self, failed: ShelvedReport) -> ShelvedReport:
        """Say what is wrong with a report that nobody writes to any more; what it held before is gone with that."""
        logger.warning("%s", failed.problem)
        if failed.file.is_named:
            self._listener.report_problem(failed.problem)
        return replace(failed, report=None)

    def _leave_unread(self, why: str) -> None:
        for path, each in self._shelved.items():
            if each.is_due:
                self._shelved[path] = replace(each, problem=f"{path}: {why}", is_due=False)


def _stamp(file: ReportFile) -> tuple[int, int]:
    return file.modified_ns, file.size_bytes


def _beyond(file: ReportFile, position: int) -> str:
    """Why a file is not read at all; "" for one that is."""
    if file.is_named:
        return f"{file.path}: {MOST_NAMED} newer reports are read" if position > MOST_NAMED else ""
    if position > MOST_FOUND:
        return f"{file.path}: {MOST_FOUND} newer reports are read; kernelLsp.reports.paths names others"
    if file.size_bytes > MOST_FOUND_BYTES:
        size, most = file.size_bytes >> 20, MOST_FOUND_BYTES >> 20
        return f"{file.path}: {size} MB are more than is read unasked ({most} MB); kernelLsp.reports.paths names it"
    return ""
