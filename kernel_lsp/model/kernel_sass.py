"""Joins the decoded instructions of each kernel with its lines, loops, registers and local memory: one KernelSass each.

Without a disassembly the instructions still have their lines; opcodes, loops and live registers are then unknown, with
the reason. Everything per line is in `line_sass`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from kernel_lsp.cubin.block_barriers import needless_barriers
from kernel_lsp.cubin.branch_targets import indirect_branch_targets
from kernel_lsp.cubin.elf import CubinElf, read_elf
from kernel_lsp.cubin.flow import Flow, control_flow
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.cubin.linemap import Frame, LineTable, SectionLines, read_line_table
from kernel_lsp.cubin.liveness import Liveness, live_registers
from kernel_lsp.cubin.local_memory import LocalAccess, local_accesses
from kernel_lsp.cubin.mix import LineRows, LoopWork, counted_rows, instruction_mix, loop_work, rows_by_line
from kernel_lsp.cubin.resources import spill_offsets
from kernel_lsp.cubin.sass import Code, Sass, decode_sass
from kernel_lsp.cubin.scoreboard import Wait, barrier_waits
from kernel_lsp.model.ratio import LoadRatio, load_ratio

Rows = npt.NDArray[np.int64]

NO_LINE_TABLE = "the code has no line table: build it with -lineinfo"


@dataclass(frozen=True, slots=True)
class SassLoop:
    """A loop with what one iteration does, and its compute/load ratio."""

    work: LoopWork
    ratio: LoadRatio


@dataclass(frozen=True, eq=False)
class KernelSass:
    """The instructions of one code section: a kernel with the functions placed behind it, or a device function.

    Columns are those of `sass`, rows `code.start` to `code.padding`. `text_why`: why instructions have no text (""
    where all have one). `mix`, `loops` and `local` are None while no instruction has a text.
    """

    sass: Sass
    code: Code
    flow: Flow
    lines: SectionLines | None
    lines_why: str
    live: Liveness
    rows: LineRows
    mix: dict[str, int] | None  # instructions that can run, by family, most frequent first
    loops: tuple[SassLoop, ...] | None
    local: tuple[LocalAccess, ...] | None
    text_why: str

    @property
    def instruction_count(self) -> int:
        """All instructions, without the trap loop and the padding behind them."""
        return self.code.padding - self.code.start

    @property
    def loops_why(self) -> str:
        """Why loops may be missing and depths too small; "" where every branch is followed."""
        if self.mix is None or self.flow.is_whole:
            return ""
        pc = int(self.sass.pc[min((*self.flow.unknown_branches, *self.flow.unclear))])
        return f"loops may be missing: it is not known whether or where the instruction at {pc:#06x} branches"

    @cached_property
    def waits(self) -> tuple[Wait, ...]:
        """Which instructions each wait for a scoreboard is for; worked out when first asked for."""
        return barrier_waits(self.sass, self.flow) if self.mix is not None else ()

    @cached_property
    def needless_barriers(self) -> tuple[int, ...]:
        """Rows of block barriers that order no two memory accesses; worked out when first asked for."""
        return needless_barriers(self.sass, self.flow) if self.mix is not None else ()

    @property
    def peak_frames(self) -> tuple[Frame, ...]:
        """The chain of calls at the instruction with the most live registers, innermost first."""
        row = self.live.peak_row
        return () if row is None else self.frames(row)

    def frames(self, row: int) -> tuple[Frame, ...]:
        """The chain of calls of an instruction, innermost first; empty where no line is known."""
        found = () if self.lines is None else self.lines.frames(int(self.sass.pc[row]))
        return found if found and found[0].line else ()

    def live_at(self, row: int) -> int | None:
        """Live general registers while an instruction runs."""
        return None if self.live.general is None else int(self.live.general[row - self.code.start])

    def loop_depth(self, row: int) -> int:
        """How many loops stand around an instruction."""
        return int(self.flow.loop_depth[row - self.code.start])


@dataclass(frozen=True, eq=False)
class CubinSass:
    """Every code section of a cubin, by the mangled name of its kernel or function."""

    sections: dict[str, KernelSass]


@dataclass(frozen=True, eq=False)
class CubinLines:
    """A cubin's line table; `why`: what is said of code that is not in it."""

    table: LineTable
    why: str


def read_cubin_lines(data: bytes, spelt: Callable[[str], str] = lambda file: file) -> CubinLines:
    """The line table of a cubin, which needs no disassembly. A damaged one is empty, and says so.

    `spelt` gives the name under which a file of the table is known.
    """
    try:
        table = read_line_table(data)
    except CubinError as error:
        return CubinLines(LineTable({}), str(error))
    names: dict[tuple[str, ...], tuple[str, ...]] = {}
    for files in (lines.files for lines in table.sections.values()):
        if files not in names:
            names[files] = tuple(spelt(file) for file in files)
    sections = {name: replace(lines, files=names[lines.files]) for name, lines in table.sections.items()}
    return CubinLines(LineTable(sections), NO_LINE_TABLE)


def read_cubin_sass(
    data: bytes,
    disassembly: str,
    missing_why: str,
    lines: CubinLines | None = None,
    lost_why: Mapping[str, str] = MappingProxyType({}),
) -> CubinSass:
    """All code of a cubin.

    `disassembly` is nvdisasm's text ("" for none), `missing_why` says why it is missing or not whole ("" where it is);
    `lost_why` says it of single sections, by the mangled name of their kernel or function. `lines` is the cubin's line
    table where it was read before. Raises CubinError where the bytes are no cubin.
    """
    elf = read_elf(data)
    sass = decode_sass(elf, disassembly)
    lines = lines or read_cubin_lines(data)
    found: dict[str, KernelSass] = {}
    for code in sass.codes:
        known = lines.table.sections.get(f".text.{code.name}")
        found[code.name] = _section(
            elf, sass, code, known, "" if known else lines.why, lost_why.get(code.name, missing_why)
        )
    return CubinSass(found)


def _section(
    elf: CubinElf, sass: Sass, code: Code, lines: SectionLines | None, lines_why: str, missing_why: str
) -> KernelSass:
    flow = control_flow(sass, code, _targets(elf, code.name))
    rows = np.arange(code.start, code.padding)
    without_text = int((sass.form[rows] == 0).sum())
    known = without_text < len(rows)
    section = elf.section(f".text.{code.name}")
    work = loop_work(sass, flow, lines) if known else ()
    return KernelSass(
        sass=sass,
        code=code,
        flow=flow,
        lines=lines,
        lines_why=lines_why,
        live=live_registers(sass, flow),
        rows=rows_by_line(sass, code, lines),
        mix=instruction_mix(sass, counted_rows(sass, code)) if known else None,
        loops=tuple(SassLoop(each, load_ratio(each, elf.arch)) for each in work) if known else None,
        local=local_accesses(sass, flow, spill_offsets(elf, section) if section else None) if known else None,
        text_why=(missing_why or "nvdisasm left instructions out") if without_text else "",
    )


def _targets(elf: CubinElf, name: str) -> dict[int, tuple[int, ...]]:
    try:
        return indirect_branch_targets(elf, name)
    except CubinError:
        return {}  # the branches are then listed as unknown
