"""Outcomes of several files as the one JSON value of `check --format json`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernel_lsp import __version__
from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings.finding import Finding
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.report.values import SCHEMA_VERSION, Json, device_function_value, finding_value, gpu_value, kernel_value


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file of a check: how it was built (`build` is JSON already), what is known, what was found."""

    path: str
    build: Json
    analysis: FileAnalysis | None
    findings: tuple[Finding, ...]


def check_value(gpu: GpuChoice | None, tools: Json, files: Sequence[CheckedFile]) -> Json:
    """The whole document; `gpu` is None where no file came so far that one was chosen."""
    value: Json = {
        "schema_version": SCHEMA_VERSION,
        "kernel_lsp_version": __version__,
        "gpu": None if gpu is None else gpu_value(gpu),
        "tools": tools,
        "files": [_file(file) for file in sorted(files, key=lambda file: file.path)],
    }
    if gpu is None:
        value["gpu_why"] = "no file could be analysed"
    return value


def _file(file: CheckedFile) -> Json:
    analysis = file.analysis
    value: Json = {"path": file.path, "build": file.build}
    if analysis is not None:
        value["gpu"] = gpu_value(analysis.gpu)
    kernels = () if analysis is None else analysis.kernels
    value["kernels"] = [
        kernel_value(kernel) for kernel in sorted(kernels, key=lambda k: (k.file, k.line, k.binary.name))
    ]
    value["device_functions"] = [device_function_value(f) for f in (analysis.device_functions if analysis else ())]
    if analysis is None:
        value["kernels_why"] = file.build.get("reason") or "not built"
    value["findings"] = [finding_value(finding) for finding in by_place(file.findings)]
    return value


def by_place(findings: Iterable[Finding]) -> list[Finding]:
    """Sorted by (file, line, code)."""
    return sorted(findings, key=lambda f: (f.file, f.line, f.code, f.column or 0, f.message))
