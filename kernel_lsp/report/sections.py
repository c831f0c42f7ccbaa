"""The sections of a kernel's report, one function each: what is known, or how to learn it."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings import wording
from kernel_lsp.findings.finding import Finding
from kernel_lsp.hardware.profile import Peak
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.model.roofline import balance
from kernel_lsp.report.commands import ncu
from kernel_lsp.report.hover import occupancy_sentence
from kernel_lsp.report.lens import worst_launch
from kernel_lsp.report.sass_words import Places
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
    elif not kernel.has_limits:
        sentences.append(f"Occupancy is not known: {wording.no_limits(kernel.binary.arch)}.")
    else:
        sentences.append(f"On {board} the block size is not known, so occupancy is given by block size below.")
    chain: tuple[str, ...] = ()
    if kernel.measured is not None:
        from kernel_lsp.report.measured_judgement import judgement  # with the first report: a start needs none of it
        from kernel_lsp.report.measured_sections import summary_sentence

        sentences.insert(0, summary_sentence(kernel.measured))
        chain = judgement(kernel, kernel.measured, Places(analysis.path))
    else:
        sentences.append("Whether it is bound by compute, memory or latency is not known without a measurement.")
    advised = [f for f in ranked(findings) if f.advice and f.severity != "hint"]
    if advised:
        sentences.append(f"First to look at: {advised[0].message} ({advised[0].code}). {advised[0].advice}")
    else:
        sentences.append("Nothing in the compiled code stands out.")
    blocks: tuple[Block, ...] = (Paragraph(" ".join(sentences)),)
    if chain:
        blocks += (Paragraph("How that follows:"), Bullets(chain, ordered=True))
    return Section("summary", "Summary", True, blocks)


def baseline(kernel: KernelAnalysis) -> Section:
    """Time and work of one launch: both come from a measurement."""
    if kernel.measured is not None:
        from kernel_lsp.report.measured_sections import baseline_blocks

        return Section("baseline", "Baseline", True, baseline_blocks(kernel.measured))
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
    blocks: list[Block] = [
        Paragraph(
            f"{profile.name}: {bandwidth}. Balance is peak over bandwidth: a kernel with less FLOP per byte is on "
            "the memory side."
        ),
        Table(("precision", "dense peak, TFLOPS (TOPS)", "balance, FLOP/byte", "peak is"), rows),
    ]
    is_known = False
    if kernel.measured is not None:
        from kernel_lsp.report.measured_sections import roofline_blocks
        from kernel_lsp.report.measured_sentences import has_no_flop

        found = roofline_blocks(kernel.measured)
        is_known = any(isinstance(block, Table) for block in found) or has_no_flop(kernel.measured.profile)
        blocks += found
    if not is_known:
        blocks.append(
            Paragraph(
                "The kernel's place is not known: it needs its FLOPs and the bytes that really come from DRAM. "
                "This measures both:"
            )
        )
        blocks.append(Command(ncu(kernel, "--set roofline")))
    return Section("roofline", "Roofline", is_known, tuple(blocks))


def three_digits(value: float) -> str:
    """`1,979`, `174`, `87.0`, `8.14`, `0.340`."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _peak_row(name: str, peak: Peak, dram_gb_per_s: float | None) -> tuple[str, ...]:
    ridge = None if dram_gb_per_s is None else balance(peak.dense_tops * 1e12, dram_gb_per_s * 1e9)
    balance_words = "not known" if ridge is None else f"{ridge:.1f}"
    return (wording.precision(name), three_digits(peak.dense_tops), balance_words, wording.peak_provenance(peak))


def hot_lines(kernel: KernelAnalysis, path: str) -> Section:
    """Where the time goes by line: needs samples."""
    if kernel.measured is not None:
        from kernel_lsp.report.measured_sections import hot_line_blocks

        blocks = hot_line_blocks(kernel.measured, Places(path))
        if blocks:
            return Section("hot_lines", "Hot lines", True, blocks)
    return Section(
        "hot_lines",
        "Hot lines",
        False,
        (
            Paragraph("Not known: no stall samples. This collects them by line (build with -lineinfo):"),
            Command(ncu(kernel, "--section SourceCounters --section WarpStateStats --import-source yes")),
        ),
    )


def recommendations(kernel: KernelAnalysis, findings: Sequence[Finding]) -> Section:
    """The findings with an advice, ranked by severity; NVIDIA's own rules beside them, as theirs."""
    items = tuple(f"{f.code} (l.{f.line}): {f.message}. {f.advice}" for f in ranked(findings) if f.advice)
    blocks: list[Block] = [Bullets(items, ordered=True)] if items else [Paragraph("None from what is known so far.")]
    if kernel.measured is not None:
        from kernel_lsp.report.measured_sections import rule_blocks

        if items:
            blocks.append(Paragraph("Ranked by severity. Expected gains are not known: measure again after each."))
        blocks += rule_blocks(kernel.measured)
    elif items:
        blocks.append(Paragraph("Ranked by severity. Expected gains are not known: nothing was measured."))
    return Section("recommendations", "Recommendations", True, tuple(blocks))


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
    how = ncu(kernel, "--set full --import-source yes")
    if kernel.measured is None:
        items.append(f"Time, traffic, stalls, achieved occupancy: `{how}`")
    else:
        from kernel_lsp.report.measured_sections import missing_items

        lacking = missing_items(kernel.measured)
        items += lacking
        items += [f"All that can be had, at once: `{how}`"] if len(lacking) > 1 else []
    if not items:
        return Section("unknown", "What is unknown", True, (Paragraph("Nothing that could be measured."),))
    return Section("unknown", "What is unknown", True, (Bullets(tuple(items)),))
