"""Turns a profiled launch and the code of its kernel into costs by source line, with the producers that waits are for.

Every instruction's counters go to the line of its innermost inlined frame (`own`, as ncu's source page has it) and to
every line of its chain of calls (`within`: the line of a call holds what was inlined there). Lines come from the
cubin's table where the code is at hand, else from ncu's own attribution, which has no chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from kernel_lsp.ncu.kernel_code import KernelCode
from kernel_lsp.ncu.kernel_profile import InstructionTable, KernelProfile
from kernel_lsp.ncu.producers import WaitFor, waits_for
from kernel_lsp.ncu.sampled import Sampled, sampled

LineKey = tuple[str, int]
Chain = tuple[LineKey, ...]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counters:
    """Sums over instructions; None where the report lacks the metric. `samples` and reasons are warp samples."""

    samples: int
    by_reason: Mapping[str, int]  # most first
    instructions: int  # different ones
    executed: int | None
    thread_executed_on: int | None
    divergent_branches: int | None
    global_sectors: int | None
    global_sectors_ideal: int | None
    global_instructions: int | None  # warp instructions that accessed global memory
    local_sectors: int | None
    shared_wavefronts: int | None
    shared_wavefronts_ideal: int | None

    @property
    def threads_per_instruction(self) -> float | None:
        """Active, not predicated off threads of a warp on average; 32 is all."""
        if self.thread_executed_on is None or not self.executed:
            return None
        return self.thread_executed_on / self.executed

    @property
    def sectors_per_request(self) -> float | None:
        """32-byte sectors that a warp's global access takes on average."""
        if self.global_sectors is None or not self.global_instructions:
            return None
        return self.global_sectors / self.global_instructions

    @property
    def excess_sectors(self) -> int | None:
        """Sectors beyond those that the same bytes would take if they lay together."""
        if self.global_sectors is None or self.global_sectors_ideal is None:
            return None
        return max(0, self.global_sectors - self.global_sectors_ideal)

    @property
    def excess_wavefronts(self) -> int | None:
        """Shared memory passes beyond those without bank conflicts."""
        if self.shared_wavefronts is None or self.shared_wavefronts_ideal is None:
            return None
        return max(0, self.shared_wavefronts - self.shared_wavefronts_ideal)

    @property
    def excess_sector_share(self) -> float | None:
        """Excess over all global sectors, 0..1: ncu's "N% of this line's global accesses are excessive"."""
        if self.excess_sectors is None or not self.global_sectors:
            return None
        return self.excess_sectors / self.global_sectors

    @property
    def excess_wavefront_share(self) -> float | None:
        """Excess over all shared memory wavefronts, 0..1."""
        if self.excess_wavefronts is None or not self.shared_wavefronts:
            return None
        return self.excess_wavefronts / self.shared_wavefronts


@dataclass(frozen=True, slots=True)
class LineCost:
    """What a line cost. File as the compiler wrote it, line 1-based."""

    file: str
    line: int
    own: Counters
    within: Counters  # with all that is inlined into the line
    waits_for: tuple[WaitFor, ...]  # most samples first; of the line's own instructions


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredKernel:
    """A profiled launch on the lines of the text that was profiled.

    `lines`: most own samples first, then by file and line; `nowhere`: instructions without a line; `outside`: samples
    by reason outside the kernel's code. `pc` and `chains` (innermost first) tell the line of each instruction; `waits`
    are by the address of the waiting instruction.
    """

    profile: KernelProfile
    code: KernelCode | None
    sampled: Sampled | None
    lines: tuple[LineCost, ...]
    nowhere: Counters | None
    outside: Mapping[str, int]
    pc: npt.NDArray[np.int64]
    chains: tuple[Chain, ...]
    waits: Mapping[int, tuple[WaitFor, ...]]

    @property
    def sample_count(self) -> int:
        """All samples of the launch."""
        return 0 if self.sampled is None else self.sampled.total

    def line(self, file: str, line: int) -> LineCost | None:
        """The cost of one line."""
        return next((cost for cost in self.lines if cost.line == line and cost.file == file), None)


def measure(profile: KernelProfile, code: KernelCode | None) -> MeasuredKernel:
    """Costs by line. `code` is the kernel's in the report's own cubin, or an identical one; None: not at hand."""
    table = profile.instructions
    if table is None:
        none: Mapping[int, tuple[WaitFor, ...]] = MappingProxyType({})
        return MeasuredKernel(profile, code, None, (), None, MappingProxyType({}), np.zeros(0, np.int64), (), none)
    found = sampled(table, code)
    chains = _chains(table, found.pc, code)
    waits = waits_for(found, code)
    producers = np.array(sorted({wait.producer_pc for group in waits.values() for wait in group}), np.int64)
    chain_of = dict(zip(producers.tolist(), _chains(table, producers, code), strict=True))
    waits = {pc: tuple(wait.placed(chain_of[wait.producer_pc]) for wait in group) for pc, group in waits.items()}
    own: dict[LineKey, list[int]] = {}
    within: dict[LineKey, list[int]] = {}
    nowhere: list[int] = []
    for row, chain in enumerate(chains):
        if not chain:
            nowhere.append(row)
            continue
        own.setdefault(chain[0], []).append(row)
        for key in dict.fromkeys(chain):
            within.setdefault(key, []).append(row)
    adder = CounterAdder(table, found)
    costs = [
        LineCost(
            file=file,
            line=line,
            own=adder.counters(own.get((file, line), ())),
            within=adder.counters(rows),
            waits_for=most_waited(waits, [int(found.pc[row]) for row in own.get((file, line), ())]),
        )
        for (file, line), rows in within.items()
    ]
    outside = {reason: int(count) for reason, count in zip(found.reasons, found.outside.tolist(), strict=True) if count}
    return MeasuredKernel(
        profile=profile,
        code=code,
        sampled=found,
        lines=tuple(sorted(costs, key=lambda c: (-c.own.samples, -(c.own.executed or 0), c.file, c.line))),
        nowhere=adder.counters(nowhere) if nowhere else None,
        outside=MappingProxyType(outside),
        pc=found.pc,
        chains=chains,
        waits=MappingProxyType(waits),
    )


class CounterAdder:
    """Sums of a table's columns over rows of the sampled table."""

    def __init__(self, table: InstructionTable, found: Sampled) -> None:
        self._found = found
        places = np.searchsorted(found.pc, table.pc)
        self._columns: dict[str, npt.NDArray[np.int64] | None] = {}
        for name in (
            "executed",
            "thread_executed_on",
            "divergent_branches",
            "global_sectors",
            "global_sectors_ideal",
            "local_sectors",
            "shared_wavefronts",
            "shared_wavefronts_ideal",
        ):
            self._columns[name] = _spread(getattr(table, name), places, len(found.pc))
        accesses = None
        if table.executed is not None and table.global_sectors is not None:
            accesses = np.where(table.global_sectors > 0, table.executed, 0)
        self._columns["global_instructions"] = _spread(accesses, places, len(found.pc))

    def counters(self, rows: Sequence[int]) -> Counters:
        """The sums over these rows of `Sampled.pc`."""
        at = np.array(rows, np.int64)
        reasons = self._found.by_reason(at)
        sums = {name: None if column is None else int(column[at].sum()) for name, column in self._columns.items()}
        return Counters(
            samples=sum(reasons.values()), by_reason=MappingProxyType(reasons), instructions=len(at), **sums
        )


def _spread(
    column: npt.NDArray[np.int64] | None, places: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64] | None:
    if column is None:
        return None
    spread = np.zeros(count, np.int64)
    spread[places] = column
    return spread


def _chains(table: InstructionTable, pcs: npt.NDArray[np.int64], code: KernelCode | None) -> tuple[Chain, ...]:
    """The lines of each instruction, innermost first; () where none is known."""
    said = table.said_lines()
    lines = code.lines if code is not None else None
    if lines is None or code is None:
        return tuple((said[pc],) if pc in said else () for pc in pcs.tolist())
    rows = lines.rows_at(pcs)
    known: dict[int, Chain] = {}
    for row in np.unique(rows).tolist():
        frames = lines.frames_of_row(row)
        known[row] = tuple((f.file, f.line) for f in frames if f.line) if frames and frames[0].line else ()
    # A function that was not inlined stands in a section of its own: there ncu's attribution is all there is.
    own = ((pcs >= 0) & (pcs < code.instruction_bytes)).tolist()
    return tuple(
        known[row] if inside else (said[pc],) if pc in said else ()
        for pc, row, inside in zip(pcs.tolist(), rows.tolist(), own, strict=True)
    )


def most_waited(waits: Mapping[int, tuple[WaitFor, ...]], pcs: Sequence[int]) -> tuple[WaitFor, ...]:
    """The waits of some instructions, most samples first."""
    found = (wait for pc in pcs for wait in waits.get(pc, ()))
    return tuple(sorted(found, key=lambda wait: (-wait.samples, wait.pc, wait.producer_pc)))
