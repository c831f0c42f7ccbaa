"""KL608: a unit of the GPU is near its peak, or the schedulers issue.

Said once and quietly: it is why no limit of warps is called a problem.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.measured import kind_words, measured, measurements_of


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel, found in measurements_of(facts):
        if not found.runs_well:
            continue
        at, sol, issued = found.roof, found.profile.sol, found.issue.issue_active
        evidence = [
            measured(found, name, value, unit)
            for name, value, unit in (
                ("issue_active", issued, "instructions per cycle"),
                ("sm_throughput", sol.sm, "percent of peak"),
                ("memory_throughput", sol.memory, "percent of peak"),
                ("dram_throughput", sol.dram, "percent of peak"),
            )
            if value is not None
        ]
        variant = "issue" if at is None else "wasted" if at.wasted else at.side
        other = sol.memory if at is not None and at.side == "sm" else sol.sm
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages[variant].format(
                issue=wording.share(issued or 0.0),
                unit=at.unit if at else "",
                pct=wording.percent(at.pct / 100) if at else "",
                wasted=at.wasted if at else "",
                other="unknown" if other is None else wording.share(other / 100),
                kind=kind_words(kernel, found),
            ),
            advice=text.advice[variant if variant in text.advice else "roof"].format(next=at.next_step if at else ""),
            evidence=tuple(evidence),
        )


RULE = Rule("KL608", _check)
