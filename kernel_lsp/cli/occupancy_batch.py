"""A CSV of launches becomes the same rows with their occupancy, one at a time: any number of rows in little memory.

Columns in: `id,cc,threads_per_block,regs_per_thread,static_smem_bytes,dyn_smem_bytes,carveout_percent,barriers` and
perhaps `max_dyn_smem_bytes` (empty or -1: the program opted in to what it launches with); others are passed through.
Columns out: these, and `status,blocks_per_sm,active_warps_per_sm,limiting_factors`. `status` is `ok`, `invalid_input`
(a value that no hardware defines) or `unknown_device`; a cell that is no number ends the run.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TextIO

from kernel_lsp.cli.errors import CliError
from kernel_lsp.hardware.catalog import UnknownArchError, limits_for_cc
from kernel_lsp.hardware.profile import SmLimits
from kernel_lsp.model.occupancy import LaunchShape, LaunchShapeError, header_limiting_factors, occupancy

NUMBERS = (
    "threads_per_block",
    "regs_per_thread",
    "static_smem_bytes",
    "dyn_smem_bytes",
    "barriers",
    "carveout_percent",
)
REQUIRED = ("id", "cc", *NUMBERS)
OPTIONAL = "max_dyn_smem_bytes"
ADDED = ("status", "blocks_per_sm", "active_warps_per_sm", "limiting_factors")

_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_CC = re.compile(r"\d{1,2}\.\d", re.ASCII)
_FACTORS = {"shared": "shared_memory"}  # the header's word
_NOTHING = ("", "", "")


def run_batch(source: Path, target: Path | None) -> None:
    """Answer every row of `source` to `target` (replaced only when all is well), or to standard output.

    Raises:
        CliError: a file that cannot be read or written, or a row that is no launch; names file, line and column.
    """
    try:
        with source.open(encoding="utf-8-sig", newline="") as rows:
            answers = _answers(str(source), rows)
            header = next(answers)  # a bad header leaves no output at all
            if target is None:
                _write(sys.stdout, header, answers)
            else:
                _replace(target, header, answers)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        at_source = target is None or error.filename == str(source)  # else at the target, or the file beside it
        raise CliError(f"{source if at_source else target}: {error.strerror}") from error


def _answers(name: str, lines: TextIO) -> Iterator[Sequence[str]]:
    """The header and every row, each with the added cells."""
    reader = csv.reader(lines, strict=True)
    try:
        header = next(reader, [])
        columns = _Columns(name, header)
        yield columns.header
        for row in reader:
            if row:
                yield columns.answered(row, reader.line_num)
    except csv.Error as error:
        raise CliError(f"{name}:{reader.line_num}: not CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{name}:{reader.line_num + 1}: not UTF-8 text: {error.reason}") from error


class _Columns:
    """Where the columns of one file are, and the rows answered by them."""

    def __init__(self, name: str, header: list[str]) -> None:
        self._name = name
        self._width = len(header)
        names = [column.strip() for column in header]
        for column in REQUIRED:
            if names.count(column) != 1:
                problem = "missing" if column not in names else "given twice"
                raise CliError(f"{name}:1: column {column} is {problem}; needed are {','.join(REQUIRED)}")
        self._number_cells = itemgetter(*(names.index(column) for column in NUMBERS))
        self._cc = names.index("cc")
        self._most_dynamic = names.index(OPTIONAL) if OPTIONAL in names else None
        # Answers that are there already, from an earlier run, give way to the new ones.
        self._kept = [at for at, column in enumerate(names) if column not in ADDED]
        self._keeps_all = len(self._kept) == self._width
        self._limits: dict[str, SmLimits | None] = {}
        self.header = [*(names[at] for at in self._kept), *ADDED]

    def answered(self, row: list[str], line: int) -> list[str]:
        """The row with status, blocks, warps and limiting factors."""
        if len(row) != self._width:
            raise CliError(f"{self._name}:{line}: {len(row)} cells, but the header has {self._width} columns")
        kept = row if self._keeps_all else [row[at] for at in self._kept]
        threads, registers, static, dynamic, barriers, carveout = self._whole(self._number_cells(row), NUMBERS, line)
        most_dynamic = None
        if self._most_dynamic is not None and row[self._most_dynamic].strip():
            (most_dynamic,) = self._whole((row[self._most_dynamic],), (OPTIONAL,), line)
            if most_dynamic < 0:
                most_dynamic = None
        cc = row[self._cc]
        if cc not in self._limits:
            self._limits[cc] = self._limits_of(cc, line)
        limits = self._limits[cc]
        if limits is None:
            return [*kept, "unknown_device", *_NOTHING]
        try:
            result = occupancy(
                limits, LaunchShape(threads, registers, static, dynamic, barriers, carveout, most_dynamic)
            )
        except LaunchShapeError:
            return [*kept, "invalid_input", *_NOTHING]
        factors = "|".join([_FACTORS.get(factor, factor) for factor in header_limiting_factors(result)])
        return [*kept, "ok", str(result.blocks_per_sm), str(result.active_warps), factors]

    def _whole(self, cells: Sequence[str], columns: Sequence[str], line: int) -> list[int]:
        text = "".join(cells)
        if text.isascii() and "_" not in text:  # int() also reads other scripts' digits and 1_000
            try:
                return [int(cell) for cell in cells]
            except ValueError:
                pass
        for cell, column in zip(cells, columns, strict=True):
            if not _WHOLE.fullmatch(cell.strip()):
                raise CliError(f"{self._name}:{line}: column {column}: expected a whole number, got {_shown(cell)}")
        raise CliError(f"{self._name}:{line}: a number has too many digits")

    def _limits_of(self, cell: str, line: int) -> SmLimits | None:
        if not _CC.fullmatch(cell.strip()):
            raise CliError(
                f"{self._name}:{line}: column cc: expected a compute capability such as 8.6, got {_shown(cell)}"
            )
        try:
            return limits_for_cc(cell.strip())
        except UnknownArchError:
            return None


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")


def _write(lines: TextIO, header: Sequence[str], answers: Iterator[Sequence[str]]) -> None:
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(answers)


def _replace(target: Path, header: Sequence[str], answers: Iterator[Sequence[str]]) -> None:
    if target.exists() and not target.is_file():  # a pipe or a device is written to, never replaced
        with target.open("w", encoding="utf-8", newline="") as lines:
            _write(lines, header, answers)
        return
    # Written beside the target and moved over it: a bad row leaves what was there, and a file can be its own target.
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with unfinished.open("x", encoding="utf-8", newline="") as lines:
            _write(lines, header, answers)
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
