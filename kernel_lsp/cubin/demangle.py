"""Turns a mangled C++ name into the name in full, within bounds of time, memory and stack.

The demangler itself (LLVM's) has no bounds: a mangled name refers back to its own parts (`S_`, `S0_`, ...), so that
200 characters can stand for gigabytes, and its recursion follows the nesting. References are let in a few at a time,
the others standing as `Sa` (std::allocator, the same production of the grammar), and the name is given up when it
grows out of hand.
"""

from __future__ import annotations

import re

from pydemumble import demangle as _llvm_demangle

# Deep enough for every real name, and safe on a thread's stack of 1 MB.
_LONGEST_MANGLED = 6000
_LONGEST_DEMANGLED = 200_000
# k references can make a name at most 3 ** (k / 3) times as long.
_FEW_REFERENCES = 12
_MOST_REFERENCES_TO_ONE = 400
_MOST_HIDDEN = 24

_REFERENCE = re.compile(r"S([0-9A-Z]*)_")
_TOKEN = re.compile(r"L[a-z]n?\d+E|A\d+_|T\d*_|S(?P<reference>[0-9A-Z]*)_|(?P<length>\d+)")
_SOURCE_NAME = re.compile(r"\d+")


def demangled(mangled: str) -> str:
    """The name in full, or "" for what is no mangled name or would be unreasonably long."""
    if not mangled.startswith("_Z") or len(mangled) > _LONGEST_MANGLED:
        return ""
    in_all = len(_REFERENCE.findall(mangled))
    if in_all <= _FEW_REFERENCES:
        return str(_llvm_demangle(mangled))
    references = _references(mangled)
    if in_all - len(references) > _MOST_HIDDEN:
        return ""
    full = ""
    for last in _stages([index for _, _, index in references]):
        full = str(_llvm_demangle(_with_references_up_to(mangled, references, last)))
        if not full or len(full) > _LONGEST_DEMANGLED:
            return ""
    return full


def function_prefix(mangled: str) -> str:
    """The function's own qualified name, without arguments, read straight off: "cutlass::Kernel<...>"; or ""."""
    nested = mangled.startswith("_ZN")
    at = 3 if nested else 2
    parts: list[str] = []
    while (nested or not parts) and (length := _SOURCE_NAME.match(mangled, at)):
        stop = length.end() + int(length[0][:5])
        parts.append(mangled[length.end() : stop])
        at = stop
    suffix = "<\N{HORIZONTAL ELLIPSIS}>" if mangled[at : at + 1] == "I" else ""
    return "::".join(parts) + suffix if mangled.startswith("_Z") else ""


def _references(mangled: str) -> list[tuple[int, int, int]]:
    """(start, end, index) of each reference; identifiers, whose letters look like some, are stepped over."""
    found = []
    at = 0
    while token := _TOKEN.search(mangled, at):
        at = token.end()
        if token["length"]:
            at += int(token["length"][:5])
        elif token["reference"] is not None:
            digits = token["reference"]
            found.append((token.start(), token.end(), int(digits, 36) + 1 if digits else 0))
    return found


def _stages(indices: list[int]) -> list[int]:
    """Highest indices to let in, stage by stage, each stage with few enough new references."""
    counts: dict[int, int] = {}
    for index in indices:
        counts[index] = counts.get(index, 0) + 1
    stages: list[int] = []
    pending = 0
    for index in sorted(counts):
        if counts[index] > _MOST_REFERENCES_TO_ONE:
            return []
        if pending + counts[index] > _FEW_REFERENCES and stages:
            stages.append(index)
            pending = counts[index]
        else:
            pending += counts[index]
            stages[-1:] = [index]
    return stages


def _with_references_up_to(mangled: str, references: list[tuple[int, int, int]], last: int) -> str:
    parts = []
    at = 0
    for start, end, index in references:
        if index > last:
            parts += [mangled[at:start], "Sa"]
            at = end
    return "".join(parts) + mangled[at:]
