"""The chain of judgement over a measured launch: each step a sentence with its numbers, in the order it is walked.

Memory: the higher side -> the roofline -> which level -> which lines. Compute: the roof -> which pipe -> are the matrix
instructions there. Latency: few ready warps -> which stall -> what limits the parallelism. Steps that the report does
not allow are left out.
"""

from __future__ import annotations

from collections.abc import Callable

from kernel_lsp.findings import wording
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.ncu.attach import Counters
from kernel_lsp.ncu.issue_cause import issue_cause
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.report.measured_lines import file_line
from kernel_lsp.report.measured_rows import cost_rows
from kernel_lsp.report.measured_sentences import issue_sentences, roofline_sentences, waves_sentence
from kernel_lsp.report.measured_words import pct_words, reason_words, share_words
from kernel_lsp.report.sass_words import Places

_MOST_PIPES = 3
_MOST_LINES = 3
_MOST_STALLS = 3
_TELLING_SHARE = 0.05


def judgement(kernel: KernelAnalysis, found: KernelMeasurement, places: Places) -> tuple[str, ...]:
    """The steps; () without speed of light."""
    kind = found.sol.kind
    if kind is None:
        return ()
    sol = found.profile.sol
    sides = f"SM {pct_words(sol.sm or 0.0)} and memory {pct_words(sol.memory or 0.0)} of their peaks"
    steps = {
        "compute": lambda: [f"{sides}: the SM is the higher side.", *_roofline(found), _pipes(found), _matrix(kernel)],
        "dram": lambda: _memory(found, places, sides),
        "memory_path": lambda: _memory(found, places, sides),
        "latency": lambda: _latency(found, sides),
        "balanced": lambda: [f"{sides}: both are high.", _level(found), _pipes(found), _waves(found)],
    }[kind]()
    return tuple(step for step in steps if step)


def _memory(found: KernelMeasurement, places: Places, sides: str) -> list[str]:
    return [
        f"{sides}: memory is the higher side.",
        *_roofline(found),
        _level(found),
        _lines_of(found, places, "global sectors", lambda here: here.global_sectors),
        _lines_of(found, places, "shared-memory wavefronts", lambda here: here.shared_wavefronts),
        _lines_of(found, places, "local-memory sectors", lambda here: here.local_sectors),
    ]


def _latency(found: KernelMeasurement, sides: str) -> list[str]:
    top = [f"{reason_words(reason)} {share_words(share)}" for reason, share in found.issue.top_stalls[:_MOST_STALLS]]
    stalls = f"Warps spend their time in {wording.joined(top)}." if top else ""
    issue = " ".join(issue_sentences(found.profile, found.issue))
    return [f"{sides}: neither side is busy.", issue, stalls, _parallelism(found), _waves(found)]


def _parallelism(found: KernelMeasurement) -> str:
    """Whether resources, the grid or unequal work leave few warps."""
    cause = issue_cause(found.profile)
    occupancy = found.profile.occupancy
    kind = cause.kind if cause is not None else ""
    if kind == "occupancy" and occupancy.theoretical is not None:
        limited = f", limited by {wording.joined(occupancy.limiters)}" if occupancy.limiters else ""
        return f"Resources limit the parallelism: {share_words(occupancy.theoretical)} theoretical occupancy{limited}."
    if kind == "imbalance" and occupancy.achieved is not None:
        return f"Fewer warps are resident than could be: {share_words(occupancy.achieved)} achieved occupancy."
    if kind == "stall":
        return "The warps are there and wait: parallelism is not what lacks."
    if kind == "mixed":
        return "The warps are there and wait for several things: the hot lines tell where."
    return ""


def _waves(found: KernelMeasurement) -> str:
    tail = found.tail_wave
    return waves_sentence(found.profile, tail) if tail is not None and (tail.waves < 1 or tail.costly) else ""


def _roofline(found: KernelMeasurement) -> list[str]:
    return roofline_sentences(found.profile)[:1]


def _level(found: KernelMeasurement) -> str:
    """Which level makes Memory what it is."""
    sol, unit = found.profile.sol, found.sol.culprit
    levels = {"L1/TEX": sol.l1tex, "L2": sol.l2, "DRAM": sol.dram}
    told = ", ".join(f"{name} {pct_words(pct)}" for name, pct in levels.items() if pct is not None)
    if not told:
        return ""
    return f"{told}: {unit} is what makes Memory this high." if unit else f"{told}."


def _pipes(found: KernelMeasurement) -> str:
    """The pipes most in use."""
    pipes = sorted(found.profile.pipes_pct.items(), key=lambda item: -item[1])[:_MOST_PIPES]
    said = [f"{pipe.replace('_', ' ')} {pct_words(pct)}" for pipe, pct in pipes if pct >= 1]
    return f"Pipes most in use: {', '.join(said)}." if said else ""


def _matrix(kernel: KernelAnalysis) -> str:
    """Whether the compiled code has matrix instructions."""
    if kernel.sass is None or kernel.sass.mix is None:
        return ""
    found = {family: count for family, count in kernel.sass.mix.items() if family.endswith("MMA")}
    if not found:
        return "The compiled code has no matrix instructions."
    return f"The compiled code has {wording.joined(f'{count:,} {family}' for family, count in found.items())}."


def _lines_of(found: KernelMeasurement, places: Places, what: str, count: Callable[[Counters], int | None]) -> str:
    """The lines that take most of something."""
    counts = [
        (places.of(places.path, row.line) if row.in_file else file_line(row.file, row.line), count(row.here) or 0)
        for row in cost_rows(found)
    ]
    total = sum(number for _, number in counts)
    if not total:
        return ""
    ordered = sorted(counts, key=lambda item: -item[1])[:_MOST_LINES]
    said = [f"{place} {share_words(number / total)}" for place, number in ordered if number >= _TELLING_SHARE * total]
    return f"Most {what}: {', '.join(said)}." if said else ""
