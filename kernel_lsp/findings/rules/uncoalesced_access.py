"""KL602: a line whose global accesses take more sectors than their bytes would, lying together."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.measured import (
    kind_words,
    line_severity,
    lines_in_excess,
    measured,
    measurements_of,
    memory_costs_nothing,
    of_kernel,
    total,
)
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.ncu.attach import Counters
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.placement import PlacedLine

_WARP_THREADS = 32


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel, found in measurements_of(facts):
        table = found.profile.instructions
        all_sectors = total(table.global_sectors) if table is not None else 0
        excess, share_of = attrgetter("excess_sectors"), attrgetter("excess_sector_share")
        for line in lines_in_excess(found, text, all_sectors, excess, share_of):
            yield _draft(facts, text, kernel, found, line, all_sectors)


def _draft(
    facts: Facts,
    text: RuleText,
    kernel: KernelAnalysis,
    found: KernelMeasurement,
    line: PlacedLine,
    all_sectors: int,
) -> Draft:
    here = line.here
    share = (here.excess_sectors or 0) / all_sectors
    per_request = here.sectors_per_request
    ideal = _ideal_per_request(here)
    message = text.messages["plain" if per_request is None else "requests"].format(
        sectors=f"{per_request or 0:.3g}",
        ideal=f"{ideal or 0:.3g}",
        line_share=wording.share(here.excess_sector_share or 0.0),
        share=wording.share(share),
        kind=kind_words(kernel, found),
    )
    evidence = [
        measured(found, "global_sectors", here.global_sectors or 0, "sectors"),
        measured(found, "global_sectors_ideal", here.global_sectors_ideal or 0, "sectors"),
        measured(found, "excess_of_line", here.excess_sector_share or 0.0, "of the line's sectors"),
        measured(found, "excess_of_kernel", share, "of the kernel's sectors"),
    ]
    if per_request is not None:
        evidence.append(measured(found, "sectors_per_request", per_request, "sectors"))
    return kernel_draft(
        text,
        facts,
        kernel,
        message=of_kernel(facts, kernel, line.line, message),
        advice=text.advice[_cause(text, here)] + (text.advice["harmless"] if memory_costs_nothing(found) else ""),
        badness=share,
        severity=line_severity(text, found, share),
        evidence=tuple(evidence),
        at_line=line.line,
    )


def _ideal_per_request(here: Counters) -> float | None:
    if here.global_sectors_ideal is None or not here.global_instructions:
        return None
    return here.global_sectors_ideal / here.global_instructions


def _cause(text: RuleText, here: Counters) -> str:
    """The likely cause, by how many sectors a request takes: an estimate, as addresses are not in a report."""
    per_request, ideal = here.sectors_per_request, _ideal_per_request(here)
    if per_request is None or ideal is None:
        return "unknown"
    if per_request - ideal <= text.thresholds["misaligned_sectors"]:
        return "misaligned"
    threads = here.threads_per_instruction or _WARP_THREADS
    return "scattered" if per_request >= text.thresholds["scattered_fraction"] * threads else "strided"


RULE = Rule("KL602", _check)
