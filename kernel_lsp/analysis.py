"""The API boundary of the core: a decoded cubin, a machine and launches become one frozen FileAnalysis (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.findings.finding import Finding
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.model.kernel_analysis import BlockSizeRow as BlockSizeRow
from kernel_lsp.model.kernel_analysis import KernelAnalysis as KernelAnalysis
from kernel_lsp.model.kernel_analysis import LaunchAnalysis as LaunchAnalysis
from kernel_lsp.source.position import Span


@dataclass(frozen=True, slots=True)
class FileAnalysis:
    """Everything known of one source file after one build."""

    path: str
    text_digest: str
    gpu: GpuChoice
    kernels: tuple[KernelAnalysis, ...]  # sorted by (file, line, most registers first, name)
    not_compiled: tuple[tuple[Span, str], ...]  # kernels and device functions of the text without code, and why
    findings: tuple[Finding, ...]  # sorted by (file, line, code)
