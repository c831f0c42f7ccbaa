"""KL901: an error or warning of the compiler's chain, on its own file and line."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Finding, Related
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.source.message import CompilerMessage


def _place(facts: Facts, message: CompilerMessage) -> tuple[str, int, KernelAnalysis | None]:
    """Where the message belongs; one that names only a kernel goes to that kernel's line."""
    kernel = next((k for k in facts.kernels if message.kernel and k.binary.mangled == message.kernel), None)
    if message.file and message.line > 0:
        return message.file, message.line, kernel
    if kernel and kernel.line > 0:
        return kernel.file, kernel.line, kernel
    return message.file or facts.path, 1, kernel


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    seen = set()
    for message in facts.messages:
        file, line, kernel = _place(facts, message)
        # An error inside a template comes once per instance: the same words at the same place say it once.
        key = (file, line, message.severity, message.text)
        if key in seen:
            continue
        seen.add(key)
        at_column = message.column if message.line > 0 else None
        yield Draft(
            Finding(
                code=text.code,
                slug=text.slug,
                severity=message.severity,
                file=file,
                line=line,
                end_line=line,
                column=at_column,
                end_column=at_column + 1 if at_column else None,
                kernel=kernel.binary.name if kernel else None,
                message=text.messages["any"].format(
                    text=message.text, code=f" [{message.code}]" if message.code else ""
                ),
                advice="",
                related=tuple(Related(note.file, note.line, note.text) for note in message.notes),
            )
        )


RULE = Rule("KL901", _check)
