"""The launches among which one is shown for a kernel: of every report that holds it, the newest report first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_lsp.ncu.attach import MeasuredKernel
    from kernel_lsp.ncu.kernel_measurement import LaunchRef
    from kernel_lsp.ncu.measured_report import MeasuredReport
    from kernel_lsp.ncu.placement import Fit


@dataclass(frozen=True, slots=True, eq=False)
class LaunchOption:
    """One launch. `number` counts from 1 among the kernel's `count` launches in its report; `fit` is the report's."""

    ref: LaunchRef
    measured: MeasuredKernel
    modified_at: datetime
    number: int
    count: int
    fit: Fit | None

    @property
    def report_name(self) -> str:
        """The report's file name."""
        return PurePath(self.ref.report_path).name


def launch_options(
    reports: Sequence[MeasuredReport], mangled: str, kernels: Mapping[str, str], fits: Mapping[str, Fit]
) -> tuple[LaunchOption, ...]:
    """All launches of a kernel, the newest report first, in it the longest.

    `kernels` are all of the build, mangled -> demangled in full; `fits` are by the report's path.
    """
    from kernel_lsp.ncu.kernel_match import match_kernel
    from kernel_lsp.ncu.kernel_measurement import LaunchRef

    found = []
    for report in reports:
        path = report.report.path
        names = {(each.profile.mangled, each.profile.name) for each in report.kernels}
        same = {each for each in names if match_kernel(*each, kernels) == mangled}
        launches = [each for each in report.kernels if (each.profile.mangled, each.profile.name) in same]
        options = [
            LaunchOption(
                LaunchRef(path, each.profile.index), each, report.modified_at, number, len(launches), fits.get(path)
            )
            for number, each in enumerate(launches, 1)
        ]
        found += sorted(options, key=lambda option: -(option.measured.profile.duration_ns or 0.0))
    return tuple(found)
