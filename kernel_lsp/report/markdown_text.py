"""Text from files made safe inside Markdown: names, paths and messages are data, never markup.

Only what could start markup is escaped, so that the raw text stays readable too.
"""

from __future__ import annotations

import re

_MARKUP = re.compile(r"[\\`*\[|]|<(?=[A-Za-z/!?])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^(?=[#>+-])")
_KEYWORD = re.compile(r"((?<!\w)__[A-Za-z]\w*(?:\([0-9N, ]*\))?)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def escaped(text: str) -> str:
    """One line of plain text; `__launch_bounds__(256)`, `__syncthreads()` and their like become code spans, which read
    better."""
    parts = _KEYWORD.split(_CONTROL.sub(" ", text))
    return "".join(
        f"`{part}`" if index % 2 else _MARKUP.sub(lambda match: "\\" + match[0], part)
        for index, part in enumerate(parts)
    )


def escaped_around_code(text: str) -> str:
    """As `escaped`, but `code spans` stay; a back-tick without its partner is escaped."""
    parts = _CONTROL.sub(" ", text).split("`")
    rest = ""
    if len(parts) % 2 == 0:
        rest = "\\`" + escaped(parts.pop())
    return "`".join(part if index % 2 else escaped(part) for index, part in enumerate(parts)) + rest


def code_span(text: str) -> str:
    """A code span that holds any text, back-ticks included."""
    plain = _CONTROL.sub(" ", text)
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def name(text: str) -> str:
    """A kernel's name as a person would write it: plain where that is safe (`tiled<16>`), else a code span."""
    plain = escaped(text)
    return plain if plain == text else code_span(text)


def fenced(lines: list[str], language: str = "text") -> str:
    """A fenced block whose content cannot end it. Without a language, VS Code colours it as the editor's own."""
    plain = [_CONTROL.sub(" ", line) for line in lines]
    longest = max((len(run) for line in plain for run in re.findall(r"`{3,}", line)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join([fence + language, *plain, fence])
