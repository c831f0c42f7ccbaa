"""Finds the guarded writes behind which a register's earlier value is needed no more.

    @P1 SHF.L.U32 R0, R8, 0x1f, RZ       where P1 is false R0 keeps its old value ...
    @P1 SYNCS.... P0, [UR20], R0         ... but then nothing reads it: the old value ended before the write

For each guarded write the code behind it is followed as a thread runs it that skipped the write: instructions under
the same guard do not run, those under the opposite one do, until something writes the predicate itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.operands import ALL_REGISTERS
from kernel_lsp.cubin.register_flow import BlockFlow, CallModel, Transfer
from kernel_lsp.cubin.sass import ALWAYS_GUARD, NEVER_GUARD, NO_GUARD, guard_bit, opposite_guard


def all_ending(work: Transfer) -> Transfer:
    """The transfer with every guarded write ending the value before it: where the search starts."""
    return replace(
        work,
        kills=[
            written if _is_guarded(guard) else killed
            for written, killed, guard in zip(work.writes, work.kills, work.guards, strict=True)
        ],
    )


def without_needed(
    work: Transfer,
    flow: Flow,
    blocks: BlockFlow,
    effects: CallModel,
    exit_live: Mapping[int, int],
    live_in: list[int],
) -> tuple[Transfer, tuple[int, ...]]:
    """The transfer without those ends of values that are needed all the same, and the blocks that differ.

    `live_in` is the solution with `work`. Repeated from `all_ending` on until no block differs, what is left is right:
    a value that is read in the end would have been found at the last guarded write that the reading thread skipped.
    """
    kills = work.kills[:]
    walk = _Walk(work, flow, blocks, effects, exit_live, live_in)
    changed: list[int] = []
    for block, is_reachable in enumerate(flow.reachable):
        if not is_reachable:
            continue
        first, stop = flow.starts[block] - work.first, flow.starts[block + 1] - work.first
        guards = {guard for guard, killed in zip(work.guards[first:stop], kills[first:stop], strict=True) if killed}
        needed_at = [each for guard in guards if _is_guarded(guard) for each in walk.needed_behind(block, guard)]
        for at, needed in needed_at:
            kills[at] &= ~needed
        if needed_at:
            changed.append(block)
    return replace(work, kills=kills), tuple(changed)


def _is_guarded(guard: int) -> bool:
    return guard not in (NO_GUARD, NEVER_GUARD, ALWAYS_GUARD)


# Blocks that may be visited for each block of a section, so that hostile code costs no more than long code. Real
# kernels need fewer than ten; what is not followed to its end counts as needed.
_MOST_VISITS = 100

# What a thread for which a guard is false does from some place in a block on: the registers it reads, and those that
# leave the block neither read nor written.
_Fate = tuple[int, int]


class _Walk:
    """Follows the code as threads run it for which a guard is false. Places are indices in the section."""

    def __init__(
        self,
        work: Transfer,
        flow: Flow,
        blocks: BlockFlow,
        effects: CallModel,
        exit_live: Mapping[int, int],
        live_in: list[int],
    ) -> None:
        self._work = work
        self._flow = flow
        self._blocks = blocks
        self._effects = effects
        self._exit_live = exit_live
        self._live_in = live_in
        self._live: dict[int, list[int]] = {}
        self._fates: dict[tuple[int, int], _Fate] = {}
        self._visits_left = _MOST_VISITS * (len(flow) + 100)

    def needed_behind(self, block: int, guard: int) -> list[tuple[int, int]]:
        """The block's writes under the guard with those of the values they end that a thread needs for which the
        guard is false; writes without such values are left out."""
        work = self._work
        first, stop = self._flow.starts[block] - work.first, self._flow.starts[block + 1] - work.first
        writes = [at for at in range(first, stop) if work.guards[at] == guard and work.kills[at]]
        fates = self._fates_at(block, guard, [at + 1 for at in writes])
        leaving = 0
        for at, (_, left) in zip(writes, fates, strict=True):
            leaving |= left & work.kills[at]
        needed = self._needed_in_successors(block, leaving, guard) if leaving else 0
        found = [(at, work.kills[at] & (read | left & needed)) for at, (read, left) in zip(writes, fates, strict=True)]
        return [each for each in found if each[1]]

    def _needed_in_successors(self, block: int, registers: int, guard: int) -> int:
        needed = 0
        seen: dict[int, int] = {}
        waiting = [(block, registers)]
        while waiting:
            block, left = waiting.pop()
            self._visits_left -= 1
            if self._visits_left < 0:
                return registers
            for target in self._flow.successors[block]:
                new = left & self._live_in[target] & ~seen.get(target, 0) & ~needed
                if new:
                    seen[target] = seen.get(target, 0) | new
                    read, leaves = self._fate_of_block(target, guard)
                    needed |= new & read
                    if new & leaves:
                        waiting.append((target, new & leaves))
        return needed

    def _fate_of_block(self, block: int, guard: int) -> _Fate:
        known = self._fates.get((block, guard))
        if known is None:
            known = self._blocks.without_predicate(block, guard_bit(guard))
            if known is None:
                (known,) = self._fates_at(block, guard, [self._flow.starts[block] - self._work.first])
            self._fates[block, guard] = known
        return known

    def _fates_at(self, block: int, guard: int, places: list[int]) -> list[_Fate]:
        """The fate from each place on (rising). Where the predicate is written again nothing is known of the guard any
        more, so that only the code up to there is followed."""
        stop = self._flow.starts[block + 1] - self._work.first
        writes = self._blocks.predicate_writes(block, guard_bit(guard))
        ends = [at for at in writes if self._work.guards[at] != guard]
        found: list[_Fate] = []
        upper = len(places)
        for end in [*ends[::-1], -1]:
            # Places in front of `stop` and behind `end`: followed from `stop` down to the lowest of them.
            lower = bisect_right(places, end)
            if lower < upper:
                found += self._followed(block, guard, places[lower:upper], stop)
            stop, upper = end + 1, lower
        return found[::-1]

    def _followed(self, block: int, guard: int, places: list[int], stop: int) -> list[_Fate]:
        """The fates at the places, the last one first; the row before `stop` is the first that writes the predicate."""
        work = self._work
        predicate, opposite = guard_bit(guard), opposite_guard(guard)
        first = self._flow.starts[block] - work.first
        read, left = 0, ALL_REGISTERS
        found: list[_Fate] = []
        at = stop
        for place in reversed(places):
            while at > place:
                at -= 1
                row = at + work.first
                if row in work.call_rows:
                    effect = self._effects(row)
                    if (effect.creates | effect.writes) & predicate:
                        read, left = self._live_behind(block)[at - first], 0
                    read, left = effect.reads | read & effect.keeps, left & effect.keeps & ~effect.reads
                elif work.guards[at] == guard:
                    read, left = read | predicate, left & ~predicate
                else:
                    if work.writes[at] & predicate:
                        read, left = self._live_behind(block)[at - first], 0
                    ended = work.writes[at] if work.guards[at] == opposite else work.kills[at]
                    reads = work.reads[at] | self._exit_live.get(row, 0)
                    read, left = reads | read & ~ended, left & ~ended & ~reads
            found.append((read, left))
        return found

    def _live_behind(self, block: int) -> list[int]:
        """Live registers behind each row of a block."""
        known = self._live.get(block)
        if known is None:
            known = self._blocks.live_behind(block, self._live_in, self._effects, self._exit_live)
            self._live[block] = known
        return known
