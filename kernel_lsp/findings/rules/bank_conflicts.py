"""KL603: a line whose shared-memory accesses take more wavefronts than they would without bank conflicts."""

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


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel, found in measurements_of(facts):
        table = found.profile.instructions
        all_wavefronts = total(table.shared_wavefronts) if table is not None else 0
        excess, share_of = attrgetter("excess_wavefronts"), attrgetter("excess_wavefront_share")
        for line in lines_in_excess(found, text, all_wavefronts, excess, share_of):
            here = line.here
            wavefronts, ideal = here.shared_wavefronts or 0, here.shared_wavefronts_ideal or 0
            if not ideal:
                continue
            share = (wavefronts - ideal) / all_wavefronts
            message = text.messages["any"].format(
                factor=f"{wavefronts / ideal:.3g}", share=wording.share(share), kind=kind_words(kernel, found)
            )
            harmless = text.advice["harmless"] if memory_costs_nothing(found) else ""
            yield kernel_draft(
                text,
                facts,
                kernel,
                message=of_kernel(facts, kernel, line.line, message),
                advice=text.advice["any"] + harmless,
                badness=share,
                severity=line_severity(text, found, share),
                evidence=(
                    measured(found, "shared_wavefronts", wavefronts, "wavefronts"),
                    measured(found, "shared_wavefronts_ideal", ideal, "wavefronts"),
                    measured(found, "excess_of_line", (wavefronts - ideal) / wavefronts, "of the line's wavefronts"),
                    measured(found, "excess_of_kernel", share, "of the kernel's wavefronts"),
                ),
                at_line=line.line,
            )


RULE = Rule("KL603", _check)
