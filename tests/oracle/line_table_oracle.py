"""A second decoder of a cubin's line table, written apart from the product's, for comparison.

It runs the line program one opcode at a time over plain dictionaries and answers one address at a time.
"""

from __future__ import annotations

import bisect
import struct
from dataclasses import dataclass, field
from typing import Any


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _sleb(data: bytes, at: int) -> tuple[int, int]:
    start = at
    value, at = _uleb(data, at)
    bits = 7 * (at - start)
    return (value - (1 << bits) if value & (1 << (bits - 1)) else value), at


class Elf:
    """Sections, symbols and line relocations, with no checks."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        table = struct.unpack_from("<Q", data, 0x28)[0]
        count, names = struct.unpack_from("<HH", data, 0x3C)
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * 64) for i in range(count)]
        strings = raw[names][4]
        self.sections = [(self._string(strings + header[0]), header) for header in raw]
        self.index = {name: i for i, (name, _) in enumerate(self.sections)}

    def _string(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode("utf-8", "surrogateescape")

    def content(self, name: str) -> bytes:
        if name not in self.index:
            return b""
        header = self.sections[self.index[name]][1]
        return self.data[header[4] : header[4] + header[5]]

    def symbols(self) -> list[tuple[str, int, int, int, int]]:
        """(name, type, section, value, size)"""
        header = self.sections[self.index[".symtab"]][1]
        strings = self.sections[self.index[".strtab"]][1][4]
        found = []
        for at in range(header[4], header[4] + header[5], 24):
            name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            found.append((self._string(strings + name), info & 15, section, value, size))
        return found

    def line_relocations(self) -> dict[int, int]:
        """Offset in .debug_line -> section."""
        symbols = self.symbols()
        found = {}
        for name, header in self.sections:
            if name in (".rela.debug_line", ".rel.debug_line"):
                for at in range(header[4], header[4] + header[5], 24 if header[1] == 4 else 16):
                    offset, info = struct.unpack_from("<QQ", self.data, at)
                    found[offset] = symbols[info >> 32][2]
        return found


@dataclass
class OracleSection:
    """Rows of one section, and its answer for an address."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    helpers: list[tuple[int, int]] = field(default_factory=list)
    size: int = 0

    def answer(self, address: int) -> list[tuple[str, int, str]] | str:
        """The frames (base name of the file, line, function) innermost first, "helper" or "none"."""
        if any(start <= address < stop for start, stop in self.helpers):
            return "helper"
        at = bisect.bisect_right([row["address"] for row in self.rows], address) - 1
        if at < 0 or self.rows[at]["last"]:
            return "none"
        row = self.rows[at]
        chain = [(row["file"], row["line"], row["name"])]
        seen = set()
        while row["context"] and row["context"] not in seen and row["context"] <= len(self.rows):
            seen.add(row["context"])
            row = self.rows[row["context"] - 1]
            chain.append((row["file"], row["line"], row["name"]))
        return chain


def oracle_sections(data: bytes) -> dict[str, OracleSection]:
    """Section name -> its rows."""
    elf = Elf(data)
    content, strings, relocations = elf.content(".debug_line"), elf.content(".debug_str"), elf.line_relocations()
    found: dict[str, OracleSection] = {}
    at = 0
    while at < len(content):
        length, version, header, scale, _, base, line_range, opcode_base = struct.unpack_from("<IHIBBbBB", content, at)
        assert version in (2, 3)
        end, place = at + 4 + length, at + 15 + opcode_base - 1
        while content[place]:
            place = content.index(0, place) + 1
        place += 1
        files = ["?"]
        while content[place]:
            stop = content.index(0, place)
            files.append(content[place:stop].decode("utf-8", "surrogateescape"))
            place = stop + 1
            for _ in range(3):
                _, place = _uleb(content, place)
        place = at + 10 + header
        start = {"address": 0, "file_index": 1, "line": 1, "context": 0, "function": 0}
        state, rows, section = dict(start), [], 0
        while place < end:
            opcode = content[place]
            place += 1
            emits = last = False
            if opcode >= opcode_base:
                state["address"] += (opcode - opcode_base) // line_range * scale
                state["line"] += base + (opcode - opcode_base) % line_range
                emits = True
            elif opcode == 0:
                size, place = _uleb(content, place)
                code = content[place]
                if code == 0x90:
                    state["context"], place = _uleb(content, place + 1)
                    state["function"], place = _uleb(content, place)
                elif code == 0x91:
                    state["function"], place = _uleb(content, place + 1)
                else:
                    if code == 2:
                        state["address"] = int.from_bytes(content[place + 1 : place + size], "little")
                        section = relocations[place + 1]
                    emits = last = code == 1
                    place += size
            elif opcode == 1:
                emits = True
            elif opcode == 2:
                value, place = _uleb(content, place)
                state["address"] += value * scale
            elif opcode == 3:
                value, place = _sleb(content, place)
                state["line"] += value
            elif opcode == 4:
                state["file_index"], place = _uleb(content, place)
            elif opcode == 5:
                _, place = _uleb(content, place)
            elif opcode == 8:
                state["address"] += (255 - opcode_base) // line_range * scale
            elif opcode == 9:
                state["address"] += struct.unpack_from("<H", content, place)[0]
                place += 2
            if emits:
                text = strings[state["function"] : strings.index(b"\0", state["function"])] if state["context"] else b""
                rows.append({**state, "file": files[state["file_index"]], "name": text.decode(), "last": last})
            if last:
                name, section_header = elf.sections[section]
                assert name not in found
                found[name] = OracleSection(rows, size=section_header[5])
                state, rows, section = dict(start), [], 0
        at = end
    for name, kind, index, value, size in elf.symbols():
        if kind == 2 and name.startswith("$__internal"):
            found[elf.sections[index][0]].helpers.append((value, value + size))
    return found
