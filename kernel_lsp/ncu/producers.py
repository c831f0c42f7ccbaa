"""Turns scoreboard waits with samples into the instructions that they are for: "FFMA waits for the LDG of line 41".

A warp that waits for data is sampled where the data is needed. What it waits for is the instruction that set the
scoreboard: long scoreboards are set by global, local, texture and surface accesses, short ones by shared memory and
special functions. Where several set the same one, those whose result the waiting instruction reads come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kernel_lsp.cubin.sass import Code, Sass
from kernel_lsp.cubin.scoreboard import Wait
from kernel_lsp.ncu.kernel_code import INSTRUCTION_BYTES, KernelCode
from kernel_lsp.ncu.sampled import Sampled

# Families by the unit that answers (NVIDIA's stall reasons in the Kernel Profiling Guide).
_LONG = frozenset(
    (
        *("LDG", "LDGMC", "LDT", "LD", "LDL", "LDGSTS", "ATOMG", "ATOM", "RED", "REDG", "STG", "ST", "STL", "CCTL"),
        *("TEX", "TLD", "TLD4", "TMML", "TXD", "TXQ", "SULD", "SUATOM", "SURED", "SUST", "LDTM", "UBLKCP", "UTMALDG"),
    )
)
_GROUP_END = "LDGDEPBAR"


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Samples of one instruction that waits for another. Addresses in the kernel, texts as disassembled.

    `certain` is false where several instructions could have set the scoreboard, or none is seen to feed the waiting
    one. `chain` is the producer's lines, innermost first.
    """

    reason: str
    samples: int
    pc: int
    instruction: str
    producer_pc: int
    producer: str
    certain: bool
    chain: tuple[tuple[str, int], ...] = ()

    def placed(self, chain: tuple[tuple[str, int], ...]) -> WaitFor:
        """The same with the producer's lines."""
        return replace(self, chain=chain)


def waits_for(found: Sampled, code: KernelCode | None) -> Mapping[int, tuple[WaitFor, ...]]:
    """By the address of each waiting instruction, its producers; empty without a disassembly."""
    if code is None or code.sass is None or code.code is None:
        return MappingProxyType({})
    by_row = {wait.row: wait for wait in code.scoreboard_waits}
    waits: dict[int, tuple[WaitFor, ...]] = {}
    for reason in ("long_scoreboard", "short_scoreboard"):
        if reason not in found.reasons:
            continue
        column = found.samples[:, found.reasons.index(reason)]
        for at in column.nonzero()[0].tolist():
            pc = int(found.pc[at])
            wait = by_row.get(code.code.start + pc // INSTRUCTION_BYTES)
            if wait is None:
                continue
            rows, certain = _likeliest(code.sass, code.code, wait, reason)
            waits[pc] = waits.get(pc, ()) + tuple(
                WaitFor(
                    reason=reason,
                    samples=int(column[at]),
                    pc=pc,
                    instruction=code.text(pc),
                    producer_pc=(producer_pc := (row - code.code.start) * INSTRUCTION_BYTES),
                    producer=code.text(producer_pc),
                    certain=certain,
                )
                for row in rows
            )
    return MappingProxyType(waits)


def _likeliest(sass: Sass, code: Code, wait: Wait, reason: str) -> tuple[list[int], bool]:
    """Rows of the producers of the right kind whose result is read, and whether there is just one such; without any,
    all of the right kind."""
    of_kind = [each for each in wait.producers if _is_long(sass, each.row) == (reason == "long_scoreboard")]
    feeding = sorted({each.row for each in of_kind if each.feeds})
    if feeding:
        return feeding, len(feeding) == 1
    groups = [each.row for each in wait.producers if sass.opcode(each.row).family == _GROUP_END]
    if groups and reason == "long_scoreboard":
        return sorted({copy for row in groups for copy in _copies(sass, code, row)}), False
    return sorted({each.row for each in of_kind}), False


def _copies(sass: Sass, code: Code, row: int) -> list[int]:
    """The asynchronous copies of the group that an LDGDEPBAR ends: those in front of it, up to the one before."""
    found: list[int] = []
    for before in range(row - 1, code.start - 1, -1):
        family = sass.opcode(before).family
        if family == _GROUP_END:
            break
        if family == "LDGSTS":
            found.append(before)
    return found


def _is_long(sass: Sass, row: int) -> bool:
    return sass.opcode(row).family in _LONG
