"""Turns the mangled name of a function into the name people write, in full and as short as they say it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from kernel_lsp.cubin.demangle import demangled, function_prefix

_LONGEST_SHORT = 80
_MOST_SET_APART, _SHORT_WORD = 32, 16  # names that are compared; letters of a word
_MANGLED = re.compile(r"\b_Z[\w$]{3,}")
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

# nvcc makes the names of internal symbols unique with a namespace of its own.
_NVCC_UNIQUE = re.compile(r"_INTERNAL_[0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}::")
_LAMBDA = re.compile(
    r"\b([\w:~]{1,200})(?:<[^<>]{0,300}>)?\([^()]{0,300}\)(?: const)?::'lambda(\d{0,9})'\([^()]{0,300}\)"
)
_OPERATOR = re.compile(r"operator(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[<>]=?|[^\w\s(<]+)")
_VERSION_NAMESPACE = re.compile(r"\b(?:(?:CUB|THRUST|CCCL)_\d+_\w+::|__[1-9]::)")
_WORD = re.compile(r"\w+\b(?!::)")  # no namespaces
_OPEN, _CLOSE = "(<[{", ")>]}"


@dataclass(frozen=True, slots=True)
class FunctionName:
    """`full` has return and parameter types ("void axpy<float, 1>(float, ...)"), `short` neither ("axpy<float, 1>")."""

    full: str
    short: str


def with_short_names(text: str) -> str:
    """A message of the compiler with its mangled names as people say them."""
    return _MANGLED.sub(lambda match: function_name(match[0]).short, text)


@lru_cache(maxsize=4096)
def function_name(mangled: str) -> FunctionName:
    """The names of a function; a name that cannot be demangled stands for itself."""
    full = demangled(mangled)
    if not full:
        return FunctionName(mangled, function_prefix(mangled) or mangled)
    if "_INTERNAL_" in full:
        full = _NVCC_UNIQUE.sub("", full)
    short = _VERSION_NAMESPACE.sub("", _without_types(full))
    if "'lambda" in short:
        short = _LAMBDA.sub(_lambda_number, short)
    return FunctionName(full, _abbreviated(short) if len(short) > _LONGEST_SHORT else short)


def short_names(mangled: Iterable[str]) -> dict[str, str]:
    """The short names of a file's kernels. Where leaving out template arguments makes several the same, each has those
    of its arguments that set it apart: `Gemm<… 128, half_t …>` beside `Gemm<… 256, float …>`."""
    names = {each: function_name(each) for each in mangled}
    alike: dict[str, list[str]] = {}
    for each, name in names.items():
        alike.setdefault(name.short, []).append(each)
    found = {each: name.short for each, name in names.items()}
    for short, group in alike.items():
        if len(group) > 1 and _ELLIPSIS in short:
            found |= _set_apart(short, {each: _without_types(names[each].full) for each in sorted(group)})
    return found


def _set_apart(short: str, names: Mapping[str, str]) -> dict[str, str]:
    differing = _differing(names)
    in_all = set.intersection(*map(set, differing.values()))
    words = {each: _readable_first(own, in_all) for each, own in differing.items()}
    before, _, behind = short.rpartition(_ELLIPSIS)
    for most in (4, 8):
        told = {each: f"{before}{_ELLIPSIS} {', '.join(own[:most])} {_ELLIPSIS}{behind}" for each, own in words.items()}
        if all(words.values()) and len(set(told.values())) == len(told):
            return told
    return {each: f"{short} #{number}" for number, each in enumerate(names, 1)}


def _differing(names: Mapping[str, str]) -> dict[str, list[str]]:
    """The words of each name that are not the same in all, in their order."""
    if len(names) > _MOST_SET_APART:
        return {each: [] for each in names}
    from difflib import SequenceMatcher  # few files need it: a start does not

    words = {each: _WORD.findall(name) for each, name in names.items()}
    first = next(iter(words.values()))
    common = set(range(len(first)))
    places: dict[str, dict[int, int]] = {}
    for each, other in words.items():
        blocks = SequenceMatcher(None, first, other, autojunk=False).get_matching_blocks()
        places[each] = {a + step: b + step for a, b, size in blocks for step in range(size)}
        common &= places[each].keys()
    found: dict[str, list[str]] = {}
    for each, other in words.items():
        shared = {places[each][place] for place in common}
        found[each] = [word for at, word in enumerate(other) if at not in shared]
    return found


def _readable_first(words: list[str], in_all: set[str]) -> list[str]:
    """Each once; numbers and what not all names have here in front, and of that what is short to read."""
    once = dict.fromkeys(words)
    return sorted(once, key=lambda word: (word in in_all and not word.isdigit(), len(word) > _SHORT_WORD))


def _without_types(full: str) -> str:
    """The qualified name with its template arguments, return type and parameters taken off."""
    # Brackets in operator names are no brackets: same length, other letters.
    masked = _OPERATOR.sub(lambda match: "operator" + "_" * (len(match[0]) - 8), full)
    end = masked.rfind(")")
    depth = 0
    start = end
    while start >= 0:
        depth += (masked[start] == ")") - (masked[start] == "(")
        if depth == 0:
            break
        start -= 1
    if start <= 0:
        return full
    depth = 0
    for at in range(start - 1, -1, -1):
        depth += (masked[at] in _CLOSE) - (masked[at] in _OPEN)
        if depth == 0 and masked[at] == " " and not masked.startswith("operator ", max(0, at - 8)):
            return full[at + 1 : start]
    return full[:start]


def _lambda_number(match: re.Match[str]) -> str:
    """`launch(float*)::'lambda0'(float)` -> `launch::lambda#2`."""
    return f"{match[1]}::lambda#{int(match[2]) + 2 if match[2] else 1}"


def _abbreviated(name: str) -> str:
    """The innermost template arguments become an ellipsis, level by level, until one can read the name."""
    depths, depth = [], 0
    for letter in _OPERATOR.sub(lambda match: "_" * len(match[0]), name):
        depth -= letter == ">"
        depths.append(depth)
        depth += letter == "<"
    short = name
    for kept in range(max(depths) - 1, -1, -1):
        short = "".join(
            letter if depths[at] <= kept else _ELLIPSIS
            for at, letter in enumerate(name)
            if depths[at] <= kept or depths[at - 1] <= kept
        )
        if len(short) <= _LONGEST_SHORT:
            break
    return short


def is_nvidias(symbol: str) -> bool:
    """Whether a function is NVIDIA's own: `$__internal_0_$__cuda_sm20_div_s64`, `$kernel$__internal_trig_slowpath`."""
    return symbol.startswith("$__internal_") or symbol.rpartition("$")[2].startswith(("__internal_", "__cuda_sm"))
