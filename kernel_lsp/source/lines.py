"""Turns a text into its lines, as editors and compilers count them, and columns between their units.

Lines end at LF, CRLF or CR and nowhere else: `str.splitlines` would also break at form feeds or U+2028 and
shift every number after them. Lines and columns here are 1-based and count code points; bytes come from
compilers (UTF-8), UTF-16 units from editors.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """The lines without their endings; a text that ends with a line ending has an empty last line."""
    return _LINE_END.split(text)


class LineTable:
    """A text with the offset of each of its lines. Immutable; lines and columns are 1-based code points."""

    __slots__ = ("_ends", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        self._ends = []
        for match in _LINE_END.finditer(text):
            self._ends.append(match.start())
            self._starts.append(match.end())
        self._ends.append(len(text))

    @property
    def line_count(self) -> int:
        """At least 1: an empty text is one empty line."""
        return len(self._starts)

    def line(self, line: int) -> str:
        """The text of a line without its ending; "" for a line that does not exist (0, or past the end)."""
        if not self.has_line(line):
            return ""
        return self.text[self._starts[line - 1] : self._ends[line - 1]]

    def has_line(self, line: int) -> bool:
        """Whether the line exists; compilers say 0 for "no line" and #line can name one past the end."""
        return 1 <= line <= len(self._starts)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a code-point offset, clamped to the text; inside a line ending: the line's end."""
        offset = min(max(offset, 0), len(self.text))
        index = bisect_right(self._starts, offset) - 1
        return index + 1, min(offset, self._ends[index]) - self._starts[index] + 1

    def offset(self, line: int, column: int) -> int:
        """Code-point offset of a place, clamped as `clamp` does."""
        line, column = self.clamp(line, column)
        return self._starts[line - 1] + column - 1

    def clamp(self, line: int, column: int) -> tuple[int, int]:
        """The nearest place that exists; the column just after the last character is one."""
        if line < 1:
            return 1, 1
        if line > len(self._starts):
            line = len(self._starts)
            return line, self._ends[line - 1] - self._starts[line - 1] + 1
        return line, min(max(column, 1), self._ends[line - 1] - self._starts[line - 1] + 1)

    def column_of_byte(self, line: int, byte_column: int) -> int:
        """Code-point column of a 1-based byte column (UTF-8, as compilers count); clamped to the line."""
        return from_units(self.line(line), byte_column - 1, "utf-8") + 1

    def column_in_units(self, line: int, column: int, encoding: Encoding) -> int:
        """0-based column in an editor's units of a 1-based code-point column; clamped to the line."""
        return to_units(self.line(line), column - 1, encoding)

    def column_from_units(self, line: int, units: int, encoding: Encoding) -> int:
        """1-based code-point column of a 0-based column in an editor's units; clamped to the line."""
        return from_units(self.line(line), units, encoding) + 1


def to_units(line: str, code_points: int, encoding: Encoding) -> int:
    """How many units the first `code_points` code points of a line take (clamped to 0..its length)."""
    prefix = line[: max(code_points, 0)]
    if encoding == "utf-32" or prefix.isascii():
        return len(prefix)
    if encoding == "utf-16":
        return len(prefix) + sum(character > "\uffff" for character in prefix)
    return sum(_utf8_length(character) for character in prefix)


def from_units(line: str, units: int, encoding: Encoding) -> int:
    """How many code points start before `units` units of a line; a place inside a character is its start."""
    if units <= 0:
        return 0
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    taken = 0
    for index, character in enumerate(line):
        taken += _utf8_length(character) if encoding == "utf-8" else 1 + (character > "\uffff")
        if taken > units:
            return index
    return len(line)


def _utf8_length(character: str) -> int:
    # By value, not by encode(): a lone surrogate in a broken document must not raise.
    if character < "\x80":
        return 1
    if character < "\u0800":
        return 2
    return 3 if character <= "\uffff" else 4
