"""Turns the operand text of one instruction into the registers it defines and uses.

    "R4, desc[UR36][R2.64+0x10]" of LDG.E.64  ->  defines R4 R5, uses R2 R3 UR36 UR37

The text names only the first register of each operand; how many follow comes from the opcode's operand rules
(`opcodes.csv`, columns `destinations` and `registers`), from the matrix shape, and from the address form. Registers
are bits of one Python integer, so that liveness is set algebra: general R0.. from bit 0, uniform UR0.. from bit 256,
predicates P0.. from bit 512 and uniform predicates UP0.. from bit 520. RZ, URZ, PT and UPT are no registers.

A plan (which number in the text is what) is made once per opcode and operand shape; applying it is a few shifts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from kernel_lsp.cubin.opcodes import describe
from kernel_lsp.cubin.operand_text import LABEL, Operand, split_operands
from kernel_lsp.cubin.operand_widths import OperandWidths

BANK_START = {"R": 0, "UR": 256, "P": 512, "UP": 520}
BANK_SIZE = {"R": 256, "UR": 256, "P": 8, "UP": 8}
GENERAL_MASK = (1 << 256) - 1
UNIFORM_MASK = GENERAL_MASK << 256
PREDICATE_MASK = 0xFF << 512
UNIFORM_PREDICATE_MASK = 0xFF << 520
ALL_REGISTERS = (1 << 528) - 1

# Quick to search for; where it finds more than registers, the plan's count tells. SR5 would be a special register,
# BUFFER2 is a modifier.
_NUMBERS = re.compile(r"(?<=[RP])(?<![A-TV-Z_][RP])(\d+)")
_HEXADECIMAL = re.compile(r"0x[0-9a-f]+")


class Access(NamedTuple):
    """A run of registers in one operand, from the `number`-th numbered register of the text on.

    `mask` is the run's bits as if that register were the bank's first; `limit` is the highest number it may have.
    """

    number: int
    mask: int
    limit: int
    defines: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What the numbered registers of one operand shape are; `reason` is set where the rules do not know it."""

    accesses: tuple[Access, ...]
    numbered: int  # how many of them the shape has
    reason: str | None
    predicate_mask: str | None = None  # "defines" or "uses": the last immediate selects predicates (R2P, P2R)
    predicate_bank: str = "P"


class Registers(NamedTuple):
    """Registers that one instruction text defines and uses, as bit sets; None and a reason where not known."""

    defines: int | None
    uses: int | None
    reason: str | None = None


def registers_of(opcode: str, operands: str) -> Registers:
    """Registers that `opcode operands` defines and uses, its guard predicate left out."""
    text = LABEL.sub("", operands) if "(" in operands else operands
    parts = _NUMBERS.split(text)  # text, number, text, number, ... text
    plan = _plan_of(opcode, "0".join(parts[::2]))
    numbers = parts[1::2]
    if plan.reason is not None:
        return Registers(None, None, plan.reason)
    if plan.numbered != len(numbers):
        return Registers(None, None, "operands of an unknown form")
    defines = uses = 0
    for number, mask, limit, is_definition in plan.accesses:
        register = int(numbers[number])
        if register > limit:
            return Registers(None, None, f"register {register} does not exist")
        if is_definition:
            defines |= mask << register
        else:
            uses |= mask << register
    if plan.predicate_mask is not None:
        chosen = _last_immediate(text) & 0x7F
        if plan.predicate_mask == "defines":
            defines |= chosen << BANK_START[plan.predicate_bank]
        else:
            uses |= chosen << BANK_START[plan.predicate_bank]
    return Registers(defines, uses)


def _is_number(piece: str) -> bool:
    return piece.lstrip("+-")[:1].isdigit()


def _last_immediate(text: str) -> int:
    last = text.rsplit(",", 1)[-1].strip()
    return int(last, 0) if re.fullmatch(r"0x[0-9a-f]+|\d+", last) else 0x7F


@lru_cache(maxsize=65536)
def _plan_of(opcode: str, text: str) -> Plan:
    """The accesses of operands whose register numbers are all 0. Most texts with immediates share one shape."""
    if opcode[0] != "T":  # a texture's component mask decides how much it writes
        text = _HEXADECIMAL.sub("0", text)
        if "." in text:  # floating point constants are operands of their own
            text = ", ".join("0" if _is_number(piece) else piece for piece in text.split(", "))
    return _plan(opcode, text)


@lru_cache(maxsize=65536)
def _plan(opcode_text: str, shape: str) -> Plan:
    """The accesses of one operand shape: the text with every register number and immediate replaced by 0."""
    opcode = describe(opcode_text)
    if opcode.registers == "unknown":
        return Plan((), 0, f"the operands of {opcode.family} are not known")
    operands = split_operands(shape)
    last_destination = _count_destinations(opcode.destinations, operands)
    widths = OperandWidths(opcode, operands, last_destination)
    accesses: list[Access] = []
    number = 0
    for position, operand in enumerate(operands):
        for bank, register, suffix in operand.registers:
            if register is None:
                continue
            defines = position < last_destination
            width = 1 if bank in ("P", "UP") else widths.of(position, operand, bank, suffix)
            if width is None:
                return Plan((), 0, f"the operand widths of {opcode_text} are not known")
            mask = ((1 << width) - 1) << BANK_START[bank]
            accesses.append(Access(number, mask, BANK_SIZE[bank] - width, defines))
            number += 1
    if opcode.registers in ("up2ur", "ur2up"):
        return Plan(tuple(accesses), number, None, "uses" if opcode.registers == "up2ur" else "defines", "UP")
    special = {"p2r": "uses", "r2p": "defines"}.get(opcode.registers)
    return Plan(tuple(accesses), number, None, special if "PR" in shape.replace("UPR", "") else None)


def _count_destinations(rule: str, operands: tuple[Operand, ...]) -> int:
    """How many leading operands are written. R: a register; P: a plain predicate, each left out where not there."""
    position = 0
    for kind in rule:
        if position >= len(operands):
            break
        operand = operands[position]
        banks = ("R", "UR") if kind == "R" else ("P", "UP") if kind == "P" else ()
        if operand.is_bank(*banks) and not operand.text.startswith(("!", "-", "|", "~")):
            position += 1
    return position
