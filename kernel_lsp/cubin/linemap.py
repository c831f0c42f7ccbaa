"""Turns a cubin's line table into numpy columns per code section: every instruction's line and its chain of calls."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernel_lsp.cubin.elf import CubinElf, read_elf
from kernel_lsp.cubin.line_program import Sequence, decode_sequences, read_units

HELPER = "$__internal"
_DEEPEST_CHAIN = 1000  # real ones have fewer than a hundred; a hostile table must not cost a million for each row


@dataclass(frozen=True, slots=True)
class Frame:
    """One link of a chain of inlined calls.

    `file` as the compiler wrote it; `line` is 1-based, 0 for code that the compiler made; `function` is the mangled
    name of the inlined function that holds the line, None for the outermost frame (the kernel, or a function that
    was not inlined).
    """

    file: str
    line: int
    function: str | None


@dataclass(frozen=True, slots=True)
class Helper:
    """NVIDIA's own code inside a kernel (division, square root ...): bytes `start` to `stop` of the section."""

    start: int
    stop: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class SectionLines:
    """Rows of one code section by rising address (bytes); rows of one address: outermost frame first.

    Columns of one length: `pc`; `file`, an index into `files`; `line` (1-based, 0: made by the compiler); `parent`,
    the row of the call (-1: not inlined); `function`, an index into `functions` (-1: the section's own); `ends`,
    true for the row behind the last instruction of a stretch.
    """

    name: str
    pc: npt.NDArray[np.int64]
    file: npt.NDArray[np.int32]
    line: npt.NDArray[np.int32]
    parent: npt.NDArray[np.int32]
    function: npt.NDArray[np.int32]
    ends: npt.NDArray[np.bool_]
    files: tuple[str, ...]
    functions: tuple[str, ...]
    helpers: tuple[Helper, ...]

    def rows_at(self, pcs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The row of each instruction's innermost frame; -1 where the table says nothing, and in helpers."""
        if not len(self.pc):
            return np.full(len(pcs), -1, dtype=np.int64)
        rows = np.searchsorted(self.pc, pcs, side="right").astype(np.int64) - 1
        rows[(rows >= 0) & self.ends[rows]] = -1
        for helper in self.helpers:
            rows[(pcs >= helper.start) & (pcs < helper.stop)] = -1
        return rows

    def frames_of_row(self, row: int) -> tuple[Frame, ...]:
        """The chain of calls of a row of `rows_at`, innermost first; empty for -1."""
        frames: list[Frame] = []
        while row >= 0 and len(frames) < _DEEPEST_CHAIN:
            function = int(self.function[row])
            name = self.functions[function] if function >= 0 else None
            frames.append(Frame(self.files[self.file[row]], int(self.line[row]), name))
            row = int(self.parent[row])
        return tuple(frames)

    def frames(self, pc: int) -> tuple[Frame, ...]:
        """The chain of calls at an address, innermost first; empty where no line is known."""
        return self.frames_of_row(int(self.rows_at(np.array([pc], dtype=np.int64))[0]))

    def helper_at(self, pc: int) -> str | None:
        """The name of NVIDIA's helper whose code holds the address."""
        at = bisect_right(self.helpers, pc, key=lambda helper: helper.start) - 1
        return self.helpers[at].name if at >= 0 and pc < self.helpers[at].stop else None


@dataclass(frozen=True, slots=True, eq=False)
class LineTable:
    """The line tables of a cubin's code sections, by section name (".text." and the mangled function name)."""

    sections: dict[str, SectionLines]

    def frames(self, section: str, pc: int) -> tuple[Frame, ...]:
        """The chain of calls at an address of a section, innermost first; empty where no line is known."""
        lines = self.sections.get(section)
        return lines.frames(pc) if lines else ()


def read_line_table(data: bytes) -> LineTable:
    """Decodes `.debug_line`; no sections where the cubin has none (built without -lineinfo).

    Raises CubinError with one message for damaged or unknown tables.
    """
    elf = read_elf(data)
    section = elf.section(".debug_line")
    content = elf.content(section)
    if section is None or not content:
        return LineTable({})
    relocations = elf.relocations(section)
    files: list[str] = []
    stretches: dict[int, list[tuple[int, Sequence]]] = {}
    for unit in read_units(content):
        for sequence in decode_sequences(content, unit, relocations):
            if sequence.section > 0:
                stretches.setdefault(sequence.section, []).append((len(files), sequence))
        files.extend(unit.files)
    names = _FunctionNames(elf.content(elf.section(".debug_str")))
    tables = {index: _columns(parts, names) for index, parts in stretches.items() if index < len(elf.sections)}
    helpers = _helpers(elf)
    shared_files, shared_functions = tuple(files), tuple(names.names)
    return LineTable(
        {
            elf.sections[index].name: SectionLines(
                elf.sections[index].name, *columns, shared_files, shared_functions, tuple(helpers.get(index, ()))
            )
            for index, columns in tables.items()
        }
    )


class _FunctionNames:
    """Numbers the function names in use: offset in `.debug_str` -> index."""

    def __init__(self, strings: bytes) -> None:
        self._strings = strings
        self._index: dict[int, int] = {}
        self.names: list[str] = []

    def index(self, offset: int) -> int:
        known = self._index.get(offset)
        if known is None:
            known = self._index[offset] = len(self.names)
            stop = self._strings.find(b"\0", offset)
            self.names.append(self._strings[offset:stop].decode("utf-8", "backslashreplace") if stop >= 0 else "")
        return known


_Columns = tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.bool_],
]


def _columns(parts: list[tuple[int, Sequence]], names: _FunctionNames) -> _Columns:
    """The sequences of one section as one table in the order of addresses."""
    pc: list[int] = []
    file: list[int] = []
    line: list[int] = []
    parent: list[int] = []
    function: list[int] = []
    ends: list[bool] = []
    for file_base, sequence in parts:
        count = len(sequence.addresses)
        row_base = len(pc)
        pc += sequence.addresses
        file += [file_base + index for index in sequence.files]
        line += sequence.lines
        parent += [row_base + row - 1 if 0 < row <= count else -1 for row in sequence.parents]
        function += [
            names.index(offset) if row else -1 for row, offset in zip(sequence.parents, sequence.functions, strict=True)
        ]
        ends += [False] * (count - 1) + [True]
    addresses = np.array(pc, dtype=np.int64)
    parents = np.array(parent, dtype=np.int32)
    _cut_cycles(parents)
    order = np.argsort(addresses, kind="stable")
    new_row = np.empty(len(order) + 1, dtype=np.int32)
    new_row[order] = np.arange(len(order), dtype=np.int32)
    new_row[-1] = -1  # a parent of -1 stays -1
    columns = (
        addresses[order],
        np.array(file, dtype=np.int32)[order],
        np.array(line, dtype=np.int32)[order],
        new_row[parents[order]],
        np.array(function, dtype=np.int32)[order],
        np.array(ends, dtype=np.bool_)[order],
    )
    for column in columns:
        column.setflags(write=False)
    return columns


def _cut_cycles(parents: npt.NDArray[np.int32]) -> None:
    """Makes every chain end: in a damaged table a row can stand among its own callers."""
    if not (parents >= np.arange(len(parents))).any():
        return  # every caller stands before its callee
    finished = np.zeros(len(parents), dtype=np.bool_)
    for row in range(len(parents)):
        path: dict[int, None] = {}
        at = row
        while at >= 0 and not finished[at] and at not in path:
            path[at] = None
            at = int(parents[at])
        if at in path:
            parents[next(reversed(path))] = -1
        finished[list(path)] = True


def _helpers(elf: CubinElf) -> dict[int, list[Helper]]:
    found: dict[int, list[Helper]] = {}
    for symbol in elf.symbols:
        if symbol.is_function and symbol.name.startswith(HELPER):
            name = symbol.name.rpartition("$")[2]
            found.setdefault(symbol.section, []).append(Helper(symbol.value, symbol.value + symbol.size, name))
    for helpers in found.values():
        helpers.sort(key=lambda helper: helper.start)
    return found
