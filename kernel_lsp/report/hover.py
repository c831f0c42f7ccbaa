"""The hover on a kernel's name: Markdown of short lists and fenced blocks with aligned columns (no tables).

Neovim shows Markdown tables as raw pipes, so columns are aligned by hand inside code fences.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings import wording
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis
from kernel_lsp.model.occupancy import Occupancy
from kernel_lsp.report.lens import worst_launch
from kernel_lsp.report.loop_words import loop_sentence, main_loops, peak_sentence
from kernel_lsp.report.markdown_text import code_span, escaped, fenced, name
from kernel_lsp.report.occupancy_table import block_size_lines, limit_lines
from kernel_lsp.report.sass_words import Places, signature

MOST_LAUNCHES = 4
MOST_INSTANCES = 6


def kernel_hover(
    kernel: KernelAnalysis,
    analysis: FileAnalysis,
    freshness: str | None = None,
    moved: Callable[[int], int | None] | None = None,
    now: datetime | None = None,
) -> str:
    """What is known of one kernel. `freshness` is a sentence such as "from the save of 14:02", shown in italics.

    `moved` gives where a line is in the text as it stands now; `now` tells the age of a report.
    """
    places = Places(analysis.path, moved) if moved else Places(analysis.path)
    profile = analysis.gpu.profile
    board = f"{wording.board(profile)}, {kernel.binary.arch}"
    if analysis.gpu.why == "default":
        board += " (by default)"
    parts = [f"**{name(kernel.binary.short_name)}**  {escaped(board)}"]
    if freshness:
        parts.append(f"*{escaped(freshness)}*")
    if kernel.measured is not None:
        from kernel_lsp.report.measured_hover import kernel_blocks  # with the first report: a start needs none of it

        parts += kernel_blocks(kernel, analysis, places, now)
    if kernel.launches:
        ranked = sorted(kernel.judged_launches, key=lambda la: la.occupancy.theoretical)
        ranked += kernel.other_launches
        parts.append(_launch_paragraph(kernel, ranked[0], analysis.path))
        parts.append(fenced(_limits(kernel, ranked[0], analysis)))
        parts.append(_steps_paragraph(kernel, ranked[0]))
        if len(ranked) > 1:
            parts.append(_other_launches(kernel, ranked, analysis.path))
    else:
        parts.extend(_unknown_block(kernel, analysis))
    parts.append(_code_paragraph(kernel, places))
    parts.append("\n".join(f"- {line}" for line in _resource_lines(kernel)))
    instances = _instances(kernel, analysis)
    if instances:
        parts.append(instances)
    parts.append(code_span(signature(kernel.binary.name)))
    return "\n\n".join(part for part in parts if part)


def _code_paragraph(kernel: KernelAnalysis, places: Places) -> str:
    """The main inner loop with its ratio, and where the most registers are live; "" while not known."""
    if kernel.sass is None or kernel.sass.mix is None:
        return ""
    loops = main_loops(kernel.sass)
    said = [loop_sentence(loops[0], places)] if loops else []
    if len(loops) > 1:
        said[0] += f" {wording.counted(len(loops) - 1, 'more inner loop')}."
    said.append(peak_sentence(kernel.sass, places))
    return "  \n".join(escaped(line) for line in said if line)


def _limits(kernel: KernelAnalysis, analysis: LaunchAnalysis, file: FileAnalysis) -> list[str]:
    """Every limit with what the block uses of it, aligned; the limits that decide are marked `<- limit`."""
    resources, occupancy, limits = kernel.binary.resources, analysis.occupancy, file.gpu.profile.limits
    warps = -(-analysis.launch.threads // limits.warp_size)
    own = wording.own_shared_bytes(resources, analysis.launch)
    reserve = limits.shared_reserved_bytes_per_block
    if own is None:
        shared_use = f"{wording.kilobytes(resources.in_program.static_shared_bytes)} + unknown"
    else:
        shared_use = wording.kilobytes(own) + (f" + {wording.kilobytes(reserve)}" if reserve else "")
    return limit_lines(
        occupancy,
        {
            "registers": wording.registers(resources, "per thread"),
            "warps": f"{warps} per block",
            "blocks": "",
            "shared": shared_use,
            "barriers": f"{resources.in_program.barriers} of {limits.barriers_per_block}",
        },
    )


def occupancy_sentence(kernel: KernelAnalysis, analysis: LaunchAnalysis) -> str:
    """`33 % theoretical occupancy: 2 blocks/SM, 16 of 48 warps. Limited by registers.` with its conditions."""
    occupancy = analysis.occupancy
    if not occupancy.blocks_per_sm:
        return "This launch cannot start: no block fits on the SM."
    most = "At most " if occupancy.is_upper_bound else ""
    sentence = (
        f"{most}{wording.percent(occupancy.theoretical)} theoretical occupancy: "
        f"{wording.counted(occupancy.blocks_per_sm, 'block')}/SM, "
        f"{occupancy.active_warps} of {occupancy.max_warps} warps"
    )
    if wording.is_conditional(analysis, kernel.binary.resources):
        condition = wording.condition(analysis)
        sentence += f", {condition}" if condition else ", with no dynamic shared memory"
    sentence += f". Limited by {wording.limiters(occupancy)}." if occupancy.limiters else "."
    if analysis.launch.cluster and analysis.launch.cluster > 1:
        sentence += f" Clusters of {analysis.launch.cluster}: what the GPCs allow is not known, so this is a bound."
    linking = wording.linking(kernel.binary.resources)
    return f"{sentence} {linking}" if linking else sentence


def _launch_paragraph(kernel: KernelAnalysis, analysis: LaunchAnalysis, path: str) -> str:
    launch = analysis.launch
    words = wording.launch_words(launch, path)
    if launch.grid:
        words += f", grid {wording.block_size(launch.grid)}"
    lines = [escaped(words[0].upper() + words[1:]) + ".", occupancy_sentence(kernel, analysis)]
    if launch.dynamic_shared_bytes is None and kernel.binary.resources.uses_dynamic_shared:
        lines.append("Dynamic shared memory is unknown; `// kernel-lsp: smem=BYTES` above the kernel states it.")
    return "  \n".join(lines)


def _steps_paragraph(kernel: KernelAnalysis, analysis: LaunchAnalysis) -> str:
    if kernel.binary.resources.relocatable or not analysis.occupancy.blocks_per_sm:
        return ""
    ups = [wording.step(c) for c in analysis.cliffs if c.direction == "up"]
    downs = [wording.step(c) for c in analysis.cliffs if c.direction == "down"]
    up = f"Next step up: {', or '.join(ups)}." if ups else _no_step_up(analysis.occupancy)
    down = f"Next step down: {', or '.join(downs)}." if downs else ""
    return "  \n".join(line for line in (up, down) if line)


def _no_step_up(occupancy: Occupancy) -> str:
    if occupancy.active_warps == occupancy.max_warps:
        return "Next step up: none, the warps are full."
    return "Next step up: none by registers or shared memory alone."


def _other_launches(kernel: KernelAnalysis, ranked: list[LaunchAnalysis], path: str) -> str:
    lines = []
    for analysis in ranked[1 : MOST_LAUNCHES + 1]:
        words = wording.launch_words(analysis.launch, path)
        share = wording.percent(analysis.occupancy.theoretical)
        lines.append(f"- {escaped(words)}: {wording.blocks_per_sm(analysis.occupancy)}, {share}")
    if len(ranked) > MOST_LAUNCHES + 1:
        lines.append(f"- {len(ranked) - MOST_LAUNCHES - 1} more launches")
    return "Other launches:\n" + "\n".join(lines)


def _unknown_block(kernel: KernelAnalysis, file: FileAnalysis) -> list[str]:
    resources = kernel.binary.resources
    if not kernel.has_limits:
        return [escaped(f"Occupancy unknown: {wording.no_limits(kernel.binary.arch)}.")]
    said = "Block size unknown: no launch with constants was found."
    if resources.uses_dynamic_shared is not False:
        said += " The table is for no dynamic shared memory."
    if resources.relocatable:
        said += f" {wording.linking(resources)} Its numbers are upper bounds."
    parts = [said]
    if kernel.block_sizes:
        parts.append(fenced(block_size_lines((row.threads, row.occupancy) for row in kernel.block_sizes)))
    most = kernel.max_launchable_threads
    limits = file.gpu.profile.limits
    if most and most < limits.max_threads_per_block:
        parts.append(f"The largest block that can start has {most} threads.")
    parts.append("`// kernel-lsp: block=256` above the kernel states it.")
    return parts


def _resource_lines(kernel: KernelAnalysis) -> list[str]:
    resources = kernel.binary.resources
    lines = [wording.registers(resources, "registers per thread")]
    if resources.relocatable and resources.linked is None and not resources.calls_through_pointers:
        lines[0] += ", before linking"
    if resources.static_shared_bytes:
        lines.append(f"{wording.exact_bytes(resources.static_shared_bytes)} static shared memory")
    if resources.uses_dynamic_shared:
        lines.append("uses dynamic shared memory")
    local = wording.local_words(kernel)
    if local:
        lines.append(local)
    if resources.spill_store_bytes is None or resources.spill_load_bytes is None:
        lines.append(f"spills unknown: {resources.spill_why}" if resources.spill_why else "spills unknown")
    elif not resources.spill_store_bytes and not resources.spill_load_bytes:
        lines.append("0 spills")
    bounds = wording.launch_bounds(resources)
    if bounds:
        lines.append(f"`{bounds}`")
    return lines


def _instances(kernel: KernelAnalysis, file: FileAnalysis) -> str:
    """The other instances of the template on this line, the most registers first."""
    others = [
        other
        for other in file.kernels
        if other is not kernel and kernel.line > 0 and (other.file, other.line) == (kernel.file, kernel.line)
    ]
    if not others:
        return ""
    others.sort(key=lambda other: (-other.binary.resources.registers, other.binary.name))
    lines = []
    for other in others[:MOST_INSTANCES]:
        worst = worst_launch(other)
        blocks = f", {wording.blocks_per_sm(worst.occupancy)}" if worst else ""
        lines.append(f"- {name(other.binary.short_name)}: {wording.registers(other.binary.resources)}{blocks}")
    if len(others) > MOST_INSTANCES:
        lines.append(f"- {len(others) - MOST_INSTANCES} more")
    return "Other instances on this line:\n" + "\n".join(lines)
