"""Turns the operand text of an instruction into operands: registers with their suffixes, addresses, the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass

# `(.L_x_1), (*"BRANCH_TARGETS .L_x_1"*), and halves of an address: 32@lo((kernel + .L_x_0@srel)).
LABEL = re.compile(r"`\([^)]*\)|`?\(\*.*?\*\)|\b\d+@\w+\((?:\([^()]*\)|[^()]*)\)")
# One register in operand text, with what stands behind it: "R4.reuse", "R2.64", "P0", "UR36", "RZ".
_REGISTER = re.compile(r"\b(UR|UP|R|P)(\d{1,3}|Z|T)\b((?:\.\w+)*)")
_OPENING, _CLOSING = "[(", "])"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand between commas. `registers`: (bank, number or None for RZ/PT, suffixes) in the order of the text."""

    text: str
    registers: tuple[tuple[str, int | None, str], ...]
    is_address: bool  # has brackets: [..], desc[..][..], c[..][..], tmem[..], gdesc[..]

    @property
    def is_plain(self) -> bool:
        """One register and nothing else."""
        return not self.is_address and len(self.registers) == 1

    def is_bank(self, *banks: str) -> bool:
        """A plain register of one of these banks."""
        return self.is_plain and self.registers[0][0] in banks


def split_operands(text: str) -> tuple[Operand, ...]:
    """Operands of an instruction, in order; jump labels and annotations are left out."""
    text = LABEL.sub("", text)
    parts: list[str] = []
    depth = start = 0
    for at, letter in enumerate(text):
        if letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return tuple(_operand(part.strip()) for part in parts if part.strip())


def _operand(text: str) -> Operand:
    registers = tuple(
        (found[1], int(found[2]) if found[2].isdigit() else None, found[3]) for found in _REGISTER.finditer(text)
    )
    return Operand(text, registers, "[" in text)
