"""KL110: a block's shared memory stands a little past an edge in blocks per SM, or a little before one."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Severity
from kernel_lsp.findings.measured import occupancy_is_fine
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis


def _draft(facts: Facts, text: RuleText, kernel: KernelAnalysis, analysis: LaunchAnalysis, own: int) -> Draft | None:
    occupancy = analysis.occupancy
    board = wording.board(facts.gpu.profile) if facts.gpu else kernel.binary.arch
    up = wording.nearest(analysis.cliffs, "shared", "up")
    down = wording.nearest(analysis.cliffs, "shared", "down")
    values = {"own": wording.exact_bytes(own), "blocks": wording.blocks_per_sm(occupancy), "board": board}
    severity: Severity
    if up and "shared" in occupancy.limiters and -up.change <= text.thresholds["past_edge_fraction"] * own:
        variant, edge, change = "past", up.to_value, -up.change
        values["more"] = str(up.blocks_per_sm)
        # Halved residency for a few bytes is worth a squiggle; a seventh block instead of a sixth is not.
        severity = text.severity if up.blocks_per_sm >= 2 * occupancy.blocks_per_sm else "information"
        if occupancy_is_fine(kernel, analysis):
            severity = "hint"  # the edge is there, and the measured launch loses nothing by it
        badness = 1 + (up.blocks_per_sm - occupancy.blocks_per_sm) / up.blocks_per_sm
    elif down and 0 < 2 * down.blocks_per_sm <= occupancy.blocks_per_sm:
        # `to_value` is the first size past the edge; the last one that still keeps the blocks is a byte below.
        variant, edge = "before", down.to_value - 1
        change = edge - own
        if change > text.thresholds["before_edge_fraction"] * own:
            return None
        values["fewer"] = str(down.blocks_per_sm)
        severity, badness = "hint", 0.0
    else:
        return None
    values |= {"edge": wording.exact_bytes(edge), "change": wording.exact_bytes(change)}
    return kernel_draft(
        text,
        facts,
        kernel,
        message=text.messages[variant].format(**values),
        advice=text.advice[variant].format(**values),
        badness=badness,
        severity=severity,
        evidence=(
            exact("shared_bytes", own, "bytes per block", "cubin"),
            exact("blocks_per_sm", occupancy.blocks_per_sm, "blocks"),
            exact("edge_bytes", edge, "bytes per block"),
        ),
    )


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel in facts.kernels:
        if kernel.binary.resources.relocatable:
            continue
        drafts = []
        for analysis in kernel.judged_launches:
            own = wording.own_shared_bytes(kernel.binary.resources, analysis.launch)
            if own and analysis.occupancy.blocks_per_sm:
                drafts.append(_draft(facts, text, kernel, analysis, own))
        told = [draft for draft in drafts if draft]
        if told:
            yield max(told, key=lambda draft: draft.badness)


RULE = Rule("KL110", _check)
