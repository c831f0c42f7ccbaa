"""The bottleneck report as a document: sections of paragraphs, tables and commands, before any output format.

Each section either holds what is known, or says what would make it known and with which command; no number stands
for an unknown one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings.finding import Finding
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.report import code_sections, occupancy_sections, sections
from kernel_lsp.report.kernel_choice import chosen_kernels
from kernel_lsp.report.section import BuildFacts, Section

SectionKey = Literal[
    "summary",
    "baseline",
    "roofline",
    "occupancy",
    "cliffs",
    "ratio",
    "mix",
    "hot_lines",
    "memory_access",
    "recommendations",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel's part of the report."""

    kernel: KernelAnalysis
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The report of one file. `not_compiled` lists what the text holds without code."""

    analysis: FileAnalysis
    build: BuildFacts
    kernels: tuple[KernelReport, ...]
    file_findings: tuple[Finding, ...]


def build_report(analysis: FileAnalysis, build: BuildFacts, kernel_name: str | None = None) -> Report:
    """The report of a file's kernels, or of those named; raises NoSuchKernelError."""
    kernels = chosen_kernels(analysis, kernel_name)
    reports = tuple(_kernel_report(kernel, analysis, build) for kernel in kernels)
    told = {id(finding) for report in reports for finding in report.findings}
    others = [f for f in analysis.findings if id(f) not in told and (kernel_name is None or f.kernel is None)]
    return Report(analysis, build, reports, tuple(others))


def _kernel_report(kernel: KernelAnalysis, analysis: FileAnalysis, build: BuildFacts) -> KernelReport:
    findings = tuple(f for f in analysis.findings if _concerns(f, kernel))
    return KernelReport(kernel, findings, _sections(kernel, analysis, findings, build))


def _concerns(finding: Finding, kernel: KernelAnalysis) -> bool:
    """A finding of this kernel, or one of another instance of its template that stands for this one too."""
    return kernel.binary.name == finding.kernel or kernel.binary.name in finding.instances


def _sections(
    kernel: KernelAnalysis, analysis: FileAnalysis, findings: Sequence[Finding], build: BuildFacts
) -> tuple[Section, ...]:
    return (
        sections.summary(kernel, analysis, findings),
        sections.baseline(kernel),
        sections.roofline(kernel, analysis),
        occupancy_sections.occupancy(kernel, analysis),
        occupancy_sections.cliffs(kernel, analysis),
        code_sections.ratio(kernel, analysis.path, build),
        code_sections.mix(kernel, analysis.path, build),
        sections.hot_lines(kernel, analysis.path),
        code_sections.memory_access(kernel, analysis.path),
        sections.recommendations(kernel, findings),
        sections.unknown(kernel, analysis),
    )
