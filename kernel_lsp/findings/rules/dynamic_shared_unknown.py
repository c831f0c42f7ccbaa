"""KL150: the kernel uses dynamic shared memory and no launch tells how much."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel in facts.kernels:
        resources = kernel.binary.resources
        judged = kernel.judged_launches
        unknown = [la for la in judged if la.launch.dynamic_shared_bytes is None]
        if not resources.uses_dynamic_shared or not unknown or len(unknown) < len(judged):
            continue
        analysis = min(unknown, key=lambda la: la.occupancy.theoretical)
        if not analysis.occupancy.blocks_per_sm:
            continue  # cannot start even with none: KL140 says so
        condition = wording.condition(analysis)
        values = {
            "blocks": wording.blocks_per_sm(analysis.occupancy),
            "occupancy": wording.percent(analysis.occupancy.theoretical),
            "condition": condition.removesuffix(" of dynamic shared memory"),
            "launch": wording.launch_words(analysis.launch, facts.path),
        }
        evidence = [exact("blocks_per_sm_without_dynamic_shared", analysis.occupancy.blocks_per_sm, "blocks")]
        if analysis.holds_to_dynamic_shared_bytes is not None:
            evidence.append(exact("holds_to_dynamic_shared", analysis.holds_to_dynamic_shared_bytes, "bytes"))
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages["known_edge" if condition else "no_edge"].format(**values),
            advice=text.advice["any"],
            badness=1 - analysis.occupancy.theoretical,
            evidence=tuple(evidence),
        )


RULE = Rule("KL150", _check)
