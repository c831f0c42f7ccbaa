"""Turns names and expressions of a CUDA text into the one value they certainly have, or into unknown.

Macros, const and constexpr variables, enumerators, local variables that nothing changes, dim3 variables, sizeof of
builtin types, and template parameters (kept as a formula until the arguments are known). A name with two possible
declarations, one that an #if elsewhere decides, or one that comes from a header is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_lsp.source.declarations import Declaration
from kernel_lsp.source.expressions import Expression, Operation, Parameter, UnknownValueError, parse, type_bytes
from kernel_lsp.source.function_heads import argument_ranges, is_word
from kernel_lsp.source.macros import Macros, substitute
from kernel_lsp.source.name_lookup import Found, NameLookup
from kernel_lsp.source.scan_result import Extents
from kernel_lsp.source.scopes import Scopes
from kernel_lsp.source.tokens import Tokens

_INTEGER_TYPES = frozenset(
    str.split("int unsigned signed long size_t ptrdiff_t int32_t uint32_t int64_t uint64_t uint auto index_t")
)
_SPECIFIERS = frozenset(
    str.split("const constexpr constinit static inline __device__ __host__ __constant__ register std ::")
)
_MAX_LOOKUPS = 40  # nested lookups of one expression
_MAX_WORDS = 400


class Constants:
    """The constants of one text. `defines` are the command line's macros; None: the command line is not known."""

    def __init__(self, tokens: Tokens, scopes: Scopes, defines: Mapping[str, str] | None) -> None:
        self.tokens = tokens
        self.lookup = NameLookup(tokens, scopes)
        self._macros = Macros(tokens, defines)

    def value(self, first: int, last: int) -> Expression | None:
        """The value of the expression in tokens [first, last); None: unknown."""
        try:
            return _Place(self, first, 0).evaluate(self.tokens.texts[first:last])
        except UnknownValueError:
            return None

    def extents(self, first: int, last: int) -> Extents | None:
        """The three extents of a dim3 expression or a plain integer in tokens [first, last); None: unknown."""
        try:
            return _Place(self, first, 0).extents(self.tokens.texts[first:last])
        except UnknownValueError:
            return None

    def alias_of(self, idx: int) -> tuple[int, int] | None:
        """The tokens of what `auto name = ...;` makes the name at token `idx`; None: it is no such variable."""
        try:
            declaration = self.lookup.variable(self.tokens.texts[idx], idx).declaration
        except UnknownValueError:
            return None
        if declaration is None or "auto" not in declaration.type_words or declaration.form != "equals":
            return None
        return declaration.first, declaration.last

    def expand(self, words: Sequence[str], place: int, hidden: frozenset[str] = frozenset()) -> list[str]:
        """The words with every macro of that place replaced; raises UnknownValueError where one is uncertain."""
        if len(hidden) > _MAX_LOOKUPS:
            raise UnknownValueError
        out: list[str] = []
        idx = 0
        while idx < len(words):
            word = words[idx]
            idx += 1
            macro = None if word in hidden else self._macros.at(word, place)
            if macro is None:
                out.append(word)
            elif macro.params is None:
                out += self.expand(macro.body, place, hidden | {word})
            elif words[idx : idx + 1] == ["("]:
                arguments, idx = _macro_arguments(words, idx)
                arguments = [self.expand(argument, place, hidden) for argument in arguments]
                out += self.expand(substitute(macro, arguments), place, hidden | {word})
            else:
                out.append(word)
            self.lookup.spend(1)
            if len(out) > _MAX_WORDS:
                raise UnknownValueError
        return out


def _macro_arguments(words: Sequence[str], opener: int) -> tuple[list[list[str]], int]:
    """The arguments of a macro call whose "(" is at `opener`, and the index behind its ")"."""
    depth = 0
    for idx in range(opener, len(words)):
        depth += {"(": 1, ")": -1}.get(words[idx], 0)
        if depth == 0:
            return _split_commas(words[opener + 1 : idx]), idx + 1
    raise UnknownValueError


class _Place:
    """Evaluates what is written at one token of the text; every method raises UnknownValueError."""

    def __init__(self, constants: Constants, place: int, depth: int) -> None:
        if depth > _MAX_LOOKUPS:
            raise UnknownValueError
        self._constants = constants
        self._lookup = constants.lookup
        self._texts = constants.tokens.texts
        self._place = place
        self._depth = depth

    def _at(self, place: int) -> _Place:
        return _Place(self._constants, place, self._depth + 1)

    def evaluate(self, words: Sequence[str]) -> Expression:
        """The value of an expression."""
        return parse(self._constants.expand(words, self._place), self, self._depth)

    def extents(self, words: Sequence[str]) -> Extents:
        """The extents that a dim3 made from these words has."""
        words = self._constants.expand(words, self._place)
        if words[:2] in (["dim3", "("], ["dim3", "{"]) and words[-1] in (")", "}"):
            return self._three(words[2:-1])
        is_name = len(words) == 1 and is_word(words[0]) and words[0] not in ("true", "false")
        if is_name and not self._lookup.is_template_parameter(words[0], self._place):
            found = self._lookup.variable(words[0], self._place)
            if found.declaration is not None and {"dim3", "auto"} & set(found.declaration.type_words):
                return self._at(found.idx).extents_of(found.declaration)
        return parse(words, self, self._depth), 1, 1

    def extents_of(self, declaration: Declaration) -> Extents:
        """The extents of a dim3 (or auto) variable, seen from its declaration."""
        words = self._texts[declaration.first : declaration.last]
        if declaration.is_indirect or declaration.form == "other":
            raise UnknownValueError
        if declaration.form == "equals":
            return self.extents(words)
        if "auto" in declaration.type_words:
            raise UnknownValueError
        return self._three(self._constants.expand(words, self._place))

    def _three(self, words: Sequence[str]) -> Extents:
        parts = _split_commas(words)
        if len(parts) > 3:
            raise UnknownValueError
        if len(parts) == 1:
            return self.extents(parts[0])  # a copy of another dim3, or one number
        values = [parse(part, self, self._depth) for part in parts]
        x, y, z = (*values, 1, 1, 1)[:3]
        return x, y, z

    def value(self, name: tuple[str, ...]) -> Expression:
        """The value of a name."""
        if self._lookup.is_template_parameter(name[0], self._place):
            if len(name) > 1:
                raise UnknownValueError
            return Parameter(name[0])
        if len(name) > 1:
            found = self._lookup.qualified(name, self._place)
        else:
            found = self._lookup.variable(name[0], self._place)
        return self._at(found.idx).declared_value(found)

    def declared_value(self, found: Found) -> Expression:
        """The value of an enumerator or an integer variable, seen from its declaration."""
        declaration = found.declaration
        if declaration is None:
            return self._enumerator_value()
        kept = [word for word in declaration.type_words if word not in _SPECIFIERS]
        if declaration.is_indirect or not kept or any(word not in _INTEGER_TYPES for word in kept):
            raise UnknownValueError
        if declaration.form in ("none", "other"):
            raise UnknownValueError
        return self.evaluate(self._texts[declaration.first : declaration.last])

    def component(self, name: str, axis: str) -> Expression:
        """One extent of a dim3 variable."""
        found = self._lookup.variable(name, self._place)
        declaration = found.declaration
        if declaration is None or not {"dim3", "auto"} & set(declaration.type_words):
            raise UnknownValueError
        if "auto" in declaration.type_words and self._texts[declaration.first] != "dim3":
            raise UnknownValueError
        return self._at(found.idx).extents_of(declaration)["xyz".index(axis)]

    def type_size(self, type_words: Sequence[str]) -> Expression:
        """sizeof: of a builtin type, an alias of one, or a template parameter."""
        words = [word for word in type_words if word not in ("const", "volatile", "typename")]
        if len(words) == 1:
            if self._lookup.is_template_parameter(words[0], self._place):
                return Operation("sizeof", (Parameter(words[0]),), 1)
            alias = self._alias_size(words[0])
            if alias is not None:
                return alias
        return type_bytes(words)

    def _alias_size(self, name: str) -> Expression | None:
        """sizeof of `using name = type;` or `typedef type name;`; None where there is none."""
        texts, tokens = self._texts, self._constants.tokens
        found: list[tuple[int, list[str]]] = []
        places = tokens.word_places(name)
        self._lookup.spend(len(places))
        for idx in places:
            before = texts[idx - 1] if idx else ""
            if before == "using" and texts[idx + 1 : idx + 2] == ["="]:
                end = next((e for e in range(idx + 2, min(idx + 40, len(texts))) if texts[e] == ";"), idx + 2)
                found.append((idx, texts[idx + 2 : end]))
            elif texts[idx + 1 : idx + 2] == [";"]:
                start = tokens.statement_start(idx, 40)
                if texts[start] == "typedef":
                    found.append((idx, texts[start + 1 : idx]))
            elif before in ("struct", "class", "union", "enum", "typename"):
                raise UnknownValueError
        if not found:
            return None
        idx, words = found[0]
        path = tokens.path(idx)
        if len(found) > 1 or path != tokens.path(self._place)[: len(path)]:
            raise UnknownValueError
        return self._at(idx).type_size(words)

    def _enumerator_value(self) -> Expression:
        """The value of the enumerator at this place: its own, or one more than the one before it."""
        texts, tokens = self._texts, self._constants.tokens
        brace = tokens.brace_of(self._place)
        entries = argument_ranges(tokens, brace, tokens.close(brace))
        before = [entry for entry in entries if entry[0] <= self._place]
        self._lookup.spend(len(entries))
        for offset, (first, last) in enumerate(reversed(before)):
            if texts[first + 1 : first + 2] == ["="]:
                start = self._at(first).evaluate(texts[first + 2 : last])
                if not isinstance(start, int):
                    raise UnknownValueError
                return start + offset
        return len(before) - 1


def _split_commas(words: Sequence[str]) -> list[list[str]]:
    """The parts between the commas outside brackets; no words have no parts."""
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        if word == "," and depth == 0:
            parts.append([])
            continue
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(word, 0)
        parts[-1].append(word)
    return [] if parts == [[]] else parts
