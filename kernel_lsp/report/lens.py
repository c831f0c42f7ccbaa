"""The line above a kernel: its most important numbers, the most important left; beside it, what was measured.

One lens per kernel; up to `MOST_INSTANCES` instances of a template have one each, worst first, more share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kernel_lsp.cubin.kernel import DeviceFunction
from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import rule_texts
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis

MOST_INSTANCES = 3
SHOWN_BLOCK_SIZES = (128, 256, 512, 1024)
_SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class Lens:
    """One lens: its 1-based line, its text, and the kernel it speaks of (the worst, where it speaks of many)."""

    line: int
    text: str
    kernel: KernelAnalysis


def lenses(kernels: Iterable[KernelAnalysis], path: str) -> tuple[Lens, ...]:
    """All lenses of the file at `path`, sorted by line; kernels defined in other files have none here."""
    found = []
    for line, group in _by_line(kernels, path):
        ranked = sorted(group, key=_badness)
        if len(ranked) > MOST_INSTANCES:
            found.append(Lens(line, _shared_text(ranked, path), ranked[0]))
        else:
            named = len(ranked) > 1
            found.extend(Lens(line, lens_text(kernel, path, named=named), kernel) for kernel in ranked)
    return tuple(found)


def measured_lenses(kernels: Iterable[KernelAnalysis], path: str, now: datetime | None = None) -> tuple[Lens, ...]:
    """The lenses of measured kernels of the file at `path`, sorted by line; of several on a line the longest first."""
    found = []
    for line, group in _by_line(kernels, path):
        measured = [kernel for kernel in group if kernel.measured is not None]
        measured.sort(key=lambda kernel: (-_duration_ns(kernel), kernel.binary.name))
        for kernel in measured[:MOST_INSTANCES]:
            named = f"{kernel.binary.short_name}: " if len(group) > 1 else ""
            found.append(Lens(line, named + measured_text(kernel, now), kernel))
    return tuple(found)


def measured_text(kernel: KernelAnalysis, now: datetime | None = None) -> str:
    """`1.92 ms measured · SM 31 % · memory 88 % (DRAM 84 %) · 2 h old · by line` of a kernel with a measurement."""
    from kernel_lsp.report.measured_sentences import sol_parts  # with the first report: a start needs none of it
    from kernel_lsp.report.measured_words import duration_words, fit_mark, old

    found = kernel.measured
    assert found is not None
    duration_ns = found.profile.duration_ns
    parts = ["measured" if duration_ns is None else f"{duration_words(duration_ns)} measured"]
    parts += [*sol_parts(found.profile.sol), old(found.modified_at, now), fit_mark(found)]
    return _SEPARATOR.join(part for part in parts if part)


def _by_line(kernels: Iterable[KernelAnalysis], path: str) -> list[tuple[int, list[KernelAnalysis]]]:
    by_line: dict[int, list[KernelAnalysis]] = {}
    for kernel in kernels:
        if kernel.file == path and kernel.line > 0:
            by_line.setdefault(kernel.span.line if kernel.span else kernel.line, []).append(kernel)
    return sorted(by_line.items())


def _duration_ns(kernel: KernelAnalysis) -> float:
    return (kernel.measured.profile.duration_ns or 0.0) if kernel.measured is not None else 0.0


def lens_text(kernel: KernelAnalysis, path: str, *, named: bool = False) -> str:
    """`6 blocks/SM · 48/48 warps · 36 regs · 2.0 KB shared · limited by registers, warps`."""
    resources = kernel.binary.resources
    worst = worst_launch(kernel)
    parts = _launch_parts(kernel, worst, path) if worst else [_no_launch(kernel)]
    parts.append(wording.registers(resources, "regs"))
    shared = wording.shared(resources, worst.launch if worst else None)
    if shared != "no shared":
        parts.append(shared)
    local = wording.local_words(kernel)
    if local:
        parts.append(local)
    if worst is None:
        parts.extend(_block_size_parts(kernel))
    else:
        parts.extend(_edge_parts(kernel, worst))
        if worst.occupancy.blocks_per_sm:
            parts.append(f"limited by {wording.limiters(worst.occupancy, short=True)}")
    if resources.relocatable and resources.linked is None:
        parts.append("calls through pointers" if resources.calls_through_pointers else "before linking")
    return (f"{kernel.binary.short_name}: " if named else "") + _SEPARATOR.join(parts)


def _no_launch(kernel: KernelAnalysis) -> str:
    return "block size unknown" if kernel.has_limits else f"occupancy unknown: {wording.no_limits(kernel.binary.arch)}"


def device_function(function: DeviceFunction) -> str:
    """`device function with its own code · 54 regs · 264 B of local memory per thread`."""
    parts = ["device function with its own code"]
    if function.registers is not None:
        parts.append(f"{function.registers} regs")
    if function.spill_store_bytes or function.spill_load_bytes:
        parts.append(wording.spills(function.spill_store_bytes, function.spill_load_bytes))
    elif function.frame_bytes:
        parts.append(f"{wording.exact_bytes(function.frame_bytes)} of local memory per thread")
    return _SEPARATOR.join(parts)


def worst_launch(kernel: KernelAnalysis) -> LaunchAnalysis | None:
    """Of the launches to speak of, the one with the lowest occupancy."""
    return min(kernel.judged_launches, key=lambda la: la.occupancy.theoretical, default=None)


def _badness(kernel: KernelAnalysis) -> tuple[int, str]:
    """Worst first: the most registers, as case by case they are what instances of a template differ in."""
    return (-kernel.binary.resources.registers, kernel.binary.name)


def _launch_parts(kernel: KernelAnalysis, analysis: LaunchAnalysis, path: str) -> list[str]:
    occupancy, launch = analysis.occupancy, analysis.launch
    if not occupancy.blocks_per_sm:
        return [f"cannot start with {wording.launch_words(launch, path)}"]
    parts = [wording.blocks_per_sm(occupancy), f"{occupancy.active_warps}/{occupancy.max_warps} warps"]
    if wording.is_conditional(analysis, kernel.binary.resources):
        parts[1] += f" {wording.condition(analysis) or 'without dynamic shared memory'}"
    n_judged = len(kernel.judged_launches)
    if n_judged > 1:
        parts.append(f"block {wording.block_size(launch.block)}, worst of {n_judged} launches")
    elif launch.origin == "launch_bounds":
        parts.append(wording.launch_words(launch, path))
    return parts


def _block_size_parts(kernel: KernelAnalysis) -> list[str]:
    """Block sizes with their blocks per SM; never an occupancy without the block size that it belongs to."""
    rows = [
        f"{row.threads} -> {row.occupancy.blocks_per_sm}"
        for row in kernel.block_sizes
        if row.threads in SHOWN_BLOCK_SIZES
    ]
    parts = []
    resources = kernel.binary.resources
    if rows:
        condition = " with no dynamic shared memory" if resources.uses_dynamic_shared is not False else ""
        bound = "at most these " if resources.relocatable else ""
        parts.append(f"{bound}blocks/SM by block size{condition}: {', '.join(rows)}")
    if kernel.max_launchable_threads and kernel.max_launchable_threads < 1024:
        parts.append(f"at most {kernel.max_launchable_threads} threads")
    return parts


def _edge_parts(kernel: KernelAnalysis, analysis: LaunchAnalysis) -> list[str]:
    """How far the shared-memory edge is, where it is near enough to matter (thresholds of KL110)."""
    own = wording.own_shared_bytes(kernel.binary.resources, analysis.launch)
    thresholds = rule_texts()["KL110"].thresholds
    up = wording.nearest(analysis.cliffs, "shared", "up")
    down = wording.nearest(analysis.cliffs, "shared", "down")
    if not own:
        return []
    if up and "shared" in analysis.occupancy.limiters and -up.change <= thresholds["past_edge_fraction"] * own:
        edge = "cliff" if up.blocks_per_sm >= 2 * analysis.occupancy.blocks_per_sm else "edge"
        return [f"{wording.kilobytes(-up.change)} past the {edge}"]
    left = down.to_value - 1 - own if down else 0
    if down and 0 < 2 * down.blocks_per_sm <= analysis.occupancy.blocks_per_sm:
        if left == 0:
            return ["at the edge of the cliff"]
        if left <= thresholds["before_edge_fraction"] * own:
            return [f"{wording.kilobytes(left)} from the cliff"]
    return []


def _shared_text(ranked: Sequence[KernelAnalysis], path: str) -> str:
    counts = [kernel.binary.resources.registers for kernel in ranked]
    low, high = min(counts), max(counts)
    span = f"{low} regs" if low == high else f"{low}-{high} regs"
    return f"{len(ranked)} instances, {span}{_SEPARATOR}worst " + lens_text(ranked[0], path, named=True)
