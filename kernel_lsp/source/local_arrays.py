"""Finds the per-thread arrays that a line of a function indexes: names with a declaration `float table[32]` above."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernel_lsp.source.function_heads import is_word, match_angle
from kernel_lsp.source.lines import LineTable
from kernel_lsp.source.position import Span
from kernel_lsp.source.scan_result import SourceScan
from kernel_lsp.source.tokens import Tokens, tokenize

_ELSEWHERE = frozenset({"__shared__", "__constant__", "__device__", "__managed__", "extern", "using", "typedef"})
_NO_TYPE = frozenset(
    {"return", "delete", "new", "goto", "case", "throw", "else", "do", "co_return", "co_yield", "sizeof", "operator"}
)


@dataclass(frozen=True, slots=True)
class IndexedArray:
    """A local array: its name where the line indexes it, and the line of its declaration."""

    name: str
    span: Span
    declared_line: int


def indexed_arrays(text: str, scan: SourceScan, line: int) -> tuple[IndexedArray, ...]:
    """The local arrays indexed on a 1-based line, in the line's order, each once; none outside of function bodies."""
    function = next(
        (f for f in (*scan.kernels, *scan.device_functions) if f.body_first_line <= line <= f.last_line), None
    )
    if function is None:
        return ()
    table = LineTable(text)
    body_start = table.offset(function.body_first_line, 1)
    body = text[body_start : table.offset(function.last_line, 1 << 30)]
    tokens = tokenize(body)
    lines = LineTable(body)
    first = function.body_first_line
    declared = {name: at + first - 1 for name, at in _declarations(tokens, lines)}
    found: dict[str, IndexedArray] = {}
    for idx, name in enumerate(tokens.texts[:-1]):
        at, column = lines.position(tokens.starts[idx])
        if at + first - 1 != line or tokens.texts[idx + 1] != "[" or name not in declared or name in found:
            continue
        if idx and tokens.texts[idx - 1] in (".", "->", "::"):
            continue  # a member of that name
        if declared[name] == line and _is_declarator(tokens, idx):
            continue
        # The body starts at the first column of its line, so columns are those of the whole text.
        found[name] = IndexedArray(name, Span(line, column, column + len(name)), declared[name])
    return tuple(found.values())


def _declarations(tokens: Tokens, lines: LineTable) -> Iterator[tuple[str, int]]:
    for idx in range(1, len(tokens.texts) - 1):
        if _is_declarator(tokens, idx):
            yield tokens.texts[idx], lines.position(tokens.starts[idx])[0]


def _is_declarator(tokens: Tokens, idx: int) -> bool:
    """Whether the word at a token is an array's name in its declaration: `float a[4]`, the b of `float a[4], b[8]`."""
    texts = tokens.texts
    if not is_word(texts[idx]) or texts[idx + 1] != "[":
        return False
    start = tokens.statement_start(idx)
    if _ELSEWHERE & set(texts[start:idx]) or start >= idx:
        return False
    type_end = _type_end(tokens, start, idx)
    if type_end is None:
        return False
    return type_end == idx or (texts[idx - 1] == "," and tokens.enclosing[idx] == tokens.enclosing[start])


def _type_end(tokens: Tokens, start: int, limit: int) -> int | None:
    """The token behind the type that a statement starts with, where it starts with one and a name follows."""
    texts = tokens.texts
    at = start
    words = 0
    while at < limit:
        text = texts[at]
        if text in _NO_TYPE:
            return None
        following = texts[at + 1]
        if text in ("alignas", "__align__") and following == "(":
            at = tokens.close(at + 1) + 1
        elif text == "<" and words:
            close = match_angle(tokens, at)
            if close is None:
                return None
            at = close + 1
        elif text == "::" or (is_word(text) and (is_word(following) or following in ("<", "::"))):
            words += is_word(text)
            at += 1
        elif is_word(text) and words and following in ("[", "=", ",", ";", "{", "("):
            return at
        else:
            return None
    return limit if words and is_word(texts[limit]) else None
