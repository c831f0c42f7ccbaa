"""The sections of a kernel's report, one function each: what is known, or how to learn it."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings import wording
from kernel_lsp.findings.finding import Finding
from kernel_lsp.hardware.profile import Peak
from kernel_lsp.model.cliffs import double_buffer_projection
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis, launch_shape
from kernel_lsp.model.register_budget import largest_register_count
from kernel_lsp.report.commands import ncu
from kernel_lsp.report.hover import occupancy_sentence
from kernel_lsp.report.lens import worst_launch
from kernel_lsp.report.section import Block, Bullets, Command, Paragraph, Section, Table

_RANK = {"error": 0, "warning": 1, "information": 2, "hint": 3}


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """The gravest first; the order of codes within one severity."""
    return sorted(findings, key=lambda f: (_RANK[f.severity], f.code))


def summary(kernel: KernelAnalysis, analysis: FileAnalysis, findings: Sequence[Finding]) -> Section:
    """Class, limiter, and the first thing to try, in one paragraph."""
    board = f"{wording.board(analysis.gpu.profile)} ({kernel.binary.arch})"
    sentences = []
    worst = worst_launch(kernel)
    if worst:
        sentences.append(f"On {board} with {wording.launch_words(worst.launch, analysis.path)}:")
        sentences.append(occupancy_sentence(kernel, worst))
    else:
        sentences.append(f"On {board} the block size is not known, so occupancy is given by block size below.")
    sentences.append("Whether it is bound by compute, memory or latency is not known without a measurement.")
    advised = [f for f in ranked(findings) if f.advice and f.severity != "hint"]
    if advised:
        sentences.append(f"First to look at: {advised[0].message} ({advised[0].code}). {advised[0].advice}")
    else:
        sentences.append("Nothing in the compiled code stands out.")
    return Section("summary", "Summary", True, (Paragraph(" ".join(sentences)),))


def baseline(kernel: KernelAnalysis) -> Section:
    """Time and work of one launch: both come from a measurement."""
    return Section(
        "baseline",
        "Baseline",
        False,
        (
            Paragraph(
                "Not known: no measured time and no problem size. The kernel's duration comes from this command (or "
                "from CUDA events around the launch, not from wall clock):"
            ),
            Command(ncu(kernel, "--metrics gpu__time_duration.sum")),
        ),
    )


def roofline(kernel: KernelAnalysis, analysis: FileAnalysis) -> Section:
    """The board's roofs and balance points, which are known; the kernel's place, which needs a measurement."""
    profile = analysis.gpu.profile
    rows = tuple(_peak_row(name, peak, profile.dram_gb_per_s) for name, peak in profile.peaks.items())
    bandwidth = f"{profile.dram_gb_per_s:,.0f} GB/s of DRAM" if profile.dram_gb_per_s else "DRAM bandwidth not known"
    return Section(
        "roofline",
        "Roofline",
        False,
        (
            Paragraph(
                f"{profile.name}: {bandwidth}. Balance is peak over bandwidth: a kernel with less FLOP per byte is on "
                "the memory side."
            ),
            Table(("precision", "dense peak, TFLOPS (TOPS)", "balance, FLOP/byte", "peak is"), rows),
            Paragraph(
                "The kernel's place is not known: it needs its FLOPs and the bytes that really come from DRAM. "
                "This measures both:"
            ),
            Command(ncu(kernel, "--set roofline")),
        ),
    )


def three_digits(value: float) -> str:
    """`1,979`, `174`, `87.0`, `8.14`, `0.340`."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _peak_row(name: str, peak: Peak, dram_gb_per_s: float | None) -> tuple[str, ...]:
    balance = f"{peak.dense_tops * 1000 / dram_gb_per_s:.1f}" if dram_gb_per_s else "not known"
    provenance = "published and computed" if peak.provenance == "both agree" else peak.provenance
    return (wording.precision(name), three_digits(peak.dense_tops), balance, provenance)


def occupancy(kernel: KernelAnalysis, analysis: FileAnalysis) -> Section:
    """Every limit of every known launch; else the table over block sizes."""
    blocks: list[Block] = []
    for launch in (*kernel.judged_launches, *kernel.other_launches):
        words = wording.launch_words(launch.launch, analysis.path)
        blocks.append(Paragraph(f"{words[0].upper() + words[1:]}. {occupancy_sentence(kernel, launch)}"))
        blocks.append(_limit_table(kernel, launch))
    if not kernel.launches:
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
            return f"{wording.exact_bytes(resources.static_shared_bytes)} static, dynamic unknown"
        return f"{wording.exact_bytes(own)}, {wording.exact_bytes(found.shared_bytes_per_block)} allocated"
    if name == "warps":
        return f"{launch.launch.threads:,} threads"
    return f"{resources.barriers}" if name == "barriers" else ""


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
        items.append(f"`{wording.launch_bounds(resources)}`: {allowed}; without the second bound the limit is {one}.")
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


def hot_lines(kernel: KernelAnalysis) -> Section:
    """Where the time goes by line: needs samples."""
    return Section(
        "hot_lines",
        "Hot lines",
        False,
        (
            Paragraph("Not known: no stall samples. This collects them by line (build with -lineinfo):"),
            Command(ncu(kernel, "--section SourceCounters --section WarpStateStats --import-source yes")),
        ),
    )


def recommendations(findings: Sequence[Finding]) -> Section:
    """The findings with an advice, ranked by severity; gains are not promised before something was measured."""
    items = tuple(f"{f.code} (l.{f.line}): {f.message}. {f.advice}" for f in ranked(findings) if f.advice)
    if not items:
        return Section("recommendations", "Recommendations", True, (Paragraph("None from what is known so far."),))
    return Section(
        "recommendations",
        "Recommendations",
        True,
        (
            Bullets(items, ordered=True),
            Paragraph("Ranked by severity. Expected gains are not known: nothing was measured."),
        ),
    )


def unknown(kernel: KernelAnalysis, analysis: FileAnalysis) -> Section:
    """What is not known, each with the step that would tell."""
    resources = kernel.binary.resources
    items = []
    if not kernel.launches:
        items.append("Block size: state it with `// kernel-lsp: block=256` above the kernel, or run with --block N.")
    if resources.uses_dynamic_shared and any(la.launch.dynamic_shared_bytes is None for la in kernel.judged_launches):
        items.append("Dynamic shared memory: `// kernel-lsp: smem=BYTES` above the kernel, or --dynamic-shared BYTES.")
    if resources.relocatable:
        items.append("Registers and stack after linking: `cuobjdump -res-usage` on the linked program.")
    if resources.spill_store_bytes is None:
        items.append(f"Spills: {resources.spill_why or 'the cubin does not tell'}; `ptxas -v` prints them.")
    if analysis.gpu.why == "default":
        items.append("The GPU: none was chosen; --gpu NAME or the setting kernelLsp.gpu picks another.")
    items.append(f"Time, traffic, stalls, achieved occupancy: `{ncu(kernel, '--set full --import-source yes')}`")
    return Section("unknown", "What is unknown", True, (Bullets(tuple(items)),))
