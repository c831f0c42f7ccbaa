"""Cubins for the tests of decoding, each with what NVIDIA's tools print of every instruction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

from kernel_lsp.cubin.branch_targets import indirect_branch_targets
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.cubin.elf import CubinElf, read_elf
from kernel_lsp.cubin.flow import Flow, control_flow
from kernel_lsp.cubin.operands import BANK_START
from kernel_lsp.cubin.sass import Code, Sass, decode_sass
from tests.oracle.cubin_corpus import build, tool_text

SOURCES = Path(__file__).parent.parent / "data" / "sass"
BANKS = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
FLAGS = {
    ("families", "sm_90a"): ("-DWG",),
    ("families", "sm_100a"): ("-DTC",),
    ("families", "sm_120a"): ("-DM120",),
    ("rare", "sm_100a"): ("-DTC",),
    ("rare", "sm_120a"): ("-DM120",),
    ("cutlass_90", "sm_100a"): ("-DFOR_SM100",),
}


@dataclass(frozen=True)
class LifeRow:
    """One instruction of `nvdisasm -plr`: its text, and the registers read, written, and occupied, as bit sets."""

    section: str
    pc: int
    text: str
    reads: int
    writes: int
    occupied: int


@dataclass(frozen=True)
class DumpedRow:
    """One instruction of `cuobjdump -sass`: its text (targets as numbers) and its 128 bits."""

    section: str
    pc: int
    text: str
    word: int


@dataclass(frozen=True, eq=False)
class Built:
    """One cubin with its decoding."""

    path: Path
    arch: str
    elf: CubinElf
    sass: Sass
    toolkit: Path

    def flow(self, code: Code) -> Flow:
        """Control flow of one section with its switch tables."""
        return control_flow(self.sass, code, indirect_branch_targets(self.elf, code.name))

    @cached_property
    def life_ranges(self) -> tuple[LifeRow, ...]:
        """Every row of `nvdisasm -plr`."""
        return tuple(_life_rows(tool_text(self.toolkit, self.path, "nvdisasm", "-c", "-plr")))

    @cached_property
    def dump(self) -> tuple[DumpedRow, ...]:
        """Every row of `cuobjdump -sass`."""
        return tuple(_dumped_rows(tool_text(self.toolkit, self.path, "cuobjdump", "-sass")))


@cache
def built(source: str, arch: str, toolkit: Path) -> Built:
    """A file of tests/data/sass, built and decoded once in each process."""
    flags = FLAGS.get((source, arch), ())
    if source.startswith("cutlass"):
        flags = (*flags, "-DNDEBUG", "--expt-relaxed-constexpr", f"-I{cutlass_headers()}")
    path = build(SOURCES / f"{source}.cu", arch, toolkit, flags).path
    elf = read_elf(path.read_bytes())
    return Built(path, arch, elf, decode_sass(elf, tool_text(toolkit, path, "nvdisasm", *ARGUMENTS)), toolkit)


def cutlass_headers() -> Path:
    """The include folder of the package nvidia-cutlass."""
    try:
        found = next(file for file in files("nvidia-cutlass") or () if file.match("include/cutlass/cutlass.h"))
    except (PackageNotFoundError, StopIteration):
        pytest.fail("the CUTLASS headers are not installed; pip install -e '.[cuda,dev]'")
    return Path(found.locate()).resolve().parents[1]


def _life_rows(text: str) -> Iterator[LifeRow]:
    section = ""
    banks: list[str] = []
    columns: list[list[tuple[int, int]]] = []
    for line in text.splitlines():
        if line.startswith("//-----") and ".text." in line:
            section, banks, columns = line.split()[1].removeprefix(".text."), [], []
        if "// |" not in line:
            continue
        at = line.index("// |") + 4
        parts = line[at:].split("|")[:-1]
        if not banks:
            banks = [part.strip() for part in parts]
        elif not columns:
            columns = [[(int(number[0]), number.end() - 1) for number in re.finditer(r"\d+", part)] for part in parts]
        elif found := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*(?:\(\*.*\*\)\s*)?;\s*$", line[: at - 4]):
            reads = writes = occupied = 0
            for bank, part, registers in zip(banks, parts, columns, strict=True):
                first = BANK_START[BANKS[bank]]
                if part.isspace():
                    continue
                for register, column in registers:
                    mark = part[column : column + 1]
                    if mark.isspace():
                        continue
                    bit = 1 << first + register
                    occupied |= bit
                    if mark in "vx":
                        reads |= bit
                    if mark in "^x":
                        writes |= bit
            yield LifeRow(section, int(found[1], 16), found[2], reads, writes, occupied)


def _dumped_rows(text: str) -> Iterator[DumpedRow]:
    name, pending = "", None
    for line in text.splitlines():
        if found := re.match(r"\s+Function : (\S+)", line):
            name = found[1]
        elif found := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/", line):
            pending = found
        elif pending and (found := re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/\s*$", line)):
            yield DumpedRow(name, int(pending[1], 16), pending[2], int(pending[3], 16) | int(found[1], 16) << 64)
            pending = None
