"""What was measured on one line in words: its samples by reason, what it waits for, its counters, what was inlined."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernel_lsp.findings import wording
from kernel_lsp.ncu.attach import Counters
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.kernel_profile import FEW_SAMPLES
from kernel_lsp.ncu.placement import PlacedLine, PlacedProfile
from kernel_lsp.ncu.producers import WaitFor
from kernel_lsp.ncu.reading import NO_STALL
from kernel_lsp.ncu.stall_reasons import producer_kind
from kernel_lsp.report.measured_words import bar_lines, reason_words, share_words
from kernel_lsp.report.sass_words import EDITED, Places

MOST_REASONS = 5
MOST_WAITS = 2
MOST_INLINED = 3
_WARP = 32
_FOLDERS = re.compile(r".*[/\\]")
_NO_EXCESS = 0.005  # rounds to 0 %
_TELLING_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class InlinedSamples:
    """Samples of a line that stand in another file's code, inlined there."""

    file: str
    line: int
    samples: int


def samples_words(found: KernelMeasurement, samples: int, *, noun: str = "the kernel's stall samples") -> str:
    """`31 % of the kernel's stall samples`; `12 of 41 samples` where they are few."""
    every = found.profile.samples
    if every is None or not every.total:
        return ""
    if every.few:
        return f"{samples:,} of {wording.counted(every.total, 'sample')}"
    return f"{share_words(samples / every.total)} of {noun}"


def share_sentence(found: KernelMeasurement, line: PlacedLine, age: str) -> str:
    """`31 % of the kernel's stall samples (measured, 1,204 of 3,880, report of 2 h ago)`."""
    every, fit = found.profile.samples, found.placed.fit
    kind = f"report {age}" + ("" if fit == "exact" else f", {fit}")
    if every is None or not every.total:
        return f"Measured, without samples ({kind})"
    if not line.here.samples:
        return f"No stall samples here (measured, of {every.total:,} in the kernel, {kind})"
    if every.few:
        return f"{samples_words(found, line.here.samples)} (measured, too few for percentages, {kind})"
    return f"{samples_words(found, line.here.samples)} (measured, {line.here.samples:,} of {every.total:,}, {kind})"


def reason_lines(counters: Counters) -> list[str]:
    """A bar for each reason that holds warps up, most samples first; in counts where the line has few samples.

    Percentages are of all samples of the line. What is no stall gets no bar.
    """
    total = counters.samples
    held = [(reason, count) for reason, count in counters.by_reason.items() if reason not in NO_STALL and count]
    if not total or not held:
        return []
    rows = [(reason_words(reason), count) for reason, count in held[:MOST_REASONS]]
    rest = sum(count for _, count in held[MOST_REASONS:])
    if rest:
        rows.append((wording.counted(len(held) - MOST_REASONS, "other"), rest))
    few = total < FEW_SAMPLES
    values = [f"{count:,}" if few else share_words(count / total) for _, count in rows]
    return bar_lines([(name, count / total) for name, count in rows], values)


def no_stall_sentence(counters: Counters) -> str:
    """`17 % issued or were ready (selected, not selected).`; "" where next to none was."""
    free = {reason: count for reason, count in counters.by_reason.items() if reason in NO_STALL and count}
    if not free:
        return ""
    count = sum(free.values())
    if counters.samples >= FEW_SAMPLES and count < _TELLING_SHARE * counters.samples:
        return ""
    names = ", ".join(sorted((reason_words(reason) for reason in free), reverse=True))
    much = f"{count:,}" if counters.samples < FEW_SAMPLES else share_words(count / counters.samples)
    return f"{much} of them issued or were ready to ({names}): no stall."


def wait_sentence(waits: Sequence[WaitFor], placed: PlacedProfile, places: Places, line: int) -> str:
    """`Waits for LDG.E of l.41 (820 samples) and LDS of this line (40 samples).`; producers with most samples first.

    Several instructions of a line that wait for the same place are added up, each of them once.
    """
    by_place: dict[str, dict[int, int]] = {}
    certain: dict[str, bool] = {}
    for wait in waits:
        place = producer_place(wait, placed, places, line)
        words = opcode_of(wait.producer) + (f" of {place}" if place else "")
        by_place.setdefault(words, {})[wait.pc] = wait.samples
        certain[words] = certain.get(words, True) and wait.certain
    totals = sorted(((sum(found.values()), words) for words, found in by_place.items()), key=lambda item: -item[0])
    if not totals:
        return ""
    said = [
        f"{words} ({wording.counted(count, 'sample')}{'' if certain[words] else ', likely'})"
        for count, words in totals[:MOST_WAITS]
    ]
    more = f" and {len(totals) - MOST_WAITS} more" if len(totals) > MOST_WAITS else ""
    return f"Waits for {wording.joined(said) if not more else ', '.join(said) + more}."


def wait_words(wait: WaitFor, placed: PlacedProfile, places: Places, line: int) -> str:
    """`waiting for the load on l.12`, `waiting for the shared-memory load on this line`."""
    place = producer_place(wait, placed, places, line)
    return f"waiting for the {producer_kind(wait.producer).words}{f' on {place}' if place else ''}"


def producer_place(wait: WaitFor, placed: PlacedProfile, places: Places, line: int) -> str:
    """Where the producer stands, as seen from a line of the built text; "" where that is not known."""
    if any(file == placed.built_path for file, _ in wait.chain):
        now = placed.line_now(wait.chain)
        if now is None:
            return EDITED
        return "this line" if now == line else places.of(places.path, now)
    return file_line(*wait.chain[0]) if wait.chain else ""


def file_line(file: str, line: int) -> str:
    """`load.cuh:12`, of a path of any machine."""
    return f"{_FOLDERS.sub('', file)}:{line}"


def opcode_of(instruction: str) -> str:
    """`@!P0 LDG.E.64 R2, [R4]` -> `LDG.E.64`."""
    words = instruction.split()
    return next((word.rstrip(";") for word in words if not word.startswith("@")), "?")


def counter_lines(here: Counters) -> list[str]:
    """The counters of a line, aligned; those that the report lacks, and those that are 0, are left out."""
    rows: list[tuple[str, str]] = []
    if here.executed:
        rows.append(("executed", f"{wording.counted(here.executed, 'warp instruction')}{_threads(here)}"))
    if here.global_sectors and here.sectors_per_request is not None:
        rows.append(("global", _global(here)))
    if here.shared_wavefronts:
        rows.append(("shared", _shared(here)))
    if here.local_sectors:
        rows.append(("local", f"{wording.counted(here.local_sectors, 'sector')} of local memory"))
    wide = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{wide}}  {text}" for name, text in rows]


def _threads(here: Counters) -> str:
    threads = here.threads_per_instruction
    if threads is None:
        return ""
    divergent = f", {wording.counted(here.divergent_branches, 'divergent branch')}" if here.divergent_branches else ""
    said = "all 32" if threads > _WARP - 0.05 else f"{threads:.1f} of 32"
    return f", {said} threads active{divergent.replace('branchs', 'branches')}"


def _global(here: Counters) -> str:
    """Sectors of a request, and how many of them a coalesced one would not take."""
    said = f"{here.sectors_per_request:.1f} sectors per request"
    share, ideal = here.excess_sector_share, here.global_sectors_ideal
    if share is None or ideal is None or not here.global_instructions:
        return said
    if share < _NO_EXCESS:
        return f"{said}, no more than needed"
    return f"{said}, {ideal / here.global_instructions:.1f} if coalesced: {share_words(share)} in excess"


def _shared(here: Counters) -> str:
    """Wavefronts, and how many of them bank conflicts cost."""
    said = wording.counted(here.shared_wavefronts or 0, "wavefront")
    share = here.excess_wavefront_share
    if share is None or here.shared_wavefronts_ideal is None:
        return said
    if share < _NO_EXCESS:
        return f"{said}, no bank conflicts"
    return f"{said}, {here.shared_wavefronts_ideal:,} without bank conflicts: {share_words(share)} in excess"


def inlined_samples(placed: PlacedProfile, line: PlacedLine) -> tuple[InlinedSamples, ...]:
    """Where in other files the samples of a line stand, most first."""
    measured = placed.measured
    if measured.sampled is None or placed.built_path is None:
        return ()
    counts = measured.sampled.samples.sum(axis=1)
    found: dict[tuple[str, int], int] = {}
    for row in np.flatnonzero(counts).tolist():
        chain = measured.chains[row]
        own = next((number for file, number in chain if file == placed.built_path), None)
        if own == line.profiled_line and chain[0][0] != placed.built_path:
            found[chain[0]] = found.get(chain[0], 0) + int(counts[row])
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple(InlinedSamples(file, number, count) for (file, number), count in ordered)


def inlined_sentence(found: KernelMeasurement, line: PlacedLine) -> str:
    """`Inlined here: mma.hpp:91 (812 samples), load.cuh:4 (40 samples) and 3 more.`; "" where nothing was."""
    inlined = inlined_samples(found.placed, line)
    said = [
        f"{file_line(each.file, each.line)} ({wording.counted(each.samples, 'sample')})"
        for each in inlined[:MOST_INLINED]
    ]
    if not said:
        return ""
    more = len(inlined) - MOST_INLINED
    return f"Inlined here: {', '.join(said)} and {more} more." if more > 0 else f"Inlined here: {wording.joined(said)}."


def within_sentence(found: KernelMeasurement, line: PlacedLine) -> str:
    """What the line cost with the functions of this file that are inlined into it; "" where that is no more."""
    within, here = line.cost.within.samples, line.here.samples
    if within <= here:
        return ""
    return f"With this file's functions that are inlined here: {samples_words(found, within)}."
