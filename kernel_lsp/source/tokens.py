"""Turns CUDA text into its tokens, with brackets matched and preprocessor branches known.

Tokens rather than a syntax tree: most real CUDA files are full of macros and #if, which a C++ grammar without a
preprocessor reads as errors, and a file under edit is incomplete most of the time. Comments, strings and macro
bodies yield no tokens that could be taken for code; a branch that is never compiled (#if 0) is left out. Brackets
that do not match are tolerated: each branch of an #if starts from the state before it.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

BranchPath = tuple[tuple[int, int], ...]  # (number of the #if, which of its arms), from the outside inwards

_TOKEN = re.compile(
    r"""
      (?P<comment>//(?:[^\n\\]+|\\.)*|/\*.*?(?:\*/|\Z))
    | ^[^\S\n]*(?P<directive>\#(?:[^\n\\/"]+|\\.|//(?:[^\n\\]+|\\.)*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]+|\\.)*"?|/)*)
    | (?P<string>(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
        |(?:u8|[uUL])?(?:"(?:[^"\\\n]+|\\.)*"?|'(?:[^'\\\n]+|\\.)*'?))
    | (?P<word>[^\W\d]\w*)
    | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    | (?P<sign><<<|<<=|>>=|\.\.\.|<<|::|->|\+\+|--|&&|\|\||[-+*/%&|^<>=!]=|[^\w\s\\])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_DIRECTIVE = re.compile(r"#\s*(\w+)\s*(.*)", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_CLOSER = {"(": ")", "[": "]", "{": "}"}

# nvcc defines the first for device and host passes alike; the second belong to other compilers.
_ALWAYS_DEFINED = frozenset({"__CUDACC__", "__NVCC__", "__cplusplus"})
_NEVER_DEFINED = frozenset({"__HIPCC__", "__HIP__", "__HIP_PLATFORM_AMD__", "__HIP_PLATFORM_HCC__"})
_MAX_IF_DEPTH = 64  # deeper nesting is read as if unconditional: it would only make paths long


@dataclass(frozen=True, slots=True)
class Directive:
    """A preprocessor line: `keyword` "define", its `rest` without comments; it stands before token `token_idx`."""

    keyword: str
    rest: str
    offset: int
    token_idx: int
    path: BranchPath


@dataclass(slots=True)
class Tokens:
    """Parallel per-token columns. `match`, `enclosing` and `braces` hold token indices, -1 for none.

    `enclosing[i]` is the innermost bracket open at token i, `braces[i]` the innermost `{`; for an opening bracket
    that is the one around it.
    Strings are the single token '""'.
    """

    texts: list[str] = field(default_factory=list)
    starts: array[int] = field(default_factory=lambda: array("l"))
    enclosing: array[int] = field(default_factory=lambda: array("l"))
    braces: array[int] = field(default_factory=lambda: array("l"))
    match: dict[int, int] = field(default_factory=dict)
    directives: list[Directive] = field(default_factory=list)
    comments: list[tuple[int, str]] = field(default_factory=list)  # (offset, text) of those that speak to us
    branch_starts: list[int] = field(default_factory=lambda: [0])
    branch_paths: list[BranchPath] = field(default_factory=lambda: [()])
    branch_conditions: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)  # arm: (offset, text)

    _places: dict[str, list[int]] = field(default_factory=dict)

    def word_places(self, word: str) -> list[int]:
        """Every token that is `word`, in order."""
        if not self._places:
            for idx, text in enumerate(self.texts):
                if text[0].isalpha() or text[0] == "_":
                    self._places.setdefault(text, []).append(idx)
        return self._places.get(word, [])

    def path(self, token_idx: int) -> BranchPath:
        """The #if arms that token lies in."""
        return self.branch_paths[bisect_right(self.branch_starts, token_idx) - 1]

    def end(self, token_idx: int) -> int:
        """Offset just after a token that is no string."""
        return self.starts[token_idx] + len(self.texts[token_idx])

    def first_at_or_after(self, offset: int) -> int | None:
        """The first token that starts at or after an offset; None: there is none."""
        idx = bisect_left(self.starts, offset)
        return idx if idx < len(self.starts) else None

    def brace_of(self, token_idx: int) -> int:
        """The innermost `{` around a token, -1 for none."""
        return self.braces[token_idx]

    def close(self, opener: int) -> int:
        """The bracket that closes `opener`; the number of tokens where none does."""
        return self.match.get(opener, len(self.texts))

    def statement_start(self, token_idx: int, limit: int = 400) -> int:
        """The first token of the statement or declaration that a token belongs to."""
        texts = self.texts
        idx = token_idx
        for _ in range(limit):
            before = idx - 1
            if before < 0:
                return 0
            text = texts[before]
            if text in ")]":
                opener = self.match.get(before, -1)
                if opener < 0:
                    return idx
                idx = opener
                continue
            if text in ";{}([" and not (text == "[" and texts[before - 1 : before] == ["["]):
                return idx
            if text == ":" and texts[before - 1] in ("public", "private", "protected"):
                return idx
            idx = before
        return idx


def exclusive(one: BranchPath, other: BranchPath) -> bool:
    """Whether two branch paths lie in different arms of the same #if, so that never both are compiled."""
    arms = dict(one)
    return any(arms.get(number, arm) != arm for number, arm in other)


def tokenize(text: str, comment_mark: str = "kernel-lsp:") -> Tokens:
    """Every token of `text`; offsets are code points into it. Comments with `comment_mark` are kept beside."""
    # Same length, so offsets stay: CR LF and CR end lines like LF, and a continued line is plain whitespace later.
    text = text.replace("\r\n", " \n").replace("\r", "\n")
    tokens = Tokens()
    branches = _Branches(tokens)
    texts, starts, enclosing, braces = tokens.texts, tokens.starts, tokens.enclosing, tokens.braces
    match = tokens.match
    opener = -1
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind == "comment":
            if comment_mark in found.group() and not branches.skipping:
                tokens.comments.append((found.start(), found.group()))
            continue
        if kind == "directive":
            opener = branches.take(found.group("directive"), found.start("directive"), opener)
            continue
        if branches.skipping:
            continue
        value = '""' if kind == "string" else found.group()
        idx = len(texts)
        texts.append(value)
        starts.append(found.start())
        is_opening = value in ("(", "[", "{")
        if value in (")", "]"):
            if opener >= 0 and _CLOSER[texts[opener]] == value:
                match.setdefault(opener, idx)
                match[idx] = opener
                opener = enclosing[opener]
        elif value == "}":
            brace = opener if opener < 0 or texts[opener] == "{" else braces[opener]
            if brace >= 0:
                match[brace] = idx  # the last arm of an #if that closes it wins
                match[idx] = brace
                opener = enclosing[brace]
        enclosing.append(opener)
        braces.append(opener if opener < 0 or texts[opener] == "{" else braces[opener])
        if is_opening:
            opener = idx
    return tokens


@dataclass(slots=True)
class _OpenIf:
    """An #if that is open while tokenizing, in its current arm."""

    number: int
    arm: int
    truth: bool | None  # of the arm's condition; None: not known here
    is_settled: bool  # an earlier arm is always taken, so this one never is
    outer_path: BranchPath
    outer_skipping: bool
    opener_before: int
    opener_after: int | None = None  # after the first arm that may be compiled


class _Branches:
    """Which #if arms are open while tokenizing, and whether what stands there is ever compiled."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._open: list[_OpenIf] = []
        self._count = 0
        self.skipping = False

    def take(self, directive: str, offset: int, opener: int) -> int:
        """Registers a directive that stands where bracket `opener` is open; returns the one open after it."""
        parsed = _DIRECTIVE.match(directive)
        if parsed is None:
            return opener
        keyword, rest = parsed.group(1), _COMMENT.sub(" ", parsed.group(2)).replace("\\\n", " ").strip()
        if keyword in ("if", "ifdef", "ifndef"):
            path = self._tokens.branch_paths[-1]
            self._open.append(_OpenIf(self._count, 0, _truth(keyword, rest), False, path, self.skipping, opener))
            self._count += 1
        elif keyword in ("else", "elif", "elifdef", "elifndef") and self._open:
            current = self._open[-1]
            self._leave_arm(current, opener)
            current.is_settled = current.is_settled or current.truth is True
            current.arm += 1
            current.truth = _truth("if", rest) if keyword == "elif" else None
            opener = current.opener_before
        elif keyword == "endif" and self._open:
            current = self._open.pop()
            self._leave_arm(current, opener)
            self._enter(current.outer_path, current.outer_skipping)
            # Where arms disagree on brackets the first that may be compiled is believed.
            return current.opener_before if current.opener_after is None else current.opener_after
        else:
            if not self.skipping:
                tokens = self._tokens
                path = tokens.branch_paths[-1]
                tokens.directives.append(Directive(keyword, rest, offset, len(tokens.texts), path))
            return opener
        current = self._open[-1]
        path = current.outer_path
        if current.truth is None and len(path) < _MAX_IF_DEPTH and not current.is_settled:
            arm = (current.number, current.arm)
            path = (*path, arm)
            self._tokens.branch_conditions[arm] = (offset, f"{keyword} {rest}".strip())
        never = current.truth is False or current.is_settled
        self._enter(path, current.outer_skipping or never)
        return opener

    def _leave_arm(self, current: _OpenIf, opener: int) -> None:
        if current.opener_after is None and not self.skipping:
            current.opener_after = opener

    def _enter(self, path: BranchPath, skipping: bool) -> None:
        self.skipping = skipping
        self._tokens.branch_starts.append(len(self._tokens.texts))
        self._tokens.branch_paths.append(path)


def _truth(keyword: str, condition: str) -> bool | None:
    """Whether an #if condition always or never holds in nvcc; None where that depends on something."""
    if keyword == "if":
        if condition in ("0", "false", "1", "true"):
            return condition in ("1", "true")
        asked = re.fullmatch(r"(!?)\s*defined\s*(?:\(\s*(\w+)\s*\)|(\w+))", condition)
        if asked is None:
            return None
        keyword, name = "ifndef" if asked.group(1) else "ifdef", asked.group(2) or asked.group(3)
    else:
        name = condition
    if name in _ALWAYS_DEFINED or name in _NEVER_DEFINED:
        return (name in _ALWAYS_DEFINED) == (keyword == "ifdef")
    return None
