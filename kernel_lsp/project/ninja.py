"""build.ninja -> the command line of each build edge, for files that no compile database speaks of.

A reader of ninja's own syntax (rules, edges, variables with their scopes, `$ ` escapes, include and subninja),
bounded in size and nesting. Nothing is run; conditions and generators are not looked at.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_NINJA_BYTES = 64 << 20
_MAX_COMMAND = 1 << 18
_MAX_INCLUDES = 64
_VARIABLE = re.compile(r"\$(?:\{([\w.-]+)\}|([\w-]+)|(.))", re.DOTALL)
_ASSIGNMENT = re.compile(r"^([\w.-]+)\s*=\s*(.*)$", re.DOTALL)


class NinjaError(ValueError):
    """The file cannot be read as ninja's syntax; the message names the line."""


@dataclass(slots=True)
class _Scope:
    variables: dict[str, str] = field(default_factory=dict)
    rules: dict[str, dict[str, str]] = field(default_factory=dict)
    parent: _Scope | None = None

    def variable(self, name: str) -> str:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.parent
        return ""

    def rule(self, name: str) -> Mapping[str, str] | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.rules:
                return scope.rules[name]
            scope = scope.parent
        return None


@dataclass(frozen=True, slots=True)
class NinjaEdge:
    """One `build` statement; paths as written, relative to the folder of the top file."""

    outputs: tuple[str, ...]
    rule: str
    inputs: tuple[str, ...]  # explicit ones
    _variables: Mapping[str, str] = field(repr=False)
    _scope: _Scope = field(repr=False)

    def command(self) -> str | None:
        """The rule's command with every variable in place, paths quoted for a POSIX shell; None: no such rule."""
        rule = self._scope.rule(self.rule)
        if rule is None or "command" not in rule:
            return None
        special = {
            "in": " ".join(shlex.quote(path) for path in self.inputs),
            "out": " ".join(shlex.quote(path) for path in self.outputs),
        }

        def lookup(name: str, depth: int) -> str:
            if name in special:
                return special[name]
            if name in self._variables:
                return self._variables[name]
            if name in rule and depth < 16:
                return _expand(rule[name], lambda inner: lookup(inner, depth + 1))
            return self._scope.variable(name)

        return lookup("command", 0)


def read_ninja(path: Path) -> tuple[NinjaEdge, ...]:
    """All edges of the file and of those that it includes. Raises NinjaError or OSError."""
    edges: list[NinjaEdge] = []
    _read_into(path, path.parent, _Scope(), edges, [0])
    return tuple(edges)


def _read_into(path: Path, top: Path, scope: _Scope, edges: list[NinjaEdge], n_files: list[int]) -> None:
    n_files[0] += 1
    if n_files[0] > _MAX_INCLUDES:
        raise NinjaError(f"{path}: more than {_MAX_INCLUDES} files included")
    if path.stat().st_size > MAX_NINJA_BYTES:
        raise NinjaError(f"{path}: larger than {MAX_NINJA_BYTES >> 20} MB")
    statements = list(_statements(path.read_text("utf-8", "surrogateescape")))
    position = 0
    while position < len(statements):
        number, indented, text = statements[position]
        position += 1
        body: dict[str, str] = {}
        while position < len(statements) and statements[position][1]:
            assignment = _ASSIGNMENT.match(statements[position][2])
            if assignment is None:
                raise NinjaError(f"{path}:{statements[position][0]}: expected NAME = VALUE")
            body[assignment[1]] = assignment[2]
            position += 1
        if indented:
            raise NinjaError(f"{path}:{number}: indented line without a statement above it")
        keyword, _, rest = text.partition(" ")
        rest = rest.strip()
        if keyword == "rule":
            scope.rules[rest] = body
        elif keyword == "build":
            edges.append(_edge(rest, body, scope, f"{path}:{number}"))
        elif keyword in {"include", "subninja"}:
            inner = scope if keyword == "include" else _Scope(parent=scope)
            _read_into(top / _unescaped(rest, scope), top, inner, edges, n_files)
        elif keyword not in {"default", "pool"}:
            assignment = _ASSIGNMENT.match(text)
            if assignment is None:
                raise NinjaError(f"{path}:{number}: expected a statement, got {text[:40]!r}")
            scope.variables[assignment[1]] = _expand(assignment[2], scope.variable)


def _statements(text: str) -> Iterator[tuple[int, bool, str]]:
    """(line number, is it indented, text) with continued lines joined, comments and blank lines left out."""
    pending = ""
    first = 0
    for number, line in enumerate(text.splitlines(), start=1):
        first = first if pending else number
        joined = pending + (line.lstrip(" ") if pending else line)
        n_dollars = len(joined) - len(joined.rstrip("$"))
        if n_dollars % 2:
            pending = joined[:-1]
            continue
        pending = ""
        stripped = joined.strip(" \t")
        if stripped and not stripped.startswith("#"):
            # A trailing blank that `$ ` escapes belongs to the value.
            kept = joined.lstrip(" \t")
            yield first, joined[0] in " \t", kept


def _edge(text: str, body: Mapping[str, str], scope: _Scope, place: str) -> NinjaEdge:
    outputs_text, colon, rest = _partition(text, ":")
    if not colon:
        raise NinjaError(f"{place}: build statement without a colon")
    words = _paths(rest)
    if not words:
        raise NinjaError(f"{place}: build statement without a rule")
    variables: dict[str, str] = {}
    for name, value in body.items():
        variables[name] = _expand(value, lambda inner: variables.get(inner) or scope.variable(inner))

    def lookup(name: str) -> str:
        return variables[name] if name in variables else scope.variable(name)

    def explicit(words: list[str]) -> tuple[str, ...]:
        until = next((index for index, word in enumerate(words) if word in {"|", "||", "|@"}), len(words))
        return tuple(_expand(word, lookup) for word in words[:until])

    return NinjaEdge(explicit(_paths(outputs_text)), words[0], explicit(words[1:]), variables, scope)


def _partition(text: str, mark: str) -> tuple[str, str, str]:
    position = 0
    while position < len(text):
        if text[position] == "$":
            position += 2
        elif text[position] == mark:
            return text[:position], mark, text[position + 1 :]
        else:
            position += 1
    return text, "", ""


def _paths(text: str) -> list[str]:
    """Words cut at blanks that no `$` escapes, still with their escapes."""
    return re.findall(r"(?:\$.|[^\s$])+", text)


def _unescaped(text: str, scope: _Scope) -> str:
    return posixpath.normpath(_expand(text, scope.variable))


def _expand(text: str, lookup: Callable[[str], str]) -> str:
    parts: list[str] = []
    length = 0
    position = 0
    for match in _VARIABLE.finditer(text):
        name = match[1] or match[2]
        value = lookup(name) if name else ("" if match[3] == "\n" else match[3])
        parts += [text[position : match.start()], value]
        length += match.start() - position + len(value)
        if length > _MAX_COMMAND:
            raise NinjaError(f"a command is longer than {_MAX_COMMAND:,} letters")
        position = match.end()
    parts.append(text[position:])
    return "".join(parts)
