"""Turns reports into what they say of the kernels of one build: for each kernel one launch, on the built text's lines.

The newest report that holds a kernel is shown, and of several launches in it the longest, unless the user chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

from kernel_lsp.ncu.attach import Counters, MeasuredKernel
from kernel_lsp.ncu.hot_lines import main_reason, wait_of
from kernel_lsp.ncu.issue_cause import absent_costs
from kernel_lsp.ncu.kernel_match import match_kernel
from kernel_lsp.ncu.kernel_profile import KernelProfile
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.placement import BuiltKernel, PlacedProfile, place
from kernel_lsp.ncu.producers import WaitFor
from kernel_lsp.ncu.reading import IssueReading, SolReading, TailWave, issue_reading, reading_table, sol_reading
from kernel_lsp.ncu.reading import tail_wave as tail_wave_of
from kernel_lsp.ncu.roof import Roof, roof
from kernel_lsp.ncu.stall_reasons import Cost


@dataclass(frozen=True, slots=True)
class LaunchRef:
    """One launch: the report's path, and the launch's index in it, from 0."""

    report_path: str
    index: int


@dataclass(frozen=True, slots=True)
class PlacedHotLine:
    """A line of the built text with a tenth of the launch's samples or more; `share` of them all, 0..1.

    `reason` None: no reason takes enough of its samples to be called the one. `reason_share` is of the line's samples.
    `waits_for` is what most of them wait for, on `wait_line` of the same text (None: in another file, or not known).
    """

    line: int
    share: float
    reason: str | None
    reason_share: float
    waits_for: WaitFor | None
    wait_line: int | None
    here: Counters
    certain: bool


@dataclass(frozen=True, slots=True, eq=False)
class KernelMeasurement:
    """The launch that is shown for a kernel. Lines are those of the built text.

    `number` counts from 1 among `launches`.
    """

    ref: LaunchRef
    modified_at: datetime  # of the report's file
    digest: str  # of the report
    collector: str | None  # ncu's version
    placed: PlacedProfile
    hot: tuple[PlacedHotLine, ...]  # hottest first
    sol: SolReading
    issue: IssueReading
    tail_wave: TailWave | None
    launches: tuple[LaunchRef, ...]  # of this kernel in this report
    reports: tuple[str, ...]  # paths of all reports that hold this kernel, the newest first

    @property
    def profile(self) -> KernelProfile:
        """What was measured."""
        return self.placed.measured.profile

    @property
    def measured(self) -> MeasuredKernel:
        """The launch on the lines of the profiled text."""
        return self.placed.measured

    @property
    def roof(self) -> Roof | None:
        """The unit that was at its peak."""
        return roof(self.profile)

    @property
    def useful_roof(self) -> Roof | None:
        """The unit that was at its peak, where accesses in excess are not what kept it there."""
        at = self.roof
        return None if at is None or at.wasted else at

    @property
    def runs_well(self) -> bool:
        """Whether nothing about warps was a problem: the schedulers issued, or a unit was at its peak."""
        return self.issue.stalls_matter is False or self.roof is not None

    @property
    def absent(self) -> frozenset[Cost]:
        """Costs of which the launch had none at all."""
        return absent_costs(self.profile)

    @property
    def number(self) -> int:
        """Which of `launches` it is, from 1."""
        return self.launches.index(self.ref) + 1

    @property
    def report_name(self) -> str:
        """The report's file name."""
        return PurePath(self.ref.report_path).name


def measurements(
    kernels: Mapping[str, str],
    builds: Callable[[str], Iterable[BuiltKernel]],
    path: str,
    text: str,
    reports: Sequence[MeasuredReport],
    chosen: Mapping[str, LaunchRef],
) -> Mapping[str, KernelMeasurement]:
    """By mangled name what is shown for the kernels of a build that some report holds.

    `kernels` maps mangled names to demangled ones in full, `builds` gives a kernel as this build and earlier ones of
    the file made it, the newest first. `reports` come newest first; `chosen` holds choices by mangled name,
    those that are gone are passed over.
    """
    found: dict[str, list[tuple[MeasuredReport, MeasuredKernel]]] = {}
    for report in reports:
        for measured in report.kernels:
            profile = measured.profile
            mangled = match_kernel(profile.mangled, profile.name, kernels)
            if mangled is not None:
                found.setdefault(mangled, []).append((report, measured))
    return {
        mangled: _measurement(builds(mangled), path, text, launches, chosen.get(mangled))
        for mangled, launches in found.items()
    }


def _measurement(
    builds: Iterable[BuiltKernel],
    path: str,
    text: str,
    launches: Sequence[tuple[MeasuredReport, MeasuredKernel]],
    wanted: LaunchRef | None,
) -> KernelMeasurement:
    report, measured = next((each for each in launches if _ref(*each) == wanted), None) or _by_itself(launches)
    placed = place(measured.profile, measured.code, path, text, builds)
    return KernelMeasurement(
        ref=_ref(report, measured),
        modified_at=report.modified_at,
        digest=report.report.digest,
        collector=report.report.collector,
        placed=placed,
        hot=placed_hot_lines(placed),
        sol=sol_reading(measured.profile),
        issue=issue_reading(measured.profile),
        tail_wave=tail_wave_of(measured.profile),
        launches=tuple(_ref(*each) for each in launches if each[0] is report),
        reports=tuple(dict.fromkeys(each[0].report.path for each in launches)),
    )


def _by_itself(launches: Sequence[tuple[MeasuredReport, MeasuredKernel]]) -> tuple[MeasuredReport, MeasuredKernel]:
    """The longest launch of the newest report."""
    newest = [each for each in launches if each[0] is launches[0][0]]
    return max(newest, key=lambda each: each[1].profile.duration_ns or 0.0)


def _ref(report: MeasuredReport, measured: MeasuredKernel) -> LaunchRef:
    return LaunchRef(report.report.path, measured.profile.index)


def placed_hot_lines(placed: PlacedProfile) -> tuple[PlacedHotLine, ...]:
    """The file's hot lines, hottest first; none where the report has few samples or none."""
    samples = placed.measured.profile.samples
    if samples is None or samples.few or not samples.total:
        return ()
    least = reading_table()["thresholds"]["hot_share"] * samples.total
    found = []
    for line in placed.lines:
        if line.here.samples < least:
            continue
        reason, share = main_reason(line.here)
        wait = wait_of(line.waits_for, reason)
        found.append(
            PlacedHotLine(
                line=line.line,
                share=line.here.samples / samples.total,
                reason=reason,
                reason_share=share,
                waits_for=wait,
                wait_line=placed.line_now(wait.chain) if wait is not None else None,
                here=line.here,
                certain=line.certain,
            )
        )
    return tuple(sorted(found, key=lambda hot: (-hot.share, hot.line)))
