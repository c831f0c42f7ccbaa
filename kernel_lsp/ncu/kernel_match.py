"""Turns kernel names into keys that agree between a report and a build, whatever the compiler made unique in them.

nvcc puts a hash of the translation unit into the names of unnamed namespaces and of internal symbols; it differs from
machine to machine. Mangled names write the length of such a part in front of it, so it is cut out exactly.
CSV pages have only ncu's demangled spelling ("<(int)128, (bool)0>"), which matches less certainly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

_UNIQUE = re.compile(r"(\d+)(_GLOBAL__N_|_INTERNAL_)")
_STATIC = re.compile(r"^__nv_static_(\d+)_")
_CAST = re.compile(r"\((?:unsigned |signed )?(?:int|long|short|char|bool|long long)\)(?=[-\d])")
_BOOL = {"false": "0", "true": "1"}


def name_key(mangled: str) -> str:
    """A mangled name with the parts that only make it unique cut out."""
    name = _without_static(mangled)
    found = []
    at = 0
    for match, end in _unique_parts(name):
        found.append(name[at : match.start()] + match[2])
        at = end
    return "".join(found) + name[at:]


def name_pattern(mangled: str) -> str | None:
    """A regular expression for the name as another build makes it; None where every build makes the same.

    What makes it unique has the same length everywhere (it names the source file): nothing else can stand for it.
    """
    name = _without_static(mangled)
    found = []
    at = 0
    for match, end in _unique_parts(name):
        found.append(f"{_literal(name[at : match.end()])}.{{{end - match.end()}}}")
        at = end
    if not found and name == mangled:
        return None
    return f"^(__nv_static_.*_)?{''.join(found)}{_literal(name[at:])}$"


def _without_static(mangled: str) -> str:
    match = _STATIC.match(mangled)
    return mangled[match.end() + int(match[1]) :].removeprefix("_") if match else mangled


def _unique_parts(name: str) -> Iterator[tuple[re.Match[str], int]]:
    """Where each begins (its length, its tag), and where it ends."""
    at = 0
    for match in _UNIQUE.finditer(name):
        if match.start() >= at:
            at = max(match.end(), min(match.end(1) + int(match[1]), len(name)))
            yield match, at


def _literal(text: str) -> str:
    return re.sub(r"(\W)", r"\\\1", text)


def match_kernel(mangled: str | None, name: str, candidates: Mapping[str, str]) -> str | None:
    """The mangled name among `candidates` (mangled -> demangled in full) that a profiled kernel is.

    None where none is, or where several could be.
    """
    if mangled is not None:
        if mangled in candidates:
            return mangled
        key = name_key(mangled)
        return _only([each for each in candidates if name_key(each) == key])
    keys = {each: spelled_key(full) for each, full in candidates.items()}
    key = spelled_key(name)
    same = [each for each in candidates if keys[each] == key]
    if same:
        return _only(same)
    return _only([each for each in candidates if keys[each].partition("<")[0] == key.partition("<")[0]])


def spelled_key(demangled: str) -> str:
    """`void k<(int)16, (bool)1>(float *)` and `void k<16, true>(float*)` -> `k<16,1>`."""
    text = _CAST.sub("", demangled.replace("(anonymous namespace)", "").replace("<unnamed>", ""))
    depth = 0
    end = len(text)
    for at, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth <= 0 and at:
            end = at
            break
    head = text[:end].strip()
    depth = 0
    start = 0
    for at in range(len(head) - 1, -1, -1):
        depth += (head[at] == ">") - (head[at] == "<")
        if head[at] == " " and depth == 0:
            start = at + 1
            break
    words = re.split(r"(\w+)", head[start:].removeprefix("::"))
    return re.sub(r"\s+", "", "".join(_BOOL.get(word, word) for word in words))


def _only(names: Sequence[str]) -> str | None:
    return names[0] if len(names) == 1 else None
