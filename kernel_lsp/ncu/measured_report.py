"""Frozen values of a report that was read: its launches on the lines of the profiled text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kernel_lsp.ncu.attach import MeasuredKernel
from kernel_lsp.ncu.kernel_profile import NcuReport


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredReport:
    """A report and its launches, in the report's order. `modified_at` is the file's time, local and aware."""

    report: NcuReport
    kernels: tuple[MeasuredKernel, ...]
    modified_at: datetime
