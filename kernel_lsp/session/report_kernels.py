"""Which reports concern a file: by the names of kernels alone, so that nothing is measured to find out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from kernel_lsp.ncu.attach import MeasuredKernel
from kernel_lsp.ncu.kernel_match import match_kernel, name_key, spelled_key
from kernel_lsp.ncu.measured_report import MeasuredReport

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


class MeasuredDevice(NamedTuple):
    """The device of a report that speaks of a file. `name` as the driver says it, None where the report does not."""

    name: str | None
    arch: str
    report_name: str


def holds_any(report: MeasuredReport, kernels: Mapping[str, str]) -> bool:
    """Whether a report holds one of these kernels (mangled -> demangled in full)."""
    return any(match_kernel(*names, kernels) is not None for names in _measured_names(report))


def kernels_in(reports: Iterable[MeasuredReport], kernels: Mapping[str, str]) -> frozenset[str]:
    """Those of the kernels (mangled -> demangled in full) that some report holds."""
    names = dict.fromkeys(each for report in reports for each in _measured_names(report))
    return frozenset(found for each in names if (found := match_kernel(*each, kernels)) is not None)


def launches_of(report: MeasuredReport, mangled: str, kernels: Mapping[str, str]) -> tuple[MeasuredKernel, ...]:
    """The launches of one of these kernels (mangled -> demangled in full) in a report, in its order."""
    same = {names for names in _measured_names(report) if match_kernel(*names, kernels) == mangled}
    return tuple(each for each in report.kernels if (each.profile.mangled, each.profile.name) in same)


def report_names(report: MeasuredReport) -> frozenset[str]:
    """Keys of the kernels in a report; it may hold a kernel of a build only where `built_names` has one of them."""
    return frozenset(name_key(mangled) if mangled else _spelled(name) for mangled, name in _measured_names(report))


def built_names(kernels: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Keys of a build's kernels (mangled, demangled in full), for reports with mangled names and for those without."""
    return frozenset(key for mangled, name in kernels for key in (name_key(mangled), _spelled(name)))


def measured_device(reports: Sequence[MeasuredReport], text: str) -> MeasuredDevice | None:
    """Where kernels were measured whose names stand in a text: of the newest such report that tells its device."""
    words: frozenset[str] | None = None
    for report in reports:
        for kernel in report.kernels:
            if kernel.profile.device.arch is None:
                continue
            words = frozenset(_IDENTIFIER.findall(text)) if words is None else words
            if _identifier(kernel.profile.name) in words:
                device = kernel.profile.device
                return MeasuredDevice(device.name, str(device.arch), PurePath(report.report.path).name)
    return None


def _measured_names(report: MeasuredReport) -> Iterable[tuple[str | None, str]]:
    return dict.fromkeys((kernel.profile.mangled, kernel.profile.name) for kernel in report.kernels)


def _spelled(name: str) -> str:
    return spelled_key(name).partition("<")[0]


def _identifier(name: str) -> str:
    return _spelled(name).rpartition("::")[2]
