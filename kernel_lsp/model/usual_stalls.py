"""Turns an opcode and an architecture into the stall the compiler usually leaves, and what the pipe itself needs.

Three numbers are told apart: what this cubin has (`control.stall`), what ptxas usually chooses (`usual_stalls.csv`),
and the clocks that the pipe is busy on a given board. The last is a formula, FLOP / (FLOP per clock and SM / 4): an SM
has four sub-partitions, and a gap below it only moves the wait into the pipe's queue. On GA10x and AD10x ptxas emits
the A100's gaps for tensor instructions although their pipes are two to four times slower, so a tighter stall there
would gain nothing.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from kernel_lsp.cubin.opcodes import Opcode

_SUB_PARTITIONS = 4
# Forms of their own: sparse, scaled, of 4 bits. A pattern without one of these was measured on instructions without it.
_SET_APART = frozenset(("SP", "SF", "S4", "U4"))


@dataclass(frozen=True, slots=True)
class UsualStall:
    """Clocks that ptxas 13.0 leaves behind an instruction; `dependent` where the next one needs the result."""

    independent: int
    dependent: int | None


def usual_stall(opcode: Opcode, arch: str) -> UsualStall | None:
    """ptxas's usual choice for an opcode on an architecture ("sm_90a"); None where it was not measured."""
    digits = re.match(r"sm_(\d+)", arch)
    if not digits:
        return None
    tokens = (opcode.family, *opcode.modifiers)
    apart = _SET_APART.intersection(tokens)
    for pattern, by_arch in _table():
        if pattern[0] == opcode.family and apart.issubset(pattern) and _occur_in_order(pattern, tokens):
            return by_arch.get(f"sm_{digits[1]}")
    return None


def pipe_clocks(opcode: Opcode, flop_per_clock_per_sm: float) -> float | None:
    """Clocks one sub-partition's pipe is busy with one such warp instruction; None where its FLOP are not known."""
    if not opcode.flop or flop_per_clock_per_sm <= 0:
        return None
    return opcode.flop / (flop_per_clock_per_sm / _SUB_PARTITIONS)


def _occur_in_order(pattern: tuple[str, ...], tokens: tuple[str, ...]) -> bool:
    left = iter(tokens)
    return all(token in left for token in pattern)


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[tuple[str, ...], dict[str, UsualStall]], ...]:
    """Patterns with the most tokens first, so that HMMA.1688.TF32 is asked before HMMA.1688.F32."""
    text = resources.files("kernel_lsp.model").joinpath("usual_stalls.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    found = [
        (
            tuple(row.pop("pattern").split(".")),
            {arch: _stall(value) for arch, value in row.items() if value},
        )
        for row in rows
    ]
    # TF32 forms print both types ("HMMA.1688.F32.TF32"): the operand type decides.
    return tuple(sorted(found, key=lambda item: (-len(item[0]), "TF32" not in item[0])))


def _stall(text: str) -> UsualStall:
    independent, _, dependent = text.partition("/")
    return UsualStall(int(independent), int(dependent) if dependent else None)
