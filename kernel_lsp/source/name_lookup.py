"""Turns a name at a place of the text into the one declaration it means there, as C++ looks names up.

From the innermost scope outwards. Two candidates in one scope, a declaration in a form that is not read here
(parameters, bindings, references) and one that an #if elsewhere decides are uncertain, and raise.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.source.declarations import Declaration, declaration_of, is_modified_at
from kernel_lsp.source.expressions import UnknownValueError
from kernel_lsp.source.function_heads import ANONYMOUS, is_word, parameter_names
from kernel_lsp.source.scopes import ScopeKind, Scopes
from kernel_lsp.source.tokens import Tokens, exclusive

_MAX_SCOPES = 40
_VISIT_BUDGET = 500_000  # tokens looked at in one text; beyond it every name is unknown
_NOT_A_TYPE = frozenset(str.split("return else case goto sizeof new delete throw co_return co_yield do"))


@dataclass(frozen=True, slots=True)
class Found:
    """The token of a declared name and its declaration; None: an enumerator."""

    idx: int
    declaration: Declaration | None


class NameLookup:
    """Looks names up in one text, with a bound on the work that a hostile text can cause."""

    def __init__(self, tokens: Tokens, scopes: Scopes) -> None:
        self._tokens = tokens
        self._scopes = scopes
        self._budget = _VISIT_BUDGET
        self._declarations: dict[int, Declaration | None] = {}
        self._unchanged: dict[tuple[int, int], bool] = {}

    def spend(self, count: int) -> None:
        """Counts work; raises UnknownValueError once there was too much of it."""
        self._budget -= count
        if self._budget < 0:
            raise UnknownValueError

    def variable(self, name: str, place: int) -> Found:
        """What an unqualified name means at a token; raises UnknownValueError where nothing or no one thing."""
        self._require_no_member(name, place)
        for brace in (*self._braces_around(place), -1):
            kind = self._kind(brace)
            if kind in ("linkage", "enum"):
                continue
            found = self._declared_in(brace, name, place)
            if not found:
                continue
            if len(found) > 1 or not self._always_with(found[0].idx, place):
                raise UnknownValueError
            declaration = found[0].declaration
            if declaration is not None and not declaration.is_constant:
                self._require_unchanged(name, found[0].idx, brace)
            return found[0]
        raise UnknownValueError

    def qualified(self, name: tuple[str, ...], place: int) -> Found:
        """The constant that `scope::name` means; raises UnknownValueError."""
        tokens = self._tokens
        found: list[Found] = []
        places = tokens.word_places(name[-1])
        self.spend(len(places))
        for idx in places:
            brace = self._owner(idx)
            scope = tuple(part for part in self._scopes.names(brace) if part != ANONYMOUS)
            if scope[-len(name) + 1 :] != name[:-1] or exclusive(tokens.path(idx), tokens.path(place)):
                continue
            declaration = self._declaration(idx)
            if self._kind(brace) in ("namespace", "class") and (declaration or self._is_enumerator(idx)):
                found.append(Found(idx, declaration))
        if len(found) != 1 or not self._always_with(found[0].idx, place):
            raise UnknownValueError
        if found[0].declaration is not None and not found[0].declaration.is_constant:
            raise UnknownValueError
        return found[0]

    def is_template_parameter(self, name: str, place: int) -> bool:
        """Whether the name is a template parameter of the code around a token, or of the head it stands in."""
        tokens = self._tokens
        for brace in self._braces_around(place):
            if name in parameter_names(tokens, self._scopes.scope(brace).head_start, brace):
                return True
        return name in parameter_names(tokens, tokens.statement_start(place), place)

    def is_local(self, name: str, place: int) -> bool:
        """Whether a function around the token declares the name in any form."""
        for brace in self._braces_around(place):
            if self._kind(brace) in ("function", "block"):
                try:
                    if self._declared_in(brace, name, place):
                        return True
                except UnknownValueError:
                    return True
        return False

    def _declaration(self, idx: int) -> Declaration | None:
        if idx not in self._declarations:
            self._declarations[idx] = declaration_of(self._tokens, idx)
        return self._declarations[idx]

    def _kind(self, brace: int) -> ScopeKind:
        return "namespace" if brace < 0 else self._scopes.scope(brace).kind

    def _braces_around(self, place: int) -> list[int]:
        around: list[int] = []
        brace = self._tokens.brace_of(place)
        while brace >= 0 and len(around) < _MAX_SCOPES:
            around.append(brace)
            brace = self._tokens.brace_of(brace)
        return around

    def _always_with(self, idx: int, place: int) -> bool:
        """Whether a token is compiled whenever the place is."""
        path = self._tokens.path(idx)
        return path == self._tokens.path(place)[: len(path)]

    def _declared_in(self, brace: int, name: str, place: int) -> list[Found]:
        """The declarations of a name that belong to one scope and may hold at a place."""
        tokens = self._tokens
        places = tokens.word_places(name)
        self.spend(len(places) + 1)
        first = 0 if brace < 0 else self._scopes.scope(brace).head_start
        last = len(tokens.texts) if self._kind(brace) == "class" else place
        if brace >= 0:
            last = min(last, tokens.close(brace))
        found: list[Found] = []
        for idx in places:
            if not first <= idx < last:
                continue
            is_in_head = 0 <= idx < brace
            if not (is_in_head or self._owner(idx) == brace) or exclusive(tokens.path(idx), tokens.path(place)):
                continue
            if self._is_enumerator(idx):
                found.append(Found(idx, None))
                continue
            declaration = self._declaration(idx)
            if declaration is not None:
                found.append(Found(idx, declaration))
            elif self._is_opaque_declaration(idx):
                raise UnknownValueError
        return found

    def _owner(self, idx: int) -> int:
        """The brace whose scope a declaration at `idx` belongs to; what a scope leaks to its outside counts there."""
        brace = self._tokens.brace_of(idx)
        while brace >= 0:
            scope = self._scopes.scope(brace)
            is_anonymous = scope.kind == "namespace" and scope.names == (ANONYMOUS,)
            if scope.kind not in ("linkage", "enum") and not is_anonymous:
                break
            brace = self._tokens.brace_of(brace)
        return brace

    def _is_enumerator(self, idx: int) -> bool:
        texts = self._tokens.texts
        brace = self._tokens.brace_of(idx)
        if brace < 0 or self._kind(brace) != "enum" or texts[idx - 1] not in ("{", ","):
            return False
        is_scoped = {"class", "struct"} & set(texts[self._scopes.scope(brace).head_start : brace])
        return texts[idx + 1 : idx + 2] != ["("] and not is_scoped

    def _is_opaque_declaration(self, idx: int) -> bool:
        """Whether the name is declared here in a form that is not read: a parameter, a binding, a type."""
        texts = self._tokens.texts
        before = texts[idx - 1] if idx else ";"
        after = texts[idx + 1] if idx + 1 < len(texts) else ";"
        if is_word(before):
            return before not in _NOT_A_TYPE
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

    def _require_unchanged(self, name: str, declared: int, brace: int) -> None:
        if self._kind(brace) not in ("function", "block"):
            raise UnknownValueError  # anyone can assign to it
        if (declared, brace) not in self._unchanged:
            self._unchanged[declared, brace] = self._is_unchanged(name, declared, brace)
        if not self._unchanged[declared, brace]:
            raise UnknownValueError

    def _is_unchanged(self, name: str, declared: int, brace: int) -> bool:
        tokens = self._tokens
        last = tokens.close(brace)
        places = tokens.word_places(name)
        self.spend(len(places))
        return not any(
            # Another variable of that name, further in, is not this one.
            self._declaration(idx) is None and is_modified_at(tokens, idx)
            for idx in places
            if declared < idx < last and tokens.texts[idx - 1] not in (".", "->", "::")
        )

    def _require_no_member(self, name: str, place: int) -> None:
        """In `void Runner::run() {...}` a member of Runner hides what the file declares."""
        tokens = self._tokens
        classes = {
            tokens.texts[idx - 1]
            for brace in self._braces_around(place)
            if self._kind(brace) == "function"
            for idx in range(self._scopes.scope(brace).head_start + 1, brace)
            if tokens.texts[idx] == "::"
        }
        if not classes:
            return
        places = tokens.word_places(name)
        self.spend(len(places))
        for idx in places:
            brace = tokens.brace_of(idx)
            if brace >= 0 and self._kind(brace) == "class" and classes & set(self._scopes.scope(brace).names):
                raise UnknownValueError
