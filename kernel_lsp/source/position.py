"""Places in a source file, as people and compilers count them (1-based lines, code-point columns)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file. `file` is a path as the compiler wrote it (absolute where known); `line` is 1-based."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Span:
    """Part of one line: 1-based `line`, 1-based code-point columns, `end_column` exclusive."""

    line: int
    column: int
    end_column: int
