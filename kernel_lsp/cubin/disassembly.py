"""Turns what `nvdisasm -c -ndf CUBIN` prints into (section, address, guard, opcode, operands, label) records.

One run prints every code section. Lines that are not understood are left out, so a cut or damaged text gives what it
still holds. `-ndf` leaves out nvdisasm's own data flow analysis: it changes no instruction, takes a third of the time,
and what it adds (targets of indirect branches) is read from the cubin's attributes instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ARGUMENTS = ("-c", "-ndf")  # of nvdisasm, before the cubin's path

_SECTION = re.compile(r'^\s*\.section\s+\.text\.([^\s,"]+),', re.MULTILINE)
_LINE = re.compile(
    r"^[ \t]+/\*([0-9a-f]{4,7})\*/[ \t]+(?:@(!?U?P[0-9T])[ \t]+)?([A-Z][\w.]*[^;\n]*);|^([.$A-Za-z_][^\s:]*):[ \t]*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class SectionText:
    """One code section's part of the whole text. `name` is what follows ".text."."""

    name: str
    text: str
    start: int
    stop: int

    def lines(self) -> list[tuple[str, str, str, str]]:
        """(pc, guard, opcode with operands, label) of each line, as printed, "" for none: a label, or pc and opcode."""
        return _LINE.findall(self.text, self.start, self.stop)


def read_sections(text: str) -> Iterator[SectionText]:
    """The code sections of nvdisasm's text, in its order."""
    heads = list(_SECTION.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        yield SectionText(head[1], text, head.end(), end)
