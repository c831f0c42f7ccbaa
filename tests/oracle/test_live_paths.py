"""Live registers of real kernels against what random runs of them read.

A run takes a random way through a kernel as one thread would: each predicate that is written gets a value by chance,
guards and branches follow the values, calls enter the functions placed behind the kernel and return. Read backwards it
tells which registers held a value that was read later. That is what liveness means, worked out without any data flow
analysis: every such register must be among ours (else ours is too low), and over many runs nearly all of ours must be
seen (else ours is too high; what is left are ways that no run happened to take, and functions with several callers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.liveness import occupied_registers
from kernel_lsp.cubin.operands import BANK_START, PREDICATE_MASK, UNIFORM_PREDICATE_MASK
from kernel_lsp.cubin.register_flow import Transfer
from kernel_lsp.cubin.sass import NO_GUARD, Code, Sass, guard_bit, guard_text
from tests.oracle.sass_corpus import Built, built
from tests.oracle.test_sass import BUILDS

# Rare ways through a kernel with many roles of warps need thousands of runs to be taken.
_RUNS, _RUNS_OF_CUTLASS, _STEPS = 200, 3000, 3000
_PREDICATES = PREDICATE_MASK | UNIFORM_PREDICATE_MASK
_CONDITION = re.compile(r"^(!?)(U?P)([0-6]),")


@pytest.fixture(params=BUILDS, ids=lambda build: f"{build[0]}-{build[1]}", scope="module")
def cubin(request: pytest.FixtureRequest, toolkit: Path) -> Built:
    return built(*request.param, toolkit)


@dataclass(frozen=True, eq=False)
class Step:
    """One instruction of a run: its row, and the registers that it really read and wrote."""

    row: int
    reads: int
    writes: int


class Thread:
    """Runs one section; predicates hold chance values."""

    def __init__(self, sass: Sass, flow: Flow, chance: Random) -> None:
        work = Transfer.of(sass, flow)
        assert isinstance(work, Transfer)
        self._sass, self._flow, self._chance, self._work = sass, flow, chance, work
        self._last_of = {flow.starts[block + 1] - 1: block for block in range(len(flow))}
        self._callees = {call.row: call.callee for call in flow.calls}
        self._values: dict[int, bool] = {}

    def run(self, row: int) -> Iterator[Step]:
        """A way from a row on, to an exit or for so many steps."""
        self._values = {}
        back: list[int] = []
        for _ in range(_STEPS):
            at = row - self._work.first
            guard = int(self._sass.guard[row])
            runs = self._holds(guard_text(guard))
            # The transfer's reads hold the guard's register, which is read either way.
            reads = self._work.reads[at] if runs else guard_bit(guard)
            writes = self._work.writes[at] if runs else 0
            yield Step(row, reads, writes)
            for bit in _bits(writes & _PREDICATES):
                self._values[bit] = self._chance.random() < 0.5
            family = self._sass.opcode(row).family
            if runs and family == "RET":
                if not back:
                    return
                row = back.pop()
            elif runs and (callee := self._callees.get(row)) is not None:
                back.append(row + 1)
                row = callee
            elif row in self._last_of:
                following = self._following(row, runs, family)
                if following is None:
                    return
                row = following
            else:
                row += 1

    def _following(self, row: int, runs: bool, family: str) -> int | None:
        targets = [self._flow.starts[block] for block in self._flow.successors[self._last_of[row]]]
        if not runs:
            return row + 1 if row + 1 in targets else None
        target = int(self._sass.target[row])
        condition = _CONDITION.match(self._sass.forms[int(self._sass.form[row])].operands)
        if family == "BRA" and condition:
            return target if self._holds(condition[1] + condition[2] + condition[3]) else row + 1
        if family == "BRA" and target in targets and self._sass.guard[row] != NO_GUARD:
            return target
        if family in ("EXIT", "KILL"):
            return None
        return self._chance.choice(targets) if targets else None

    def _holds(self, guard: str) -> bool:
        if not guard or guard in ("PT", "UPT"):
            return True
        if guard in ("!PT", "!UPT"):
            return False
        name = guard.lstrip("!")
        bit = BANK_START[name.rstrip("0123456")] + int(name[-1])
        value = self._values.setdefault(bit, self._chance.random() < 0.5)
        return value != guard.startswith("!")


def _bits(registers: int) -> Iterator[int]:
    while registers:
        lowest = registers & -registers
        yield lowest.bit_length() - 1
        registers ^= lowest


def is_closed(cubin: Built, code: Code, flow: Flow) -> bool:
    """Whether all that runs is in this section: no calls to outside, and no branch to nobody knows where."""
    return not flow.unknown_branches and all(call.callee is not None for call in flow.calls)


def needed_on(steps: list[Step], first: int, seen: list[int]) -> None:
    """Adds to each row's registers those that one run shows to be occupied there."""
    written, exists = 0, []
    for step in steps:
        written |= step.writes
        exists.append(written)
    live = 0
    for step, held in zip(reversed(steps), reversed(exists), strict=True):
        behind = live
        live = step.reads | live & ~step.writes
        seen[step.row - first] |= (behind | live | step.writes) & held


def test_live_registers_are_those_that_runs_read(cubin: Built) -> None:
    chance = Random(20)
    most_runs = _RUNS_OF_CUTLASS if cubin.path.name.startswith("cutlass") else _RUNS
    rows = closed_rows = ours = found_in_runs = 0
    for code in cubin.sass.codes:
        flow = cubin.flow(code)
        found = occupied_registers(cubin.sass, flow)
        assert not isinstance(found, str)
        if not is_closed(cubin, code, flow):
            continue
        closed_rows += code.padding - code.start
        occupied, existing = found
        thread = Thread(cubin.sass, flow, chance)
        seen = [0] * len(occupied)
        for _ in range(most_runs):
            needed_on(list(thread.run(code.start)), code.start, seen)
            if seen == occupied:
                break
        for at, registers in enumerate(seen):
            missed = registers & ~occupied[at]
            assert not missed, (code.name, at, cubin.sass.text(code.start + at), list(_bits(missed)))
            if registers:  # a row that some run came to
                rows += 1
                ours += (occupied[at] & existing[at]).bit_count()
                found_in_runs += registers.bit_count()
    assert closed_rows > 800
    assert rows >= 0.8 * closed_rows
    assert found_in_runs >= 0.998 * ours
