"""Turns samples as the hardware notes them into samples on the instruction that the warp was held by.

The sampler notes the next instruction to issue. For most reasons that is the instruction that waits. Some are late by
one: a warp that drains its stores at EXIT is noted behind the EXIT (all drain samples of 123 reports), where the line
table says another line or none; a warp at a block barrier is mostly noted behind the BAR. Both go back by one
instruction. Samples outside the kernel's code (the runtime's malloc and printf, device functions of other modules) have
no line and are kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernel_lsp.ncu.kernel_code import INSTRUCTION_BYTES, KernelCode
from kernel_lsp.ncu.kernel_profile import InstructionTable, IntColumn


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Samples by instruction: `pc` rising, a row of `samples` for each, a column for each reason."""

    pc: IntColumn
    reasons: tuple[str, ...]
    samples: IntColumn
    outside: IntColumn  # by reason, outside the kernel's code

    def by_reason(self, rows: npt.NDArray[np.int64]) -> dict[str, int]:
        """Samples of some rows by reason, most first, reasons without any left out."""
        totals = self.samples[rows].sum(axis=0)
        order = np.argsort(-totals, kind="stable")
        return {self.reasons[index]: int(totals[index]) for index in order if totals[index]}

    @property
    def total(self) -> int:
        """All samples, those outside the kernel included."""
        return int(self.samples.sum() + self.outside.sum())


def sampled(table: InstructionTable, code: KernelCode | None) -> Sampled:
    """The table's samples on the instructions that held the warps. Without `code`, drain always goes back by one,
    barrier never, and what was executed tells the kernel's code from other code."""
    moved = table.samples.copy()
    pcs = table.pc
    before = pcs - INSTRUCTION_BYTES
    extra: dict[int, IntColumn] = {}
    for reason in ("drain", "barrier", "long_scoreboard"):
        if reason not in table.reasons:
            continue
        column = table.reasons.index(reason)
        late = moved[:, column] > 0
        if code is None:
            late &= (reason == "drain") & (pcs > 0)
        elif reason == "drain":
            late &= code.is_exit(before) & ~code.is_exit(pcs)
        elif reason == "barrier":
            late &= code.is_barrier(before) & ~code.is_barrier(pcs)
        else:
            late &= code.is_counted_wait(before) & ~code.waits(pcs)
        for row in np.flatnonzero(late).tolist():
            added = extra.setdefault(int(before[row]), np.zeros(len(table.reasons), np.int64))
            added[column] += moved[row, column]
            moved[row, column] = 0
    new = np.array(sorted(set(extra) - set(pcs.tolist())), np.int64)
    all_pcs = np.union1d(pcs, new)
    samples = np.zeros((len(all_pcs), len(table.reasons)), np.int64)
    samples[np.searchsorted(all_pcs, pcs)] = moved
    for pc, added in extra.items():
        samples[np.searchsorted(all_pcs, pc)] += added
    inside = _inside(table, all_pcs, code)
    outside = samples[~inside].sum(axis=0)
    samples[~inside] = 0
    for column_values in (all_pcs, samples, outside):
        column_values.setflags(write=False)
    return Sampled(all_pcs, table.reasons, samples, outside)


def _is_executed(table: InstructionTable, pcs: IntColumn) -> npt.NDArray[np.bool_]:
    if table.executed is None:
        return np.ones(len(pcs), np.bool_)
    return np.isin(pcs, table.pc[table.executed > 0])


def _inside(table: InstructionTable, pcs: IntColumn, code: KernelCode | None) -> npt.NDArray[np.bool_]:
    if code is not None:
        # Functions beside the kernel: ncu counts and places what it could instrument, the module's own code.
        own = (pcs >= 0) & (pcs < code.instruction_bytes)
        own |= np.isin(pcs, np.array(sorted(table.said_lines()), np.int64))
        return own | _is_executed(table, pcs) if table.executed is not None else own
    if table.executed is None:
        return pcs >= 0
    # Nothing tells where the code ends: what was executed, and the instruction behind it.
    return _is_executed(table, pcs) | _is_executed(table, pcs - INSTRUCTION_BYTES)
