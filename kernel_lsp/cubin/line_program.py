"""Turns `.debug_line` (DWARF 2 to 4, as ptxas writes it) into rows, with NVIDIA's entries for inlined calls.

Besides DWARF's own opcodes ptxas writes two that ordinary readers get wrong, as their length byte is often zero:
`00 <length> 90 <row> <name>` says that the rows from here on were inlined at row `<row>` of the same sequence
(counted from 1; 0: not inlined), in the function whose mangled name stands at `<name>` in `.debug_str`;
`00 <length> 91 <name>` changes the function alone. So one address can have several rows, the frames of one chain
of calls, and the last of them is the instruction's own.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_lsp.cubin.elf import CubinElf, Symbol
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.source.position import SourceLine

_EXTENDED_END_SEQUENCE, _EXTENDED_SET_ADDRESS = 1, 2
_NVIDIA_INLINED_AT, _NVIDIA_FUNCTION = 0x90, 0x91
_MAX_LINE = 1 << 31
_ESCAPES = re.compile(rb"(?:\\[0-3][0-7]{2})+|\\\\")
_ESCAPED_END = re.compile(rb"\\[23][0-7]{2}\Z")
_ESCAPE_DIGITS = re.compile(rb"[23][0-7]{2}")


@dataclass(slots=True)
class Sequence:
    """Rows of one stretch of code, in file order; the last row only ends it.

    `parents` counts from 1 within the sequence, 0 for rows that are not inlined; `functions` are offsets in
    `.debug_str`; `files` are indices into the unit's file table.
    """

    section: int  # index of the code section; -1: not known
    addresses: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LineUnit:
    """One unit's header: its file names (entry 0 is unused) and where its program lies in the section."""

    files: tuple[str, ...]
    program: range
    min_instruction: int
    line_base: int
    line_range: int
    operands: tuple[int, ...]  # of the standard opcodes, from opcode 1 on

    @property
    def opcode_base(self) -> int:
        """The first special opcode."""
        return len(self.operands) + 1


def read_units(content: bytes) -> Iterator[LineUnit]:
    """The units of `.debug_line`, in order. Raises CubinError for a damaged or unknown header."""
    at = 0
    while at < len(content):
        try:
            unit, at = _read_unit(content, at)
        except (struct.error, IndexError, ValueError) as error:
            if isinstance(error, CubinError):
                raise
            raise CubinError("damaged cubin: a header of .debug_line is cut short") from error
        yield unit


def _read_unit(content: bytes, at: int) -> tuple[LineUnit, int]:
    length, version = struct.unpack_from("<IH", content, at)
    end = at + 4 + length
    if end > len(content) or length < 2:
        raise CubinError("damaged cubin: a unit of .debug_line runs past its end")
    if version not in (2, 3, 4):
        raise CubinError(f"line table of DWARF version {version}, known are 2 to 4")
    (header_length,) = struct.unpack_from("<I", content, at + 6)
    fixed = at + 10
    min_instruction = content[fixed]
    fixed += 1 if version == 4 else 0  # operations per instruction
    line_base, line_range, opcode_base = struct.unpack_from("<bBB", content, fixed + 2)
    if not line_range or not opcode_base:
        raise CubinError("damaged cubin: .debug_line has no line range")
    names = fixed + 5 + opcode_base - 1
    directories = [b""]
    while content[names]:
        stop = content.index(0, names)
        directories.append(content[names:stop])
        names = stop + 1
    names += 1
    files = [""]
    while content[names]:
        stop = content.index(0, names)
        name = content[names:stop]
        directory, names = _unsigned(content, stop + 1)
        _, names = _unsigned(content, names)
        _, names = _unsigned(content, names)
        if directory >= len(directories):
            raise CubinError(f"damaged cubin: .debug_line names directory {directory} of {len(directories) - 1}")
        files.append(_path(directories[directory], name))
        if names > end:
            raise CubinError("damaged cubin: the file names of .debug_line run past its end")
    start = at + 10 + header_length
    if not names < start + 1 <= end + 1:
        raise CubinError("damaged cubin: the program of .debug_line is not behind its header")
    operands = tuple(content[fixed + 5 : fixed + 5 + opcode_base - 1])
    return LineUnit(tuple(files), range(start, end), min_instruction, line_base, line_range, operands), end


def decode_sequences(
    content: bytes,
    unit: LineUnit,
    relocations: dict[int, tuple[Symbol, int | None]],
    start: int | None = None,
    first_row_only: bool = False,
) -> list[Sequence]:
    """Runs the unit's program, or from `start` to the first row when only that is wanted."""
    try:
        return _run(content, unit, relocations, start, first_row_only)
    except IndexError as error:
        raise CubinError("damaged cubin: the program of .debug_line is cut short") from error


def _run(
    content: bytes,
    unit: LineUnit,
    relocations: dict[int, tuple[Symbol, int | None]],
    start: int | None,
    first_row_only: bool,
) -> list[Sequence]:
    end = unit.program.stop
    base, line_base, line_range, scale = unit.opcode_base, unit.line_base, unit.line_range, unit.min_instruction
    const_advance = (255 - base) // line_range * scale
    sequences: list[Sequence] = []
    sequence = Sequence(-1)
    address, file, line, parent, function = 0, 1, 1, 0, 0
    at = unit.program.start if start is None else start
    while at < end:
        opcode = content[at]
        at += 1
        if opcode >= base:
            address += (opcode - base) // line_range * scale
            line += line_base + (opcode - base) % line_range
        elif opcode == 0:
            length = content[at]
            at += 1
            if length & 0x80:
                length, at = _unsigned(content, at - 1)
            code = content[at]
            if code == _NVIDIA_INLINED_AT:
                parent, at = _unsigned(content, at + 1)
                function, at = _unsigned(content, at)
                continue
            if code == _NVIDIA_FUNCTION:
                function, at = _unsigned(content, at + 1)
                continue
            if length == 0:
                raise CubinError(f"line table with an unknown entry {code:#x}")
            if code == _EXTENDED_SET_ADDRESS:
                address = int.from_bytes(content[at + 1 : min(at + length, at + 9)], "little")
                symbol, addend = relocations.get(at + 1, (None, None))
                if symbol is not None:
                    sequence.section = symbol.section
                    address = symbol.value + (address if addend is None else addend)
            at += length
            if code != _EXTENDED_END_SEQUENCE:
                continue
        elif opcode == 1:
            pass
        else:
            if opcode == 2:
                value = content[at]  # nearly all of these are one byte, as the files are
                at += 1
                if value & 0x80:
                    value, at = _unsigned(content, at - 1)
                address += value * scale
            elif opcode == 3:
                value, at = _signed(content, at)
                line += value
            elif opcode == 4:
                file = content[at]
                at += 1
                if file & 0x80:
                    file, at = _unsigned(content, at - 1)
            elif opcode == 8:
                address += const_advance
            elif opcode == 9:
                address += content[at] | content[at + 1] << 8
                at += 2
            else:
                for _ in range(unit.operands[opcode - 1]):
                    _, at = _unsigned(content, at)
            continue
        # A row: a special opcode, a copy, or the end of the sequence.
        if not 0 <= line < _MAX_LINE or not 0 <= address < _MAX_LINE:
            raise CubinError("damaged cubin: a line number or address of .debug_line is out of range")
        if file >= len(unit.files):
            raise CubinError(f"damaged cubin: .debug_line names file {file} of {len(unit.files) - 1}")
        sequence.addresses.append(address)
        sequence.files.append(file)
        sequence.lines.append(line)
        sequence.parents.append(parent)
        sequence.functions.append(function)
        if opcode == 0:
            sequences.append(sequence)
            sequence = Sequence(-1)
            address, file, line, parent, function = 0, 1, 1, 0, 0
        if first_row_only:
            return [sequence]
    return sequences


def entry_lines(elf: CubinElf) -> dict[int, SourceLine]:
    """For each code section's index the line of its first row: the line with the function's name in its declarator.

    The compiler gives the instruction that sets up the stack pointer the line of the function itself.
    """
    section = elf.section(".debug_line")
    content = elf.content(section)
    if section is None or not content:
        return {}
    relocations = elf.relocations(section)
    lines: dict[int, SourceLine] = {}
    for unit in read_units(content):
        starts = _sequence_starts(content, unit, relocations)
        if starts is None:
            sequences = decode_sequences(content, unit, relocations)
        else:
            sequences = [
                sequence
                for start in starts
                for sequence in decode_sequences(content, unit, relocations, start, first_row_only=True)
            ]
        for sequence in sequences:
            first = SourceLine(unit.files[sequence.files[0]], sequence.lines[0])
            if sequence.lines[0] and not sequence.parents[0]:
                lines.setdefault(sequence.section, first)
    return lines


def _sequence_starts(
    content: bytes, unit: LineUnit, relocations: dict[int, tuple[Symbol, int | None]]
) -> list[int] | None:
    """Where the sequences begin, when each begins with its address right behind the end of the one before."""
    starts = sorted(offset - 3 for offset in relocations if offset in unit.program)
    for start in starts:
        if content[start : start + 3] != b"\0\x09\x02":
            return None
        if start != unit.program.start and content[start - 3 : start] != b"\0\x01\x01":
            return None
    return starts


def _path(directory: bytes, name: bytes) -> str:
    r"""A file's path. PTX writes a backslash as two, and each byte of a letter outside ASCII as three octal digits.

    ptxas keeps that spelling, and takes the last backslash for the end of the directory even inside an escape:
    `ko\321\204.cuh` arrives as the directory `ko\321` with the file `204.cuh`.
    """
    trailing = len(directory) - len(directory.rstrip(b"\\"))
    if not directory or name.startswith(b"/"):
        whole = name
    elif trailing % 2 or (_ESCAPED_END.search(directory) and _ESCAPE_DIGITS.match(name)):
        whole = directory + b"\\" + name
    else:
        whole = directory + b"/" + name
    return _ESCAPES.sub(_unescaped, whole).decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[0] == b"\\\\":
        return b"\\"
    return bytes(int(digits, 8) for digits in match[0].decode("ascii").split("\\")[1:])


def _unsigned(content: bytes, at: int) -> tuple[int, int]:
    byte = content[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise CubinError("damaged cubin: a number of .debug_line is too long")


def _signed(content: bytes, at: int) -> tuple[int, int]:
    start = at
    value, at = _unsigned(content, at)
    bits = 7 * (at - start)
    return (value - (1 << bits) if value >> (bits - 1) & 1 else value), at
