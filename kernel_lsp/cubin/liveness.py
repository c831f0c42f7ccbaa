"""Turns the control flow of a code section and its instructions' registers into live registers per instruction.

A register is live where a value written earlier may still be read; one that nothing has written yet is not, though a
write under a guard may be all that stands before its use. An instruction's count is of the registers that are occupied
while it runs: live before it, live behind it, or written by it (so an unused result counts where it is written), as in
nvdisasm's life ranges. A write under a guard ends an earlier value's life only where all that reads the register behind
it runs under the same guard (see `guarded_writes`).

Calls: a function in the same section is analysed with its caller (what it reads, what it leaves alone, what its
callers still need when it returns), so arguments and results in any register are seen. For a call to code outside
the section NVIDIA's calling convention is taken, as nvdisasm does: R0, R3-R15, P0-P6, UR4-UR35 and UP0 are lost. R1,
the stack pointer, is occupied to the end of every kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.guarded_writes import all_ending, without_needed
from kernel_lsp.cubin.operands import ALL_REGISTERS, BANK_START
from kernel_lsp.cubin.register_flow import STACK_POINTER, BlockFlow, CallEffect, CallModel, Transfer, written_before
from kernel_lsp.cubin.sass import Sass


def _run(bank: str, first: int, last: int) -> int:
    return ((1 << last - first + 1) - 1) << BANK_START[bank] + first


# What a called function may overwrite (CUDA's calling convention as nvdisasm's life ranges show it at every call).
CALL_CLOBBERS = (
    _run("R", 0, 0) | _run("R", 3, 15) | _run("P", 0, 6) | _run("UR", 4, 35) | _run("UP", 0, 0)
)  # fmt: skip
# Rounds of looking for values that guarded writes end, before none is taken to. Real kernels need up to six.
_MOST_ROUNDS = 40
# Where the banks start in a set's bytes, and how many bits a byte has.
_BANK_BYTES = [start // 8 for start in BANK_START.values()]
_SET_BYTES = ALL_REGISTERS.bit_length() // 8
_BITS_OF_BYTE = np.array([value.bit_count() for value in range(256)], np.uint8)


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
    found = occupied_registers(sass, flow)
    return _unknown(found) if isinstance(found, str) else _counted(flow, found[0])


def occupied_registers(sass: Sass, flow: Flow) -> tuple[list[int], list[int]] | str:
    """Per row of the section: the registers occupied, and those that some path to and including the row has written.

    Rows of unreachable blocks hold 0. A text instead: why an instruction's registers are not known.
    """
    if flow.unknown_branches:
        return "an indirect branch whose targets are not known"
    work = Transfer.of(sass, flow)
    if isinstance(work, str):
        return work
    returns = _ReturnSites.of(sass, flow)
    trial = all_ending(work)
    blocks = BlockFlow(trial, flow, returns.rows)
    for _ in range(_MOST_ROUNDS):
        solution = _solved(trial, flow, blocks, returns)
        trial, changed = without_needed(trial, flow, blocks, *solution)
        if not changed:
            return _occupied(trial, flow, blocks, *solution)
        blocks.update(trial, changed)
    blocks.update(work, range(len(flow)))
    return _occupied(work, flow, blocks, *_solved(work, flow, blocks, returns))


def _solved(
    work: Transfer, flow: Flow, blocks: BlockFlow, returns: _ReturnSites
) -> tuple[CallModel, dict[int, int], list[int]]:
    """Effects of calls, registers live behind each RET, and those live at the start of each block."""
    effects = _summaries(work, flow, blocks, returns)
    exit_live = dict.fromkeys(returns.rows, STACK_POINTER)
    while True:
        live_in = blocks.solve(effects, exit_live)
        needed = _needed_on_return(flow, live_in, returns)
        if needed == exit_live:
            return effects, exit_live, live_in
        exit_live = needed


def _unknown(why: str) -> Liveness:
    return Liveness(None, None, None, None, None, None, why)


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


def _summaries(work: Transfer, flow: Flow, blocks: BlockFlow, returns: _ReturnSites) -> CallModel:
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
        nothing = blocks.solve(effect, dict.fromkeys(returns.rows, 0))
        everything = blocks.solve(effect, dict.fromkeys(returns.rows, ALL_REGISTERS))
        new_reads = {entry: nothing[flow.block_of(entry)] for entry in entries}
        new_keeps = {entry: everything[flow.block_of(entry)] for entry in entries}
        if new_reads == reads and new_keeps == keeps:
            break
        reads.update(new_reads)
        keeps.update(new_keeps)
    return effect


def _needed_on_return(flow: Flow, live_in: list[int], returns: _ReturnSites) -> dict[int, int]:
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


def _occupied(
    work: Transfer,
    flow: Flow,
    blocks: BlockFlow,
    effects: CallModel,
    exit_live: Mapping[int, int],
    live_in: list[int],
) -> tuple[list[int], list[int]]:
    occupied = [0] * (flow.code.padding - flow.code.start)
    existing = occupied[:]
    exists_at_start = written_before(work, flow, effects)
    for block in range(len(flow)):
        if not flow.reachable[block]:
            continue
        exists = exists_at_start[block]
        behind = blocks.live_behind(block, live_in, effects, exit_live)
        for at, live in enumerate(behind, flow.starts[block] - work.first):
            row = at + work.first
            if row in work.call_rows:
                effect = effects(row)
                exists |= effect.creates
                live |= effect.reads | effect.writes
            else:
                exists |= work.writes[at]
                live |= work.reads[at] | work.writes[at] | exit_live.get(row, 0)
            occupied[at], existing[at] = live & exists, exists
    return occupied, existing


def _counted(flow: Flow, occupied: list[int]) -> Liveness:
    size = flow.code.stop - flow.code.start
    counts = np.zeros((size, len(_BANK_BYTES)), np.uint16)
    sets = np.frombuffer(b"".join(each.to_bytes(_SET_BYTES, "little") for each in occupied), np.uint8)
    counts[: len(occupied)] = np.add.reduceat(
        _BITS_OF_BYTE[sets.reshape(-1, _SET_BYTES)], _BANK_BYTES, axis=1, dtype=np.uint16
    )
    columns = dict(zip(BANK_START, counts.T, strict=True))
    general = columns["R"]
    peak_at = int(general.argmax()) if size else 0
    return Liveness(
        general=general,
        predicates=columns["P"].astype(np.uint8),
        uniform=columns["UR"],
        uniform_predicates=columns["UP"].astype(np.uint8),
        peak=int(general[peak_at]) if size else 0,
        peak_row=flow.code.start + peak_at if size else None,
        why=None,
    )
