"""Turns the paths of the machine that built the profiled program into files of this one, by their longest common end.

Paths come as `/home/ci/proj/a.cu`, `C:/proj/a.cu`, all lower case from -G builds on Windows, or relative. A file of the
same name alone is a match only where nothing else is; two equally good ones are told apart by their text or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kernel_lsp.source.lines import split_lines

_WINDOWS = re.compile(r"^[A-Za-z]:[\\/]|\\")


def common_end(one: str, other: str) -> int:
    """How many parts of two paths agree from the end; case counts unless one of them is a Windows path."""
    fold = bool(_WINDOWS.search(one) or _WINDOWS.search(other))
    parts, others = (_parts(path.casefold() if fold else path) for path in (one, other))
    count = 0
    while count < min(len(parts), len(others)) and parts[-1 - count] == others[-1 - count]:
        count += 1
    return count


def built_path_of(path: str, text: str, built: Sequence[str], sources: Mapping[str, str]) -> str | None:
    """Which of a report's paths is the file `path` with this text; None where none is, or no one is more likely.

    `sources` are the texts that the report carries, by its paths.
    """
    ends = {each: common_end(path, each) for each in built}
    most = max(ends.values(), default=0)
    if most == 0:
        return None
    best = [each for each in dict.fromkeys(built) if ends[each] == most]
    if len(best) == 1:
        return best[0]
    likeness = {each: _likeness(text, source_text(each, sources)) for each in best}
    highest = max(likeness.values())
    likeliest = [each for each in best if likeness[each] == highest]
    return likeliest[0] if highest > 0.0 and len(likeliest) == 1 else None


def source_text(built_path: str, sources: Mapping[str, str]) -> str:
    """The text that a report carries for a path of its line table; "" for none, or only blanks.

    ncu writes paths out (`a/../b` is `b`), the line table has them as the compiler was given them.
    """
    if built_path in sources:
        found = sources[built_path]
    else:
        ends = {each: common_end(built_path, each) for each in sources}
        most = max(ends.values(), default=0)
        best = [each for each in sources if ends[each] == most]
        found = sources[best[0]] if most and len(best) == 1 else ""
    return found if found.strip() else ""


def _parts(path: str) -> list[str]:
    found: list[str] = []
    for part in re.split(r"[\\/]+", path):
        if part == "..":
            del found[-1:]
        elif part not in ("", "."):
            found.append(part)
    return found


def _likeness(one: str, other: str) -> float:
    """The share of lines that two texts have in common, 0..1."""
    lines, others = ({line.strip() for line in split_lines(text)} - {""} for text in (one, other))
    return len(lines & others) / max(len(lines | others), 1)
