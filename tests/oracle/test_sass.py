"""Decoded instructions against NVIDIA's own tools, over kernels of all families built for sm_75 to sm_120.

Oracles: `nvdisasm -plr` (which registers every instruction reads and writes, and which are live), `nvdisasm -hex` (the
raw words), `nvdisasm -json` (opcodes, operands, numeric branch targets), `cuobjdump -sass`. Where nvdisasm's life
ranges are known to be off, the reason stands beside the exception:

* P2R and R2P move predicates in bulk; the life ranges do not show these predicates.
* From sm_100 on they leave out the last register of a texture result (a following 128-bit store reads it).
* LDGSTS's predicate is printed as if it were also written.
* A write guarded by a uniform predicate is taken to end the old value's life (the old value is still read when the
  guard is false), and a few guarded writes around warp-wide instructions are cut at labels in the same way: there our
  sets hold more registers, never fewer.
* Every call is given the ABI's registers, though functions placed behind a kernel have conventions of their own.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from kernel_lsp.cubin.branch_targets import indirect_branch_targets
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.cubin.elf import CubinElf, read_elf
from kernel_lsp.cubin.flow import Flow, control_flow
from kernel_lsp.cubin.linemap import read_line_table
from kernel_lsp.cubin.liveness import Transfer, live_registers, occupied_sets, solve
from kernel_lsp.cubin.mix import counted_rows, instruction_mix, rows_by_line
from kernel_lsp.cubin.operands import BANK_START, GENERAL_MASK, PREDICATE_MASK, UNIFORM_MASK, UNIFORM_PREDICATE_MASK
from kernel_lsp.cubin.sass import Code, Sass, decode_sass, guard_bit

SOURCES = Path(__file__).parent.parent / "data" / "sass"
BANKS = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
ADVANCED = {"sm_90a": ("-DWG",), "sm_100a": ("-DTC",), "sm_120a": ()}
BUILDS = [
    *((source, arch) for arch in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
      for source in ("ops", "mma")),
    *(("adv", arch) for arch in ADVANCED),
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Built:
    """One cubin with its decoding and its path."""

    path: Path
    arch: str
    elf: CubinElf
    sass: Sass
    bin: Path

    def tool(self, name: str, *arguments: str) -> str:
        """What an NVIDIA tool prints about the cubin."""
        done = subprocess.run(
            [str(self.bin / name), *arguments, str(self.path)], capture_output=True, check=True, timeout=120
        )
        return done.stdout.decode("utf-8", "backslashreplace")

    def flow(self, code: Code) -> Flow:
        """Control flow of one section with its switch tables."""
        return control_flow(self.sass, code, indirect_branch_targets(self.elf, code.name))


@pytest.fixture(scope="module", params=BUILDS, ids=lambda build: f"{build[0]}-{build[1]}")
def built(request: pytest.FixtureRequest, toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    source, arch = request.param
    path = tmp_path_factory.mktemp("sass") / f"{source}.{arch}.cubin"
    defines = ADVANCED[arch] if source == "adv" else ("-DM120",) if arch == "sm_120a" else ()
    command = [str(toolkit / "bin" / "nvcc"), "-cubin", "-lineinfo", "-O3", "-std=c++17", f"-arch={arch}", *defines]
    subprocess.run(
        [*command, str(SOURCES / f"{source}.cu"), "-o", str(path)], check=True, timeout=200, capture_output=True
    )
    elf = read_elf(path.read_bytes())
    disassembler = [str(toolkit / "bin" / "nvdisasm"), *ARGUMENTS, str(path)]
    text = subprocess.run(disassembler, check=True, timeout=120, capture_output=True).stdout
    return Built(path, arch, elf, decode_sass(elf, text.decode("utf-8", "backslashreplace")), toolkit / "bin")


@dataclass(frozen=True)
class LifeRow:
    """One instruction of `nvdisasm -plr`: registers read, written, and occupied, as bit sets."""

    section: str
    pc: int
    reads: int
    writes: int
    occupied: int


@cache
def life_ranges(built: Built) -> tuple[LifeRow, ...]:
    """Every row of `nvdisasm -plr`."""
    return tuple(_life_rows(built.tool("nvdisasm", "-c", "-plr")))


def _life_rows(text: str) -> Iterator[LifeRow]:
    section, banks, columns = "", [], []
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
        elif found := re.match(r"\s+/\*([0-9a-f]{4,})\*/", line[: at - 4]):
            reads = writes = occupied = 0
            for bank, part, registers in zip(banks, parts, columns, strict=True):
                for register, column in registers:
                    mark = part[column] if column < len(part) else " "
                    bit = 1 << BANK_START[BANKS[bank]] + register
                    reads |= bit * (mark in "vx")
                    writes |= bit * (mark in "^x")
                    occupied |= bit * (mark != " ")
            yield LifeRow(section, int(found[1], 16), reads, writes, occupied)


def families(built: Built, code: Code) -> set[str]:
    return {built.sass.opcode(row).family for row in range(code.start, code.padding)}


def test_every_instruction_is_known(built: Built) -> None:
    assert built.sass.unknown_rows == 0
    unknown = {form.text for form in built.sass.forms[1:] if form.registers.reason}
    assert unknown == set()


def test_registers_equal_life_ranges(built: Built) -> None:
    codes = {code.name: code for code in built.sass.codes}
    compared, wrong = 0, []
    is_late = int(re.findall(r"\d+", built.arch)[0]) >= 100
    for row in life_ranges(built):
        at = codes[row.section].start + row.pc // 16
        opcode = built.sass.opcode(at)
        if opcode.family == "CALL" or (is_late and opcode.kind == "texture"):
            continue
        registers = built.sass.forms[int(built.sass.form[at])].registers
        assert registers.defines is not None
        assert registers.uses is not None
        reads, writes = registers.uses | guard_bit(int(built.sass.guard[at])), registers.defines
        ours = (reads, writes)
        theirs = (row.reads, row.writes)
        if opcode.family in ("P2R", "R2P", "LDGSTS"):
            ours, theirs = (
                tuple(mask & ~PREDICATE_MASK for mask in ours),
                tuple(mask & ~PREDICATE_MASK for mask in theirs),
            )
        if built.sass.text(at).startswith("@!PT"):
            ours = (0, 0)
        compared += 1
        if ours != theirs:
            wrong.append((row.section, hex(row.pc), built.sass.text(at), *map(hex, (*ours, *theirs))))
    assert wrong == []
    assert compared > 100


def test_live_registers_equal_life_ranges_where_there_are_no_calls(built: Built) -> None:
    rows = {(row.section, row.pc): row for row in life_ranges(built)}
    compared = equal = 0
    for code in built.sass.codes:
        present = families(built, code)
        if present & {"CALL", "RET", "TEX"}:
            continue
        flow = built.flow(code)
        work = Transfer.of(built.sass, flow)
        assert isinstance(work, Transfer)
        occupied, existing = occupied_sets(
            work, flow, lambda _: pytest.fail("a call"), {}, solve(work, flow, lambda _: pytest.fail("a call"), {})
        )
        masks = [GENERAL_MASK, UNIFORM_MASK, UNIFORM_PREDICATE_MASK]
        masks += [] if present & {"P2R", "R2P"} else [PREDICATE_MASK]
        for row in range(code.start, code.padding):
            # Registers that nothing has written yet hold no value; the life ranges show some from the entry on.
            theirs = rows[code.name, int(built.sass.pc[row])].occupied & existing[row - code.start]
            ours = occupied[row - code.start]
            for mask in masks:
                compared += 1
                equal += ours & mask == theirs & mask
                assert theirs & mask & ~ours == 0, (code.name, hex(int(built.sass.pc[row])), built.sass.text(row))
        counted = live_registers(built.sass, flow)
        assert counted.general is not None
        assert counted.general[: code.padding - code.start].tolist() == [
            (registers & GENERAL_MASK).bit_count() for registers in occupied
        ]
    assert equal >= 0.985 * compared


def test_words_and_text_equal_nvdisasm(built: Built) -> None:
    control = built.sass.control
    assert control is not None
    codes = {code.name: code for code in built.sass.codes}
    section, pending, seen = "", -1, 0
    for line in built.tool("nvdisasm", "-c", "-hex").splitlines():
        if line.startswith("//-----") and ".text." in line:
            section = line.split()[1].removeprefix(".text.")
        first = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/", line)
        second = re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/\s*$", line)
        if first:
            pending = codes[section].start + int(first[1], 16) // 16
            printed = re.sub(r"\s*\(\*.*\*\)", "", first[2])
            assert " ".join(built.sass.text(pending).split()) == " ".join(printed.split())
        elif second and pending >= 0:
            high = int(second[1], 16)
            ours = [
                int(column[pending])
                for column in (control.stall, control.yields, control.write_barrier, control.read_barrier)
            ]
            assert ours == [high >> 41 & 15, 1 - (high >> 45 & 1), high >> 46 & 7, high >> 49 & 7]
            assert (int(control.wait_mask[pending]), int(control.reuse[pending])) == (high >> 52 & 63, high >> 58 & 15)
            assert high >> 62 == 0
            seen += 1
            pending = -1
    assert seen >= sum(code.padding - code.start for code in built.sass.codes)


def test_branch_targets_equal_json(built: Built) -> None:
    checked = 0
    for function in json.loads(built.tool("nvdisasm", "-json"))[1]:
        code = built.sass.code(function["function-name"])
        assert code is not None
        start = code.start + function["start"] // 16
        for at, instruction in enumerate(function["sass-instructions"]):
            if instruction["opcode"].split(".")[0] in ("BRA", "BSSY"):
                target = int(instruction["operands"].rsplit(",", 1)[-1], 16)
                assert built.sass.target[start + at] == code.start + target // 16
                checked += 1
    assert checked > 0


def test_each_instruction_stands_on_one_line(built: Built) -> None:
    table = read_line_table(built.path.read_bytes())
    for code in built.sass.codes:
        lines = rows_by_line(built.sass, code, table.sections.get(f".text.{code.name}"))
        everything = sorted(row for rows in lines.own.values() for row in rows)
        assert everything == list(range(code.start, code.padding))
        never = sum(built.sass.text(row).startswith("@!PT") for row in everything)
        mix = instruction_mix(built.sass, counted_rows(built.sass, code))
        assert sum(mix.values()) == len(everything) - never
        for key, rows in lines.own.items():
            assert key is None or set(rows.tolist()) <= set(lines.within[key].tolist())


def test_text_equals_cuobjdump(built: Built) -> None:
    """cuobjdump prints numeric branch targets; all else is compared."""
    name, seen = "", 0
    for line in built.tool("cuobjdump", "-sass").splitlines():
        if found := re.match(r"\s+Function : (\S+)", line):
            name = found[1]
        if found := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*/\*", line):
            code = built.sass.code(name)
            assert code is not None
            ours = built.sass.text(code.start + int(found[1], 16) // 16)
            if "`" not in ours and not re.search(r"BRX|desc|\.64\]|\.64\+", ours + found[2]):
                assert " ".join(ours.split()) == " ".join(found[2].split())
                seen += 1
    assert seen > 100
