"""Inlay hints of measured lines: `31 % stalls: long scoreboard <- l.41`, with the counts in the tooltip."""

from __future__ import annotations

from datetime import datetime

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings import wording
from kernel_lsp.ncu.attach import Counters
from kernel_lsp.ncu.hot_lines import main_reason, wait_of
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.placement import PlacedLine
from kernel_lsp.ncu.producers import WaitFor
from kernel_lsp.ncu.reading import NO_STALL, healthy_reasons, reading_table
from kernel_lsp.report.hints import LineHint
from kernel_lsp.report.measured_lines import producer_place, samples_words, wait_words
from kernel_lsp.report.measured_words import fit_mark, fit_sentence, provenance, reason_words, share_words
from kernel_lsp.report.sass_words import EDITED, Places

MOST_REASONS = 3
FEWEST_SAMPLES = 5  # of a line, where the whole launch has few: fewer say nothing


def measured_hints(analysis: FileAnalysis, places: Places, now: datetime | None) -> tuple[LineHint, ...]:
    """The hot lines of all measured kernels by line. Of several kernels on a line the one with the largest share."""
    hottest: dict[int, tuple[float, str, KernelMeasurement, PlacedLine]] = {}
    for kernel in analysis.kernels:
        found = kernel.measured
        samples = found.profile.samples if found is not None else None
        if found is None or samples is None or not samples.total:
            continue
        least = reading_table()["thresholds"]["hot_share"] * samples.total
        for line in found.placed.lines:
            share = line.here.samples / samples.total
            if line.here.samples < least or (samples.few and line.here.samples < FEWEST_SAMPLES):
                continue
            if line.line not in hottest or share > hottest[line.line][0]:
                hottest[line.line] = (share, kernel.binary.short_name, found, line)
    return tuple(
        LineHint(number, _text(found, line, places), _tooltip(short_name, found, line, places, now))
        for number, (_, short_name, found, line) in sorted(hottest.items())
    )


def _text(found: KernelMeasurement, line: PlacedLine, places: Places) -> str:
    """The share, and the reason; it is called a stall only where stalls cost something."""
    samples, reason = found.profile.samples, _reason(line.here)
    assert samples is not None
    few = samples.few
    share = samples_words(found, line.here.samples) if few else share_words(line.here.samples / samples.total)
    if reason is None or found.issue.stalls_matter is False or reason in healthy_reasons(found.profile):
        said = share if few else f"{share} of samples"
    else:
        said = f"{share}{'' if few else ' stalls'}: {reason_words(reason)}"
        wait = wait_of(line.waits_for, reason)
        said += _arrow(wait, found, line, places) if wait is not None else ""
    return f"{said} (stale)" if fit_mark(found) == "stale" else said


def _reason(here: Counters) -> str | None:
    return main_reason(here)[0]


def _arrow(wait: WaitFor, found: KernelMeasurement, line: PlacedLine, places: Places) -> str:
    """` <- l.41`; nothing where the producer stands on the line itself, or where is not known."""
    place = producer_place(wait, found.placed, places, line.line)
    return "" if place in ("", "this line", EDITED) else f" <- {place}"


def _tooltip(short_name: str, found: KernelMeasurement, line: PlacedLine, places: Places, now: datetime | None) -> str:
    samples = found.profile.samples
    assert samples is not None
    total, here = samples.total, line.here
    said = [f"{short_name}: {here.samples:,} of {wording.counted(total, 'sample')} are on this line (measured)."]
    reasons = [
        f"{reason_words(reason)} {count:,}" + ("" if samples.few else f" ({share_words(count / here.samples)})")
        for reason, count in here.by_reason.items()
        if reason not in NO_STALL
    ]
    said += [f"Most of them: {', '.join(reasons[:MOST_REASONS])}."] if reasons else []
    reason = _reason(here)
    wait = wait_of(line.waits_for, reason) if reason is not None else None
    if wait is not None and reason is not None:
        said.append(f"{reason_words(reason)}: {wait_words(wait, found.placed, places, line.line)}.")
    if found.issue.stalls_matter is False:
        said += found.issue.healthy[:1]
    said.append(f"{provenance(found, now)}.")
    said.append(fit_sentence(found))
    return "\n".join(each for each in said if each)
