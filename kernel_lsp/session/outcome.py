"""Frozen values at the pipeline's ends: what is asked for, and the outcome of one analysis."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.build.result import BuildResult
from kernel_lsp.findings.finding import Finding
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.model.launch import Launch
from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.session.settings import Settings
from kernel_lsp.session.uris import real_path

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import LaunchRef
    from kernel_lsp.ncu.measured_report import MeasuredReport


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """What to analyse, and with which choices. `unsaved_text` is built instead of the file where it is given."""

    document: Path | None  # None: the buffer has no file
    settings: Settings
    unsaved_text: str | None = None
    roots: tuple[Path, ...] = ()
    trusted: bool = True
    open_texts: tuple[tuple[Path, str], ...] = ()  # what the editor has open
    readers: tuple[Path, ...] = ()  # sources whose builds are known to hold the document
    explicit_flags: tuple[str, ...] | None = None  # command line: `-- FLAGS`
    launch: Launch | None = None  # command line: --block (with --dynamic-shared)
    dynamic_shared_bytes: int | None = None  # command line: --dynamic-shared alone, for the launches that are known
    use_cache: bool = True
    config_file: Path | None = None  # command line: --config
    reports: tuple[MeasuredReport, ...] = ()  # of Nsight Compute, the newest first
    launches: Mapping[str, LaunchRef] = field(
        default_factory=dict
    )  # the user's choice among their launches, by mangled name


@dataclass(frozen=True, slots=True)
class ProjectLink:
    """Device code after a link with other files. `cubin` None: `reason` says why, for behind "before linking: "."""

    cubin: bytes | None
    with_files: tuple[str, ...] = ()  # the other sources
    dependencies: tuple[str, ...] = ()  # every file that they read, or that may change the reason
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The end of one analysis. `analysis` is None where there is nothing to show but the findings that say why."""

    path: str
    text: str  # that was analysed
    command: BuildCommand | None
    build: BuildResult | None
    toolchain: Toolchain | None
    gpu: GpuChoice | None
    analysis: FileAnalysis | None
    findings: tuple[Finding, ...]
    notices: tuple[str, ...]  # what the user must act on; said once per session
    ended_at: datetime
    reads: frozenset[str]  # every file that the result depends on, as the compiler or the project names it
    more_to_come: bool = False  # the same analysis follows with its instructions
    is_interim: bool = False  # before that follow the numbers after a link with other files, which is being made

    def depends_on(self, changed: Set[str]) -> bool:
        """Whether one of these real paths was read. Links are resolved here: a change is rarer than a save."""
        return any(real_path(file) in changed for file in self.reads)

    def without_instructions(self, why: str) -> FileOutcome:
        """The same where the instructions that were to come will not."""
        if self.analysis is None:
            return replace(self, more_to_come=False)
        kernels = tuple(replace(kernel, sass_why=why) for kernel in self.analysis.kernels)
        return replace(self, analysis=replace(self.analysis, kernels=kernels), more_to_come=False)

    @property
    def summary(self) -> str:
        """The outcome in a few words, for a status line."""
        if self.analysis is not None:
            n_kernels, n_functions = len(self.analysis.kernels), len(self.analysis.device_functions)
            if not n_kernels and not n_functions:
                return "no kernels in this file"
            found = ["1 kernel" if n_kernels == 1 else f"{n_kernels} kernels"] if n_kernels else []
            if n_functions:
                found.append("1 device function" if n_functions == 1 else f"{n_functions} device functions")
            return ", ".join(found)
        if self.build is None:
            return self.findings[0].message if self.findings else "not built"
        said = {"failed": "build failed", "timeout": "build stopped at its time limit", "tool missing": "no compiler"}
        return said.get(self.build.status, "nothing to build")
