"""KL902: the build ended without code, and no compiler message with a place says why."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, file_draft
from kernel_lsp.findings.facts import Facts


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    told = any(message.severity == "error" for message in facts.messages)
    if facts.not_built and not told:
        message = text.messages["any"].format(reason=facts.not_built.rstrip("."))
        yield file_draft(text, facts, message=message, advice=text.advice["any"], severity=facts.not_built_severity)


RULE = Rule("KL902", _check)
