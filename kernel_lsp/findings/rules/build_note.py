"""KL903: what was analysed is not exactly what the project builds, and the numbers depend on it."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, file_draft
from kernel_lsp.findings.facts import Facts


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for note in facts.notes:
        yield file_draft(
            text,
            facts,
            message=text.messages["any"].format(text=note.message),
            advice=text.advice["any"],
            severity=note.severity,
        )


RULE = Rule("KL903", _check)
