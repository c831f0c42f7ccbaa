"""Turns the mangled name of a function into the name people write, in full and as short as they say it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydemumble import demangle

# The demangler recurses: this many characters are safe on a thread's stack of 1 MB. Longer names stay mangled.
_LONGEST_MANGLED = 6000
_LONGEST_SHORT = 72

# nvcc makes the names of internal symbols unique with a namespace of its own.
_NVCC_UNIQUE = re.compile(r"_INTERNAL_[0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}::")
_LAMBDA = re.compile(r"([\w:~]+)(?:<[^<>]*>)?\([^()]*\)(?: const)?::'lambda(\d*)'\([^()]*\)")
_OPERATOR = re.compile(r"operator(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[<>]=?|[^\w\s(<]+)")
_OPEN, _CLOSE = "(<[{", ")>]}"


@dataclass(frozen=True, slots=True)
class FunctionName:
    """`full` has return and parameter types ("void axpy<float, 1>(float, ...)"), `short` neither ("axpy<float, 1>")."""

    full: str
    short: str


def function_name(mangled: str) -> FunctionName:
    """The names of a function; a name that cannot be demangled stands for itself."""
    full = demangle(mangled) if mangled.startswith("_Z") and len(mangled) <= _LONGEST_MANGLED else ""
    if not full:
        return FunctionName(mangled, mangled)
    full = _NVCC_UNIQUE.sub("", full)
    return FunctionName(full, _abbreviated(_lambdas_numbered(_without_types(full))))


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


def _lambdas_numbered(name: str) -> str:
    """`launch(float*)::'lambda0'(float)` -> `launch::lambda#2`."""
    return _LAMBDA.sub(lambda match: f"{match[1]}::lambda#{int(match[2]) + 2 if match[2] else 1}", name)


def _abbreviated(name: str) -> str:
    """Innermost template arguments become `<...>`, level by level, until the name has a length one can read."""
    while len(name) > _LONGEST_SHORT:
        depths = _template_depths(name)
        deepest = max(depths, default=0)
        if deepest == 0:
            break
        kept = []
        for at, letter in enumerate(name):
            if depths[at] < deepest:
                kept.append(letter)
            elif at and depths[at - 1] < deepest:
                kept.append("\N{HORIZONTAL ELLIPSIS}")
        shorter = "".join(kept)
        if len(shorter) >= len(name):
            break
        name = shorter
    return name


def _template_depths(name: str) -> list[int]:
    """For each character how many `<` enclose it; arguments already left out do not count as a level."""
    masked = _OPERATOR.sub(lambda match: "_" * len(match[0]), name).replace("<\N{HORIZONTAL ELLIPSIS}>", "___")
    depths, depth = [], 0
    for at, letter in enumerate(masked):
        if letter == ">" and masked[at - 1] != "-":
            depth -= 1
        depths.append(max(depth, 0))
        if letter == "<":
            depth += 1
    return depths
