"""Small assembly listings for tests: texts of instructions become a cubin container and decoded columns."""

from __future__ import annotations

import struct

from kernel_lsp.cubin.elf import CubinElf, Section, Symbol
from kernel_lsp.cubin.sass import Sass, decode_sass

FUNCTION, ENTRY = 2, 0x10


def control_word(
    stall: int = 1, *, write: int = 7, read: int = 7, wait: int = 0, yields: bool = False, reuse: int = 0
) -> int:
    """The 128 bits of an instruction that hold nothing but its control fields."""
    bits = stall | (0 if yields else 1) << 4 | write << 5 | read << 8 | wait << 11 | reuse << 17
    return bits << 105


def container(code: bytes, name: str = "k", arch: str = "sm_90", functions: dict[str, int] | None = None) -> CubinElf:
    """A cubin with one code section; `functions`: name -> byte offset of those behind the kernel."""
    section = Section(1, f".text.{name}", 1, 6, 0, len(code), 0, 0)
    symbols = [Symbol(0, name, FUNCTION, 1, ENTRY, 1, 0, len(code))]
    for at, (inner, offset) in enumerate((functions or {}).items(), 1):
        symbols.append(Symbol(at, inner, FUNCTION, 0, 0, 1, offset, 0))
    return CubinElf(
        data=code,
        arch=arch,
        relocatable=False,
        toolkit=None,
        sections=(Section(0, "", 0, 0, 0, 0, 0, 0), section),
        section_by_name={section.name: section},
        symbols=tuple(symbols),
    )


def listing(text: str, name: str = "k") -> str:
    """Lines "label:" and "@P0 OPCODE operands" as nvdisasm prints them."""
    printed = [f'\t.section\t.text.{name},"ax",@progbits', f".text.{name}:"]
    pc = 0
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":"):
            printed.append(line)
        else:
            printed.append(f"        /*{pc:04x}*/                   {line} ;")
            pc += 16
    return "\n".join(printed) + "\n"


def decode(
    text: str,
    controls: dict[int, int] | None = None,
    *,
    arch: str = "sm_90",
    functions: dict[str, int] | None = None,
) -> Sass:
    """The listing decoded; `controls`: instruction number -> its 128-bit word (see `control_word`)."""
    count = sum(not line.strip().endswith(":") for line in text.splitlines() if line.strip())
    words = [(controls or {}).get(at, control_word()) for at in range(count)]
    code = b"".join(struct.pack("<QQ", word & (1 << 64) - 1, word >> 64) for word in words)
    return decode_sass(container(code, arch=arch, functions=functions), listing(text))
