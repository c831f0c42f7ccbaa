"""KL607: the measured launch moved data through local memory; one finding a kernel, on the line with most of it."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Related
from kernel_lsp.findings.local_places import MOST_PLACES
from kernel_lsp.findings.measured import (
    certain_lines,
    kind_words,
    line_severity,
    measured,
    measurements_of,
    memory_costs_nothing,
    of_kernel,
    severity,
    total,
)
from kernel_lsp.model.kernel_analysis import KernelAnalysis


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel, found in measurements_of(facts):
        table = found.profile.instructions
        local = total(table.local_sectors) if table is not None else 0
        everything = local + (total(table.global_sectors) if table is not None else 0)
        if not local or local < text.thresholds["kernel_share_from"] * everything:
            continue
        share = local / everything
        lines = sorted(
            (line for line in certain_lines(found) if line.here.local_sectors),
            key=lambda line: (-(line.here.local_sectors or 0), line.line),
        )
        # A file with little of it is not where it comes from.
        is_here = bool(lines) and (lines[0].here.local_sectors or 0) >= text.thresholds["line_share_from"] * local
        first = lines[0] if is_here else None
        values = {
            "line_share": wording.share((first.here.local_sectors or 0) / local) if first else "",
            "share": wording.share(share),
            "sectors": f"{local:,}",
            "kind": kind_words(kernel, found),
        }
        message = text.messages["line" if first else "kernel"].format(**values)
        harmless = text.advice["harmless"] if memory_costs_nothing(found) else ""
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=of_kernel(facts, kernel, first.line, message) if first else message,
            advice=text.advice[_cause(kernel)] + harmless,
            badness=share,
            severity=severity(found, line_severity(text, found, share)),
            evidence=(
                measured(found, "local_sectors", local, "sectors"),
                measured(found, "local_share", share, "of the kernel's local and global sectors"),
            ),
            related=tuple(
                Related(
                    facts.path, line.line, f"{wording.share((line.here.local_sectors or 0) / local)} of the traffic"
                )
                for line in lines[1 : MOST_PLACES + 1]
            ),
            at_line=first.line if first else None,
        )


def _cause(kernel: KernelAnalysis) -> str:
    """What the cubin of this build tells of it."""
    stores, loads = kernel.binary.resources.spill_store_bytes, kernel.binary.resources.spill_load_bytes
    if stores or loads:
        return "spills"
    return "array" if stores == 0 and loads == 0 else "unknown"


RULE = Rule("KL607", _check)
