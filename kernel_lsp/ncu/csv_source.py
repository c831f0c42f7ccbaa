"""Turns ncu's source page (`--page source --csv`, views sass and cuda,sass) into launches with columns by instruction.

The sass view has a block for each kernel: its name, a header, a row for each instruction. The cuda,sass view has a
block for each file and function: a row for each source line, which already holds the sum of the instruction rows behind
it. Only instruction rows are counted; in the view of source lines alone there are none, and nothing is made up for
them. Quotes in source text are not escaped by ncu, so the cells of such rows are counted from the right.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from kernel_lsp.ncu.csv_numbers import NumberFormat, number_format
from kernel_lsp.ncu.raw_report import Column, Metric, NcuError, PcLines, RawAction

SOURCE_HEADERS = ('"Kernel Name",', '"File Path",', '"Function Name",', '"Address",', '"Line No",')


class _Kernel:
    """The rows of one kernel, collected over its blocks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: dict[str, dict[int, float]] = {}
        self.sass: dict[int, str] = {}
        self.place: dict[int, tuple[str, int]] = {}
        self.sources: dict[str, dict[int, str]] = {}

    def action(self) -> RawAction:
        start = min(self.sass)
        files: dict[str, int] = {}
        places = [(pc, files.setdefault(file, len(files)), line) for pc, (file, line) in sorted(self.place.items())]
        rows = np.array(places, np.uint64).reshape(-1, 3)
        metrics = {name: Metric(sum(column.values()), "") for name, column in self.columns.items()}
        return RawAction(
            name=self.name,
            mangled=None,
            metrics=MappingProxyType(metrics),
            columns=MappingProxyType({name: _column(values) for name, values in self.columns.items()}),
            functions=(start,),
            lines=PcLines(tuple(files), rows[:, 0].copy(), rows[:, 1].astype(np.int32), rows[:, 2].astype(np.int32)),
            sources=MappingProxyType({path: _joined(text) for path, text in self.sources.items()}),
            sass=MappingProxyType(dict(sorted(self.sass.items()))),
        )


def read_source_page(
    lines: Sequence[str], labels: Mapping[str, str], path: str
) -> tuple[tuple[RawAction, ...], tuple[str, ...]]:
    """The kernels of a source page, and what could not be read of it. Raises NcuError where nothing can be."""
    rows = [row for line in lines if line.startswith('"') for row in csv.reader([line])]
    kernels: dict[str, _Kernel] = {}
    block = _Block(labels, _number_format(rows, path))
    kernel: _Kernel | None = None
    for row in rows:
        first = row[0]
        if first in ("Kernel Name", "Function Name"):
            name = ",".join(cell for cell in row[1:] if cell)
            kernel = kernels.setdefault(name, _Kernel(name))
        elif first == "File Path":
            block.file = row[1] if len(row) > 1 else ""
        elif first in ("Address", "Line No"):
            block.header(row)
        else:
            if kernel is None:
                kernel = kernels.setdefault("", _Kernel(""))
            block.row(row, kernel)
    with_rows = tuple(kernel.action() for kernel in kernels.values() if kernel.sass)
    if not with_rows:
        raise NcuError(
            f"{path}: it holds no instructions; export the view with them: --page source --print-source cuda,sass --csv"
        )
    notes = (f"{block.broken} rows could not be read.",) if block.broken else ()
    return with_rows, notes


def _number_format(rows: Sequence[Sequence[str]], path: str) -> NumberFormat:
    found = number_format(cell for row in rows for cell in row[2:] if cell[:1].isdigit())
    if found.contradiction:
        one, other = found.contradiction
        raise NcuError(f"{path}: its numbers are written in two ways ({one} and {other}); export it with LC_ALL=C")
    # Counts here are whole numbers: a lone sign with three digits behind it groups thousands.
    if found.thousands is None:
        return NumberFormat(".", ",", None)
    return found


class _Block:
    """The header in force, and the source line that instruction rows belong to."""

    def __init__(self, labels: Mapping[str, str], form: NumberFormat) -> None:
        self._labels = labels
        self._form = form
        self._metrics: list[str | None] = []
        self._with_lines = False
        self._line: int | None = None
        self.file = ""
        self.broken = 0

    def header(self, row: Sequence[str]) -> None:
        self._with_lines = row[0] == "Line No"
        leading = 4 if self._with_lines else 2  # Line No, Source, Address, Source | Address, Source
        seen: set[str] = set()
        self._metrics = []
        for cell in row[leading:]:
            name = self._labels.get(cell, cell if "__" in cell or cell.startswith(("inst_", "memory_")) else None)
            self._metrics.append(None if name is None or name in seen else name)
            if name is not None:
                seen.add(name)
        while (
            self._metrics and self._metrics[-1] is None and row[-1] == "" and len(row) == leading + len(self._metrics)
        ):
            self._metrics.pop()  # ncu ends each line with a comma
            row = row[:-1]

    def row(self, row: Sequence[str], kernel: _Kernel) -> None:
        cells = list(row[:-1] if row and row[-1] == "" else row)
        count = len(self._metrics)
        leading = 4 if self._with_lines else 2
        if len(cells) < leading + count:
            cells += [""] * (leading + count - len(cells))
        values = cells[len(cells) - count :]
        head = cells[: len(cells) - count]
        if self._with_lines:
            if head[0].isdecimal():
                self._line = int(head[0])
                kernel.sources.setdefault(self.file, {})[self._line] = ",".join(head[1:-2])
                if head[-2] in ("", "-"):
                    return
            address, text = head[-2], head[-1]
        else:
            address, text = head[0], ",".join(head[1:])
        try:
            pc = int(address, 16 if address.startswith(("0x", "0X")) else 10)
        except ValueError:
            self.broken += 1
            return
        kernel.sass[pc] = text
        if self._with_lines and self._line is not None:
            kernel.place[pc] = (self.file, self._line)
        for name, cell in zip(self._metrics, values, strict=True):
            if name is not None and (number := self._form.number(cell)) is not None:
                kernel.columns.setdefault(name, {})[pc] = float(number)


def _column(values: Mapping[int, float]) -> Column:
    pcs = np.array(sorted(values), np.uint64)
    return Column(pcs, np.array([values[int(pc)] for pc in pcs], np.float64))


def _joined(text: Mapping[int, str]) -> str:
    """The file's text as far as it was printed: lines that were not are empty."""
    return "\n".join(text.get(line, "") for line in range(1, max(text) + 1)) + "\n"
