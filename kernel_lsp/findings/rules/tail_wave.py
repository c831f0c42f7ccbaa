"""KL604: a grid whose last wave leaves many block slots of the launch empty."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Severity
from kernel_lsp.findings.measured import kind_words, measured, measurements_of, severity


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel, found in measurements_of(facts):
        tail, blocks = found.tail_wave, found.profile.launch.grid_blocks
        if tail is None or not tail.costly or not blocks:
            continue
        per_wave = round(blocks / tail.waves)
        whole = [math.floor(tail.waves) * per_wave, math.ceil(tail.waves) * per_wave]
        is_much = tail.wasted >= text.thresholds["information_from_share"] and not found.runs_well
        wanted: Severity = text.severity if is_much else "hint"
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages["any"].format(
                waves=wording.waves(tail.waves),
                fill=wording.share(tail.fill),
                wasted=wording.share(tail.wasted),
                kind=kind_words(kernel, found),
            ),
            advice=text.advice["any"].format(
                per_wave=wording.counted(per_wave, "block"), whole=" or ".join(f"{count:,}" for count in whole)
            ),
            badness=tail.wasted,
            severity=severity(found, wanted),
            evidence=(
                measured(found, "waves", tail.waves, "waves"),
                measured(found, "grid", blocks, "blocks"),
                measured(found, "blocks_per_wave", per_wave, "blocks"),
                measured(found, "empty_slots", tail.wasted, "of all block slots"),
            ),
        )


RULE = Rule("KL604", _check)
