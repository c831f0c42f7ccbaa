"""KL904: a `// kernel-lsp:` comment that could not be used, so that it does not count."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, file_draft
from kernel_lsp.findings.facts import Facts


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for note in facts.scan.notes if facts.scan else ():
        message = text.messages["any"].format(text=note.message)
        yield file_draft(text, facts, message=message, advice=text.advice["any"], span=note.span)


RULE = Rule("KL904", _check)
