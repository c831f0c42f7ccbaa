"""Turns the braces of a token list into scopes: which `{` opens a namespace, a class, an enum, a function, a block.

Classified on demand from the tokens in front of the brace, so that only the scopes around a place that is asked
about cost anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernel_lsp.source.function_heads import ANONYMOUS, match_angle
from kernel_lsp.source.tokens import Tokens

ScopeKind = Literal["namespace", "class", "enum", "linkage", "function", "block"]

_CLASS_WORDS = frozenset({"class", "struct", "union"})
_NOT_A_NAME = frozenset({"alignas", "__align__", "__attribute__", "final", "__declspec", "enum", "class", "struct"})


@dataclass(frozen=True, slots=True)
class Scope:
    """One brace: `names` are those of a namespace (`a::b` gives two) or class; `head_start` is its first token."""

    kind: ScopeKind
    names: tuple[str, ...]
    head_start: int
    is_template: bool


class Scopes:
    """Scopes of one token list, remembered once classified. -1 stands for the file's own scope."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._scopes: dict[int, Scope] = {}
        self._names: dict[int, tuple[str, ...]] = {-1: ()}

    def scope(self, brace: int) -> Scope:
        """The scope that the `{` at token `brace` opens."""
        unknown = []
        outer = brace
        while outer >= 0 and outer not in self._scopes:
            unknown.append(outer)
            outer = self._tokens.brace_of(outer)
        for inner in reversed(unknown):  # from the outside: what a brace opens depends on where it stands
            self._scopes[inner] = self._classify(inner)
        return self._scopes[brace]

    def names(self, brace: int) -> tuple[str, ...]:
        """Names of the namespaces and classes around and at a brace, outermost first."""
        chain = []
        while brace not in self._names:
            chain.append(brace)
            brace = self._tokens.brace_of(brace)
        names = self._names[brace]
        for inner in reversed(chain):
            scope = self.scope(inner)
            # Bounded: a qualified name that deep is no one's.
            names = (*names, *scope.names)[:64] if scope.kind in ("namespace", "class") else names
            self._names[inner] = names
        return names

    def names_around(self, token_idx: int) -> tuple[str, ...]:
        """Names of the namespaces and classes around a token, outermost first."""
        return self.names(self._tokens.brace_of(token_idx))

    def _classify(self, brace: int) -> Scope:
        tokens, texts = self._tokens, self._tokens.texts
        start = tokens.statement_start(brace)
        head = self._top_level(start, brace)
        words = [texts[idx] for idx in head]
        is_template = "template" in words
        if "namespace" in words[:2]:
            after = words[words.index("namespace") + 1 :]
            names = tuple(word for word in after if word.isidentifier() and word != "inline")
            return Scope("namespace", names or (ANONYMOUS,), start, False)
        if words == ["extern", '""']:
            return Scope("linkage", (), start, False)
        if "enum" in words[:2]:
            return Scope("enum", (), start, False)
        is_call_like = bool(words) and ")" in words
        class_idx = next((idx for idx, word in enumerate(words) if word in _CLASS_WORDS), -1)
        if class_idx >= 0 and not (words[-1] in (")", "const", "noexcept") or "=" in words):
            before_bases = words[class_idx + 1 :]
            if ":" in before_bases:
                before_bases = before_bases[: before_bases.index(":")]
            names = tuple(w for w in before_bases if w.isidentifier() and w not in _NOT_A_NAME)
            return Scope("class", names[-1:] or (ANONYMOUS,), start, is_template)
        outer = tokens.brace_of(brace)
        outer_kind = self._scopes[outer].kind if outer >= 0 else "namespace"
        if is_call_like and outer_kind in ("namespace", "class", "linkage") and "=" not in words:
            return Scope("function", (), start, is_template)
        return Scope("block", (), start, False)

    def _top_level(self, start: int, end: int) -> list[int]:
        """Tokens of a head without what stands in parentheses, brackets and template headers."""
        tokens, texts = self._tokens, self._tokens.texts
        kept = []
        idx = start
        while idx < end:
            text = texts[idx]
            if text in ("(", "["):
                idx = min(tokens.close(idx), end - 1)
                text = texts[idx]
                if text == ")":
                    kept.append(idx)
            elif text == "<" and idx > start:
                close = match_angle(tokens, idx)
                if close is not None and close < end:
                    idx = close
            else:
                kept.append(idx)
            idx += 1
        return kept
