"""What a report of Nsight Compute adds to the hovers on a kernel and on a line: Markdown blocks."""

from __future__ import annotations

from datetime import datetime

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings import wording
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.ncu.hot_lines import main_reason, wait_of
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.placement import PlacedLine
from kernel_lsp.ncu.reading import healthy_reasons, reading_table
from kernel_lsp.ncu.stall_reasons import producer_kind, stall_reason
from kernel_lsp.report.markdown_text import escaped, fenced
from kernel_lsp.report.measured_lines import (
    counter_lines,
    file_line,
    inlined_sentence,
    no_stall_sentence,
    reason_lines,
    samples_words,
    share_sentence,
    wait_sentence,
    wait_words,
    within_sentence,
)
from kernel_lsp.report.measured_rows import cost_rows
from kernel_lsp.report.measured_sentences import (
    achieved_sentence,
    dram_sentence,
    issue_sentences,
    missing_sentence,
    reading_sentence,
    roofline_sentences,
    rules_sentence,
    sol_words,
    told_rules,
    waves_sentence,
)
from kernel_lsp.report.measured_words import (
    bar_lines,
    duration_words,
    fit_sentence,
    of_age,
    provenance,
    reason_words,
    share_words,
)
from kernel_lsp.report.sass_words import Places

MOST_STALLS = 4
MOST_HOT = 3
MOST_RULES = 3
_TELLING_OUTSIDE = 0.05  # share of samples outside the kernel's code from which on it is said


def kernel_blocks(kernel: KernelAnalysis, analysis: FileAnalysis, places: Places, now: datetime | None) -> list[str]:
    """The launch as it was measured: time and class, stalls, occupancy and roofline, hot lines, rules, provenance."""
    found = kernel.measured
    assert found is not None
    profile = found.profile
    blocks = [_lines(_first(found), reading_sentence(found.sol), other_machine(kernel, found))]
    blocks += _issue(found)
    blocks.append(
        _lines(
            " ".join(filter(None, (achieved_sentence(profile), waves_sentence(profile, found.tail_wave)))),
            dram_sentence(profile),
            *roofline_sentences(profile),
        )
    )
    blocks.append(_hot(found, places))
    blocks.append(escaped(rules_sentence(told_rules(profile)[:MOST_RULES])))
    blocks.append(_lines(f"From {provenance(found, now)}.", fit_sentence(found), missing_sentence(profile.missing)))
    return [block for block in blocks if block]


def line_blocks(found: KernelMeasurement, line: int, places: Places, now: datetime | None) -> list[str]:
    """What a line of the built text cost; [] where the report says nothing of it."""
    placed = found.placed
    here = placed.line(line)
    if here is None:
        return ["Changed since the report: unmeasured."] if line in placed.edited_lines else []
    blocks = [escaped(share_sentence(found, here, of_age(found.modified_at, now)))]
    bars = reason_lines(here.here)
    if bars:
        blocks[0] += "\n" + fenced(bars)
    blocks.append(_lines(*_meaning(found, here, places)))
    counters = counter_lines(here.here)
    if counters:
        blocks.append(fenced(counters))
    if not here.certain:
        blocks.append(escaped(f"Stale: {placed.why.rstrip('.')}."))
    return [block for block in blocks if block]


def other_line_words(found: KernelMeasurement, line: int) -> str:
    """The line's share in a kernel that is not shown in full: `31 % of its stall samples`; "" without samples there."""
    here = found.placed.line(line)
    if here is None or not here.here.samples:
        return ""
    return samples_words(found, here.here.samples, noun="its stall samples")


def other_machine(kernel: KernelAnalysis, found: KernelMeasurement) -> str:
    """That the report is of another architecture than the code at hand; "" where it is not."""
    arch = found.profile.device.arch
    if arch is None or arch == kernel.binary.arch:
        return ""
    return f"Measured on {arch}, and this build is for {kernel.binary.arch}: its code is another one."


def hot_words(found: KernelMeasurement, places: Places) -> list[str]:
    """`l.41: 31 %, long scoreboard, waiting for the load on l.12`, hottest first; lines of other files among them."""
    samples = found.profile.samples
    if samples is None or samples.few:
        return []
    least, said = reading_table()["thresholds"]["hot_share"] * samples.total, []
    for row in cost_rows(found, least):
        place = places.of(places.path, row.line) if row.in_file else file_line(row.file, row.line)
        words = f"{place}{'' if row.certain else ' (stale)'}: {share_words(row.here.samples / samples.total)}"
        reason, _ = main_reason(row.here)
        if reason is not None:
            wait = wait_of(row.waits, reason)
            line = row.line if row.in_file else 0
            words += f", {reason_words(reason)}"
            words += f", {wait_words(wait, found.placed, places, line)}" if wait is not None else ""
        said.append(words)
    return said


def _lines(*sentences: str) -> str:
    return "  \n".join(escaped(sentence) for sentence in sentences if sentence)


def _first(found: KernelMeasurement) -> str:
    profile = found.profile
    parts = [f"{duration_words(profile.duration_ns)} measured" if profile.duration_ns is not None else "Measured"]
    parts.append(sol_words(profile.sol))
    return ": ".join(part for part in parts if part) + "."


def _issue(found: KernelMeasurement) -> list[str]:
    """Issue slots first; stalls only where the slots are not used, or where it is not known whether they are."""
    issue = found.issue
    sentences = issue_sentences(found.profile, issue)
    at = found.roof
    if at is not None and issue.stalls_matter:
        means = f", but {at.wasted}" if at.wasted else ": the stalls follow from it"
        sentences.append(f"{at.unit} is at {at.pct:.0f} % of its peak{means}.")
    top = [(reason_words(reason), share) for reason, share in issue.top_stalls[:MOST_STALLS]]
    if top and issue.stalls_matter is None:
        sentences.append("Stalls by samples; whether they matter is not known without the issue slots:")
    blocks = [_lines(*sentences)]
    if top:
        blocks.append(fenced(bar_lines(top, [share_words(share) for _, share in top])))
    return blocks


def _hot(found: KernelMeasurement, places: Places) -> str:
    samples = found.profile.samples
    if samples is None:
        return ""
    if samples.few:
        return f"Only {wording.counted(samples.total, 'sample')}: too few for hot lines."
    said = [f"- {escaped(words)}" for words in hot_words(found, places)[:MOST_HOT]]
    outside = sum(found.measured.outside.values()) / samples.total
    if outside >= _TELLING_OUTSIDE:
        said.append(f"- outside the kernel's own code: {share_words(outside)}")
    nowhere = found.measured.nowhere
    if nowhere is not None and nowhere.samples > samples.total / 2:
        said.append(f"- on no line: {share_words(nowhere.samples / samples.total)} (profile a build with -lineinfo)")
    return "Hot lines:\n" + "\n".join(said) if said else ""


def _meaning(found: KernelMeasurement, here: PlacedLine, places: Places) -> list[str]:
    """What the samples of a line mean: what it waits for, and for a hot line what is tried first."""
    said = [no_stall_sentence(here.here), wait_sentence(here.waits_for, found.placed, places, here.line)]
    if any(hot.line == here.line for hot in found.hot):
        said.append(_advice(found, here))
    said.append(inlined_sentence(found, here))
    said.append(within_sentence(found, here))
    return said


def _advice(found: KernelMeasurement, here: PlacedLine) -> str:
    """What the main reason means and the first action; where stalls cost nothing, that."""
    if found.issue.stalls_matter is False:
        return found.issue.healthy[0]
    reason, _ = main_reason(here.here)
    if reason is None or reason in healthy_reasons(found.profile):
        return ""
    known = stall_reason(reason)
    said = f"{known.words[0].upper()}{known.words[1:]}: {known.means}."
    at = found.useful_roof
    if at is not None:
        return f"{said} {at.unit} is at {at.pct:.0f} % of its peak, so warps wait somewhere."
    wait = wait_of(here.waits_for, reason)
    action = producer_kind(wait.producer).action if wait is not None else None
    action = action or next(iter(known.first_actions(found.absent)), None)
    return f"{said} Try first: {action}." if action else said
