"""The report's sections on occupancy: the limits of every launch, and the steps near them."""

from __future__ import annotations

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings import wording
from kernel_lsp.model.cliffs import double_buffer_projection
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis, launch_shape
from kernel_lsp.model.register_budget import largest_register_count
from kernel_lsp.report.hover import occupancy_sentence
from kernel_lsp.report.section import Block, Bullets, Paragraph, Section, Table


def occupancy(kernel: KernelAnalysis, analysis: FileAnalysis) -> Section:
    """Every limit of every known launch; else the table over block sizes."""
    blocks: list[Block] = []
    if kernel.measured is not None:
        from kernel_lsp.report.measured_sections import occupancy_paragraph

        paragraph = occupancy_paragraph(kernel.measured)
        blocks += [paragraph] if paragraph is not None else []
    for launch in (*kernel.judged_launches, *kernel.other_launches):
        words = wording.launch_words(launch.launch, analysis.path)
        blocks.append(Paragraph(f"{words[0].upper() + words[1:]}. {occupancy_sentence(kernel, launch)}"))
        blocks.append(_limit_table(kernel, launch))
    if not kernel.has_limits:
        blocks.append(Paragraph(f"Not known: {wording.no_limits(kernel.binary.arch)}."))
    elif not kernel.launches:
        is_bound = kernel.binary.resources.relocatable
        condition = (
            ", with no dynamic shared memory" if kernel.binary.resources.uses_dynamic_shared is not False else ""
        )
        blocks.append(
            Paragraph(
                f"No launch with constants was found. By block size{condition}; `// kernel-lsp: block=256` above the "
                "kernel states the real one" + (" (upper bounds: not linked yet):" if is_bound else ":")
            )
        )
        blocks.append(_block_size_table(kernel))
    return Section("occupancy", "Occupancy", bool(kernel.launches), tuple(blocks))


def _limit_table(kernel: KernelAnalysis, launch: LaunchAnalysis) -> Table:
    found = launch.occupancy
    rows = []
    for name, limit in (
        ("registers", found.limit_registers),
        ("shared", found.limit_shared),
        ("warps", found.limit_warps),
        ("blocks", found.limit_blocks),
        ("barriers", found.limit_barriers),
    ):
        mark = "limit" if name in found.limiters else ""
        rows.append((name, _use(name, kernel, launch), "no limit" if limit is None else str(limit), mark))
    return Table(("resource", "a block takes", "blocks/SM", ""), tuple(rows))


def _use(name: str, kernel: KernelAnalysis, launch: LaunchAnalysis) -> str:
    resources, found = kernel.binary.resources, launch.occupancy
    if name == "registers":
        return f"{wording.registers(resources, 'per thread')}, {found.registers_per_block:,} allocated"
    if name == "shared":
        own = wording.own_shared_bytes(resources, launch.launch)
        if own is None:
            return f"{wording.exact_bytes(resources.in_program.static_shared_bytes)} static, dynamic unknown"
        return f"{wording.exact_bytes(own)}, {wording.exact_bytes(found.shared_bytes_per_block)} allocated"
    if name == "warps":
        return f"{launch.launch.threads:,} threads"
    return f"{resources.in_program.barriers}" if name == "barriers" else ""


def _block_size_table(kernel: KernelAnalysis) -> Table:
    rows = []
    for row in kernel.block_sizes:
        found = row.occupancy
        if found.blocks_per_sm:
            share, limit = wording.percent(found.theoretical), wording.limiters(found)
            warps = f"{found.active_warps} of {found.max_warps}"
        else:
            share, limit, warps = "", "cannot start", ""
        rows.append((f"{row.threads:,}", str(found.blocks_per_sm), warps, share, limit))
    return Table(("threads", "blocks/SM", "warps", "occupancy", "limit"), tuple(rows))


def cliffs(kernel: KernelAnalysis, analysis: FileAnalysis) -> Section:
    """The nearest steps, the trade of the launch bounds, and what doubled buffers would do."""
    items: list[str] = []
    resources, limits = kernel.binary.resources, analysis.gpu.profile.limits
    for launch in kernel.judged_launches:
        block = f"block {wording.block_size(launch.launch.block)}"
        for cliff in launch.cliffs:
            items.append(f"{block}, {cliff.direction}: {wording.step(cliff)} ({cliff.change:+,}).")
        if wording.is_conditional(launch, resources) and launch.holds_to_dynamic_shared_bytes is not None:
            blocks = wording.blocks_per_sm(launch.occupancy)
            items.append(f"{block}: {blocks} {wording.condition(launch)}.")
        items.extend(_double_buffer(kernel, launch, analysis))
    if resources.min_blocks_per_sm and resources.max_threads:
        threads, wanted = resources.max_threads, resources.min_blocks_per_sm
        budget = largest_register_count(limits, threads, wanted)
        one = largest_register_count(limits, threads, 1)
        allowed = f"{wording.counted(wanted, 'block')} of {threads:,} threads allow {budget} registers a thread"
        if wanted * -(-threads // limits.warp_size) > limits.max_warps:
            allowed = f"{wording.counted(wanted, 'block')} of {threads:,} threads cannot reside on this SM"
        bounds = wording.launch_bounds(resources)
        what = f"`{bounds}`" if bounds else "The required block"
        items.append(f"{what}: {allowed}; without the second bound the limit is {one}.")
    if not items:
        said = "No step of registers or shared memory is near, or no launch is known to measure it from."
        return Section("cliffs", "Cliffs", bool(kernel.launches), (Paragraph(said),))
    return Section("cliffs", "Cliffs", True, (Bullets(tuple(items)),))


def _double_buffer(kernel: KernelAnalysis, launch: LaunchAnalysis, analysis: FileAnalysis) -> list[str]:
    own = wording.own_shared_bytes(kernel.binary.resources, launch.launch)
    if not own or not launch.occupancy.blocks_per_sm:
        return []
    doubled = double_buffer_projection(
        analysis.gpu.profile.limits, launch_shape(kernel.binary.resources, launch.launch), own
    )
    after = doubled.after.blocks_per_sm
    before = launch.occupancy.blocks_per_sm
    change = f"blocks/SM stay {before}" if after == before else f"{before} -> {after} blocks/SM"
    said = change if after else "that does not fit"
    return [
        f"If all {wording.exact_bytes(own)} are tile buffers (assumed), a second stage takes "
        f"{wording.exact_bytes(2 * own)}: {said}."
    ]
