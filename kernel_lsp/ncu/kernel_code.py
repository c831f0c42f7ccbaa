"""Turns a cubin (the one inside a report, or one built here) into what the counters of a kernel need of it.

That is the kernel's own bytes, its line table, and, where a disassembly is at hand, its instructions with their waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernel_lsp.cubin.branch_targets import indirect_branch_targets
from kernel_lsp.cubin.elf import read_elf
from kernel_lsp.cubin.flow import control_flow
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.cubin.linemap import SectionLines, read_line_table
from kernel_lsp.cubin.sass import Code, Sass, decode_sass
from kernel_lsp.cubin.scoreboard import Wait, barrier_waits

INSTRUCTION_BYTES = 16
# Bits 0-11 of the instruction word (sm_75 to sm_121, seen in nvdisasm's output).
_EXIT = 0x94D
_BARRIERS = (0xB1D, 0x31D, 0x91D)
_COUNTED_WAIT = 0x91A  # DEPBAR
_WAIT_MASK_SHIFT = np.uint64(116 - 64)


@dataclass(frozen=True, slots=True, eq=False)
class KernelCode:
    """The code of one kernel. `sass` and `code` are None without a disassembly, `lines` without a line table."""

    mangled: str
    arch: str
    content: bytes
    lines: SectionLines | None
    sass: Sass | None
    code: Code | None
    scoreboard_waits: tuple[Wait, ...]

    @property
    def instruction_bytes(self) -> int:
        """Length of the section."""
        return len(self.content)

    def is_exit(self, pcs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether an EXIT stands at each address."""
        return np.asarray(self._opcode(pcs) == _EXIT)

    def is_barrier(self, pcs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether a block barrier stands at each address."""
        return np.isin(self._opcode(pcs), _BARRIERS)

    def is_counted_wait(self, pcs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether a DEPBAR stands at each address: it waits until so many asynchronous copies are left."""
        return np.asarray(self._opcode(pcs) == _COUNTED_WAIT)

    def waits(self, pcs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether the instruction at each address waits for a scoreboard by its control word."""
        mask = (self._words(pcs, 1) >> _WAIT_MASK_SHIFT) & np.uint64(63)
        return np.asarray(mask != 0)

    def text(self, pc: int) -> str:
        """The instruction at an address; "" without a disassembly."""
        if self.sass is None or self.code is None or not 0 <= pc < self.instruction_bytes:
            return ""
        return self.sass.text(self.code.start + pc // INSTRUCTION_BYTES)

    def _opcode(self, pcs: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return np.asarray(self._words(pcs, 0) & np.uint64(0xFFF))

    def _words(self, pcs: npt.NDArray[np.int64], which: int) -> npt.NDArray[np.uint64]:
        """The low (0) or high (1) word of the instruction at each address; 0 outside the code."""
        whole = len(self.content) // INSTRUCTION_BYTES * INSTRUCTION_BYTES
        words = np.frombuffer(self.content[:whole], np.dtype("<u8")).reshape(-1, 2)[:, which]
        rows = pcs // INSTRUCTION_BYTES
        inside = (rows >= 0) & (rows < len(words)) & (pcs % INSTRUCTION_BYTES == 0)
        found = np.zeros(len(pcs), np.uint64)
        found[inside] = words[rows[inside]]
        return found


def bare_codes(cubin: bytes, wanted: Collection[str]) -> Mapping[str, KernelCode]:
    """The bytes of the wanted kernels that a cubin holds, without lines and instructions: enough to know them again."""
    try:
        elf = read_elf(cubin)
    except CubinError:
        return {}
    found = {}
    for mangled in wanted:
        section = elf.section(f".text.{mangled}")
        if section is not None and section.has_bytes:
            found[mangled] = KernelCode(mangled, elf.arch, elf.content(section), None, None, None, ())
    return found


def kernel_code(cubin: bytes, mangled: str, disassembly: str = "") -> KernelCode | None:
    """The kernel's code in a cubin; None where the cubin does not hold it, or cannot be read.

    `disassembly` is nvdisasm's text of the cubin ("" for none: then no waits and no instruction texts).
    """
    try:
        elf = read_elf(cubin)
    except CubinError:
        return None
    section = elf.section(f".text.{mangled}")
    if section is None or not section.has_bytes:
        return None
    try:
        lines = read_line_table(cubin).sections.get(section.name)
    except CubinError:
        lines = None  # counters by instruction still stand
    sass = decode_sass(elf, disassembly) if disassembly else None
    code = sass.code(mangled) if sass is not None else None
    waits: tuple[Wait, ...] = ()
    if sass is not None and code is not None:
        try:
            targets = indirect_branch_targets(elf, mangled)
        except CubinError:
            targets = {}
        waits = barrier_waits(sass, control_flow(sass, code, targets))
    return KernelCode(mangled, elf.arch, elf.content(section), lines, sass, code, waits)
