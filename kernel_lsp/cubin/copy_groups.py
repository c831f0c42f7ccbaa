"""Turns asynchronous copies and products into groups, and waits that count groups into those they are for.

    LDGSTS ...  LDGSTS ...  LDGDEPBAR     ends the group of the copies since the one before and raises a scoreboard
    DEPBAR.LE SB0, 0x1                    goes on when at most the newest group of scoreboard 0 is still under way
    HGMMA ...  HGMMA ..., gsb0            a warpgroup's products: the last of a group raises the group's scoreboard
    WARPGROUP.DEPBAR.LE gsb0, 0x1         waits for their groups in the same way

So a wait for all but k groups is for every group that k or more others may have followed, on some path to the wait. In
a loop with a pipeline of copies that is the group of an earlier turn: the same instructions.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.sass import NEVER_GUARD, Sass

_COPY, _GROUP_END, _WAIT = "LDGSTS", "LDGDEPBAR", "DEPBAR"
_COUNTED = re.compile(r"SB(?P<barrier>[0-5]), 0x(?P<left>[0-9a-f]+)")
PRODUCTS_BARRIER = 6  # stands for gsb0, which is none of the six scoreboards
_PRODUCTS_WAITED = re.compile(r"gsb0, 0x(?P<left>[0-9a-f]+)")
_PRODUCTS = frozenset({"HGMMA", "IGMMA", "BGMMA", "QGMMA"})
_MOST_GROUPS = 32  # under way that are told apart


@dataclass(slots=True)
class _State:
    """Copies of no group yet, and for each end of a group how many groups may have followed it: bit n for n."""

    loose: set[int] = field(default_factory=set)
    followers: dict[int, int] = field(default_factory=dict)

    def merge(self, other: _State) -> bool:
        """Takes over what may be on another path; whether that was news."""
        before = len(self.loose)
        self.loose |= other.loose
        is_news = len(self.loose) > before
        for row, counts in other.followers.items():
            known = self.followers.get(row, 0)
            if counts & ~known:
                self.followers[row] = known | counts
                is_news = True
        return is_news

    def copy(self) -> _State:
        return _State(set(self.loose), dict(self.followers))


# A row and what it does: a copy (or product), the end of a group, or (scoreboard, groups that may be left) waited for.
_Event = tuple[int, str | tuple[int, int]]


def awaited_copies(sass: Sass, flow: Flow) -> dict[int, tuple[tuple[int, int], ...]]:
    """Rows that wait for groups of copies -> (row of a copy, scoreboard of its group); empty where control words are
    not known."""
    control = sass.control
    first, end = flow.code.start, flow.code.padding
    families = sass.families(first, end)
    ends = {row for row, name in enumerate(families, first) if name == _GROUP_END}
    if control is None or not ends:
        return {}
    barrier_of = {row: int(control.write_barrier[row]) for row in ends}
    used = {barrier: 1 << barrier for barrier in barrier_of.values() if barrier < 6}
    events: list[list[_Event]] = [[] for _ in range(len(flow))]
    masks, guards = control.wait_mask[first:end].tolist(), sass.guard[first:end].tolist()
    any_used = sum(used.values())
    for block in range(len(flow)):
        for row in flow.rows(block):
            name, mask = families[row - first], masks[row - first]
            if mask & any_used:
                events[block] += [(row, (barrier, 0)) for barrier, bit in used.items() if mask & bit]
            if guards[row - first] == NEVER_GUARD:
                continue
            if name in (_COPY, _GROUP_END):
                events[block].append((row, name))
            elif name == _WAIT and (found := _COUNTED.match(sass.forms[int(sass.form[row])].operands)):
                events[block].append((row, (int(found["barrier"]), int(found["left"], 16))))
    return _solve(flow, events, barrier_of)


def awaited_products(sass: Sass, flow: Flow) -> dict[int, tuple[tuple[int, int], ...]]:
    """Rows that wait for groups of a warpgroup's products -> (row of a product, PRODUCTS_BARRIER)."""
    first, end = flow.code.start, flow.code.padding
    families = sass.families(first, end)
    if not _PRODUCTS.intersection(families):
        return {}
    barrier_of: dict[int, int] = {}
    events: list[list[_Event]] = [[] for _ in range(len(flow))]
    for block in range(len(flow)):
        for row in flow.rows(block):
            name = families[row - first]
            if name not in _PRODUCTS and name != "WARPGROUP":
                continue
            operands = sass.forms[int(sass.form[row])].operands
            if name in _PRODUCTS:
                events[block].append((row, _COPY))
                if operands.endswith("gsb0"):
                    events[block].append((row, _GROUP_END))
                    barrier_of[row] = PRODUCTS_BARRIER
            elif found := _PRODUCTS_WAITED.match(operands):
                events[block].append((row, (PRODUCTS_BARRIER, int(found["left"], 16))))
    return _solve(flow, events, barrier_of)


def _solve(
    flow: Flow, events: list[list[_Event]], barrier_of: dict[int, int]
) -> dict[int, tuple[tuple[int, int], ...]]:
    at_start = [_State() for _ in range(len(flow))]
    group: dict[int, set[int]] = {row: set() for row in barrier_of}
    waits: dict[int, set[int]] = {}
    waiting = deque(range(len(flow)))
    while waiting:
        block = waiting.popleft()
        state = at_start[block].copy()
        for row, event in events[block]:
            if event == _COPY:
                state.loose.add(row)
            elif event == _GROUP_END:
                group[row] |= state.loose
                state.loose.clear()
                state.followers = {each: _one_more(counts) for each, counts in state.followers.items()}
                state.followers[row] = state.followers.get(row, 0) | 1
            elif isinstance(event, tuple):
                waits.setdefault(row, set()).update(_wait(state, *event, barrier_of))
        waiting.extend(target for target in flow.successors[block] if at_start[target].merge(state))
    return {
        row: tuple(sorted({(copy, barrier_of[each]) for each in ended for copy in group[each]}))
        for row, ended in waits.items()
    }


def _one_more(counts: int) -> int:
    top = 1 << _MOST_GROUPS
    return (counts << 1 | counts & top) & (top << 1) - 1


def _wait(state: _State, barrier: int, left: int, barrier_of: dict[int, int]) -> list[int]:
    """The ends of groups that a wait is for; their older ones are over behind it."""
    ended: list[int] = []
    for row, counts in list(state.followers.items()):
        if barrier_of[row] == barrier and counts >> left:
            ended.append(row)
            state.followers[row] = counts & (1 << left) - 1
    return ended
