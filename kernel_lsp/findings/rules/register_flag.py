"""KL125: -maxrregcount does not reach a kernel that has bounds of its own."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    limit = facts.register_limit
    for kernel in facts.kernels if limit is not None else ():
        resources = kernel.binary.resources
        bound = wording.launch_bounds(resources)
        if bound is None or limit is None:
            continue
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages["any"].format(limit=limit, bound=bound, registers=wording.registers(resources)),
            advice=text.advice["any"],
            badness=resources.registers,
            # Where the kernel keeps to it anyway, nothing is lost by it.
            severity=None if resources.registers > limit else "hint",
            evidence=(
                exact("register_limit", limit, "registers per thread", "flags"),
                exact("registers", resources.registers, "registers per thread", "cubin"),
            ),
        )


RULE = Rule("KL125", _check)
