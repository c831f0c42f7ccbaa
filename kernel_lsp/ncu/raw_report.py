"""What a report or a CSV page says, before anything is understood: metrics by name, columns by instruction, rules.

Both the reader's child process and the CSV pages end here, so that everything behind works on one kind of value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz")

Value = float | int | str | None


class NcuError(ValueError):
    """A report or CSV page cannot be read; the message names the file, what is wrong and what to do."""


class ReaderMissingError(NcuError):
    """NVIDIA's package that reads reports is not installed; the message says how to get it."""


class Metric(NamedTuple):
    """A value and its unit as written ("ns", "usecond", "Gbyte/s", "" for none)."""

    value: Value
    unit: str


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A metric's instances: absolute instruction addresses (rising), and a value for each."""

    pcs: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What one of NVIDIA's rules said; the speed-up is its own estimate, in percent."""

    rule: str
    section: str
    kind: str  # "ok" | "optimization" | "warning" | "error" | "none"
    title: str
    message: str
    speedup_pct: float | None
    speedup_scope: str | None  # "local" | "global"


@dataclass(frozen=True, slots=True)
class RuleMarker:
    """A place that one of NVIDIA's rules points at."""

    rule: str
    message: str
    pc: int | None
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True, eq=False)
class PcLines:
    """File and line of addresses, as ncu says: the innermost inlined one. Columns of one length."""

    files: tuple[str, ...]
    pcs: npt.NDArray[np.uint64]
    file: npt.NDArray[np.int32]
    line: npt.NDArray[np.int32]


NO_LINES = PcLines((), np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class RawAction:
    """One profiled launch of a kernel."""

    name: str  # demangled, as ncu writes it
    mangled: str | None  # CSV pages do not tell
    metrics: Mapping[str, Metric]
    columns: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}))
    by_opcode: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    functions: tuple[int, ...] = ()  # start addresses: the kernel, then the functions it calls
    lines: PcLines = NO_LINES
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # embedded text by build path
    rules: tuple[RuleResult, ...] = ()
    markers: tuple[RuleMarker, ...] = ()
    sass: Mapping[int, str] | None = None  # by absolute address; None: not asked for


@dataclass(frozen=True, slots=True, eq=False)
class RawReport:
    """A whole report."""

    path: str
    digest: str
    collector: str | None  # ncu's version, "2024.1.1.0"; None: not told
    actions: tuple[RawAction, ...]
    cubins: tuple[bytes, ...] = ()  # the modules of its kernels
    notes: tuple[str, ...] = ()  # what could not be read of it
