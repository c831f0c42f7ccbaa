"""KL605: the schedulers issue little, and why: a small grid, few resident warps, or warps that wait."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.measured import kind_words, measured, measurements_of, severity
from kernel_lsp.ncu.issue_cause import IssueCause, busy_sms_are_full, issue_cause
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.stall_reasons import stall_reason


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel, found in measurements_of(facts):
        cause, issued = issue_cause(found.profile), found.profile.scheduler.issue_active
        if cause is None or issued is None:
            continue
        eligible = found.profile.scheduler.eligible_warps
        values = {
            "issue": wording.share(issued),
            "kind": kind_words(kernel, found),
            "eligible": "" if eligible is None else text.advice["eligible"].format(warps=f"{eligible:.2g}"),
            **_values(text, found, cause),
        }
        evidence = [measured(found, "issue_active", issued, "instructions per cycle")]
        if eligible is not None:
            evidence.append(measured(found, "eligible_warps", eligible, "warps per scheduler"))
        if found.profile.launch.waves_per_sm is not None:
            evidence.append(measured(found, "waves", found.profile.launch.waves_per_sm, "waves"))
        evidence += [
            measured(found, f"{name}_occupancy", value, "fraction")
            for name, value in (
                ("theoretical", found.profile.occupancy.theoretical),
                ("achieved", found.profile.occupancy.achieved),
            )
            if value is not None
        ]
        if cause.stall:
            evidence.append(measured(found, cause.stall, cause.share, "of a warp's cycles"))
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages[cause.kind].format(**values),
            advice=text.advice[cause.kind].format(**values),
            badness=1 - issued,
            severity=severity(found, text.severity),
            evidence=tuple(evidence),
        )


def _values(text: RuleText, found: KernelMeasurement, cause: IssueCause) -> dict[str, str]:
    launch, occupancy = found.profile.launch, found.profile.occupancy
    reason = stall_reason(cause.stall) if cause.stall else None
    actions = reason.first_actions(found.absent) if reason else ()
    limiters = wording.limiter_words(occupancy.limiters) or "the limits"
    full = ""
    if busy_sms_are_full(found.profile):
        full = text.advice["grid_full"].format(
            blocks=wording.counted(occupancy.blocks_per_sm or 0, "block"), limiters=limiters
        )
    return {
        "full": full,
        "grid": wording.grid(launch.grid_blocks),
        "waves": wording.waves(launch.waves_per_sm or 0.0),
        "theoretical": wording.share(occupancy.theoretical or 0.0),
        "achieved": wording.share(occupancy.achieved or 0.0),
        "limiters": limiters,
        "share": wording.share(cause.share),
        "reason": reason.words if reason else "",
        "first": actions[0] if actions else "look at the hot lines",
    }


RULE = Rule("KL605", _check)
