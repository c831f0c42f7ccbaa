"""Joins what is known about a kernel's launches from every source into one list, best source first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from kernel_lsp.cubin.kernel import KernelBinary
from kernel_lsp.model.launch import Launch
from kernel_lsp.source.expressions import Expression, fold
from kernel_lsp.source.kernel_match import (
    ArgumentMatch,
    KernelName,
    kernel_in_text,
    kernel_name,
    match_arguments,
    names_kernel,
)
from kernel_lsp.source.scan_result import Extents, SourceKernel, SourceLaunch, SourceScan


@dataclass(frozen=True, slots=True)
class _Shared:
    """Dynamic shared memory that a source tells (None: not), for blocks of one size or (None) of any."""

    size_bytes: int | None
    block: tuple[int, int, int] | None
    where: str


def launches_for(
    kernel: KernelBinary,
    scan: SourceScan,
    path: str,
    configured: Sequence[Launch] = (),
    override: Launch | None = None,
    profiled: Sequence[Launch] = (),
) -> tuple[Launch, ...]:
    """Every known launch of a kernel, the one to speak of first.

    An override stands alone. Else: the profile's, the configuration's, those of comments, `__launch_bounds__`, and
    the launches in the text. `path` is the file of `scan`. A launch whose block is unknown is left out. Dynamic
    shared memory that its own source does not tell is taken from a later source that does, else 0 where the binary
    has none, else None.
    """
    name = kernel_name(kernel.name)
    line = kernel.definition.line if kernel.definition and _same_file(kernel.definition.file, path) else None
    source = kernel_in_text(scan, name, line) if line is not None or kernel.definition is None else None
    file = PurePath(path).name
    commented, told = _comments(scan, source, file)
    in_text = _in_text(scan, name)
    written = [made for launch, match in in_text if (made := _made(launch, match, file)) is not None]
    sources = [told, [_written_size(launch, match, file) for launch, match in in_text], _limits(scan, name, file)]
    if override is not None:
        found = [override]
    else:
        found = [*profiled, *configured, *commented, *_bounds(kernel, source, file), *written]
    cluster = source.cluster_blocks if source is not None else None
    whole = (_completed(launch, sources, cluster, kernel.resources.uses_dynamic_shared) for launch in found)
    return tuple(dict.fromkeys(whole))


def _same_file(one: str, other: str) -> bool:
    return PurePath(one) == PurePath(other)


def _comments(scan: SourceScan, source: SourceKernel | None, file: str) -> tuple[list[Launch], list[_Shared]]:
    """The launches that comments at a kernel tell, and the shared memory of those that tell no block."""
    launches: list[Launch] = []
    shared: list[_Shared] = []
    for comment in scan.comments:
        if source is None or (comment.kernel, comment.kernel_line) != (source.qualified_name, source.span.line):
            continue
        where, size = f"{file}:{comment.line}", comment.dynamic_shared_bytes
        if comment.block is not None:
            launches.append(Launch(comment.block, comment.grid, size, comment.cluster, "comment", where))
        elif size is not None:
            shared.append(_Shared(size, None, where))
    return launches, shared


def _bounds(kernel: KernelBinary, source: SourceKernel | None, file: str) -> list[Launch]:
    """`__launch_bounds__` (the largest block) or `__block_size__` (the only one), as the binary has it."""
    block = kernel.resources.required_block or kernel.resources.max_block
    if block is None:
        return []
    where = f"{file}:{source.span.line}" if source is not None else "__launch_bounds__"
    return [Launch(block, None, None, None, "launch_bounds", where)]


def _in_text(scan: SourceScan, name: KernelName) -> list[tuple[SourceLaunch, ArgumentMatch]]:
    """The launches of the text that are of this instance, those that an #if decides last.

    Where none is certain (arguments deduced or hidden in types), all possible ones must agree on the block and
    on shared memory: else one of another instance could be taken for this one's.
    """
    matches = []
    for launch in scan.launches:
        if names_kernel(launch.kernel, launch.scope, name, scan):
            match = match_arguments(launch.kernel_args, launch.arg_values, name.template_args)
            if match is not None:
                matches.append((launch, match))
    certain = [(launch, match) for launch, match in matches if match.is_certain]
    if certain:
        return sorted(certain, key=lambda entry: entry[0].is_conditional)
    shapes = {
        (_extents(launch.block, match), fold(launch.dynamic_shared_bytes, match.bindings)) for launch, match in matches
    }
    return sorted(matches, key=lambda entry: entry[0].is_conditional) if len(shapes) == 1 else []


def _made(launch: SourceLaunch, match: ArgumentMatch, file: str) -> Launch | None:
    block, grid = _extents(launch.block, match), _extents(launch.grid, match)
    if block is None or min(block) < 1:
        return None
    return Launch(
        block=block,
        grid=grid if grid is not None and min(grid) > 0 else None,
        dynamic_shared_bytes=_size(launch.dynamic_shared_bytes, match),
        cluster=None,
        origin="source",
        where=f"{file}:{launch.line}",
        kernel_args=launch.kernel_args,
    )


def _written_size(launch: SourceLaunch, match: ArgumentMatch, file: str) -> _Shared:
    size = _size(launch.dynamic_shared_bytes, match)
    return _Shared(size, _extents(launch.block, match), f"{file}:{launch.line}")


def _size(expression: Expression | None, match: ArgumentMatch) -> int | None:
    """Bytes; None where they are not known, or negative: then the program computes them in another way than read."""
    size = fold(expression, match.bindings)
    return None if size is None or size < 0 else size


def _extents(extents: Extents | None, match: ArgumentMatch) -> tuple[int, int, int] | None:
    if extents is None:
        return None
    x, y, z = (fold(extent, match.bindings) for extent in extents)
    return None if x is None or y is None or z is None else (x, y, z)


def _limits(scan: SourceScan, name: KernelName, file: str) -> list[_Shared]:
    """What cudaFuncSetAttribute allows this instance."""
    found = []
    for limit in scan.shared_memory_limits:
        match = match_arguments(limit.kernel_args, limit.arg_values, name.template_args)
        if match is not None and names_kernel(limit.kernel, limit.scope, name, scan):
            found.append(_Shared(_size(limit.limit_bytes, match), None, f"{file}:{limit.line}"))
    return found


def _completed(
    launch: Launch, sources: Sequence[Sequence[_Shared]], cluster: int | None, uses_dynamic_shared: bool | None
) -> Launch:
    """The launch with what other sources tell of it: the first whose sizes for this block are one size."""
    if launch.cluster is None and cluster is not None:
        launch = replace(launch, cluster=cluster)
    if launch.dynamic_shared_bytes is not None:
        return launch
    if uses_dynamic_shared is False:
        return replace(launch, dynamic_shared_bytes=0)
    for source in sources:
        # A size that goes with another block size says nothing about this one.
        told = [entry for entry in source if entry.block in (None, launch.block)]
        if told and told[0].size_bytes is not None and len({entry.size_bytes for entry in told}) == 1:
            return replace(launch, dynamic_shared_bytes=told[0].size_bytes, dynamic_shared_where=told[0].where)
    return launch
