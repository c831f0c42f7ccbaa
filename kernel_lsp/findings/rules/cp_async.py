"""KL402: a loop copies tiles through registers though few operations hide each load: asynchronous copies may pay."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Evidence, Severity
from kernel_lsp.findings.measured import loads_are_hidden
from kernel_lsp.model.cliffs import double_buffer_projection
from kernel_lsp.model.kernel_analysis import KernelAnalysis, launch_shape
from kernel_lsp.model.kernel_sass import KernelSass, SassLoop
from kernel_lsp.model.line_sass import frame_in
from kernel_lsp.model.tile_copies import tile_copies

_ADVISED = ("pays", "try")


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel in facts.kernels:
        if kernel.sass is None or loads_are_hidden(kernel):
            continue  # what was measured is more than an estimate
        for loop in kernel.sass.loops or ():
            if loop.work.innermost and loop.ratio.cp_async in _ADVISED:
                yield from _draft(facts, text, kernel, kernel.sass, loop)


def _draft(facts: Facts, text: RuleText, kernel: KernelAnalysis, sass: KernelSass, loop: SassLoop) -> Iterator[Draft]:
    copies, ratio = tile_copies(sass, loop), loop.ratio.ratio
    if not copies or ratio is None or loop.ratio.cp_async is None:
        return
    places = [frame_in(sass.frames(copy.load_row), facts.path) for copy in copies]
    lines = sorted({place.line for place in places if place is not None})
    if not lines:
        return  # a library's loop: nothing that the user could change here
    variant = loop.ratio.cp_async
    severity: Severity = text.severity if variant == "pays" else "hint"
    yield kernel_draft(
        text,
        facts,
        kernel,
        message=text.messages[variant].format(
            ratio=f"{ratio:.3g}",
            op=loop.work.compute_op,
            lines=wording.joined(f"l.{line}" for line in lines[:3]),
        ),
        advice=text.advice[variant].format(stages=_stages(facts, text, kernel)),
        badness=-ratio,
        severity=severity,
        evidence=(
            Evidence("compute_ops", loop.work.compute_ops, "instructions per iteration", "exact", "cubin"),
            Evidence("load_ops", loop.work.load_ops, "instructions per iteration", "exact", "cubin"),
            Evidence("copied_loads", len(copies), "instructions per iteration", "estimated", "model"),
            Evidence("ratio", round(ratio, 3), "operations per load", "exact", "model"),
        ),
        at_line=lines[0],
    )


def _stages(facts: Facts, text: RuleText, kernel: KernelAnalysis) -> str:
    """What a second stage does to the occupancy of the kernel's first launch; "" where that is not known."""
    analysis = next(iter(kernel.judged_launches), None)
    if analysis is None or facts.gpu is None or not analysis.occupancy.blocks_per_sm:
        return ""
    own = wording.own_shared_bytes(kernel.binary.resources, analysis.launch)
    if not own:
        return ""
    shape = launch_shape(kernel.binary.resources, analysis.launch)
    after = double_buffer_projection(facts.gpu.profile.limits, shape, own).after.blocks_per_sm
    before = analysis.occupancy.blocks_per_sm
    change = f"blocks/SM stay {before}" if after == before else f"blocks/SM {before} -> {after}"
    return text.advice["stages"].format(
        own=wording.exact_bytes(own),
        doubled=wording.exact_bytes(2 * own),
        change=change if after else "that does not fit",
    )


RULE = Rule("KL402", _check)
