"""Turns a cubin that nvdisasm refuses into smaller questions it can answer, and its answers into one text.

nvdisasm prints nothing at all where one instruction is unknown to it. It leaves out sections that are not marked as
code, so the cubin is asked for again in copies with fewer code sections, by halves, until the sections it refuses stand
alone; there the instructions that it names are made NOPs in the copy, and their lines left out of the text.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Generator
from dataclasses import dataclass

from kernel_lsp.cubin.control import FIRST_ARCH, LAST_ARCH
from kernel_lsp.cubin.elf import CubinElf, Section, read_elf
from kernel_lsp.cubin.sass import INSTRUCTION_BYTES

MOST_RUNS = 24
_MOST_UNKNOWN = 256  # instructions of one section that may be unknown before it is given up
_NOP = struct.pack("<QQ", 0x7918, 0x000FC000_00000000)  # of all architectures whose control words are known
_TABLE_AT, _HEADER_BYTES, _FLAGS_AT = 0x28, 64, 8  # of e_shoff in the file; of a section header; of sh_flags in it
_EXECUTABLE = 4
_ADDRESS = re.compile(r"at address 0x([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """One run of nvdisasm: whether it ended well, what it printed, and what it complained of."""

    ended_well: bool
    text: str
    complaints: str


@dataclass(frozen=True, slots=True)
class LostCode:
    """Code without a text: `offsets` of instructions in the section, None for all of it."""

    section: str
    offsets: tuple[int, ...] | None
    why: str

    @property
    def said(self) -> str:
        """A sentence for people."""
        if self.offsets is None:
            return f"nvdisasm does not read this code: {self.why}"
        places = ", ".join(f"{offset:#06x}" for offset in self.offsets[:3])
        more = f" and {len(self.offsets) - 3} more" if len(self.offsets) > 3 else ""
        return f"nvdisasm does not know those at {places}{more}: {self.why}"


@dataclass(frozen=True, slots=True)
class Salvaged:
    """All text that could be had, in the form of one run's, and what is missing from it."""

    text: str
    lost: tuple[LostCode, ...]


def salvage(data: bytes) -> Generator[bytes, Answer, Salvaged]:
    """Yields cubins to run nvdisasm on (arguments as ever), to be sent the answers; returns what came together.

    At most MOST_RUNS are asked for. Raises CubinError where the bytes are no cubin.
    """
    elf = read_elf(data)
    codes = [each for each in elf.sections if each.name.startswith(".text.") and each.size >= INSTRUCTION_BYTES]
    codes = [each for each in codes if each.has_bytes]
    container = yield _with_code(elf, ())
    if not container.ended_well:
        why = _first_line(container.complaints)
        return Salvaged("", tuple(LostCode(each.name, None, why) for each in codes))
    texts: list[str] = []
    lost: list[LostCode] = []
    waiting = _halves(codes) if len(codes) > 1 else [codes]
    runs = 1
    while waiting and runs < MOST_RUNS:
        group = waiting.pop(0)
        runs += 1
        answer = yield _with_code(elf, group)
        if answer.ended_well:
            texts.append(answer.text)
        elif len(group) > 1:
            waiting += _halves(group)
        elif group:
            unknown: set[int] = set()
            why = _first_line(answer.complaints)
            while not answer.ended_well and runs < MOST_RUNS:
                named = _named(answer.complaints, group[0]) - unknown
                if not named or len(unknown | named) > _MOST_UNKNOWN or not _has_known_nop(elf.arch):
                    break
                unknown |= named
                runs += 1
                answer = yield _with_code(elf, group, unknown)
            if answer.ended_well:
                texts.append(_without(answer.text, unknown))
            lost.append(LostCode(group[0].name, tuple(sorted(unknown)) if answer.ended_well else None, why))
    untried = [LostCode(each.name, None, "too much of the cubin is damaged") for group in waiting for each in group]
    return Salvaged("".join(texts), (*lost, *untried))


def _halves(codes: list[Section]) -> list[list[Section]]:
    middle = len(codes) // 2
    return [codes[:middle], codes[middle:]]


def _with_code(elf: CubinElf, chosen: Collection[Section], unknown: Collection[int] = ()) -> bytes:
    """A copy in which only these sections are code; `unknown`: offsets of instructions of theirs to make NOPs."""
    copy = bytearray(elf.data)
    table = int.from_bytes(copy[_TABLE_AT : _TABLE_AT + 8], "little")
    indices = {section.index for section in chosen}
    for section in elf.sections:
        if section.name.startswith(".text.") and section.index not in indices:
            flags = section.flags & ~_EXECUTABLE
            struct.pack_into("<Q", copy, table + section.index * _HEADER_BYTES + _FLAGS_AT, flags)
    for section in chosen:
        for offset in unknown:
            copy[section.offset + offset : section.offset + offset + INSTRUCTION_BYTES] = _NOP
    return bytes(copy)


def _has_known_nop(arch: str) -> bool:
    digits = re.match(r"sm_(\d+)", arch)
    return digits is not None and FIRST_ARCH <= int(digits[1]) <= LAST_ARCH


def _named(complaints: str, section: Section) -> set[int]:
    """Offsets of instructions of a section that the complaints name."""
    offsets = {int(found, 16) for found in _ADDRESS.findall(complaints)}
    return {each for each in offsets if each % INSTRUCTION_BYTES == 0 and each + INSTRUCTION_BYTES <= section.size}


def _without(text: str, offsets: Collection[int]) -> str:
    marks = tuple(f"/*{offset:04x}*/" for offset in offsets)
    return "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith(marks))


def _first_line(complaints: str) -> str:
    """The first complaint without the tool's name in front."""
    first = next((line.strip() for line in complaints.splitlines() if line.strip()), "nvdisasm failed")
    return re.sub(r"^nvdisasm (?:error|fatal)\s*:\s*", "", first)
