"""Turns a `__shared__` declaration into its variables: name, element type, extents, static or dynamic."""

from __future__ import annotations

from kernel_lsp.source.constants import Constants
from kernel_lsp.source.expressions import fold
from kernel_lsp.source.function_heads import is_word, join, match_angle
from kernel_lsp.source.lines import LineTable
from kernel_lsp.source.scan_result import SharedArray
from kernel_lsp.source.tokens import Tokens

_NOT_OF_THE_TYPE = frozenset(str.split("extern static __shared__ volatile const constexpr __device__ inline"))
_TAKES_PARENS = frozenset({"__align__", "alignas", "__attribute__"})
_MAX_TOKENS = 1000


def shared_arrays(tokens: Tokens, marker: int, constants: Constants, lines: LineTable) -> list[SharedArray]:
    """The variables of the declaration with `__shared__` at token `marker`; none where it is no declaration."""
    texts = tokens.texts
    start = tokens.statement_start(marker)
    is_dynamic = "extern" in texts[start : marker + 2]
    found: list[SharedArray] = []
    element_type: list[str] = []
    idx = start
    end = min(marker + _MAX_TOKENS, len(texts))
    while idx < end and texts[idx] not in (";", "}", ")", "]"):
        text = texts[idx]
        following = texts[idx + 1] if idx + 1 < end else ";"
        if text in _TAKES_PARENS and following == "(":
            idx = tokens.close(idx + 1) + 1
        elif text in ("(", "{", "["):
            if text == "(" and not found:
                return []  # a function, a pointer to an array: no plain variable
            idx = tokens.close(idx) + 1
        elif text == "<":
            close = match_angle(tokens, idx)
            if close is None:
                return found
            element_type.append(join(texts[idx : close + 1]))
            idx = close + 1
        elif is_word(text) and (found or element_type) and following in ("[", ";", ",", "=", "{", "("):
            line = lines.position(tokens.starts[idx])[0]
            dims, idx = _dims(tokens, idx + 1, constants)
            found.append(SharedArray(text, join(element_type), dims, line, is_dynamic))
        else:
            if not found and text not in _NOT_OF_THE_TYPE:
                element_type.append(text)
            idx += 1
    return found


def _dims(tokens: Tokens, idx: int, constants: Constants) -> tuple[tuple[int | None, ...], int]:
    """The extents in the brackets that start at `idx`, and the token behind them."""
    dims: list[int | None] = []
    while tokens.texts[idx : idx + 1] == ["["]:
        close = tokens.close(idx)
        dims.append(fold(constants.value(idx + 1, close), {}) if close > idx + 1 else None)
        idx = close + 1
    return tuple(dims), idx
