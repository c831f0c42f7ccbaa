"""Turns a line of a text into the lines of the statement it belongs to: compilers give code to one of them.

Only the text around the line is read, so that a long file costs no more than a short one.
"""

from __future__ import annotations

from kernel_lsp.source.lines import LineTable
from kernel_lsp.source.tokens import Tokens, tokenize

_AROUND = 40  # lines before and behind that are read
_HEADS = frozenset({"for", "if", "while", "switch"})


def statement_lines(table: LineTable, line: int) -> tuple[int, int] | None:
    """First and last line of the statement, or of the head of a loop or condition; None: no code on the line, or the
    head of a function or class."""
    first = max(1, line - _AROUND)
    last = min(table.line_count, line + _AROUND)
    offset = table.offset(first, 1)
    tokens = tokenize(table.text[offset : table.offset(last, len(table.line(last)) + 1)])
    at = tokens.first_at_or_after(table.offset(line, 1) - offset)
    if at is None or tokens.starts[at] + offset > table.offset(line, len(table.line(line)) + 1):
        return None
    if tokens.texts[at] in ("{", "}"):
        return None
    found = _statement(tokens, at)
    if found is None:
        return None
    start, end = found
    return table.position(tokens.starts[start] + offset)[0], table.position(tokens.starts[end] + offset)[0]


def _statement(tokens: Tokens, token_idx: int) -> tuple[int, int] | None:
    """Its first and last token."""
    texts, within = tokens.texts, token_idx
    while tokens.enclosing[within] not in (-1, tokens.braces[within]):
        within = tokens.enclosing[within]
    start = tokens.statement_start(within)
    while True:  # past the heads in front: `for (...) if (...) x = y;`
        if texts[start] in ("else", "do") and start < within:
            start += 1
            continue
        opener = start + 1 + (texts[start + 1 : start + 2] == ["constexpr"])
        if texts[start] not in _HEADS or texts[opener : opener + 1] != ["("]:
            break
        close = tokens.close(opener)
        if close >= within and token_idx <= close:
            return start, min(close, len(texts) - 1)
        if close >= within:
            break
        start = close + 1
    end = within
    while end < len(texts) and texts[end] not in (";", "{", "}"):
        end = tokens.close(end) + 1 if texts[end] in ("(", "[") else end + 1
    if end >= len(texts) or texts[end] != ";":
        return None
    return start, end
