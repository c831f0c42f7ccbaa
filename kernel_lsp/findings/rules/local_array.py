"""KL204: a stack frame without any spill: per-thread data in local memory (an array, or a call's frame).

The cubin tells the size and that nothing was spilled, not which array it is: the message claims no more.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel in facts.kernels:
        resources = kernel.binary.resources
        frame = max(resources.frame_bytes, resources.local_bytes)
        no_spills = resources.spill_store_bytes == 0 and resources.spill_load_bytes == 0
        if not frame or not no_spills or resources.relocatable:
            continue  # unlinked: the frame belongs to the calls, and its size is not final
        is_array = frame >= text.thresholds["warning_from_bytes"]
        variant = "array" if is_array else "small"
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages[variant].format(frame=wording.exact_bytes(frame)),
            advice=text.advice[variant],
            badness=frame,
            severity=None if is_array else "hint",
            evidence=(
                exact("frame_bytes", frame, "bytes per thread", "cubin"),
                exact("spill_store_bytes", 0, "bytes", "cubin"),
                exact("spill_load_bytes", 0, "bytes", "cubin"),
            ),
        )


RULE = Rule("KL204", _check)
