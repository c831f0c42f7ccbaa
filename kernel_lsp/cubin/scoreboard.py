"""Turns wait masks into producers: which instructions a barrier wait is for.

An instruction with bit n in its wait mask holds the warp until scoreboard n is clear. Whatever set n since it was
last waited for is a producer: a load whose result is needed ("write"), or a store or copy whose sources must not be
overwritten yet ("read"). All paths count, loops' back edges too, so that a wait at the top of a loop finds the load
of the iteration before. `feeds` tells a true consumer (it reads or overwrites a register that the producer writes)
from a wait that merely shares the scoreboard; there are six of them, so waits for several loads are common. A wait for
groups of asynchronous copies is for the copies in them, and a warpgroup's wait for its products (see `copy_groups`).
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

import numpy as np

from kernel_lsp.cubin.control import barriers
from kernel_lsp.cubin.copy_groups import awaited_copies, awaited_products
from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.sass import NEVER_GUARD, Sass, guard_bit

_BARRIERS = 6
# DEPBAR.LE SB0, 0x1, {3,2} waits for scoreboards that it names in its operands instead of in the mask: until one has
# at most so many open, and until all of a list are clear.
_NAMED_WAIT = "DEPBAR"
_COUNTED = re.compile(r"SB([0-5]), 0x([0-9a-f]+)")
_LISTED = re.compile(r"\{([0-5](?:,[0-5])*)\}")


@dataclass(frozen=True, slots=True)
class Producer:
    """One instruction that a wait is for. `kind`: "write" (its result is awaited) or "read" (its sources).

    `barrier`: a scoreboard, or `copy_groups.PRODUCTS_BARRIER`.
    """

    row: int
    barrier: int
    kind: str
    feeds: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """An instruction that waits for scoreboards, with all producers that may have set them, by row."""

    row: int
    producers: tuple[Producer, ...]


def barrier_waits(sass: Sass, flow: Flow) -> tuple[Wait, ...]:
    """Every wait of a section with its producers, by row; empty where control words are not known."""
    control = sass.control
    if control is None:
        return ()
    setters = _Setters(sass, flow)
    copies = awaited_copies(sass, flow)
    waits: list[Wait] = []
    for block in range(len(flow)):
        if not flow.reachable[block]:
            continue
        pending = [set(rows) for rows in setters.at_start[block]]
        for row, waited, cleared, sets in setters.events[block]:
            if waited:
                producers = [
                    Producer(source, barrier, setters.kind(source, barrier), _feeds(sass, source, row))
                    for barrier in waited
                    for source in sorted(pending[barrier])
                ]
                producers += [Producer(*copy, "write", True) for copy in copies.get(row, ())]
                waits.append(Wait(row, tuple(sorted(producers, key=lambda each: (each.row, each.barrier)))))
            _advance(row, cleared, sets, pending)
    products = awaited_products(sass, flow).items()
    waits += [Wait(row, tuple(Producer(*each, "write", True) for each in found)) for row, found in products if found]
    return tuple(sorted(waits, key=lambda wait: wait.row))


def _advance(row: int, cleared: tuple[int, ...], sets: tuple[int, ...], pending: list[set[int]]) -> None:
    """Updates the pending producers over one row: a full wait clears a scoreboard, a barrier adds its setter."""
    for barrier in cleared:
        pending[barrier].clear()
    for barrier in sets:
        pending[barrier].add(row)


def _feeds(sass: Sass, source: int, row: int) -> bool:
    """Whether the waiting instruction touches a register that the producer writes, or overwrites one it reads."""
    producer = sass.forms[int(sass.form[source])].registers
    consumer = sass.forms[int(sass.form[row])].registers
    reads = (consumer.uses or 0) | guard_bit(int(sass.guard[row]))
    writes = consumer.defines or 0
    return bool((producer.defines or 0) & (reads | writes) or (producer.uses or 0) & writes)


# Row, scoreboards it waits for (a DEPBAR's own included), those that are clear behind it, those it sets.
_Event = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class _Setters:
    """Which rows may have set each scoreboard at the start of each block: a forward union over all paths."""

    def __init__(self, sass: Sass, flow: Flow) -> None:
        control = sass.control
        if control is None:
            raise ValueError("control words are not known")
        self._write = control.write_barrier
        self._read = control.read_barrier
        self.events = _events(sass, flow)
        empty: tuple[frozenset[int], ...] = (frozenset(),) * _BARRIERS
        self.at_start: list[tuple[frozenset[int], ...]] = [empty] * len(flow)
        waiting = deque(range(len(flow)))
        queued = [True] * len(flow)
        while waiting:
            block = waiting.popleft()
            queued[block] = False
            pending = [set(rows) for rows in self.at_start[block]]
            for row, _, cleared, sets in self.events[block]:
                _advance(row, cleared, sets, pending)
            for target in flow.successors[block]:
                known = self.at_start[target]
                if any(new - old for new, old in zip(pending, known, strict=True)):
                    self.at_start[target] = tuple(old | new for old, new in zip(known, pending, strict=True))
                    if not queued[target]:
                        queued[target] = True
                        waiting.append(target)

    def kind(self, row: int, barrier: int) -> str:
        """How `row` set the scoreboard."""
        return "write" if self._write[row] == barrier else "read"


def _events(sass: Sass, flow: Flow) -> list[list[_Event]]:
    """The rows of each block that wait for or set a scoreboard."""
    control = sass.control
    if control is None:
        return [[] for _ in range(len(flow))]
    first, end = flow.code.start, flow.code.padding
    masks, writes, reads = (
        column[first:end].tolist() for column in (control.wait_mask, control.write_barrier, control.read_barrier)
    )
    named = {
        at: _named(sass.forms[int(sass.form[first + at])].operands)
        for at, name in enumerate(sass.families(first, end))
        if name == _NAMED_WAIT
    }
    in_mask = [barriers(mask) for mask in range(1 << _BARRIERS)]
    takes_part = (control.wait_mask != 0) | (control.write_barrier < _BARRIERS) | (control.read_barrier < _BARRIERS)
    events: list[list[_Event]] = [[] for _ in range(len(flow))]
    block = 0
    for at in sorted({*np.flatnonzero(takes_part[first:end]).tolist(), *named}):
        while flow.starts[block + 1] <= first + at:
            block += 1
        cleared = in_mask[masks[at]]
        waited = cleared
        if at in named:
            more, clear = named[at]
            waited = tuple(sorted({*cleared, *more}))
            cleared = tuple(sorted({*cleared, *clear}))
        never = sass.guard[first + at] == NEVER_GUARD
        sets = () if never else tuple({each for each in (writes[at], reads[at]) if each < _BARRIERS})
        if waited or sets:
            events[block].append((first + at, waited, cleared, sets))
    return events


def _named(operands: str) -> tuple[set[int], set[int]]:
    """The scoreboards that a DEPBAR's operands name, and which of them are clear behind it."""
    listed = _LISTED.search(operands)
    clear = {int(each) for each in listed[1].split(",")} if listed else set()
    counted = _COUNTED.match(operands)
    if counted is None:
        return clear, clear
    waited = clear | {int(counted[1])}
    return waited, clear if int(counted[2], 16) else waited
