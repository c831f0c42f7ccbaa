"""Turns the instructions of one code section into basic blocks, their edges, and loops with their nesting.

The trap loop and the NOPs behind the last instruction are no part of it. A call is an edge to the instruction behind
it, and is listed in `calls`; a function placed behind the kernel in its section is a root of its own. A CALL to a label
inside its function is a jump: up to sm_89 ptxas leaves loops that way, and nothing comes back. Targets of
indirect branches come from the cubin's attributes; where they are not there, the branch is listed in
`unknown_branches` and what it reaches is missing from the graph. BSYNC falls through: ptxas places it before the
target of its BSSY (seen without exception on sm_75 to sm_120).

Loops are the strongly connected parts of the graph, then those inside a part once the blocks through which it is
entered are taken out, and so on; this gives natural loops where the graph is reducible (loops that share a header
count as one), and one loop with several entries where it is not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kernel_lsp.cubin.sass import ALWAYS_GUARD, INSTRUCTION_BYTES, NEVER_GUARD, NO_GUARD, NO_TARGET, Code, Form, Sass

_LEAVES = {"EXIT", "RET", "KILL"}
_BRANCHES = {"BRA", "JMP", "BRX", "BRXU", "JMX"}
_CONDITIONS = ("P", "!P", "UP", "!UP", "UR", "~UR", "R", "~R")
_ASKS_FOR_CONVERGENCE = frozenset(("DIV", "CONV"))
_ENDS = _LEAVES | _BRANCHES | {"CALL", "WARPSYNC", "ENDCOLLECTIVE"}


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its blocks (indices, rising), where it is entered, and how deep it stands (1: outermost)."""

    blocks: tuple[int, ...]
    entries: tuple[int, ...]  # blocks reached from outside; one where the loop is reducible
    depth: int
    parent: int | None  # index in `Flow.loops`
    innermost: bool

    @property
    def reducible(self) -> bool:
        """Whether the loop has one header."""
        return len(self.entries) == 1


@dataclass(frozen=True, slots=True)
class Call:
    """A call instruction: the row of the called function in the cubin, None where a register decides or it is not
    in this cubin."""

    row: int
    callee: int | None


@dataclass(frozen=True, eq=False)
class Flow:
    """The control flow of one section. Block i is rows `starts[i]` to `starts[i + 1]` (a last element closes it)."""

    code: Code
    starts: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]
    roots: tuple[int, ...]  # first blocks of the section's functions
    reachable: tuple[bool, ...]
    loops: tuple[Loop, ...]  # outer loops before the ones inside them
    calls: tuple[Call, ...]
    unknown_branches: tuple[int, ...]  # rows
    unclear: tuple[int, ...]  # rows that may branch unseen: no text, or an unknown opcode that names a label
    loop_of_block: tuple[int | None, ...]  # the innermost one
    loop_depth: npt.NDArray[np.uint8] = field(repr=False)  # per row of the section, padding 0

    def __len__(self) -> int:
        return len(self.successors)

    @property
    def is_whole(self) -> bool:
        """Whether every branch is followed; where not, loops may be missing and depths too small."""
        return not self.unknown_branches and not self.unclear

    def block_of(self, row: int) -> int:
        """The block that holds a row."""
        return bisect_right(self.starts, row) - 1

    def rows(self, block: int) -> range:
        """The rows of a block."""
        return range(self.starts[block], self.starts[block + 1])

    def rows_of_loop(self, loop: Loop) -> npt.NDArray[np.int64]:
        """All rows of a loop, inner loops included, rising."""
        parts = [np.arange(self.starts[block], self.starts[block + 1]) for block in loop.blocks]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def innermost_loop(self, row: int) -> int | None:
        """Index of the innermost loop around a row."""
        return self.loop_of_block[self.block_of(row)]


def control_flow(sass: Sass, code: Code, indirect_targets: Mapping[int, Sequence[int]] | None = None) -> Flow:
    """Blocks, edges and loops of one section.

    `indirect_targets`: byte offset of an indirect branch -> byte offsets it may reach (EIATTR_INDIRECT_BRANCH_TARGETS).
    """
    first, end = code.start, code.padding
    known = {
        first + offset // INSTRUCTION_BYTES: [first + target // INSTRUCTION_BYTES for target in targets]
        for offset, targets in (indirect_targets or {}).items()
    }
    families = sass.families(first, end)
    functions = {function.start for function in code.functions}
    leaders = {first, *functions}
    exits: dict[int, tuple[int, ...]] = {}
    calls: list[Call] = []
    unknown: list[int] = []
    behind_collective = NO_TARGET
    for row, name in enumerate(families, first):
        if name not in _ENDS:
            continue
        guard = int(sass.guard[row])
        if guard == NEVER_GUARD:
            continue
        target = int(sass.target[row])
        always = guard in (NO_GUARD, ALWAYS_GUARD)
        reached: list[int] = []
        if name in _BRANCHES:
            always = always and not _has_condition(sass.forms[int(sass.form[row])])
            reached = known.get(row, [target] if target >= 0 else [])
            if not reached:
                unknown.append(row)
        elif name == "CALL" and first <= target < end and target not in functions:
            reached = [target]
        elif name == "CALL":
            calls.append(Call(row, target if target >= 0 else None))
            always = False
        elif name == "WARPSYNC":
            # WARPSYNC.COLLECTIVE R4, `(x): threads run on together, and from ENDCOLLECTIVE each goes to x.
            behind_collective = target if target >= 0 else behind_collective
            continue
        elif name == "ENDCOLLECTIVE":
            always = behind_collective >= 0
            reached = [behind_collective] if always else []
        if not always:
            reached = [*reached, row + 1]
        inside = tuple(dict.fromkeys(each for each in reached if first <= each < end))
        exits[row] = inside
        leaders.update(inside)
        leaders.add(row + 1)
    starts = sorted(leader for leader in leaders if first <= leader < end)
    index = {row: block for block, row in enumerate(starts)}
    successors: list[tuple[int, ...]] = []
    for block, row in enumerate(starts):
        following = starts[block + 1] if block + 1 < len(starts) else end
        reached_rows = exits.get(following - 1, (following,)) if row < following else ()
        successors.append(tuple(index[each] for each in reached_rows if each in index))
    roots = tuple(sorted({index[function.start] for function in code.functions if function.start in index}))
    reachable = _reachable(successors, roots)
    loops = _loops(successors, reachable, roots)
    depth = np.zeros(code.stop - code.start, np.uint8)
    bounds = [*starts, end]
    innermost: list[int | None] = [None] * len(starts)
    for number, loop in enumerate(loops):  # outer loops first
        for block in loop.blocks:
            innermost[block] = number
            depth[bounds[block] - first : bounds[block + 1] - first] = min(loop.depth, 255)
    return Flow(
        code=code,
        starts=tuple(bounds),
        successors=tuple(successors),
        roots=roots,
        reachable=tuple(reachable),
        loops=loops,
        calls=tuple(calls),
        unknown_branches=tuple(unknown),
        unclear=tuple((np.flatnonzero(sass.may_branch_unseen[sass.form[first:end]]) + first).tolist()),
        loop_of_block=tuple(innermost),
        loop_depth=depth,
    )


def _has_condition(form: Form) -> bool:
    """Whether a branch has a condition beside its guard: "BRA P1, `(x)", "BRA.DIV UR4, `(x)". On sm_75 the question
    whether the threads are together has no operand: "BRA.DIV `(x)", "BRA.CONV `(x)"."""
    head, comma, _ = form.operands.partition(",")
    has_operand = bool(comma) and head.strip().rstrip("0123456789TZ") in _CONDITIONS
    return has_operand or not _ASKS_FOR_CONVERGENCE.isdisjoint(form.opcode.modifiers)


def _reachable(successors: Sequence[Sequence[int]], roots: Iterable[int]) -> list[bool]:
    seen = [False] * len(successors)
    waiting = list(roots)
    while waiting:
        block = waiting.pop()
        if not seen[block]:
            seen[block] = True
            waiting.extend(successors[block])
    return seen


def _loops(successors: Sequence[Sequence[int]], reachable: Sequence[bool], roots: Sequence[int]) -> tuple[Loop, ...]:
    found: list[tuple[tuple[int, ...], tuple[int, ...], int, int | None]] = []
    predecessors: list[list[int]] = [[] for _ in successors]
    for block, targets in enumerate(successors):
        if reachable[block]:
            for target in targets:
                predecessors[target].append(block)
    # Regions still to be searched: blocks, depth of the loops in them, the loop around them.
    waiting: list[tuple[set[int], int, int | None]] = [
        ({block for block, is_in in enumerate(reachable) if is_in}, 1, None)
    ]
    while waiting:
        region, depth, parent = waiting.pop(0)
        for part in _strong_components(successors, region):
            inside = set(part)
            entries = tuple(sorted(b for b in part if b in roots or any(p not in inside for p in predecessors[b])))
            found.append((tuple(sorted(part)), entries, depth, parent))
            waiting.append((inside - set(entries), depth + 1, len(found) - 1))
    parents = {parent for _, _, _, parent in found}
    return tuple(
        Loop(blocks, entries, depth, parent, index not in parents)
        for index, (blocks, entries, depth, parent) in enumerate(found)
    )


def _strong_components(successors: Sequence[Sequence[int]], region: set[int]) -> list[list[int]]:
    """Parts of `region` whose blocks all reach each other (a single block only with an edge to itself), by address.

    Tarjan's algorithm (SIAM J. Comput. 1, 1972), without recursion.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    parts: list[list[int]] = []
    for root in sorted(region):
        if root in order:
            continue
        work: list[tuple[int, int]] = [(root, 0)]
        while work:
            block, position = work.pop()
            if position == 0:
                order[block] = low[block] = len(order)
                stack.append(block)
                on_stack.add(block)
            descended = False
            targets = successors[block]
            while position < len(targets):
                target = targets[position]
                position += 1
                if target not in region:
                    continue
                if target not in order:
                    work.append((block, position))
                    work.append((target, 0))
                    descended = True
                    break
                if target in on_stack:
                    low[block] = min(low[block], order[target])
            if descended:
                continue
            if work:
                caller = work[-1][0]
                low[caller] = min(low[caller], low[block])
            if low[block] == order[block]:
                part: list[int] = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    part.append(member)
                    if member == block:
                        break
                if len(part) > 1 or block in targets:
                    parts.append(part)
    return sorted(parts, key=min)
