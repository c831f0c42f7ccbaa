"""The lines of a measured kernel, each instruction on one: the user's file first, other files where it is not in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernel_lsp.ncu.attach import CounterAdder, Counters, LineKey, most_waited
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


def cost_rows(found: KernelMeasurement, least_samples: float = 0) -> tuple[CostRow, ...]:
    """All lines with so many samples or more, most samples first.

    An instruction stands on its innermost line in the user's file; where it has none there, on its innermost line.
    """
    placed = found.placed
    rows = [
        CostRow(placed.path, line.line, True, line.certain, line.here, line.waits_for)
        for line in placed.lines
        if line.here.samples >= least_samples
    ]
    rows += _elsewhere(found, least_samples)
    return tuple(sorted(rows, key=lambda row: (-row.here.samples, not row.in_file, row.file, row.line)))


def _elsewhere(found: KernelMeasurement, least_samples: float) -> list[CostRow]:
    measured, table, sampled = found.measured, found.profile.instructions, found.measured.sampled
    if table is None or sampled is None:
        return []
    counts = sampled.samples.sum(axis=1)
    wanted = np.flatnonzero(counts).tolist() if least_samples > 0 else range(len(measured.chains))
    by_line: dict[LineKey, list[int]] = {}
    seen: dict[int, LineKey | None] = {}  # instructions of one row of the line table share their chain
    for row in wanted:
        chain = measured.chains[row]
        if id(chain) not in seen:
            is_here = not chain or any(file == found.placed.built_path for file, _ in chain)
            seen[id(chain)] = None if is_here else chain[0]
        key = seen[id(chain)]
        if key is not None:
            by_line.setdefault(key, []).append(row)
    hot = {key: rows for key, rows in by_line.items() if int(counts[rows].sum()) >= least_samples}
    if not hot:
        return []
    adder = CounterAdder(table, sampled)
    return [
        CostRow(
            file,
            line,
            in_file=False,
            certain=True,
            here=adder.counters(rows),
            waits=most_waited(measured.waits, measured.pc[rows].tolist()),
        )
        for (file, line), rows in hot.items()
    ]
