"""What each instruction of a section does to registers, and which are live at the start of each block.

A register is live where a value written earlier may still be read. Sets of registers are integers (see `operands`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.operands import ALL_REGISTERS, PREDICATE_MASK, UNIFORM_PREDICATE_MASK
from kernel_lsp.cubin.sass import ALWAYS_GUARD, NEVER_GUARD, NO_GUARD, Sass, guard_bit

STACK_POINTER = 1 << 1
_PREDICATES = PREDICATE_MASK | UNIFORM_PREDICATE_MASK


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
class Transfer:
    """Per row of the section: registers written, those whose earlier value ends there, and registers read; EXIT counts
    as a reader of the stack pointer, which is occupied up to there."""

    first: int
    writes: list[int]
    kills: list[int]
    reads: list[int]
    guards: list[int]
    call_rows: frozenset[int]

    @classmethod
    def of(cls, sass: Sass, flow: Flow) -> Transfer | str:
        """The section's transfer, or why an instruction's registers are not known."""
        first, end = flow.code.start, flow.code.padding
        forms: list[int] = sass.form[first:end].tolist()
        guards: list[int] = sass.guard[first:end].tolist()
        unknown = next((form for form in forms if form in sass.forms_of_unknown_registers), None)
        if unknown is not None:
            return sass.forms[unknown].registers.reason or ""
        defines, uses = sass.form_registers
        writes, reads = [defines[form] for form in forms], [uses[form] for form in forms]
        kills = writes[:]
        for at in np.flatnonzero(sass.guard[first:end] != NO_GUARD).tolist():
            guard = guards[at]
            if guard == NEVER_GUARD:
                writes[at] = reads[at] = 0
            if guard != ALWAYS_GUARD:
                kills[at] = 0
            reads[at] |= guard_bit(guard)
        for at, name in enumerate(sass.families(first, end)):
            if name == "EXIT":
                reads[at] |= STACK_POINTER
        return cls(first, writes, kills, reads, guards, frozenset(call.row for call in flow.calls))

    def live_before(self, row: int, live: int, effects: CallModel, exit_live: Mapping[int, int]) -> int:
        """What is live before a row from what is live behind it; `exit_live` is what is live behind each RET row."""
        if row in self.call_rows:
            effect = effects(row)
            return effect.reads | live & effect.keeps
        if row in exit_live:
            live |= exit_live[row]
        at = row - self.first
        return self.reads[at] | live & ~self.kills[at]


class BlockFlow:
    """What the blocks of a section do to live registers as a whole: needed at the start, passed through.

    Blocks with calls or returns depend on more than their own instructions and are worked out anew by each `solve`.
    """

    def __init__(self, work: Transfer, flow: Flow, returns: Iterable[int]) -> None:
        self._flow = flow
        self._special = {flow.block_of(row) for row in (*work.call_rows, *returns)}
        self._predecessors: list[list[int]] = [[] for _ in range(len(flow))]
        for block, targets in enumerate(flow.successors):
            for target in targets:
                self._predecessors[target].append(block)
        self._predicates = [self._predicates_of(work, block) for block in range(len(flow))]
        self._gains = [0] * len(flow)
        self._passes = [0] * len(flow)
        self.update(work, range(len(flow)))

    def update(self, work: Transfer, blocks: Iterable[int]) -> None:
        """Takes over what these blocks do by another transfer of the same section."""
        self._work = work
        for block in blocks:
            if block not in self._special:
                self._gains[block], self._passes[block] = self._plain(block)

    def _plain(self, block: int) -> tuple[int, int]:
        reads, kills, first = self._work.reads, self._work.kills, self._work.first
        gained, passed = 0, ALL_REGISTERS
        for at in range(self._flow.starts[block + 1] - first - 1, self._flow.starts[block] - first - 1, -1):
            kept = ~kills[at]
            gained = reads[at] | gained & kept
            passed &= kept
        return gained, passed

    def _through(self, block: int, effects: CallModel, exit_live: Mapping[int, int]) -> tuple[int, int]:
        work = self._work
        gained, passed = 0, ALL_REGISTERS
        for row in reversed(self._flow.rows(block)):
            gained = work.live_before(row, gained, effects, exit_live)
            passed &= effects(row).keeps if row in work.call_rows else ~work.kills[row - work.first]
        return gained, passed

    def _predicates_of(self, work: Transfer, block: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        first, stop = self._flow.starts[block] - work.first, self._flow.starts[block + 1] - work.first
        writes = [(at, work.writes[at] & _PREDICATES) for at in range(first, stop) if work.writes[at] & _PREDICATES]
        named = 0
        for _, written in writes:
            named |= written
        for guard in set(work.guards[first:stop]):
            named |= guard_bit(guard)
        return named, tuple(writes)

    def predicate_writes(self, block: int, predicate: int) -> list[int]:
        """Instructions of the block that write a predicate, under whatever guard (index in the section)."""
        return [at for at, written in self._predicates[block][1] if written & predicate]

    def without_predicate(self, block: int, predicate: int) -> tuple[int, int] | None:
        """What the block reads and what it leaves alone, where it has nothing to do with a predicate; else None."""
        if block in self._special or self._predicates[block][0] & predicate:
            return None
        return self._gains[block], self._passes[block]

    def live_behind(
        self, block: int, live_in: Sequence[int], effects: CallModel, exit_live: Mapping[int, int]
    ) -> list[int]:
        """Registers live behind each row of a block, by those at the start of each block."""
        work, live = self._work, 0
        for target in self._flow.successors[block]:
            live |= live_in[target]
        found: list[int] = []
        if block in self._special:
            for row in reversed(self._flow.rows(block)):
                found.append(live)
                live = work.live_before(row, live, effects, exit_live)
        else:
            first, stop = self._flow.starts[block] - work.first, self._flow.starts[block + 1] - work.first
            for read, killed in zip(work.reads[first:stop][::-1], work.kills[first:stop][::-1], strict=True):
                found.append(live)
                live = read | live & ~killed
        found.reverse()
        return found

    def solve(self, effects: CallModel, exit_live: Mapping[int, int]) -> list[int]:
        """Registers live at the start of each block; `exit_live` is what is live behind each RET row."""
        gains, passes = self._gains[:], self._passes[:]
        for block in self._special:
            gains[block], passes[block] = self._through(block, effects, exit_live)
        successors, predecessors = self._flow.successors, self._predecessors
        live_in = gains[:]
        waiting = list(range(len(gains)))
        queued = [True] * len(gains)
        while waiting:
            block = waiting.pop()
            queued[block] = False
            out = 0
            for target in successors[block]:
                out |= live_in[target]
            new = gains[block] | out & passes[block]
            if new != live_in[block]:
                live_in[block] = new
                for before in predecessors[block]:
                    if not queued[before]:
                        queued[before] = True
                        waiting.append(before)
        return live_in


def written_before(work: Transfer, flow: Flow, effects: CallModel) -> list[int]:
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
