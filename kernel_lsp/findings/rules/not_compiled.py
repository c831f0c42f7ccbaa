"""KL905: a kernel or device function of the text that this build made no code for."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, file_draft
from kernel_lsp.findings.facts import Facts


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for span, reason in facts.not_compiled:
        message = text.messages["any"].format(reason=reason)
        yield file_draft(text, facts, message=message, advice=text.advice["any"], span=span)


RULE = Rule("KL905", _check)
