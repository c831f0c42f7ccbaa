"""KL606: far fewer warps were resident on average than the limits allow, and the likely cause."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.measured import kind_words, measured, measurements_of, severity
from kernel_lsp.ncu.issue_cause import issue_cause
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.reading import reading_table


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel, found in measurements_of(facts):
        theoretical, achieved = found.profile.occupancy.theoretical, found.profile.occupancy.achieved
        if theoretical is None or achieved is None or found.runs_well:
            continue
        cause = issue_cause(found.profile)
        said_already = cause is not None and cause.kind in ("grid", "imbalance")  # by KL605
        if theoretical - achieved <= reading_table()["thresholds"]["occupancy_gap"] or said_already:
            continue
        launch = found.profile.launch
        variant = _cause(text, found, 1 - achieved / theoretical)
        wave_ns = _wave_ns(found)
        values = {
            "achieved": wording.share(achieved),
            "theoretical": wording.share(theoretical),
            "grid": wording.grid(launch.grid_blocks),
            "waves": wording.waves(launch.waves_per_sm or 0.0),
            "wave": "" if wave_ns is None else f"{wave_ns / 1000:.2g} us",
            "kind": kind_words(kernel, found),
        }
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages[variant].format(**values),
            advice=text.advice[variant].format(**values),
            badness=theoretical - achieved,
            severity=severity(found, text.severity),
            evidence=(
                measured(found, "achieved_occupancy", achieved, "fraction"),
                measured(found, "theoretical_occupancy", theoretical, "fraction"),
            ),
        )


def _cause(text: RuleText, found: KernelMeasurement, missing: float) -> str:
    """The likely one; `missing` is the share of the possible warps that is not resident."""
    waves, wave_ns = found.profile.launch.waves_per_sm, _wave_ns(found)
    if waves is not None and waves < 1:
        return "grid"
    tail = found.tail_wave
    if tail is not None and tail.costly and tail.wasted >= text.thresholds["tail_explains_fraction"] * missing:
        return "tail"
    return "short" if wave_ns is not None and wave_ns < text.thresholds["short_wave_ns"] else "imbalance"


def _wave_ns(found: KernelMeasurement) -> float | None:
    waves, duration_ns = found.profile.launch.waves_per_sm, found.profile.duration_ns
    return duration_ns / waves if waves and duration_ns else None


RULE = Rule("KL606", _check)
