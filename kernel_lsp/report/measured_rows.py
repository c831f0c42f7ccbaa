"""The lines of a measured kernel, each instruction on one: the user's file first, other files where it is not in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernel_lsp.ncu.attach import CounterAdder, Counters, most_waited
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.producers import WaitFor


@dataclass(frozen=True, slots=True)
class CostRow:
    """What a line cost. `in_file`: it is a line of the built text of the user's file, else of the file as compiled."""

    file: str
    line: int
    in_file: bool
    certain: bool
    here: Counters
    waits: tuple[WaitFor, ...]


def cost_rows(found: KernelMeasurement, *, sampled_only: bool = False) -> tuple[CostRow, ...]:
    """All lines with instructions (with samples), most samples first.

    An instruction stands on its innermost line in the user's file; where it has none there, on its innermost line.
    """
    placed = found.placed
    rows = [
        CostRow(placed.path, line.line, True, line.certain, line.here, line.waits_for)
        for line in placed.lines
        if line.here.samples or not sampled_only
    ]
    rows += _elsewhere(found, sampled_only)
    return tuple(sorted(rows, key=lambda row: (-row.here.samples, not row.in_file, row.file, row.line)))


def _elsewhere(found: KernelMeasurement, sampled_only: bool) -> list[CostRow]:
    measured, built_path = found.measured, found.placed.built_path
    table, sampled = found.profile.instructions, measured.sampled
    if table is None or sampled is None:
        return []
    wanted = np.flatnonzero(sampled.samples.any(axis=1)).tolist() if sampled_only else range(len(measured.chains))
    by_line: dict[tuple[str, int], list[int]] = {}
    for row in wanted:
        chain = measured.chains[row]
        if chain and all(file != built_path for file, _ in chain):
            by_line.setdefault(chain[0], []).append(row)
    if not by_line:
        return []
    adder = CounterAdder(table, sampled)
    return [
        CostRow(
            file,
            line,
            in_file=False,
            certain=True,
            here=adder.counters(of_line),
            waits=most_waited(measured.waits, [int(measured.pc[row]) for row in of_line]),
        )
        for (file, line), of_line in by_line.items()
    ]
