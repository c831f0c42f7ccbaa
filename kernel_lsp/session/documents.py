"""Open documents: the text as the editor has it, and the outcome that its last builds left."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp.session.outcome import FileOutcome
from kernel_lsp.source.remap import LineMap

if TYPE_CHECKING:
    from kernel_lsp.ncu.measured_report import MeasuredReport

READING_STOPPED = "reading the instructions was stopped; a save reads them again"


@dataclass(slots=True)
class OpenDocument:
    """One open CUDA document.

    `good` is the last outcome with an analysis, `last` the latest of all. `coded` is the one whose instructions are
    shown: while those of a newer build are being read, the older ones stay.
    """

    uri: str  # as the client wrote it
    path: Path | None  # None: no file (untitled)
    version: int | None
    text: str
    good: FileOutcome | None = None
    last: FileOutcome | None = None
    coded: FileOutcome | None = None
    published_generation: int = 0
    built_text: str | None = None  # of the last run, where it was not the saved file's
    reports: tuple[MeasuredReport, ...] = ()  # that the last run knew and that concern it
    reports_asked: tuple[MeasuredReport, ...] | None = None  # with which it is being analysed again
    reports_batch: int = 0  # of the shelf, in which that was asked for last
    _maps: dict[tuple[str, str], LineMap] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.path.name if self.path is not None else self.uri

    @property
    def is_stale(self) -> bool:
        """Whether the facts shown are from before the latest build, which gave none."""
        return self.good is not None and self.last is not self.good

    def line_map(self, outcome: FileOutcome) -> LineMap:
        """Lines of the text that was built -> lines of the text as it is now (kept until the text changes)."""
        found = self._maps.get((outcome.text, self.text))
        if found is None:
            self._maps = {pair: lines for pair, lines in self._maps.items() if pair[1] == self.text}
            found = self._maps[outcome.text, self.text] = LineMap(outcome.text, self.text)
        return found

    def accept(self, outcome: FileOutcome) -> None:
        """Make an outcome the latest; facts of an older good one stay, marked stale, when this one has none."""
        self.last = outcome
        if outcome.analysis is not None:
            self.good = outcome
            if not outcome.more_to_come:
                self.coded = outcome if outcome.analysis.has_sass else None

    def reading_stopped(self) -> None:
        """The instructions of the latest outcome will not come, and it says so; older ones stay."""
        if self.last is not None and self.last.more_to_come:
            self.last = self.good = self.last.without_instructions(READING_STOPPED)
