"""The API boundary of the core: a decoded cubin, a machine and launches become one frozen FileAnalysis (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel_lsp.cubin.kernel import Cubin, DeviceFunction, KernelBinary
from kernel_lsp.findings.facts import BuildNote, Facts
from kernel_lsp.findings.finding import Finding, Severity
from kernel_lsp.findings.run import run_rules
from kernel_lsp.hardware.profile import GpuChoice, SmLimits
from kernel_lsp.model.cliffs import (
    block_size_rows,
    cliffs,
    largest_launchable_block,
    max_dynamic_shared_keeping_blocks,
)
from kernel_lsp.model.kernel_analysis import BlockSizeRow as BlockSizeRow
from kernel_lsp.model.kernel_analysis import KernelAnalysis as KernelAnalysis
from kernel_lsp.model.kernel_analysis import LaunchAnalysis as LaunchAnalysis
from kernel_lsp.model.kernel_analysis import breaks_required_block, exceeds_cluster, launch_shape
from kernel_lsp.model.kernel_sass import CubinSass, KernelSass
from kernel_lsp.model.launch import Launch
from kernel_lsp.model.occupancy import Occupancy, occupancy
from kernel_lsp.source.digest import content_digest
from kernel_lsp.source.kernel_match import kernel_in_text, kernel_name, not_compiled
from kernel_lsp.source.message import CompilerMessage
from kernel_lsp.source.position import Span
from kernel_lsp.source.scan_result import SourceKernel, SourceScan

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement

# An end that is missing matches too: else a hostile text would be searched to its end from every start.
_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*(?:.*?\*/|.*)|"(?:\\.|[^"\\\n])*"?', re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class FileAnalysis:
    """Everything known of one source file after one build."""

    path: str
    text_digest: str
    gpu: GpuChoice
    kernels: tuple[KernelAnalysis, ...]  # sorted by (file, line, most registers first, name)
    not_compiled: tuple[tuple[Span, str], ...]  # kernels and device functions of the text without code, and why
    findings: tuple[Finding, ...]  # sorted by (file, line, code)
    device_functions: tuple[DeviceFunction, ...] = ()  # of the user's, with code of their own until they are linked
    function_sass: tuple[KernelSass | None, ...] = ()  # one for each of `device_functions`
    has_sass: bool = False  # False: instructions are not read (yet)


def analyze(
    path: str,
    text: str,
    cubin: Cubin,
    gpu: GpuChoice,
    scan: SourceScan,
    launches: Mapping[str, Sequence[Launch]],
    messages: Sequence[CompilerMessage] = (),
    notes: Sequence[BuildNote] = (),
    severities: Mapping[str, str] | None = None,
    register_limit: int | None = None,
    sass: CubinSass | None = None,
    sass_why: str = "instructions are not decoded yet",
    measured: Mapping[str, KernelMeasurement] = MappingProxyType({}),
    gpu_is_stand_in: bool = False,
) -> FileAnalysis:
    """Join a cubin with its source and machine, and ask the rules.

    `path` is the file that the text (and its `scan`) belongs to, spelt as the cubin's line table spells it; for a
    cubin without a source the text is empty. `launches` are by mangled name; kernels without an entry have none.
    `severities` maps codes or slugs to a severity or "off". `register_limit` is that of -maxrregcount. `sass` holds the
    instructions, where they are decoded already (else `sass_why` says why not); `measured` is by mangled name.
    `gpu_is_stand_in`: no limits of the cubin's machine are on record, so nothing is said of occupancy and launches.
    """
    sections = {} if sass is None else sass.sections
    found = (
        _kernel(
            binary,
            path,
            source_kernel(binary, path, scan),
            None if gpu_is_stand_in else gpu,
            launches.get(binary.mangled, ()),
        )
        for binary in cubin.kernels
    )
    kernels = tuple(
        sorted(
            (
                replace(
                    kernel,
                    sass=sections.get(kernel.binary.mangled),
                    sass_why=_code_why(kernel.binary.mangled, sass, sass_why),
                    measured=measured.get(kernel.binary.mangled),
                )
                for kernel in found
            ),
            key=lambda k: (k.file, k.line, -k.binary.resources.registers, k.binary.name),
        )
    )
    functions = tuple(f for f in cubin.device_functions if f.kernel is None and not f.is_helper)
    not_compiled = _not_compiled(path, cubin, scan)
    facts = Facts(
        path,
        None if gpu_is_stand_in else gpu,
        kernels,
        not_compiled,
        tuple(messages),
        tuple(notes),
        text=text,
        scan=scan,
        register_limit=register_limit,
    )
    return FileAnalysis(
        path=path,
        text_digest=content_digest(text.encode("utf-8", "surrogatepass")),
        gpu=gpu,
        kernels=kernels,
        not_compiled=not_compiled,
        findings=run_rules(facts, text, severities or {}, heads={k.span.line: k.first_line for k in scan.kernels}),
        device_functions=functions,
        function_sass=tuple(sections.get(function.mangled) for function in functions),
        has_sass=sass is not None,
    )


def failed_build_findings(
    path: str,
    text: str,
    reason: str,
    messages: Sequence[CompilerMessage],
    notes: Sequence[BuildNote] = (),
    severities: Mapping[str, str] | None = None,
    not_built_severity: Severity = "error",
    scan: SourceScan | None = None,
    compiler_from_pypi: bool = False,
) -> tuple[Finding, ...]:
    """What a build that made no code has to say: its messages, or `reason` where no message has a place.

    `not_built_severity` is less than an error where the file was not meant to be built here (another target).
    """
    facts = Facts(
        path,
        None,
        messages=tuple(messages),
        notes=tuple(notes),
        not_built=reason,
        not_built_severity=not_built_severity,
        compiler_from_pypi=compiler_from_pypi,
        text=text,
        scan=scan,
    )
    return run_rules(facts, text, severities or {})


def source_kernel(binary: KernelBinary, path: str, scan: SourceScan) -> SourceKernel | None:
    """The kernel of the text that a binary was made from; None where it stands in another file or is not found."""
    place = binary.definition
    if place is not None and not _same_path(place.file, path):
        return None
    return kernel_in_text(scan, kernel_name(binary.name), None if place is None else place.line)


def _code_why(mangled: str, sass: CubinSass | None, sass_why: str) -> str:
    """Why a kernel has no instructions; "" where it has."""
    if sass is None:
        return sass_why
    return "" if mangled in sass.sections else "the cubin names this kernel but holds no code of it"


def _same_path(one: str, other: str) -> bool:
    return PurePath(one) == PurePath(other)


def _kernel(
    binary: KernelBinary, path: str, source: SourceKernel | None, gpu: GpuChoice | None, launches: Sequence[Launch]
) -> KernelAnalysis:
    limits, definition = gpu.profile.limits if gpu else None, binary.definition
    if source is not None:
        file, line = path, source.span.line
    elif definition is not None:
        file, line = definition.file, definition.line
    else:
        file, line = "", 0
    known = tuple(_launch(binary, limits, launch) for launch in launches if limits and _is_possible(launch))
    return KernelAnalysis(
        binary=binary,
        file=file,
        line=line,
        span=source.span if source else None,
        launches=known,
        block_sizes=_block_sizes(binary, limits) if limits and not known else (),
        max_launchable_threads=_largest_block(binary, limits) if limits else None,
    )


def _is_possible(launch: Launch) -> bool:
    """Whether these are numbers of a launch at all; what asks for too much is analysed, and said to be that."""
    return (
        min(launch.block) > 0
        and (launch.dynamic_shared_bytes or 0) >= 0
        and (launch.cluster is None or launch.cluster > 0)
    )


def _launch(binary: KernelBinary, limits: SmLimits, launch: Launch) -> LaunchAnalysis:
    shape = launch_shape(binary.resources, launch)
    cluster_is_too_large = exceeds_cluster(limits, launch)
    if limits.max_cluster_blocks_portable is None or cluster_is_too_large:
        shape = replace(shape, cluster_blocks=None)  # built for another machine: the blocks alone still tell much
    found = _bounded(occupancy(limits, shape), binary, launch)
    if cluster_is_too_large:
        found = replace(found, blocks_per_sm=0, active_warps=0, limiters=("blocks",), limit_blocks=0)
    unknown_dynamic = launch.dynamic_shared_bytes is None and binary.resources.uses_dynamic_shared is not False
    can_start = found.blocks_per_sm > 0
    return LaunchAnalysis(
        launch=launch,
        occupancy=found,
        cliffs=cliffs(limits, shape) if can_start else (),
        holds_to_dynamic_shared_bytes=(
            max_dynamic_shared_keeping_blocks(limits, shape) if unknown_dynamic and can_start else None
        ),
    )


def _bounded(found: Occupancy, binary: KernelBinary, launch: Launch) -> Occupancy:
    """The kernel's own bounds applied: a launch that breaks them cannot start; an unlinked kernel's is a bound."""
    resources = binary.resources
    most = resources.max_threads
    if (most is not None and launch.threads > most) or breaks_required_block(resources, launch):
        # As the header does it: a block above the function's largest makes the limit by warps 0.
        return replace(found, blocks_per_sm=0, active_warps=0, limiters=("warps",), limit_warps=0)
    return replace(found, is_upper_bound=True) if resources.relocatable else found


def _block_sizes(binary: KernelBinary, limits: SmLimits) -> tuple[BlockSizeRow, ...]:
    shape = launch_shape(binary.resources, Launch((1, 1, 1), None, None, None, "source", ""))
    most = binary.resources.max_threads or limits.max_threads_per_block
    is_bound = binary.resources.relocatable
    return tuple(
        BlockSizeRow(threads, replace(found, is_upper_bound=True) if is_bound else found)
        for threads, found in block_size_rows(limits, shape)
        if threads <= most
    )


def _largest_block(binary: KernelBinary, limits: SmLimits) -> int:
    shape = launch_shape(binary.resources, Launch((1, 1, 1), None, None, None, "source", ""))
    most = largest_launchable_block(limits, shape)
    return min(most, binary.resources.max_threads or most)


def _not_compiled(path: str, cubin: Cubin, scan: SourceScan) -> tuple[tuple[Span, str], ...]:
    """Kernels and free device functions of the text that have no code, with the reason as far as it is known."""
    found = (source_kernel(binary, path, scan) for binary in cubin.kernels)
    return not_compiled(
        scan,
        compiled=[kernel for kernel in found if kernel is not None],
        compiled_names=[kernel_name(binary.name).qualified for binary in cubin.kernels],
        emitted_functions=[kernel_name(function.name).scope_and_name[-1] for function in cubin.device_functions],
        is_header=PurePath(path).suffix != ".cu",
    )
