"""KL120: a few registers fewer per thread would let one more block reside on the SM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.measured import occupancy_is_fine
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis
from kernel_lsp.model.occupancy import Cliff


def _near_step(kernel: KernelAnalysis, thresholds: Mapping[str, float]) -> tuple[LaunchAnalysis, Cliff] | None:
    found = []
    for analysis in kernel.judged_launches:
        if wording.is_conditional(analysis, kernel.binary.resources) or not analysis.occupancy.blocks_per_sm:
            continue
        if occupancy_is_fine(kernel, analysis):
            continue
        up = wording.nearest(analysis.cliffs, "registers", "up")
        is_occupied = analysis.occupancy.theoretical >= thresholds["occupied_from_fraction"]
        near = thresholds["near_registers_where_occupied" if is_occupied else "near_registers"]
        if up and "registers" in analysis.occupancy.limiters and -up.change <= near:
            found.append((analysis, up))
    return min(found, key=lambda pair: pair[0].occupancy.theoretical, default=None)


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel in facts.kernels:
        resources = kernel.binary.resources
        if resources.relocatable or resources.spill_store_bytes or resources.spill_load_bytes:
            continue  # already short of registers: fewer would only spill more
        near = _near_step(kernel, text.thresholds)
        if near is None:
            continue
        analysis, up = near
        values = {
            "registers": resources.registers,
            "blocks": wording.blocks_per_sm(analysis.occupancy),
            "to_value": up.to_value,
            "more": up.blocks_per_sm,
            "launch": wording.launch_words(analysis.launch, facts.path),
            "threads": analysis.launch.threads,
        }
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages["step"].format(**values),
            advice=text.advice["step"].format(**values),
            badness=1 - analysis.occupancy.theoretical,
            evidence=(
                exact("registers", resources.registers, "registers per thread", "cubin"),
                exact("blocks_per_sm", analysis.occupancy.blocks_per_sm, "blocks"),
                exact("registers_for_next_block", up.to_value, "registers per thread"),
                exact("blocks_per_sm_there", up.blocks_per_sm, "blocks"),
            ),
        )


RULE = Rule("KL120", _check)
