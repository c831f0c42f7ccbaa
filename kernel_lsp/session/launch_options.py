"""The launches among which one is shown for a kernel: of every report that holds it, the newest report first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from kernel_lsp.session.measuring import BuiltKernelName

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import LaunchRef
    from kernel_lsp.ncu.kernel_profile import KernelProfile
    from kernel_lsp.ncu.measured_report import MeasuredReport
    from kernel_lsp.ncu.placement import Fit


@dataclass(frozen=True, slots=True, eq=False)
class LaunchOption:
    """One launch. `number` counts from 1 among the kernel's `count` launches in its report; `fit` is the report's."""

    ref: LaunchRef
    report: MeasuredReport
    profile: KernelProfile
    number: int
    count: int
    fit: Fit | None

    @property
    def report_name(self) -> str:
        """The report's file name."""
        return PurePath(self.ref.report_path).name

    @property
    def modified_at(self) -> datetime:
        """Of the report's file."""
        return self.report.modified_at


def launch_options(
    kernel: BuiltKernelName, reports: Sequence[MeasuredReport], fits: Mapping[str, Fit]
) -> tuple[LaunchOption, ...]:
    """All launches of a kernel, the newest report first, in it the longest. `fits` are by the report's path."""
    from kernel_lsp.ncu.kernel_measurement import LaunchRef
    from kernel_lsp.session.report_kernels import launches_of

    found: list[LaunchOption] = []
    for report in reports:
        path = report.report.path
        launches = [each.profile for each in launches_of(report, kernel.mangled, kernel.of_build)]
        options = (
            LaunchOption(LaunchRef(path, profile.index), report, profile, number, len(launches), fits.get(path))
            for number, profile in enumerate(launches, 1)
        )
        found += sorted(options, key=lambda option: -(option.profile.duration_ns or 0.0))
    return tuple(found)
