"""Turns the control flow of a code section and its instructions' registers into live registers per instruction.

A register is live where a value written earlier may still be read; one that nothing has written yet is not, though a
write under a guard may be all that stands before its use. An instruction's count is of the registers that are occupied
while it runs: live before it, live behind it, or written by it (so an unused result counts where it is written), as in
nvdisasm's life ranges. A write under a guard, uniform or not, does not end an earlier value's life.

Calls: a function in the same section is analysed with its caller (what it reads, what it leaves alone, what its
callers still need when it returns), so arguments and results in any register are seen. For a call to code outside
the section NVIDIA's calling convention is taken, as nvdisasm does: R0, R3-R15, P0-P6, UR4-UR35 and UP0 are lost. R1,
the stack pointer, is occupied to the end of every kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.operands import (
    ALL_REGISTERS,
    BANK_START,
    GENERAL_MASK,
    PREDICATE_MASK,
    UNIFORM_MASK,
    UNIFORM_PREDICATE_MASK,
)
from kernel_lsp.cubin.sass import NEVER_GUARD, NO_GUARD, Sass, guard_bit

STACK_POINTER = 1 << 1


def _run(bank: str, first: int, last: int) -> int:
    return ((1 << last - first + 1) - 1) << BANK_START[bank] + first


# What a called function may overwrite (CUDA's calling convention as nvdisasm's life ranges show it at every call).
CALL_CLOBBERS = (
    _run("R", 0, 0) | _run("R", 3, 15) | _run("P", 0, 6) | _run("UR", 4, 35) | _run("UP", 0, 0)
)  # fmt: skip
_ALWAYS_GUARD = 7
_MASKS = (GENERAL_MASK, PREDICATE_MASK, UNIFORM_MASK, UNIFORM_PREDICATE_MASK)


@dataclass(frozen=True, slots=True)
class CallEffect:
    """What a call does to the registers around it.

    `reads`: needed before it; `keeps`: of those needed behind it, the ones needed before it too; `writes`: occupied by
    the call itself; `creates`: may hold a value behind it.
    """

    reads: int
    keeps: int
    writes: int
    creates: int


# (row of the call) -> its effect.
CallModel = Callable[[int], CallEffect]


@dataclass(frozen=True, eq=False)
class Liveness:
    """Occupied registers per row of one section (index: row - code.start; padding and unreachable rows hold 0).

    `peak` is the highest count of general registers and `peak_row` the first row that has it. All columns are None,
    with `why`, where an instruction's registers are not known.
    """

    general: npt.NDArray[np.uint16] | None
    predicates: npt.NDArray[np.uint8] | None
    uniform: npt.NDArray[np.uint16] | None
    uniform_predicates: npt.NDArray[np.uint8] | None
    peak: int | None
    peak_row: int | None
    why: str | None


def live_registers(sass: Sass, flow: Flow) -> Liveness:
    """Occupied registers per instruction of the section of `flow`, with the calls inside it followed."""
    if flow.unknown_branches:
        return _unknown("an indirect branch whose targets are not known")
    work = Transfer.of(sass, flow)
    if isinstance(work, str):
        return _unknown(work)
    returns = _ReturnSites.of(sass, flow)
    effects = _summaries(work, flow, returns)
    exit_live = dict.fromkeys(returns.rows, STACK_POINTER)
    while True:
        live_in = solve(work, flow, effects, exit_live)
        needed = _needed_on_return(work, flow, effects, live_in, returns)
        if needed == exit_live:
            break
        exit_live = needed
    occupied, _ = occupied_sets(work, flow, effects, exit_live, live_in)
    return _counted(flow, occupied)


def _unknown(why: str) -> Liveness:
    return Liveness(None, None, None, None, None, None, why)


@dataclass(frozen=True, eq=False)
class Transfer:
    """Per row of the section: registers written, those whose earlier value ends there, and registers read."""

    first: int
    writes: list[int]
    kills: list[int]
    reads: list[int]
    call_rows: frozenset[int]
    exit_rows: frozenset[int]  # EXIT: the stack pointer is occupied up to there

    @classmethod
    def of(cls, sass: Sass, flow: Flow) -> Transfer | str:
        """The section's transfer, or why an instruction's registers are not known."""
        first, end = flow.code.start, flow.code.padding
        forms = sass.forms
        writes: list[int] = []
        kills: list[int] = []
        reads: list[int] = []
        for form, guard in zip(sass.form[first:end].tolist(), sass.guard[first:end].tolist(), strict=True):
            registers = forms[form].registers
            written, read = registers.defines, registers.uses
            if written is None or read is None:
                return registers.reason or "registers not known"
            if guard == NEVER_GUARD:
                written = read = 0
            writes.append(written)
            kills.append(written if guard in (NO_GUARD, _ALWAYS_GUARD) else 0)
            reads.append(read | guard_bit(guard))
        exits = frozenset(row for row, name in enumerate(sass.families(first, end), first) if name == "EXIT")
        return cls(first, writes, kills, reads, frozenset(call.row for call in flow.calls), exits)


@dataclass(frozen=True, slots=True)
class _ReturnSites:
    """RET rows of the section's functions, and which functions the calls of the section enter."""

    rows: tuple[int, ...]
    function_of: Mapping[int, int]  # RET row -> first row of its function
    callees: Mapping[int, int | None]  # call row -> first row of a function of this section; None: outside

    @classmethod
    def of(cls, sass: Sass, flow: Flow) -> _ReturnSites:
        entries = {function.start for function in flow.code.functions}
        first, end = flow.code.start, flow.code.padding
        rows = [row for row, name in enumerate(sass.families(first, end), first) if name == "RET"]
        return cls(
            rows=tuple(rows),
            function_of={row: max(entry for entry in entries if entry <= row) for row in rows},
            callees={call.row: call.callee if call.callee in entries else None for call in flow.calls},
        )


def _outside_call(work: Transfer, row: int) -> CallEffect:
    return CallEffect(
        reads=work.reads[row - work.first] | STACK_POINTER,
        keeps=ALL_REGISTERS & ~CALL_CLOBBERS,
        writes=CALL_CLOBBERS,
        creates=CALL_CLOBBERS,
    )


def _summaries(work: Transfer, flow: Flow, returns: _ReturnSites) -> CallModel:
    """Effects of the section's calls: reads = live at the entry with nothing needed behind, keeps = with everything."""
    entries = sorted({callee for callee in returns.callees.values() if callee is not None})
    reads = dict.fromkeys(entries, 0)
    keeps = dict.fromkeys(entries, 0)
    created = 0
    for written in work.writes[min(entries, default=flow.code.padding) - work.first :]:
        created |= written

    def effect(row: int) -> CallEffect:
        callee = returns.callees[row]
        if callee is None:
            return _outside_call(work, row)
        return CallEffect(reads[callee] | work.reads[row - work.first], keeps[callee], 0, created)

    while entries:
        nothing = solve(work, flow, effect, dict.fromkeys(returns.rows, 0))
        everything = solve(work, flow, effect, dict.fromkeys(returns.rows, ALL_REGISTERS))
        new_reads = {entry: nothing[flow.block_of(entry)] for entry in entries}
        new_keeps = {entry: everything[flow.block_of(entry)] for entry in entries}
        if new_reads == reads and new_keeps == keeps:
            break
        reads.update(new_reads)
        keeps.update(new_keeps)
    return effect


def _needed_on_return(
    work: Transfer, flow: Flow, effects: CallModel, live_in: list[int], returns: _ReturnSites
) -> dict[int, int]:
    """What is live behind each RET: what the callers of its function need; a function that only calls from outside
    or through a register enter gets what the unknown calls of the section need."""
    behind: dict[int | None, int] = {}
    for row, callee in returns.callees.items():
        block = flow.block_of(row)
        needed = 0
        for following in flow.successors[block]:
            needed |= live_in[following]
        behind[callee] = behind.get(callee, 0) | needed
    unknown = behind.get(None, 0) | STACK_POINTER
    return {row: behind.get(returns.function_of[row], unknown) | STACK_POINTER for row in returns.rows}


def solve(work: Transfer, flow: Flow, effects: CallModel, exit_live: Mapping[int, int]) -> list[int]:
    """Registers live at the start of each block; `exit_live` is what is live behind each RET row."""
    count = len(flow)
    gains = [0] * count
    passes = [0] * count
    for block in range(count):
        gained, passed = 0, ALL_REGISTERS
        for row in reversed(flow.rows(block)):
            at = row - work.first
            if row in work.call_rows:
                effect = effects(row)
                gained = effect.reads | gained & effect.keeps
                passed &= effect.keeps
                continue
            if row in exit_live:
                gained |= exit_live[row]
            elif row in work.exit_rows:
                gained |= STACK_POINTER
            kept = ~work.kills[at]
            gained = work.reads[at] | gained & kept
            passed &= kept
        gains[block], passes[block] = gained, passed
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for block, targets in enumerate(flow.successors):
        for target in targets:
            predecessors[target].append(block)
    live_in = gains[:]
    waiting = list(range(count))
    queued = [True] * count
    while waiting:
        block = waiting.pop()
        queued[block] = False
        out = 0
        for target in flow.successors[block]:
            out |= live_in[target]
        new = gains[block] | out & passes[block]
        if new != live_in[block]:
            live_in[block] = new
            for before in predecessors[block]:
                if not queued[before]:
                    queued[before] = True
                    waiting.append(before)
    return live_in


def occupied_sets(
    work: Transfer, flow: Flow, effects: CallModel, exit_live: Mapping[int, int], live_in: list[int]
) -> tuple[list[int], list[int]]:
    """Per row of the section, from the sets at the blocks' starts: the registers occupied, and those that some path
    to and including the row has written. Rows of unreachable blocks hold 0."""
    occupied = [0] * (flow.code.padding - flow.code.start)
    existing = occupied[:]
    written_before = _written_before(work, flow, effects)
    for block in range(len(flow)):
        if not flow.reachable[block]:
            continue
        exists = written_before[block]
        for row in flow.rows(block):
            exists |= effects(row).creates if row in work.call_rows else work.writes[row - work.first]
            existing[row - work.first] = exists
        live = 0
        for target in flow.successors[block]:
            live |= live_in[target]
        for row in reversed(flow.rows(block)):
            at = row - work.first
            if row in work.call_rows:
                effect = effects(row)
                behind, written = live, effect.writes
                live = effect.reads | live & effect.keeps
            else:
                if row in exit_live:
                    live |= exit_live[row]
                elif row in work.exit_rows:
                    live |= STACK_POINTER
                behind, written = live, work.writes[at]
                live = work.reads[at] | live & ~work.kills[at]
            occupied[at] = (behind | live | written) & existing[at]
    return occupied, existing


def _counted(flow: Flow, occupied: list[int]) -> Liveness:
    size = flow.code.stop - flow.code.start
    columns = [np.zeros(size, np.uint16) for _ in _MASKS]
    for column, mask in zip(columns, _MASKS, strict=True):
        column[: len(occupied)] = [(registers & mask).bit_count() for registers in occupied]
    general = columns[0]
    peak_at = int(general.argmax()) if size else 0
    return Liveness(
        general=general,
        predicates=columns[1].astype(np.uint8),
        uniform=columns[2],
        uniform_predicates=columns[3].astype(np.uint8),
        peak=int(general[peak_at]) if size else 0,
        peak_row=flow.code.start + peak_at if size else None,
        why=None,
    )


def _written_before(work: Transfer, flow: Flow, effects: CallModel) -> list[int]:
    """Registers that some path to the start of each block has written; all, in functions that are called."""
    count = len(flow)
    written = [0] * count
    for block in range(count):
        for row in flow.rows(block):
            written[block] |= effects(row).creates if row in work.call_rows else work.writes[row - work.first]
    before = [0] * count
    for root in flow.roots[1:]:
        before[root] = ALL_REGISTERS
    waiting = list(range(count))
    while waiting:
        block = waiting.pop()
        out = before[block] | written[block]
        for target in flow.successors[block]:
            if out & ~before[target]:
                before[target] |= out
                waiting.append(target)
    return before
