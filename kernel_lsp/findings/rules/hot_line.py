"""KL601: a line with many of the kernel's stall samples, its reason, and what it waits for.

Stalls are read only where the schedulers fail to issue. At a roof warps wait somewhere, so the line is only hinted at,
unless the roof is reached by accesses in excess.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Related, Severity
from kernel_lsp.findings.measured import kind_words, measured, measurements_of, of_kernel
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, PlacedHotLine
from kernel_lsp.ncu.producers import WaitFor
from kernel_lsp.ncu.reading import healthy_reasons, reading_table
from kernel_lsp.ncu.stall_reasons import producer_kind, stall_reason

_MOST_NAMED = 3  # lines in one message
_LONGEST = 120  # characters of a message; the producer is in the related lines too


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel, found in measurements_of(facts):
        if found.placed.fit == "stale" or found.issue.stalls_matter is False:
            continue
        fine = healthy_reasons(found.profile)
        told = (hot for hot in found.hot if hot.certain and hot.reason not in fine and _is_held(found, hot, fine))
        for hot, _ in zip(told, range(int(text.thresholds["most_lines"])), strict=False):
            yield _draft(facts, text, kernel, found, hot, fine)


def _is_held(found: KernelMeasurement, hot: PlacedHotLine, fine: frozenset[str]) -> bool:
    """Whether the line is hot by the samples that wait: those of a line that issues are work."""
    held = sum(count for reason, count in hot.here.by_reason.items() if reason not in fine)
    least: float = reading_table()["thresholds"]["hot_share"]
    return held >= least * _total(found)


def _draft(
    facts: Facts,
    text: RuleText,
    kernel: KernelAnalysis,
    found: KernelMeasurement,
    hot: PlacedHotLine,
    fine: frozenset[str],
) -> Draft:
    waits = _same_wait(found, hot)
    lines = sorted({line for wait in waits if (line := found.placed.line_now(wait.chain)) is not None})
    variant = "mixed" if hot.reason is None else "waits" if waits else "reason"
    values = {
        "share": wording.percent(hot.share),
        "reason": stall_reason(hot.reason).words if hot.reason else "",
        "reasons": _reasons(hot, fine),
        "producer": _producer(waits, lines, hot.line),
        "kind": kind_words(kernel, found),
    }
    message = of_kernel(facts, kernel, hot.line, text.messages[variant].format(**values))
    if variant == "waits" and len(message) > _LONGEST:
        message = of_kernel(facts, kernel, hot.line, text.messages["reason"].format(**values))
    is_sure = found.issue.stalls_matter is True and found.useful_roof is None and hot.reason is not None
    severity: Severity = text.severity if is_sure else "hint"
    evidence = [
        measured(found, "stall_sample_share", hot.share, "of the kernel's samples"),
        measured(found, "stall_samples", hot.here.samples, "samples"),
        measured(found, "kernel_samples", _total(found), "samples"),
    ]
    if hot.reason:
        evidence.append(measured(found, "reason", hot.reason, "stall reason"))
        evidence.append(measured(found, "reason_share", hot.reason_share, "of the line's samples"))
    if found.issue.issue_active is not None:
        evidence.append(measured(found, "issue_active", found.issue.issue_active, "instructions per cycle"))
    return kernel_draft(
        text,
        facts,
        kernel,
        message=message,
        advice=_advice(text, found, hot, waits),
        badness=hot.share,
        severity=severity,
        evidence=tuple(evidence),
        related=tuple(
            Related(facts.path, line, f"what l.{hot.line} waits for: {_instructions(found, waits, line)}")
            for line in lines[:_MOST_NAMED]
            if line != hot.line
        ),
        at_line=hot.line,
    )


def _total(found: KernelMeasurement) -> int:
    return found.profile.samples.total if found.profile.samples else 0


def _same_wait(found: KernelMeasurement, hot: PlacedHotLine) -> tuple[WaitFor, ...]:
    """All that the instruction with most samples of the reason waits for: they share its scoreboard."""
    first, placed = hot.waits_for, found.placed.line(hot.line)
    if first is None or placed is None:
        return ()
    return tuple(wait for wait in placed.waits_for if (wait.reason, wait.pc) == (first.reason, first.pc))


def _instructions(found: KernelMeasurement, waits: tuple[WaitFor, ...], line: int) -> str:
    texts = dict.fromkeys(wait.producer for wait in waits if found.placed.line_now(wait.chain) == line)
    return ", ".join(list(texts)[:2])


def _reasons(hot: PlacedHotLine, fine: frozenset[str]) -> str:
    """`barrier 25 %, wait 20 %`: the largest ones, of the line's samples."""
    counts = [(reason, count) for reason, count in hot.here.by_reason.items() if reason not in fine]
    return ", ".join(
        f"{stall_reason(reason).words} {wording.share(count / hot.here.samples)}" for reason, count in counts[:2]
    )


def _producer(waits: tuple[WaitFor, ...], lines: list[int], here: int) -> str:
    """`the load on l.41`, `l.41 and l.42 (load)`, `the load in mma.h:377`."""
    kinds = list(dict.fromkeys(producer_kind(wait.producer).words for wait in waits))
    what = kinds[0] if len(kinds) == 1 else "result"
    if len(lines) == 1:
        return f"the {what} on {'this line' if lines[0] == here else f'l.{lines[0]}'}"
    if lines:
        named = [f"l.{line}" for line in lines[:_MOST_NAMED]] + (["others"] if len(lines) > _MOST_NAMED else [])
        return wording.joined(named) + (f" ({what})" if len(kinds) == 1 else "")
    chain = waits[0].chain if waits else ()
    return f"the {what} in {PurePath(chain[0][0]).name}:{chain[0][1]}" if chain else f"the {what}"


def _advice(text: RuleText, found: KernelMeasurement, hot: PlacedHotLine, waits: tuple[WaitFor, ...]) -> str:
    at = found.useful_roof
    if at is not None:
        return text.advice["roof"].format(unit=at.unit, pct=wording.percent(at.pct / 100), next=at.next_step)
    if hot.reason is None:
        return text.advice["mixed"]
    reason = stall_reason(hot.reason)
    kinds = [producer_kind(wait.producer).action for wait in waits]
    # What is done about the producer at hand is more than what is done about the reason in general.
    actions = [action for action in kinds[:1] if action] or list(reason.first_actions(found.absent))
    said = text.advice["then" if len(actions) > 1 else "reason"].format(
        reason=reason.words[0].upper() + reason.words[1:],
        means=reason.means,
        first=actions[0] if actions else "look at the line's instructions",
        second=actions[1] if len(actions) > 1 else "",
    )
    return said + (text.advice["issue_unknown"] if found.issue.stalls_matter is None else "")


RULE = Rule("KL601", _check)
