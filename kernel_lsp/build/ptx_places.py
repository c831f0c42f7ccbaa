"""Lines of a PTX text become lines of the sources it was made from, by the `.loc` in force there (pure)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_LINE = re.compile(
    r"^\s*\.loc\s+(\d+)\s+(\d+)(?:\s+\d+)?(?:\s*,\s*function_name[^,\n]*,\s*inlined_at\s+(\d+)\s+(\d+))?"
    r"|^[^\n/]*?\.(?:entry|func)\s+(?:\([^()]*\)\s*)?([A-Za-z_$%][\w$]*)",
    re.MULTILINE,
)
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")


@dataclass(frozen=True, slots=True)
class PtxPlace:
    """A source line, and the line of the call where the code was inlined from it (the nearest call)."""

    file: str
    line: int
    inlined_at: tuple[str, int] | None = None


class PtxPlaces:
    """Places of one PTX text. All answers are None where the text has no line information for the question."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._files = {int(number): unescaped(name) for number, name in _FILE.findall(text)}
        starts = [0]
        starts += [match.end() for match in re.finditer("\n", text)]
        self._lines: list[int] = []  # PTX line of each change of place
        self._places: list[PtxPlace | None] = []
        self._functions: dict[str, int] = {}  # name -> index of its first place, where it has one
        self._pending: str | None = None
        for match in _LINE.finditer(text):
            ptx_line = bisect_right(starts, match.start())
            if match[5] is not None:
                self._lines.append(ptx_line)
                self._places.append(None)
                self._pending = match[5]
                continue
            place = self._place(match)
            if place is None:  # line 0: the compiler's own code; the place before stays in force
                continue
            if self._pending is not None:
                self._functions[self._pending] = len(self._places)
                self._pending = None
            self._lines.append(ptx_line)
            self._places.append(place)

    def at_line(self, ptx_line: int) -> PtxPlace | None:
        """The place in force at a 1-based line of the PTX."""
        index = bisect_right(self._lines, ptx_line) - 1
        return self._places[index] if index >= 0 else None

    def of_function(self, mangled: str) -> PtxPlace | None:
        """The line of a function's declarator (its first `.loc`)."""
        index = self._functions.get(mangled)
        return None if index is None else self._places[index]

    def first_use(self, symbol: str) -> PtxPlace | None:
        """The place of the first instruction that names a symbol (a call of an undefined function)."""
        for match in re.finditer(rf"(?<![\w$.]){re.escape(symbol)}(?![\w$])", self._text):
            place = self.at_line(self._text.count("\n", 0, match.start()) + 1)
            if place is not None:
                return place
        return None

    def _place(self, match: re.Match[str]) -> PtxPlace | None:
        file = self._files.get(int(match[1]))
        line = int(match[2])
        if file is None or line == 0:
            return None
        caller = self._files.get(int(match[3])) if match[3] else None
        inlined_at = (caller, int(match[4])) if caller is not None and int(match[4]) > 0 else None
        return PtxPlace(file, line, inlined_at)


def unescaped(name: str) -> str:
    r"""A file name as written in PTX (`\303\274` for a byte that is not ASCII) as the text it stands for."""

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8) & 0xFF) if len(code) == 3 else code

    if "\\" not in name:
        return name
    try:
        return _ESCAPE.sub(byte, name).encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # the name already held letters beyond bytes
        return name
