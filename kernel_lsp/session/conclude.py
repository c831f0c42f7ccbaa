"""What a finished build means: cubin decoded, machine chosen, launches collected, rules asked, one outcome made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp.analysis import FileAnalysis, analyze, failed_build_findings
from kernel_lsp.build.probe import Gpu
from kernel_lsp.build.result import BuildResult
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.device_link import linked_resources, read_linked_alone, with_linked_resources
from kernel_lsp.cubin.kernel import Cubin, CubinError, KernelBinary
from kernel_lsp.cubin.names import with_short_names
from kernel_lsp.findings import wording
from kernel_lsp.findings.facts import BuildNote
from kernel_lsp.findings.finding import Finding, Severity
from kernel_lsp.hardware.catalog import UnknownArchError, UnknownGpuError, choose, without_limits
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.model.launch import Launch
from kernel_lsp.model.launch_choice import launches_for
from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.config import ProjectConfig
from kernel_lsp.project.register_limit import register_limit
from kernel_lsp.project.toolchain import Toolchain, is_from_pypi
from kernel_lsp.session.instructions import Instructions
from kernel_lsp.session.measuring import Measuring, measured_on, profiled_launches
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest, ProjectLink
from kernel_lsp.session.planning import Plan
from kernel_lsp.session.settings import Settings
from kernel_lsp.session.uris import real_path
from kernel_lsp.source.kernels import scan
from kernel_lsp.source.scan_result import SourceScan

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement


def outcome(
    request: PipelineRequest,
    plan: Plan,
    toolchain: Toolchain,
    machine: Gpu | None,
    built: BuildResult,
    scan_of_text: SourceScan,
    trouble: str | None,
    measuring: Measuring,
    link: ProjectLink | None,
    instructions: Instructions,
) -> FileOutcome:
    """What a finished build means. Runs off the event loop. `link`: with other files, where the code needs some."""
    path = str(plan.path)
    built = replace(built, reason=with_short_names(built.reason))
    notices = [*plan.notices, *(said for said in (trouble, instructions.notice) if said)]
    if built.launcher_trouble:
        launcher = " ".join(plan.launcher)
        notices.append(f"{launcher} gave no device code ({built.launcher_trouble}); nvcc was run without it.")
    severities = _severities(request.settings, plan.config)
    skipped = plan.command.skip_reason
    notes = [
        BuildNote(n.message, n.severity) for n in plan.command.notes if n.severity != "log" and n.message != skipped
    ]
    if link is not None and link.reason:
        notes.append(BuildNote(f"registers and stack are those before linking: {link.reason}", "information"))
    cubin: Cubin | None = None
    unreadable = ""
    measured: Mapping[str, KernelMeasurement] = {}
    if built.cubin is not None:
        try:
            cubin = _with_own_paths(_read(built, link), plan.path)
        except CubinError as error:
            unreadable = str(error)
        else:
            measured = measuring.of_build(request, path, plan.text, cubin, built.linked or built.cubin)
    gpu = _gpu_choice(request, plan, machine, measured_on(measured))
    analysis = None
    findings: tuple[Finding, ...] = ()
    if cubin is not None:
        is_stand_in = gpu is None
        if gpu is None:
            notes.append(_no_limits(cubin))
            gpu = without_limits(cubin.arch)
        launches = {
            k.mangled: _launches(k, request, plan, scan_of_text, profiled_launches(measured.get(k.mangled)))
            for k in cubin.kernels
        }
        analysis = analyze(
            path,
            plan.text,
            cubin,
            gpu,
            scan_of_text,
            launches,
            built.messages,
            notes,
            severities,
            register_limit(plan.command.flags),
            instructions.sass,
            instructions.why,
            measured,
            gpu_is_stand_in=is_stand_in,
        )
        findings = analysis.findings
    elif unreadable:
        findings = failed_build_findings(path, plan.text, unreadable, built.messages, notes, severities)
    elif built.status == "tool missing":
        notices.append(built.reason)
    else:
        findings = failed_build_findings(
            path,
            plan.text,
            built.reason,
            built.messages,
            notes,
            severities,
            _not_built_severity(plan, built),
            scan_of_text,
            is_from_pypi(toolchain),
        )
    reads = {path, *built.dependencies, *([str(plan.command.origin_path)] if plan.command.origin_path else [])}
    if plan.config is not None:
        reads.add(str(plan.config.path))
    if link is not None:
        reads.update(link.dependencies)
    return _outcome(
        path,
        plan.text,
        command=plan.command,
        built=built,
        toolchain=toolchain,
        gpu=gpu,
        analysis=analysis,
        findings=_in_existing_files(findings, path),
        notices=notices,
        reads=frozenset(reads),
        more_to_come=instructions.more_to_come and analysis is not None,
    )


def _not_built_severity(plan: Plan, built: BuildResult) -> Severity:
    """An error, but for a file that is not meant for this compiler: then what its note says (HIP: nobody's fault)."""
    if built.status != "skipped":
        return "error"
    said = (note.severity for note in plan.command.notes if note.message == plan.command.skip_reason)
    return next((severity for severity in said if severity != "log"), "warning")


def _in_existing_files(findings: Iterable[Finding], path: str) -> tuple[Finding, ...]:
    """Findings on names that are no files (`#line 1 "default_program"`) go to the head of the document, with the name.

    An editor shows nothing for a file that is not there, and could never clear it.
    """
    exists: dict[str, bool] = {path: True}

    def is_there(file: str) -> bool:
        if file not in exists:
            exists[file] = Path(file).exists()
        return exists[file]

    def placed(finding: Finding) -> Finding:
        related = tuple(place for place in finding.related if is_there(place.file))
        if is_there(finding.file):
            return finding if related == finding.related else replace(finding, related=related)
        message = f"{Path(finding.file).name}:{finding.line}: {finding.message}"
        return replace(
            finding, file=path, line=1, end_line=1, column=None, end_column=None, message=message, related=related
        )

    return tuple(placed(finding) for finding in findings)


def cubin_outcome(
    request: PipelineRequest,
    machine: Gpu | None,
    data: bytes,
    toolchain: Toolchain | None,
    measuring: Measuring,
    instructions: Instructions,
) -> FileOutcome:
    """The outcome of a `.cubin` given as it is: resources and occupancy, on the sources that its line table names."""
    path = str(request.document)
    try:
        cubin = read_cubin(data)
        measured = measuring.of_build(request, path, "", cubin, data)
        gpu = _cubin_gpu(request, machine, cubin, measured_on(measured))
    except (CubinError, UnknownGpuError) as error:
        return failed_outcome(path, str(error))
    is_stand_in = gpu is None
    gpu = gpu or without_limits(cubin.arch)
    nothing = scan("")
    launches = {
        k.mangled: _with_dynamic_shared(
            launches_for(k, nothing, path, (), request.launch, profiled_launches(measured.get(k.mangled))), request
        )
        for k in cubin.kernels
    }
    analysis = analyze(
        path,
        "",
        cubin,
        gpu,
        nothing,
        launches,
        notes=(_no_limits(cubin),) if is_stand_in else (),
        gpu_is_stand_in=is_stand_in,
        severities=dict(request.settings.severity),
        sass=instructions.sass,
        sass_why=instructions.why,
        measured=measured,
    )
    return _outcome(
        path,
        "",
        toolchain=toolchain,
        gpu=gpu,
        analysis=analysis,
        findings=analysis.findings,
        notices=[instructions.notice] if instructions.notice else [],
        more_to_come=instructions.more_to_come,
    )


def _cubin_gpu(
    request: PipelineRequest, machine: Gpu | None, cubin: Cubin, measured_on: str | None
) -> GpuChoice | None:
    """The machine the numbers are for; None where the cubin's architecture has no limits on record."""
    detected = machine.name if machine else None
    try:
        return choose(request.settings.gpu or None, detected, cubin.arch, measured_on)
    except UnknownArchError:
        return None


def _no_limits(cubin: Cubin) -> BuildNote:
    return BuildNote(f"{wording.no_limits(cubin.arch)}: what its launches reach is not known", "warning")


def failed_outcome(path: str, reason: str, severity: Severity = "error") -> FileOutcome:
    """The outcome where there was nothing that could be built or read."""
    return _outcome(path, "", findings=failed_build_findings(path, "", reason, (), not_built_severity=severity))


def _outcome(
    path: str,
    text: str,
    *,
    command: BuildCommand | None = None,
    built: BuildResult | None = None,
    toolchain: Toolchain | None = None,
    gpu: GpuChoice | None = None,
    analysis: FileAnalysis | None = None,
    findings: tuple[Finding, ...] = (),
    notices: Sequence[str] = (),
    reads: frozenset[str] = frozenset(),
    more_to_come: bool = False,
) -> FileOutcome:
    return FileOutcome(
        path=path,
        text=text,
        command=command,
        build=built,
        toolchain=toolchain,
        gpu=gpu,
        analysis=analysis,
        findings=findings,
        notices=tuple(notices),
        ended_at=datetime.now().astimezone(),
        reads=reads,
        more_to_come=more_to_come,
    )


def _gpu_choice(request: PipelineRequest, plan: Plan, machine: Gpu | None, measured_on: str | None) -> GpuChoice | None:
    """The machine the numbers are for; None where the architecture has no limits on record."""
    wanted = request.settings.gpu or (plan.config.gpu if plan.config is not None else None)
    arch = None if plan.arch_is_default else plan.command.arch
    detected = machine.name if machine is not None else None
    try:
        try:
            return choose(setting=wanted or None, detected=detected, arch=arch or None, report=measured_on)
        except UnknownGpuError:  # said in the plan's notices already
            return choose(detected=detected, arch=arch or None, report=measured_on)
    except UnknownArchError:
        return None


def _severities(settings: Settings, config: ProjectConfig | None) -> dict[str, str]:
    """The project's severities, with the user's own over them."""
    project: dict[str, str] = {}
    if config is not None:
        project = {**dict(config.severity), **dict.fromkeys(config.ignore, "off")}
    return {**project, **dict(settings.severity)}


def _launches(
    kernel: KernelBinary, request: PipelineRequest, plan: Plan, scanned: SourceScan, profiled: Sequence[Launch]
) -> Sequence[Launch]:
    configured = plan.config.launches_for(kernel.name) if plan.config is not None else ()
    found = launches_for(kernel, scanned, str(plan.path), configured, request.launch, profiled)
    return _with_dynamic_shared(found, request)


def _with_dynamic_shared(launches: Sequence[Launch], request: PipelineRequest) -> Sequence[Launch]:
    told = request.dynamic_shared_bytes
    if told is None:
        return launches
    return [replace(la, dynamic_shared_bytes=told, dynamic_shared_where="--dynamic-shared") for la in launches]


def _read(built: BuildResult, link: ProjectLink | None) -> Cubin:
    """The decoded code: after a link by itself; else before any, with what a link with other files makes of it."""
    assert built.cubin is not None
    if built.linked is not None:
        return read_linked_alone(built.cubin, built.linked)
    cubin = read_cubin(built.cubin)
    if link is None or link.cubin is None:
        return cubin
    return with_linked_resources(cubin, linked_resources(link.cubin, link.with_files))


def _with_own_paths(cubin: Cubin, document: Path) -> Cubin:
    """Definitions in the document under the document's own spelling: tables hold what the compiler was given."""
    own = real_path(document)
    same: dict[str, bool] = {}

    def spelt(kernel: KernelBinary) -> KernelBinary:
        place = kernel.definition
        if place is None or place.file == str(document):
            return kernel
        if place.file not in same:
            same[place.file] = real_path(place.file) == own
        return replace(kernel, definition=replace(place, file=str(document))) if same[place.file] else kernel

    return replace(cubin, kernels=tuple(spelt(kernel) for kernel in cubin.kernels))
