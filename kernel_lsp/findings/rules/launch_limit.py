"""KL130: no launch is known, and the kernel's registers forbid the largest blocks."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    if facts.gpu is None:
        return
    device_most = facts.gpu.profile.limits.max_threads_per_block
    for kernel in facts.kernels:
        resources = kernel.binary.resources
        largest = kernel.max_launchable_threads
        if kernel.launches or not largest or not largest < min(device_most, resources.max_threads or device_most):
            continue
        values = {"registers": wording.registers(resources, "").strip(), "threads": largest}
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages["registers"].format(**values),
            advice=text.advice["registers"].format(**values),
            badness=device_most - largest,
            evidence=(
                exact("registers", resources.registers, "registers per thread", "cubin"),
                exact("largest_block", largest, "threads"),
            ),
        )


RULE = Rule("KL130", _check)
