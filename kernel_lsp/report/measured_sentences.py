"""What a launch's measurements say of the kernel as a whole, a sentence each, in the order they are read.

Speed of light first, then issue slots, and stalls only where the slots are not used. What a report lacks gives "".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from kernel_lsp.findings import wording
from kernel_lsp.model.roofline import measured_roofline
from kernel_lsp.ncu.metric_names import metric_names
from kernel_lsp.report.measured_words import number_words, pct_words, rate_words, share_words

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_profile import KernelProfile, Missing, SpeedOfLight
    from kernel_lsp.ncu.raw_report import RuleResult
    from kernel_lsp.ncu.reading import IssueReading, SolReading, TailWave

_MANY_OPTIONS = 3  # more are shorter said as the set that holds them all
_SECTIONS = {
    "SpeedOfLight": "duration and speed of light",
    "LaunchStats": "the launch",
    "Occupancy": "occupancy",
    "SchedulerStats": "issue slots",
    "WarpStateStats": "stalls of the kernel",
    "SourceCounters": "samples and counters by line",
    "MemoryWorkloadAnalysis_Tables": "DRAM bytes",
    "SpeedOfLight_RooflineChart": "FLOP and DRAM traffic",
    "SpeedOfLight_HierarchicalHalfRooflineChart": "FP16 operations",
}
HALF_PRECISION = "SpeedOfLight_HierarchicalHalfRooflineChart"


def sol_words(sol: SpeedOfLight, *, parts: bool = False) -> str:
    """`SM 31 %, memory 88 % (DRAM 84 %)`; with `parts` L1/TEX and L2 too. "" without the pair."""
    return ", ".join(sol_parts(sol, parts=parts))


def sol_parts(sol: SpeedOfLight, *, parts: bool = False) -> tuple[str, ...]:
    """The two halves of `sol_words`."""
    if sol.sm is None or sol.memory is None:
        return ()
    units = {"L1/TEX": sol.l1tex, "L2": sol.l2, "DRAM": sol.dram} if parts else {"DRAM": sol.dram}
    told = ", ".join(f"{name} {pct_words(pct)}" for name, pct in units.items() if pct is not None)
    return (f"SM {pct_words(sol.sm)}", f"memory {pct_words(sol.memory)}{f' ({told})' if told else ''}")


def reading_sentence(reading: SolReading) -> str:
    """`Held by the memory path, not by DRAM (L1/TEX). Next: sectors per request, ...`; "" without speed of light."""
    if reading.kind is None:
        return ""
    unit = f" ({reading.culprit})" if reading.culprit and reading.kind == "memory_path" else ""
    return f"{reading.words[0].upper()}{reading.words[1:]}{unit}. Next: {reading.next_step}."


def issue_sentence(profile: KernelProfile) -> str:
    """`The schedulers issue in 35 % of cycles; 0.71 warps are eligible on average, of 13.10 active.`"""
    scheduler = profile.scheduler
    if scheduler.issue_active is None:
        return ""
    said = f"The schedulers issue in {share_words(scheduler.issue_active)} of cycles"
    if scheduler.eligible_warps is not None:
        said += f"; {scheduler.eligible_warps:.2f} warps are eligible on average"
        said += f", of {scheduler.active_warps:.2f} active" if scheduler.active_warps is not None else ""
    return said + "."


def issue_sentences(profile: KernelProfile, issue: IssueReading) -> list[str]:
    """Whether the schedulers issue, and what is healthy."""
    if issue.stalls_matter is False:  # the first healthy sentence says how much they issue
        return list(issue.healthy)
    return [sentence for sentence in (issue_sentence(profile), *issue.healthy) if sentence]


def achieved_sentence(profile: KernelProfile) -> str:
    """`81 % achieved occupancy of 100 % theoretical.`; what is missing is left out."""
    occupancy = profile.occupancy
    theoretical = "" if occupancy.theoretical is None else f"{share_words(occupancy.theoretical)} theoretical"
    if occupancy.achieved is None:
        return f"{theoretical} occupancy." if theoretical else ""
    of = f" of {theoretical}" if theoretical else ""
    return f"{share_words(occupancy.achieved)} achieved occupancy{of}."


def waves_sentence(profile: KernelProfile, tail: TailWave | None) -> str:
    """The grid in waves: less than one, whole ones, or a last one that costs."""
    waves = profile.launch.waves_per_sm
    if waves is None:
        return ""
    if waves < 1:
        return f"The grid fills {share_words(waves)} of one wave: most SMs have room left."
    if tail is None or not tail.costly:
        return f"{waves:.2f} waves."
    last, idle = share_words(tail.fill), share_words(tail.wasted)
    return f"Tail: {waves:.2f} waves, the last one {last} full; {idle} of the block slots stay empty."


def dram_sentence(profile: KernelProfile) -> str:
    """`DRAM: 631 GB/s of 696 at that run's clocks.`; "" where it was not measured."""
    point = next((point for point in profile.roofline if point.bytes_per_s is not None), None)
    if point is None or point.bytes_per_s is None:
        return ""
    peak = "" if not point.peak_bytes_per_s else f" of {rate_words(point.peak_bytes_per_s, 'B/s')} at that run's clocks"
    return f"DRAM: {rate_words(point.bytes_per_s, 'B/s')}{peak}."


def tensor_words(profile: KernelProfile) -> str | None:
    """That tensor operations ran, which no FLOP of the report counts; None: none did, or it is not told.

    Below 1 % is what a stray instruction leaves.
    """
    most = max((pct for pipe, pct in profile.pipes_pct.items() if "tensor" in pipe), default=0.0)
    if most >= 1:
        return f"the tensor pipe is in use {most:.0f} % of the time"
    return "matrix instructions were executed" if any("MMA" in opcode for opcode in profile.by_opcode) else None


def roofline_sentences(profile: KernelProfile) -> list[str]:
    """The place of each precision that did any work; where tensor operations were not counted, no place is claimed."""
    working = [point for point in profile.roofline if point.flop_per_s > 0]
    tensor = tensor_words(profile)
    if tensor is not None:
        alone = "".join(f"; {point.precision} alone: {rate_words(point.flop_per_s, 'FLOPS')}" for point in working[:1])
        return [f"Roofline: {tensor} and tensor operations are not counted, so the place is not known{alone}."]
    told = bool(profile.pipes_pct or profile.by_opcode)
    if has_no_flop(profile):
        counted = wording.joined(sorted(point.precision for point in profile.roofline)).replace(" and ", " or ")
        return [f"No {counted} operations were executed: DRAM's is the only roof."]
    said = []
    for point in working:
        text = f"Roofline {point.precision}: {rate_words(point.flop_per_s, 'FLOPS')}"
        place = measured_roofline(point)
        if place.intensity is not None:
            text += f", {number_words(place.intensity)} FLOP per DRAM byte"
            if place.side is not None and place.balance is not None:
                text += f" against a balance of {number_words(place.balance)}: {place.side} side"
            if place.attained is not None:
                text += f", {share_words(place.attained)} of what it allows"
        said.append(f"{text}." if told else f"{text}. Tensor operations, if there were any, are not counted.")
    return said


def has_no_flop(profile: KernelProfile) -> bool:
    """Whether operations were counted, and there were none."""
    counted = profile.roofline
    return bool(counted) and not any(point.flop_per_s for point in counted) and tensor_words(profile) is None


def told_rules(profile: KernelProfile) -> tuple[RuleResult, ...]:
    """NVIDIA's rules that estimate a speed-up: of the whole kernel first, then of a part, the largest first."""
    found = [rule for rule in profile.rules if rule.speedup_pct]
    return tuple(sorted(found, key=lambda rule: (rule.speedup_scope != "global", -(rule.speedup_pct or 0.0))))


def rule_words(rule: RuleResult) -> str:
    """`Tail Effect 50 %`."""
    return f"{rule.title or rule.rule} {rule.speedup_pct or 0.0:.0f} %"


def rules_sentence(rules: Sequence[RuleResult]) -> str:
    """`NVIDIA's own estimates of a speed-up: Tail Effect 50 %; only in their own metric: TheoreticalOccupancy 79 %.`

    ncu calls the two kinds global and local.
    """
    whole = ", ".join(rule_words(rule) for rule in rules if rule.speedup_scope == "global")
    part = ", ".join(rule_words(rule) for rule in rules if rule.speedup_scope != "global")
    said = "; ".join(each for each in (whole, f"only in their own metric: {part}" if part else "") if each)
    return f"NVIDIA's own estimates of a speed-up: {said}." if said else ""


def missing_by_option(missing: Sequence[Missing]) -> Mapping[str, str]:
    """What a report lacks in words, by the option that collects it; "" where this ncu or device has no such metric.

    A section of which some was collected is said to lack parts.
    """
    by_option: dict[str, list[str]] = {}
    for each in missing:
        by_option.setdefault(each.option, []).append(each.fact)
    whole, found = _facts_of_sections(), {}
    for option, facts in by_option.items():
        section = option.rpartition(" ")[2]
        if section in _SECTIONS:
            found[option] = ("parts of " if len(facts) < whole[section] else "") + _SECTIONS[section]
        else:
            found[option] = ", ".join(fact.replace("_", " ") for fact in facts)
    return found


@cache
def _facts_of_sections() -> Mapping[str, int]:
    """How many facts a report lacks that was made without a section."""
    names = metric_names()
    facts = [fact.section for fact in (*names.facts.values(), *names.columns.values()) if not fact.optional]
    others = [precision.section for precision in names.precisions]
    return Counter([*facts, *others, names.raw["samples"]["section"], names.raw["states"]["section"]])


def missing_sentence(missing: Sequence[Missing]) -> str:
    """`Not in the report: issue slots, samples and counters by line (ncu --set full).`; "" where nothing matters.

    FP16 operations alone are not worth a line: they are only in the largest sets.
    """
    options = {
        option: words
        for option, words in missing_by_option(missing).items()
        if option and not option.endswith(HALF_PRECISION)
    }
    if not options:
        return ""
    how = "--set full" if len(options) > _MANY_OPTIONS else " ".join(sorted(options))
    return f"Not in the report: {', '.join(options.values())} (ncu {how})."
