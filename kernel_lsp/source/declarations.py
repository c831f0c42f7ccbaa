"""Turns the tokens around a name into what declares it there: its type words, constness and initial value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernel_lsp.source.function_heads import is_word, match_angle
from kernel_lsp.source.tokens import Tokens

_NO_TYPE = frozenset(
    str.split(
        "return else goto case delete throw using typedef new namespace struct class union enum template operator if"
        " while for do switch sizeof co_return co_yield default public private protected friend"
    )
)
_AFTER_NAME = frozenset(str.split("= { ( ; , [ ) :"))
_STATEMENT_HEADS = ("for", "if", "while", "switch")
ASSIGNMENTS = frozenset(str.split("= += -= *= /= %= <<= >>= &= |= ^= ++ --"))
_MAX_TOKENS = 400

Form = Literal["none", "equals", "braces", "parens", "other"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A variable as declared. `first`..`last` are the tokens of its initial value, without `=` or brackets."""

    type_words: tuple[str, ...]
    is_indirect: bool  # pointer or reference
    form: Form
    first: int
    last: int

    @property
    def is_constant(self) -> bool:
        """Whether nothing can assign to it."""
        return any(word in ("const", "constexpr", "constinit") for word in self.type_words)


def declaration_of(tokens: Tokens, name_idx: int) -> Declaration | None:
    """The declaration whose declarator is the name at `name_idx`; None where the name is used, not declared."""
    texts = tokens.texts
    start = tokens.statement_start(name_idx, _MAX_TOKENS)
    in_head = start > 0 and texts[start - 1] in ("(", "[")
    if in_head and not (start > 1 and texts[start - 1] == "(" and texts[start - 2] in _STATEMENT_HEADS):
        return None  # an argument or a parameter
    read = _type(tokens, start, name_idx)
    if read is None:
        return None
    type_words, idx = read
    found: Declaration | None = None
    while idx < len(texts) and is_word(texts[idx]):
        indirect = texts[idx - 1] in ("*", "&", "&&")
        end = _declarator_end(tokens, idx)
        if idx == name_idx:
            found = _declared(tokens, type_words, indirect, idx + 1, end)
        if end >= len(texts) or texts[end] != ",":
            # Anything else is a list of values: `{rows * columns, name}`.
            is_statement = end < len(texts) and (texts[end] == ";" or in_head)
            return found if is_statement else None
        idx = end + 1
        while idx < len(texts) and texts[idx] in ("*", "&", "&&", "const"):
            idx += 1
    return None


def _type(tokens: Tokens, start: int, last: int) -> tuple[tuple[str, ...], int] | None:
    """The words of the type that a statement starts with, and the first name behind it; None: it starts with none."""
    texts = tokens.texts
    words: list[str] = []
    idx = start
    while idx <= last:
        text = texts[idx]
        if text in _NO_TYPE:
            return None
        if is_word(text):
            following = texts[idx + 1] if idx + 1 < len(texts) else ";"
            if words and words[-1] != "::" and following in _AFTER_NAME:
                return tuple(words), idx
            if idx > start and texts[idx - 1] in ("*", "&", "&&") and text not in ("const", "__restrict__"):
                return None  # a product
            words.append(text)
        elif text == "::":
            words.append(text)
        elif text == "<" and words:
            close = match_angle(tokens, idx)
            if close is None:
                return None
            words.append("<>")
            idx = close
        elif text == "[" and not words and texts[idx + 1 : idx + 2] == ["["]:
            idx = tokens.close(idx)
        elif text not in ("*", "&", "&&") or not words:
            return None
        idx += 1
    return None


def _declared(tokens: Tokens, type_words: tuple[str, ...], indirect: bool, after: int, end: int) -> Declaration:
    text = tokens.texts[after] if after < len(tokens.texts) else ";"
    if text == "=":
        if tokens.texts[after + 1 : after + 2] == ["{"]:
            return Declaration(type_words, indirect, "braces", after + 2, tokens.close(after + 1))
        return Declaration(type_words, indirect, "equals", after + 1, end)
    if text in ("{", "("):
        form: Form = "braces" if text == "{" else "parens"
        return Declaration(type_words, indirect, form, after + 1, tokens.close(after))
    form = "none" if text in (";", ",") else "other"
    return Declaration(type_words, indirect, form, after, after)


def _declarator_end(tokens: Tokens, idx: int) -> int:
    """The "," or ";" (or closing bracket) that ends the declarator at `idx`."""
    texts = tokens.texts
    end = min(idx + _MAX_TOKENS, len(texts))
    while idx < end:
        text = texts[idx]
        if text in (",", ";", ")", "]", "}"):
            return idx
        if text in ("(", "[", "{"):
            idx = tokens.close(idx)
        elif text == "<":
            idx = match_angle(tokens, idx) or idx
        idx += 1
    return end


def is_modified_at(tokens: Tokens, idx: int) -> bool:
    """Whether the use of a variable at token `idx` may change it, or take a reference that could."""
    texts = tokens.texts
    before = texts[idx - 1] if idx else ";"
    after = texts[idx + 1] if idx + 1 < len(texts) else ";"
    if after in ASSIGNMENTS or before in ("++", "--"):
        return True
    if after == "." and texts[idx + 3 : idx + 4] and texts[idx + 3] in ASSIGNMENTS:
        return True
    if before == "." or after == "[":
        return True
    before_that = texts[idx - 2] if idx > 1 else ";"
    if before == "&" and not (_is_value_end(before_that)):
        return True
    if before == ">" and before_that == ">" and texts[idx - 3 : idx - 2] != [">"]:
        return True  # cin >> name
    if before == "=" and texts[idx - 3] in ("&", "&&"):
        return True  # auto& alias = name
    return before in ("(", ",") and after in (")", ",") and _may_bind_reference(tokens, idx)


def _is_value_end(text: str) -> bool:
    return (is_word(text) and text not in ("return", "case", "else")) or text[0].isdigit() or text in (")", "]")


def _may_bind_reference(tokens: Tokens, idx: int) -> bool:
    """Whether the name is an argument of its own to something that could take it by reference."""
    texts = tokens.texts
    opener = tokens.enclosing[idx]
    if opener < 1 or texts[opener] != "(":
        return False  # braces and launch brackets copy
    callee_idx = opener - 1
    callee = texts[callee_idx]
    if callee == ">":
        return texts[callee_idx - 2 : callee_idx + 1] != [">", ">", ">"]  # a kernel takes copies
    if not is_word(callee):
        return callee == "]"
    if callee in ("if", "while", "return", "switch", "for", "dim3", "sizeof", "min", "max", "assert"):
        return False
    if callee.startswith(("cuda", "cublas", "cudnn", "printf", "fprintf", "snprintf", "sprintf")):
        return False  # C functions
    folded = callee.lower()
    if any(part in folded for part in ("div", "ceil", "round")):
        return False  # what computes a grid size
    if is_word(texts[callee_idx - 1]) and texts[callee_idx - 1] not in ("return", "else", "case"):
        return False  # `dim3 block(threads)`: a variable that is made from it
    if texts[callee_idx - 1] == ">" and texts[callee_idx - 2] != "-":
        return False  # `vector<float> v(n)`
    return not _takes_by_value(tokens, callee)


def _takes_by_value(tokens: Tokens, function: str) -> bool:
    """Whether every definition of `function` in this text has no reference parameter, and there is one."""
    texts = tokens.texts
    found = False
    for idx in tokens.word_places(function):
        if texts[idx + 1 : idx + 2] != ["("]:
            continue
        close = tokens.close(idx + 1)
        if texts[close + 1 : close + 2] == ["{"] and is_word(texts[idx - 1]):
            found = True
            if "&" in texts[idx + 1 : close] or "&&" in texts[idx + 1 : close]:
                return False
    return found
