"""Turns the bytes of a cubin (64-bit ELF, machine 190) into sections, symbols, relocations, notes and attributes.

Read with `struct` over the whole table at once: this stands before the first diagnostic of every save, and
pyelftools takes 60 ms and an import of 0.1 s or more for a cubin of 85 sections (tests compare against it).
Every offset and size is checked against the file here, so that code behind it may index without fear;
whatever does not fit is a `CubinError`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from kernel_lsp.cubin.attributes import Info
from kernel_lsp.cubin.kernel import CubinError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_REL = struct.Struct("<QQ")
_RELA = struct.Struct("<QQq")

_MACHINE_CUDA = 190
_HOST_MACHINES = (62, 183)  # x86-64, AArch64
_FATBIN_MAGIC = b"\x50\xed\x55\xba"
_EXTRACT = "`cuobjdump -xelf all FILE`"
_TYPE_RELOCATABLE = 1
_TYPE_EXECUTABLE = 2
# NOBITS, and NVIDIA's kinds before linking: global, local and shared variables without a first value.
_WITHOUT_BYTES = (8, 0x70000007, 0x70000009, 0x7000000A)
_SECTION_RELA = 4
_SECTION_REL = 9
_SYMBOL_FUNCTION = 2
_ENTRY_BIT = 0x10  # in st_other: the function is a kernel
_OSABI_CUDA_12 = 0x33  # before CUDA 13 the architecture sits in the low byte of e_flags
_OSABI_CUDA_13 = 0x41
_COMPAT_ISA_CLASS = 9  # in .nv.compat; family code (sm_100f) is not told apart from the plain one
_ISA_CLASS_ACCELERATED = 1
_OLD_FLAG_ACCELERATED = 0x800  # the same in e_flags before CUDA 13

# Attribute formats of .nv.info: none, one byte, two bytes, sized payload.
_FORMAT_SIZED = 4
_FORMATS = (1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class Section:
    """One section header; `offset` and `size` lie inside the file (some kinds have a size but no bytes)."""

    index: int
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int

    @property
    def has_bytes(self) -> bool:
        """Whether the section's content is in the file."""
        return self.kind not in (0, *_WITHOUT_BYTES)


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol; `section` is the index of the section that holds it, `value` its offset there in bytes."""

    index: int
    name: str
    kind: int
    binding: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_function(self) -> bool:
        """Whether it is code: a kernel or a device function."""
        return self.kind == _SYMBOL_FUNCTION

    @property
    def is_kernel(self) -> bool:
        """Whether it is an entry that can be launched."""
        return self.is_function and bool(self.other & _ENTRY_BIT)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One record of a `.nv.info` section: its EIATTR number (`attributes.Info`) and raw little-endian payload."""

    code: int
    payload: bytes

    def words(self) -> tuple[int, ...]:
        """The payload as unsigned 32-bit words (bytes after the last whole word are left out)."""
        count = len(self.payload) // 4
        return struct.unpack_from(f"<{count}I", self.payload)

    def number(self) -> int:
        """The payload as one unsigned number."""
        return int.from_bytes(self.payload, "little")


@dataclass(frozen=True, slots=True)
class CubinElf:
    """The container: `arch` such as "sm_90a", `relocatable` when not linked yet, `toolkit` as "13.5.37" or None."""

    data: bytes
    arch: str
    relocatable: bool
    toolkit: str | None
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    section_by_name: dict[str, Section]

    def section(self, name: str) -> Section | None:
        """The section of that name."""
        return self.section_by_name.get(name)

    def content(self, section: Section | None) -> bytes:
        """The section's bytes; none for a section that is missing or has none."""
        if section is None or not section.has_bytes:
            return b""
        return self.data[section.offset : section.offset + section.size]

    def attributes(self, section: Section | None) -> tuple[Attribute, ...]:
        """The records of a `.nv.info` section, in file order. Raises CubinError where one runs past the end."""
        return _attributes(self.content(section), section.name if section else "")

    def relocations(self, section: Section) -> dict[int, tuple[Symbol, int | None]]:
        """Offset in `section` -> (symbol, addend); an addend of None stands in the section itself (`.rel`)."""
        found: dict[int, tuple[Symbol, int | None]] = {}
        for table in self.sections:
            if table.kind not in (_SECTION_REL, _SECTION_RELA) or table.info != section.index:
                continue
            content = self.content(table)
            layout = _RELA if table.kind == _SECTION_RELA else _REL
            for record in layout.iter_unpack(content[: len(content) // layout.size * layout.size]):
                symbol = record[1] >> 32
                if symbol >= len(self.symbols):
                    raise CubinError(f"damaged cubin: {table.name} names symbol {symbol} of {len(self.symbols)}")
                found[record[0]] = (self.symbols[symbol], record[2] if len(record) == 3 else None)
        return found


def read_elf(data: bytes) -> CubinElf:
    """Reads and checks the container of a cubin. Raises CubinError with one message when it is none or damaged."""
    if data[:4] == _FATBIN_MAGIC:
        raise CubinError(f"not a cubin but a fat binary: {_EXTRACT} takes the cubins out of it")
    if len(data) < _HEADER.size or data[:4] != b"\x7fELF":
        raise CubinError("not a cubin: the file does not start with an ELF header")
    header = _HEADER.unpack_from(data)
    ident, kind, machine, _, _, segments, table, flags, _, segment_size, segment_count = header[:11]
    entry_size, count, names_at = header[11:]
    if machine in _HOST_MACHINES:
        raise CubinError(f"not a cubin but a program or object of the host: {_EXTRACT} takes its cubins out of it")
    if ident[4] != 2 or ident[5] != 1 or machine != _MACHINE_CUDA:
        raise CubinError(f"not a cubin: an ELF file of machine {machine}, expected {_MACHINE_CUDA} (CUDA)")
    if kind not in (_TYPE_RELOCATABLE, _TYPE_EXECUTABLE):
        raise CubinError(f"damaged cubin: ELF type {kind}, expected 1 (relocatable) or 2 (linked)")
    if entry_size != _SECTION.size or count == 0 or table + count * entry_size > len(data):
        raise CubinError("damaged cubin: the section table runs past the end of the file (truncated?)")
    if segments + segment_count * segment_size > len(data):
        raise CubinError("damaged cubin: the segment table runs past the end of the file (truncated?)")
    budget = _NameBudget(len(data))
    headers = list(_SECTION.iter_unpack(data[table : table + count * entry_size]))
    for index, header in enumerate(headers):
        if header[1] not in (0, *_WITHOUT_BYTES) and header[4] + header[5] > len(data):
            raise CubinError(f"damaged cubin: section {index} runs past the end of the file (truncated?)")
    if names_at >= count:
        raise CubinError("damaged cubin: there is no table of section names")
    names = _Strings(data, headers[names_at], budget)
    sections = tuple(Section(i, names.at(h[0]), h[1], h[2], h[4], h[5], h[6], h[7]) for i, h in enumerate(headers))
    elf = CubinElf(
        data=data,
        arch="",
        relocatable=kind == _TYPE_RELOCATABLE,
        toolkit=None,
        sections=sections,
        symbols=_symbols(data, sections, headers, budget),
        section_by_name={section.name: section for section in reversed(sections)},
    )
    return replace(elf, arch=_arch(elf, ident[7], flags), toolkit=_toolkit(elf))


class _NameBudget:
    """Bounds the memory that names may take: a hostile file can point a million symbols at one long string."""

    def __init__(self, file_size: int) -> None:
        self.left = 8 * file_size + 65536

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise CubinError("damaged cubin: its symbol names are longer than the file can hold")


class _Strings:
    """A string table: offset -> text up to the next zero byte."""

    def __init__(self, data: bytes, header: tuple[int, ...], budget: _NameBudget) -> None:
        self._table = data[header[4] : header[4] + header[5]] if header[1] not in (0, *_WITHOUT_BYTES) else b""
        self._budget = budget
        self._known: dict[int, str] = {}

    def at(self, offset: int) -> str:
        known = self._known.get(offset)
        if known is not None:
            return known
        end = self._table.find(b"\0", offset)
        if end < 0 or offset > len(self._table):
            raise CubinError("damaged cubin: a name lies outside its string table")
        self._budget.take(end - offset)
        name = self._table[offset:end].decode("utf-8", "backslashreplace")
        self._known[offset] = name
        return name


def _symbols(
    data: bytes, sections: tuple[Section, ...], headers: list[tuple[int, ...]], budget: _NameBudget
) -> tuple[Symbol, ...]:
    table = next((section for section in sections if section.name == ".symtab"), None)
    if table is None or not table.has_bytes:
        raise CubinError("damaged cubin: there is no symbol table")
    if table.link >= len(sections):
        raise CubinError("damaged cubin: the symbol table has no string table")
    names = _Strings(data, headers[table.link], budget)
    whole = table.size // _SYMBOL.size * _SYMBOL.size
    return tuple(
        Symbol(index, names.at(name), info & 15, info >> 4, other, section, value, size)
        for index, (name, info, other, section, value, size) in enumerate(
            _SYMBOL.iter_unpack(data[table.offset : table.offset + whole])
        )
    )


def _attributes(content: bytes, where: str) -> tuple[Attribute, ...]:
    found: list[Attribute] = []
    at = 0
    while at < len(content):
        form = content[at]
        if form not in _FORMATS or at + 4 > len(content):
            raise CubinError(f"damaged cubin: {where} holds no attribute at byte {at}")
        start, size = at + 2, 2
        if form == _FORMAT_SIZED:
            start, size = at + 4, int.from_bytes(content[at + 2 : at + 4], "little")
        if start + size > len(content):
            raise CubinError(f"damaged cubin: an attribute of {where} runs past its end")
        # One-byte values have a byte of padding behind them.
        found.append(Attribute(content[at + 1], content[start : start + (1 if form == 2 else size)]))
        at = start + size
    return tuple(found)


def _arch(elf: CubinElf, osabi: int, flags: int) -> str:
    if osabi == _OSABI_CUDA_13:
        number, suffix = (flags >> 8) & 0xFF, ""
        for attribute in elf.attributes(elf.section(".nv.compat")):
            if attribute.code == _COMPAT_ISA_CLASS:
                suffix = "a" if attribute.number() == _ISA_CLASS_ACCELERATED else ""
    elif osabi == _OSABI_CUDA_12:
        number, suffix = flags & 0xFF, "a" if flags & _OLD_FLAG_ACCELERATED else ""
    else:
        raise CubinError(f"unknown cubin format: OS ABI {osabi:#x}, known are 0x33 (CUDA 12) and 0x41 (CUDA 13)")
    if not number:
        raise CubinError("damaged cubin: it names no architecture")
    return f"sm_{number}{suffix}"


def _toolkit(elf: CubinElf) -> str | None:
    """ptxas's version, "13.5.37", from the text in `.note.nv.tkinfo`; before CUDA 13 only the release, "12.4"."""
    note = elf.content(elf.section(".note.nv.tkinfo"))
    _, found, rest = note.partition(b", V")
    version = rest.split(b"\0", 1)[0] if found else b""
    if version and len(version) < 40:
        return version.decode("ascii", "replace")
    for section in elf.sections:
        if section.name.startswith(".nv.info."):
            for attribute in elf.attributes(section):
                if attribute.code == Info.CUDA_API_VERSION:
                    return f"{attribute.number() // 10}.{attribute.number() % 10}"
    return None
