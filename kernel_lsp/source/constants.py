"""Turns names and expressions of a CUDA text into the one value they certainly have, or into unknown.

Macros, const and constexpr variables, enumerators, local variables that nothing changes, dim3 variables, sizeof of
builtin types, and template parameters (kept as a formula until the arguments are known). A name with two possible
declarations, one that an #if elsewhere decides, or one that comes from a header is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_lsp.source.declarations import Declaration, declaration_of, is_modified_at
from kernel_lsp.source.expressions import Expression, Operation, Parameter, UnknownValueError, parse, type_bytes
from kernel_lsp.source.function_heads import ANONYMOUS, argument_ranges, is_word, parameter_names
from kernel_lsp.source.macros import Macros, substitute
from kernel_lsp.source.scan_result import Extents
from kernel_lsp.source.scopes import Scopes
from kernel_lsp.source.tokens import Tokens, exclusive

_INTEGER_TYPES = frozenset(
    str.split("int unsigned signed long size_t ptrdiff_t int32_t uint32_t int64_t uint64_t uint auto index_t")
)
_SPECIFIERS = frozenset(
    str.split("const constexpr constinit static inline extern __device__ __host__ __constant__ register std ::")
)
_MAX_LOOKUPS = 40  # nested lookups of one expression
_MAX_WORDS = 400
_VISIT_BUDGET = 2_000_000  # tokens looked at for names in one text; beyond it everything is unknown


class Constants:
    """The constants of one text. `defines` are the command line's macros; None: the command line is not known."""

    def __init__(self, tokens: Tokens, scopes: Scopes, defines: Mapping[str, str] | None) -> None:
        self._tokens = tokens
        self._scopes = scopes
        self._macros = Macros(tokens, defines)
        self._budget = _VISIT_BUDGET

    def value(self, first: int, last: int) -> Expression | None:
        """The value of the expression in tokens [first, last); None: unknown."""
        try:
            return self._at(first, 0).evaluate(self._tokens.texts[first:last])
        except UnknownValueError:
            return None

    def extents(self, first: int, last: int) -> Extents | None:
        """The three extents of a dim3 expression or a plain integer in tokens [first, last); None: unknown."""
        try:
            return self._at(first, 0).extents(self._tokens.texts[first:last])
        except UnknownValueError:
            return None

    def alias_of(self, idx: int) -> tuple[int, int] | None:
        """The tokens of what `auto name = ...;` makes the name at token `idx`; None: it is no such variable."""
        try:
            return self._at(idx, 0).alias(self._tokens.texts[idx])
        except UnknownValueError:
            return None

    def expand(self, words: Sequence[str], place: int) -> list[str]:
        """The words with every macro of that place replaced; raises UnknownValueError where one is uncertain."""
        return self._expand(words, place, frozenset())

    def _expand(self, words: Sequence[str], place: int, hidden: frozenset[str]) -> list[str]:
        out: list[str] = []
        idx = 0
        while idx < len(words):
            word = words[idx]
            idx += 1
            macro = None if word in hidden else self._macros.at(word, place)
            if macro is None:
                out.append(word)
            elif macro.params is None:
                out += self._expand(macro.body, place, hidden | {word})
            elif words[idx : idx + 1] == ["("]:
                arguments, idx = _macro_arguments(words, idx)
                arguments = [self._expand(argument, place, hidden) for argument in arguments]
                out += self._expand(substitute(macro, arguments), place, hidden | {word})
            else:
                out.append(word)
            self.spend(1)
            if len(out) > _MAX_WORDS:
                raise UnknownValueError
        return out

    def spend(self, count: int) -> None:
        """Bounds the work that a hostile text can cause."""
        self._budget -= count
        if self._budget < 0:
            raise UnknownValueError

    def _at(self, place: int, depth: int) -> _Place:
        return _Place(self, self._tokens, self._scopes, place, depth)


def _macro_arguments(words: Sequence[str], opener: int) -> tuple[list[list[str]], int]:
    """The arguments of a macro call whose "(" is at `opener`, and the index behind its ")"."""
    arguments: list[list[str]] = [[]]
    depth = 0
    for idx in range(opener, len(words)):
        word = words[idx]
        if word == "," and depth == 1:
            arguments.append([])
            continue
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth == 0:
            return ([] if arguments == [[]] else arguments), idx + 1
        if idx > opener:
            arguments[-1].append(word)
    raise UnknownValueError


class _Place:
    """Looks names up as seen from one token of the text."""

    def __init__(self, constants: Constants, tokens: Tokens, scopes: Scopes, place: int, depth: int) -> None:
        if depth > _MAX_LOOKUPS:
            raise UnknownValueError
        self._constants = constants
        self._tokens = tokens
        self._scopes = scopes
        self._place = place
        self._depth = depth

    def evaluate(self, words: Sequence[str]) -> Expression:
        """The value of an expression written at this place; raises UnknownValueError."""
        return parse(self._constants.expand(words, self._place), self, self._depth)

    def extents(self, words: Sequence[str]) -> Extents:
        """The extents that a dim3 made from these words has; raises UnknownValueError."""
        words = self._constants.expand(words, self._place)
        if words[:1] == ["const"]:
            words = words[1:]
        if words[:2] in (["dim3", "("], ["dim3", "{"]) and words[-1] in (")", "}"):
            return self._three(words[2:-1])
        if len(words) == 1 and is_word(words[0]):
            declaration, inner = self._variable(words[0])
            if declaration is not None and "dim3" in declaration.type_words:
                return inner.extents_of(declaration)
            if declaration is not None and declaration.type_words[-1:] == ("auto",):
                return inner.extents(self._tokens.texts[declaration.first : declaration.last])
        return parse(words, self, self._depth), 1, 1

    def extents_of(self, declaration: Declaration) -> Extents:
        """The extents of a dim3 variable, seen from its declaration; raises UnknownValueError."""
        words = self._tokens.texts[declaration.first : declaration.last]
        if declaration.is_indirect or declaration.form == "other":
            raise UnknownValueError
        if declaration.form == "none":
            return 1, 1, 1
        if declaration.form == "equals":
            return self.extents(words)
        return self._three(self._constants.expand(words, self._place))

    def _three(self, words: list[str]) -> Extents:
        parts = _split_commas(words)
        if len(parts) == 1 and parts[0][:1] == ["dim3"]:
            return self.extents(parts[0])
        if len(parts) > 3:
            raise UnknownValueError
        values = [parse(part, self, self._depth) for part in parts]
        values += [1] * (3 - len(values))
        return values[0], values[1], values[2]

    def value(self, name: tuple[str, ...]) -> Expression:
        """The value of a name; raises UnknownValueError."""
        if len(name) > 1:
            return self._qualified(name)
        parameter = self._template_parameter(name[0])
        if parameter is not None:
            return parameter
        declaration, inner = self._variable(name[0])
        if declaration is None:
            return inner._enumerator_value()
        return inner._scalar(declaration)

    def alias(self, name: str) -> tuple[int, int] | None:
        """The tokens of the initial value of an `auto` variable that nothing changes; raises UnknownValueError."""
        declaration, _ = self._variable(name)
        if declaration is None or "auto" not in declaration.type_words or declaration.form != "equals":
            return None
        return declaration.first, declaration.last

    def component(self, name: str, axis: str) -> Expression:
        """One extent of a dim3 variable; raises UnknownValueError."""
        declaration, inner = self._variable(name)
        if declaration is None or not {"dim3", "auto"} & set(declaration.type_words):
            raise UnknownValueError
        if "auto" in declaration.type_words:
            words = self._tokens.texts[declaration.first : declaration.last]
            if words[:1] != ["dim3"]:
                raise UnknownValueError
        return inner.extents_of(declaration)["xyz".index(axis)]

    def type_size(self, type_words: Sequence[str]) -> Expression:
        """sizeof: of a builtin type, an alias of one, or a template parameter; raises UnknownValueError."""
        words = [word for word in type_words if word not in ("const", "volatile", "typename")]
        if len(words) == 1:
            parameter = self._template_parameter(words[0])
            if parameter is not None:
                return Operation("sizeof", (parameter,), 1)
            alias = self._alias(words[0])
            if alias is not None:
                return alias
        return type_bytes(words)

    def _alias(self, name: str) -> Expression | None:
        """sizeof of `using name = type;` or `typedef type name;`; None where there is none."""
        texts = self._tokens.texts
        found: list[tuple[int, list[str]]] = []
        places = self._tokens.word_places(name)
        self._constants.spend(len(places))
        for idx in places:
            before = texts[idx - 1] if idx else ""
            if before == "using" and texts[idx + 1 : idx + 2] == ["="]:
                end = next((e for e in range(idx + 2, min(idx + 40, len(texts))) if texts[e] == ";"), idx + 2)
                found.append((idx, texts[idx + 2 : end]))
            elif texts[idx + 1 : idx + 2] == [";"]:
                start = self._tokens.statement_start(idx, 40)
                if texts[start] == "typedef":
                    found.append((idx, texts[start + 1 : idx]))
            elif before in ("struct", "class", "union", "enum"):
                raise UnknownValueError
        if not found:
            return None
        if (
            len(found) > 1
            or self._tokens.path(found[0][0]) != self._tokens.path(self._place)[: len(self._tokens.path(found[0][0]))]
        ):
            raise UnknownValueError
        idx, words = found[0]
        return self._constants._at(idx, self._depth + 1).type_size(words)

    def _scalar(self, declaration: Declaration) -> Expression:
        kept = [word for word in declaration.type_words if word not in _SPECIFIERS]
        if declaration.is_indirect or not kept or any(word not in _INTEGER_TYPES for word in kept):
            raise UnknownValueError
        if declaration.form in ("none", "other"):
            raise UnknownValueError
        return self.evaluate(self._tokens.texts[declaration.first : declaration.last])

    def _template_parameter(self, name: str) -> Parameter | None:
        """The template parameter of that name in the heads around this place."""
        for _, head_start, brace in self._scopes_around():
            if name in parameter_names(self._tokens, head_start, brace):
                return Parameter(name)
        start = self._tokens.statement_start(self._place)
        if name in parameter_names(self._tokens, start, self._place):
            return Parameter(name)  # in the head itself: __launch_bounds__(N)
        return None

    def _scopes_around(self) -> list[tuple[str, int, int]]:
        """(kind, first token of the head, brace) from the inside outwards, the file's own last."""
        around: list[tuple[str, int, int]] = []
        brace = self._tokens.brace_of(self._place)
        while brace >= 0 and len(around) < _MAX_LOOKUPS:
            scope = self._scopes.scope(brace)
            around.append((scope.kind, scope.head_start, brace))
            brace = self._tokens.brace_of(brace)
        return around

    def _variable(self, name: str) -> tuple[Declaration | None, _Place]:
        """The one declaration of a name that holds here, with the place of its name; (None, place): an enumerator."""
        tokens, texts = self._tokens, self._tokens.texts
        places = tokens.word_places(name)
        here = tokens.path(self._place)
        braces = [brace for _, _, brace in self._scopes_around()] + [-1]
        for brace in braces:
            kind = "namespace" if brace < 0 else self._scopes.scope(brace).kind
            if kind == "linkage":
                continue
            first = 0 if brace < 0 else self._scopes.scope(brace).head_start
            last = len(texts) if kind == "class" else self._place
            found: list[tuple[int, Declaration | None]] = []
            self._constants.spend(len(places) + 1)
            for idx in places:
                if not first <= idx < min(last, tokens.close(brace) if brace >= 0 else last):
                    continue
                owner = self._owner(idx)
                is_in_head = brace >= 0 and idx < brace
                if (owner != brace and not is_in_head) or exclusive(tokens.path(idx), here):
                    continue
                if self._is_enumerator(idx):
                    found.append((idx, None))
                    continue
                declaration = declaration_of(tokens, idx)
                if declaration is not None:
                    found.append((idx, declaration))
                elif self._is_opaque_declaration(idx):
                    raise UnknownValueError
            if not found:
                continue
            idx, declaration = found[0]
            path = tokens.path(idx)
            if len(found) > 1 or path != here[: len(path)]:
                raise UnknownValueError
            if declaration is not None and not declaration.is_constant:
                self._require_unchanged(places, idx, brace, kind)
            return declaration, self._constants._at(idx, self._depth + 1)
        raise UnknownValueError

    def _owner(self, idx: int) -> int:
        """The brace whose scope a declaration at `idx` belongs to; what a scope leaks to its outside counts there."""
        brace = self._tokens.brace_of(idx)
        while brace >= 0:
            scope = self._scopes.scope(brace)
            if not (scope.kind in ("linkage", "enum") or (scope.kind == "namespace" and scope.names == (ANONYMOUS,))):
                break
            brace = self._tokens.brace_of(brace)
        return brace

    def _is_enumerator(self, idx: int) -> bool:
        brace = self._tokens.brace_of(idx)
        texts = self._tokens.texts
        return (
            brace >= 0
            and self._scopes.scope(brace).kind == "enum"
            and texts[idx - 1] in ("{", ",")
            and texts[idx + 1 : idx + 2] != ["("]
            and not {"class", "struct"} & set(texts[self._scopes.scope(brace).head_start : brace])
        )

    def _enumerator_value(self) -> Expression:
        """The value of the enumerator at this place: its own, or one more than the one before it."""
        texts = self._tokens.texts
        brace = self._tokens.brace_of(self._place)
        offset = 0
        for first, last in reversed(argument_ranges(self._tokens, brace, self._place + 1)):
            words = texts[first:last]
            if first == self._place:
                words = texts[first : self._enumerator_end(first)]
            if len(words) > 1 and words[1] == "=":
                start = self._constants._at(first, self._depth + 1).evaluate(words[2:])
                if offset and not isinstance(start, int):
                    raise UnknownValueError
                return start + offset if isinstance(start, int) else start
            offset += 1
            self._constants.spend(1)
        return offset - 1

    def _enumerator_end(self, first: int) -> int:
        texts = self._tokens.texts
        end = first
        while end < len(texts) and texts[end] not in (",", "}") and end < first + 100:
            end = self._tokens.close(end) + 1 if texts[end] in ("(", "{") else end + 1
        return end

    def _is_opaque_declaration(self, idx: int) -> bool:
        """Whether the name is declared here in a form that is not read: a parameter, a binding, a type."""
        texts = self._tokens.texts
        before = texts[idx - 1] if idx else ";"
        after = texts[idx + 1] if idx + 1 < len(texts) else ";"
        if is_word(before):
            return before not in ("return", "else", "case", "goto", "sizeof", "new", "delete", "throw", "co_return")
        opener = self._tokens.enclosing[idx]
        if opener > 0 and texts[opener] == "[" and texts[opener - 1] in ("auto", "&", "&&"):
            return True
        return before in ("&", "&&", "*", ">", "...") and after in (")", ",", "=", ":", "[") and self._in_head(idx)

    def _in_head(self, idx: int) -> bool:
        """Whether a token stands in the parentheses in front of a body: parameters, a for loop's head."""
        opener = self._tokens.enclosing[idx]
        if opener < 0 or self._tokens.texts[opener] != "(":
            return False
        close = self._tokens.close(opener)
        return self._tokens.texts[close + 1 : close + 2] == ["{"]

    def _require_unchanged(self, places: list[int], declared: int, brace: int, kind: str) -> None:
        if kind not in ("function", "block"):
            raise UnknownValueError  # anyone can assign to it
        last = self._tokens.close(brace)
        for idx in places:
            if declared < idx < last and self._tokens.texts[idx - 1] not in (".", "->", "::"):
                if declaration_of(self._tokens, idx) is not None:
                    continue  # another variable of that name, further in
                if is_modified_at(self._tokens, idx):
                    raise UnknownValueError
        self._constants.spend(len(places))

    def _qualified(self, name: tuple[str, ...]) -> Expression:
        """`Scope::NAME`: a constant of a namespace or class of this text."""
        tokens = self._tokens
        if self._template_parameter(name[0]) is not None:
            raise UnknownValueError
        here = tokens.path(self._place)
        found = []
        places = tokens.word_places(name[-1])
        self._constants.spend(len(places))
        for idx in places:
            scope = tuple(part for part in self._scopes.names(self._owner(idx)) if part != ANONYMOUS)
            if scope[-len(name) + 1 :] != name[:-1] or exclusive(tokens.path(idx), here):
                continue
            owner_kind = self._scopes.scope(self._owner(idx)).kind
            declaration = declaration_of(tokens, idx)
            if owner_kind in ("namespace", "class") and (declaration is not None or self._is_enumerator(idx)):
                found.append((idx, declaration))
        if len(found) != 1:
            raise UnknownValueError
        idx, declaration = found[0]
        path = tokens.path(idx)
        if path != here[: len(path)] or (declaration is not None and not declaration.is_constant):
            raise UnknownValueError
        inner = self._constants._at(idx, self._depth + 1)
        return inner._enumerator_value() if declaration is None else inner._scalar(declaration)


def _split_commas(words: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        if word == "," and depth == 0:
            parts.append([])
            continue
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(word, 0)
        parts[-1].append(word)
    return [] if parts == [[]] else parts
