"""Turns the bytes of a report into the cubins that lie in it, uncompressed, for every profiled module.

Nsight Compute keeps the module of each kernel it profiles, also with the smallest set of sections, so that a report
alone gives resources, instructions and the line table with its chains of inlined calls. Imported by the reader's child
process as well: nothing but the standard library here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MAGIC = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQ")
_PROGRAM_BYTES = 56
_MACHINE_CUDA = 190
_NOBITS = 8
_SYMTAB = 2
_REL = 9
_FUNCTION = 2


def embedded_cubins(data: bytes) -> Iterator[bytes]:
    """Every distinct whole cubin in `data`, in file order; a damaged or cut one is left out."""
    seen: set[bytes] = set()
    at = data.find(_MAGIC)
    while at >= 0:
        size = _cubin_bytes(data, at)
        if size:
            cubin = _with_offsets(data[at : at + size])
            if cubin not in seen:
                seen.add(cubin)
                yield cubin
        at = data.find(_MAGIC, at + (size or 4))


def _cubin_bytes(data: bytes, start: int) -> int:
    """Length of the cubin that starts at `start`; 0 where there is none, or not all of it."""
    room = len(data) - start
    if room < _HEADER.size:
        return 0
    header = _HEADER.unpack_from(data, start)
    machine, programs, sections = header[2], header[5], header[6]
    program_size, program_count, section_size, section_count = header[9:13]
    if machine != _MACHINE_CUDA or section_size != _SECTION.size or not section_count:
        return 0
    end = max(_HEADER.size, sections + section_count * _SECTION.size)
    if program_count and program_size == _PROGRAM_BYTES:
        end = max(end, programs + program_count * _PROGRAM_BYTES)
    if end > room:
        return 0
    for index in range(section_count):
        section = _SECTION.unpack_from(data, start + sections + index * _SECTION.size)
        if section[1] not in (0, _NOBITS):
            end = max(end, section[4] + section[5])
    return end if end <= room else 0


def _with_offsets(cubin: bytes) -> bytes:
    """The cubin as the compiler made it: up to ncu 2021 kernels' symbols, and what refers to them, hold device
    addresses (and nvdisasm never ends on them)."""
    header = _HEADER.unpack_from(cubin, 0)
    sections = [_SECTION.unpack_from(cubin, header[6] + index * _SECTION.size) for index in range(header[12])]
    changed = bytearray(cubin)
    moved: dict[int, tuple[int, int]] = {}  # symbol -> its device address and size
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        for number, at in enumerate(range(section[4], section[4] + section[5] - _SYMBOL.size + 1, _SYMBOL.size)):
            name, info, other, home, value, size = _SYMBOL.unpack_from(cubin, at)
            if info & 15 == _FUNCTION and home < len(sections) and value > sections[home][5] >= size:
                moved[number] = (value, size)
                _SYMBOL.pack_into(changed, at, name, info, other, home, 0, size)
    if not moved:
        return cubin
    for table in sections:
        if table[1] != _REL or table[7] >= len(sections):
            continue
        target = sections[table[7]]
        for at in range(table[4], table[4] + table[5] - _RELOCATION.size + 1, _RELOCATION.size):
            offset, info = _RELOCATION.unpack_from(cubin, at)
            address, size = moved.get(info >> 32, (0, 0))
            if size and offset + 8 <= target[5]:
                place = target[4] + offset
                value = int.from_bytes(cubin[place : place + 8], "little") - address
                if 0 <= value <= size:
                    changed[place : place + 8] = value.to_bytes(8, "little")
    return bytes(changed)
