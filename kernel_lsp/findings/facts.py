"""What the rules read: one file's kernels, and what its build said. Made by `analysis.py`."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.findings.finding import Severity
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.source.message import CompilerMessage
from kernel_lsp.source.position import Span
from kernel_lsp.source.scan_result import SourceScan


@dataclass(frozen=True, slots=True)
class BuildNote:
    """Something about the flags that changes what the numbers mean: one sentence for people."""

    message: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Facts:
    """One file after one build, good or failed. `not_built` says why there is no new code, else None."""

    path: str
    gpu: GpuChoice | None
    kernels: tuple[KernelAnalysis, ...] = ()
    not_compiled: tuple[tuple[Span, str], ...] = ()
    messages: tuple[CompilerMessage, ...] = ()
    notes: tuple[BuildNote, ...] = ()
    not_built: str | None = None
    not_built_severity: Severity = "error"
    compiler_from_pypi: bool = False  # decides where a missing library comes from
    text: str = ""
    scan: SourceScan | None = None
    register_limit: int | None = None  # of -maxrregcount
