"""KL603: a line whose shared-memory accesses take more wavefronts than they would without bank conflicts."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.measured import (
    certain_lines,
    kind_words,
    line_severity,
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
        lines = [
            line
            for line in certain_lines(found)
            if (line.here.excess_wavefront_share or 0.0) >= text.thresholds["line_share_from"]
            and (line.here.excess_wavefronts or 0) >= text.thresholds["kernel_share_from"] * all_wavefronts
        ]
        lines.sort(key=lambda line: (-(line.here.excess_wavefronts or 0), line.line))
        for line in lines[: int(text.thresholds["most_lines"])]:
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
