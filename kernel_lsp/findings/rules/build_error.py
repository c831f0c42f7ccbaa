"""KL901: an error or warning of the compiler's chain, on its own file and line.

ptxas speaks of kernels by their mangled names: these are written as people write them, with the lines that ask for
the instance and, where shared memory is the matter, those that declare it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_lsp.cubin.names import function_name, with_short_names
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Finding, Related
from kernel_lsp.findings.missing_headers import header_advice
from kernel_lsp.source.message import CompilerMessage

MOST_RELATED = 8


def _place(facts: Facts, message: CompilerMessage) -> tuple[str, int]:
    """Where the message belongs; one that names only a kernel goes to that kernel's line."""
    kernel = next((k for k in facts.kernels if message.kernel and k.binary.mangled == message.kernel), None)
    if message.file and message.line > 0:
        return message.file, message.line
    if kernel and kernel.line > 0:
        return kernel.file, kernel.line
    return message.file or facts.path, 1


def _mark(message: CompilerMessage) -> str:
    """The message's number; of ptxas and nvlink, which speak of machine code, at least the name."""
    mark = message.code or (message.tool if message.tool in ("ptxas", "nvlink") else None)
    return f" [{mark}]" if mark else ""


def _about_kernel(facts: Facts, message: CompilerMessage, short_name: str, line: int) -> Iterator[Related]:
    """Lines of the text that ask for this instance, and the shared arrays of a kernel that has too much of them."""
    base, bracket, arguments = short_name.partition("<")
    base = base.rpartition("::")[2]
    if bracket:
        spelt = (
            r"\b"
            + re.escape(base)
            + r"\s*<\s*"
            + r"\s*".join(map(re.escape, re.findall(r"\w+|\W", arguments.replace(" ", ""))))
        )
        for number, written in enumerate(facts.text.split("\n"), start=1):
            if number != line and re.search(spelt, written):
                yield Related(facts.path, number, f"{short_name} is asked for here")
    if facts.scan and "shared" in message.text:
        for kernel in facts.scan.kernels:
            if kernel.name == base and kernel.first_line <= line <= kernel.last_line:
                for array in kernel.shared_arrays:
                    yield Related(facts.path, array.line, f"shared memory: {array.name}")


def _advice(facts: Facts, text: RuleText, message: CompilerMessage) -> str:
    by_part = next((cure for part, cure in text.advice.items() if part in message.text), "")
    if by_part or message.severity != "error":
        return by_part
    return header_advice(message.text, compiler_from_pypi=facts.compiler_from_pypi)


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    seen = set()
    for message in facts.messages:
        file, line = _place(facts, message)
        # An error inside a template comes once per instance: the same words at the same place say it once.
        key = (file, line, message.severity, message.text)
        if key in seen:
            continue
        seen.add(key)
        words = with_short_names(message.text)
        related = [Related(note.file, note.line, with_short_names(note.text)) for note in message.notes]
        if message.kernel:
            name = function_name(message.kernel)
            if file == facts.path:
                related += _about_kernel(facts, message, name.short, line)
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
                kernel=function_name(message.kernel).full if message.kernel else None,
                message=text.messages["any"].format(text=words, code=_mark(message)),
                advice=_advice(facts, text, message),
                related=tuple(related[:MOST_RELATED]),
            )
        )


RULE = Rule("KL901", _check)
