"""Turns #define lines into the one body a macro certainly has at a place, or into the knowledge that it is unsure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_lsp.source.expressions import UnknownValueError
from kernel_lsp.source.tokens import Directive, Tokens, exclusive, tokenize

_DEFINITION = re.compile(r"(\w+)(\(([^()]*)\))?\s*(.*)", re.DOTALL)
_MAX_SUBSTITUTED_WORDS = 400


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro's body as words; `params` is None for one without parentheses."""

    params: tuple[str, ...] | None
    body: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    directive: Directive
    macro: Macro | None  # None: #undef


class Macros:
    """The macros of one text. `defines` are those of the command line; None: the command line is not known."""

    def __init__(self, tokens: Tokens, defines: Mapping[str, str] | None) -> None:
        self._tokens = tokens
        self._defines = defines
        self._lines: dict[str, list[_Line]] = {}
        self._first_quoted_include: int | None = None
        for directive in tokens.directives:
            if directive.keyword == "include" and not directive.rest.startswith("<"):
                if self._first_quoted_include is None:
                    self._first_quoted_include = directive.offset
            elif directive.keyword in ("define", "undef"):
                found = _DEFINITION.match(directive.rest)
                if found is not None:
                    macro = _macro(found) if directive.keyword == "define" else None
                    self._lines.setdefault(found.group(1), []).append(_Line(directive, macro))

    def at(self, name: str, token_idx: int) -> Macro | None:
        """The macro that `name` is at a token; None: it is none. Raises UnknownValueError where that is unsure."""
        place = self._tokens.path(token_idx)
        lines = [
            line
            for line in self._lines.get(name, ())
            if line.directive.token_idx <= token_idx and not exclusive(line.directive.path, place)
        ]
        given = None if self._defines is None else self._defines.get(name)
        if not lines:
            return None if given is None else Macro(None, tuple(tokenize(given or "1").texts))
        current: Macro | None = None if given is None else Macro(None, tuple(tokenize(given or "1").texts))
        for line in lines:
            path = line.directive.path
            is_default = self._is_default_of(name, line.directive)
            if is_default:
                if current is not None:
                    continue
                if not self._nothing_defines_before(line.directive):
                    raise UnknownValueError
                path = path[:-1]
            if path != place[: len(path)]:
                if line.macro is not None and line.macro == current:
                    continue
                raise UnknownValueError
            current = line.macro
        return current

    def _is_default_of(self, name: str, directive: Directive) -> bool:
        """Whether this is the middle of `#ifndef NAME`, `#define NAME value`, `#endif`."""
        if not directive.path:
            return False
        condition = self._tokens.branch_conditions[directive.path[-1]][1]
        return condition in (f"ifndef {name}", f"if !defined({name})", f"if !defined {name}")

    def _nothing_defines_before(self, directive: Directive) -> bool:
        if self._defines is None:
            return False
        include = self._first_quoted_include
        return include is None or include > directive.offset


def _macro(found: re.Match[str]) -> Macro:
    params = None
    if found.group(2) is not None:
        params = tuple(param.strip() for param in found.group(3).split(",")) if found.group(3).strip() else ()
    return Macro(params, tuple(tokenize(found.group(4)).texts))


def substitute(macro: Macro, arguments: list[list[str]]) -> list[str]:
    """The body of a macro with arguments in place; raises UnknownValueError where they do not fit."""
    if macro.params is None or len(macro.params) != len(arguments):
        raise UnknownValueError
    if "#" in macro.body:
        raise UnknownValueError
    by_name = dict(zip(macro.params, arguments, strict=True))
    words: list[str] = []
    for word in macro.body:
        words += by_name.get(word, [word])
        if len(words) > _MAX_SUBSTITUTED_WORDS:
            raise UnknownValueError
    return words


def defines_of(flags: Sequence[str]) -> Mapping[str, str] | None:
    """The macros that nvcc flags define; None where a header forced in by them could define more."""
    defines: dict[str, str] = {}
    words = iter(flags)
    for word in words:
        name, sign, value = word.partition("=")
        if name in ("-include", "--pre-include"):
            return None
        if name in ("-D", "--define-macro", "-U", "--undefine-macro"):
            text = value if sign else next(words, "")
        elif word.startswith(("-D", "-U")):
            name, text = word[:2], word[2:]
        else:
            continue
        for definition in text.split(","):  # nvcc reads lists
            macro, sign, body = definition.partition("=")
            if name in ("-U", "--undefine-macro"):
                defines.pop(macro, None)
            elif macro:
                defines[macro] = body if sign else "1"
    return defines
