"""Turns a section's instructions into counts: per kernel, per loop and per source line.

Counted by family, the opcode's first token. Moves that ptxas sends to arithmetic pipes are counted as MOV, not as
arithmetic (HFMA2 of zeros with a constant, IMAD of zeros). Instructions under @!PT never run: they stand on their
lines but are in no count of work. The trap loop and the padding behind the code are no instructions. Line 0 and
NVIDIA's helper code have no line of the user.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kernel_lsp.cubin.flow import Flow, Loop
from kernel_lsp.cubin.linemap import HELPER, SectionLines
from kernel_lsp.cubin.opcodes import Opcode
from kernel_lsp.cubin.sass import NEVER_GUARD, Code, Form, Sass

_ZERO_MULTIPLY = re.compile(r"^R\d+, -?RZ, -?RZ, ")
_ZERO_PRODUCT = re.compile(r"^R\d+, -?RZ, -?RZ, [^,]+$")  # a fifth operand would be a carry
_GLOBAL_LOADS = ("global_load", "generic_load")
_ASYNC_LOADS = (("LDGSTS",), ("UBLKCP", "S", "G"), ("UTMALDG",))
_TEXTURE_LOADS = {"TEX", "TLD", "TLD4", "TXD", "SULD"}
_INTEGER_MULTIPLIES = ("IDP", "IMAD")

LineKey = tuple[str, int]  # file as the compiler wrote it, 1-based line


@dataclass(frozen=True, slots=True)
class LoopWork:
    """What one iteration of a loop does. Counts are warp instructions, bytes are per thread.

    Rows of inner loops are left out of the counts; where those do compute or load, `inner_work` is true and the counts
    are no whole iteration. Nor are they where the loop calls functions that were not inlined (`calls`, NVIDIA's helpers
    not counted). `file` and lines tell where the loop is written: the innermost call of which all its
    instructions are part; None where no line is known.
    """

    index: int  # in `Flow.loops`
    depth: int
    innermost: bool
    reducible: bool
    file: str | None
    first_line: int | None
    last_line: int | None
    mix: dict[str, int]
    compute_ops: int
    compute_op: str | None  # the family that makes up most of compute_ops
    load_ops: int  # global loads through registers
    load_bytes: int | None  # of all global loads; None where a bulk copy's size is not in the text
    async_load_ops: int  # LDGSTS, bulk and tensor copies from global memory
    shared_stores: int
    inner_work: bool
    texture_loads: int
    calls: int


def is_move(form: Form) -> bool:
    """Whether an opcode of other purpose only moves a value: "IMAD.MOV.U32 R1, RZ, RZ, R2", "IMAD.U32 R1, RZ, RZ, UR4",
    "HFMA2 R1, -RZ, RZ, 0, 1", "CS2R R2, SRZ" (two zeros at once)."""
    family = form.opcode.family
    if family == "IMAD":
        return "MOV" in form.opcode.modifiers or bool(_ZERO_PRODUCT.match(form.operands))
    if family == "CS2R":
        return form.operands.endswith(" SRZ")
    return family == "HFMA2" and bool(_ZERO_MULTIPLY.match(form.operands))


def counted_family(form: Form) -> str:
    """The name under which an instruction is counted."""
    return "MOV" if is_move(form) else form.opcode.family or "unknown"


def counted_rows(sass: Sass, code: Code) -> npt.NDArray[np.int64]:
    """The rows of a section that can run: all but padding and those under @!PT."""
    return np.flatnonzero(sass.guard[code.start : code.padding] != NEVER_GUARD) + code.start


def instruction_mix(sass: Sass, rows: npt.NDArray[np.int64]) -> dict[str, int]:
    """Number of instructions per family, most frequent first."""
    totals: Counter[str] = Counter()
    forms, counts = np.unique(sass.form[rows], return_counts=True)
    for form, count in zip(forms.tolist(), counts.tolist(), strict=True):
        totals[counted_family(sass.forms[form])] += count
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, eq=False)
class LineRows:
    """Rows of a section by line, rising. `own`: each row once, under its innermost frame (None: no line known).
    `within`: each row under every line of its chain of calls, so a call's line holds what was inlined there."""

    own: dict[LineKey | None, npt.NDArray[np.int64]]
    within: dict[LineKey, npt.NDArray[np.int64]]


def rows_by_line(sass: Sass, code: Code, lines: SectionLines | None) -> LineRows:
    """The rows of a section by source line, those under @!PT included, padding left out."""
    rows = np.arange(code.start, code.padding, dtype=np.int64)
    if lines is None:
        return LineRows({None: rows} if len(rows) else {}, {})
    table_rows, table_row_of = np.unique(lines.rows_at(sass.pc[rows].astype(np.int64)), return_inverse=True)
    chains = _Chains(lines)
    numbers: dict[LineKey, int] = {}
    # Table rows share few different chains: each is numbered once, as the numbers of its lines.
    chain_numbers: dict[tuple[LineKey, ...], int] = {}
    members: list[list[int]] = []
    chain_of_table_row: list[int] = []
    for table_row in table_rows.tolist():
        chain = chains.keys(table_row)
        number = chain_numbers.get(chain)
        if number is None:
            number = chain_numbers[chain] = len(members)
            members.append([numbers.setdefault(key, len(numbers)) for key in dict.fromkeys(chain)])
        chain_of_table_row.append(number)
    chain_of = np.array(chain_of_table_row, np.int64)[table_row_of.reshape(-1)]
    innermost = np.array([each[0] if each else -1 for each in members], np.int64)[chain_of]
    names = tuple(numbers)
    own = {names[number] if number >= 0 else None: part for number, part in _grouped(innermost, rows)}
    lengths = np.array([len(each) for each in members], np.int64)
    starts = np.cumsum(lengths) - lengths
    repeats = lengths[chain_of]
    line_of = np.array([number for each in members for number in each], np.int64)
    behind = np.cumsum(repeats) - repeats  # pairs of (row, line) before those of each row
    pairs = np.repeat(starts[chain_of] - behind, repeats) + np.arange(int(repeats.sum()), dtype=np.int64)
    within = {names[number]: part for number, part in _grouped(line_of[pairs], np.repeat(rows, repeats))}
    return LineRows(own, within)


def _grouped(
    numbers: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Rows by their number, numbers rising, rows in their order."""
    order = np.argsort(numbers, kind="stable")
    rows = rows[order]
    found, firsts = np.unique(numbers[order], return_index=True)
    bounds = [*firsts.tolist(), len(rows)]
    for number, first, stop in zip(found.tolist(), bounds, bounds[1:], strict=False):
        yield number, rows[first:stop]


class _Chains:
    """Chains of calls of a line table's rows, innermost first, each made once: callers are shared."""

    def __init__(self, lines: SectionLines) -> None:
        self._file = lines.file.tolist()
        self._line = lines.line.tolist()
        self._parent = lines.parent.tolist()
        self._files = lines.files
        self._known: dict[int, tuple[LineKey, ...]] = {-1: ()}

    def keys(self, row: int) -> tuple[LineKey, ...]:
        """(file, line) of each frame of a table row; nothing where the innermost line is one the compiler made."""
        return self._chain(row) if row >= 0 and self._line[row] else ()

    def _chain(self, row: int) -> tuple[LineKey, ...]:
        known = self._known.get(row)
        if known is None:
            line = self._line[row]
            own = ((self._files[self._file[row]], line),) if line else ()
            known = self._known[row] = own + self._chain(self._parent[row])
        return known


def loop_work(sass: Sass, flow: Flow, lines: SectionLines | None) -> tuple[LoopWork, ...]:
    """Every loop of a section with what one iteration does, outer loops before inner ones."""
    chains = _Chains(lines) if lines else None
    return tuple(_work(sass, flow, index, loop, lines, chains) for index, loop in enumerate(flow.loops))


def _work(
    sass: Sass, flow: Flow, index: int, loop: Loop, lines: SectionLines | None, chains: _Chains | None
) -> LoopWork:
    rows = flow.rows_of_loop(loop)
    rows = rows[sass.guard[rows] != NEVER_GUARD]
    depth = flow.loop_depth[rows - flow.code.start]
    own, inner = rows[depth == loop.depth], rows[depth > loop.depth]
    counts = _Work.of(sass, own)
    deeper = _Work.of(sass, inner)
    place = _place(sass, rows, lines, chains) if lines and chains and len(rows) else None
    return LoopWork(
        index=index,
        depth=loop.depth,
        innermost=loop.innermost,
        reducible=loop.reducible,
        file=place[0] if place else None,
        first_line=place[1] if place else None,
        last_line=place[2] if place else None,
        mix=instruction_mix(sass, own),
        compute_ops=counts.compute_ops,
        compute_op=counts.compute_op,
        load_ops=counts.load_ops,
        load_bytes=counts.load_bytes,
        async_load_ops=counts.async_load_ops,
        shared_stores=counts.shared_stores,
        inner_work=bool(deeper.compute_ops or deeper.load_ops or deeper.async_load_ops),
        texture_loads=counts.texture_loads,
        calls=_calls(flow, loop),
    )


def _calls(flow: Flow, loop: Loop) -> int:
    """Calls in a loop, inner loops included; the slow ways of a division and the like are no function of the user."""
    helpers = {each.start for each in flow.code.functions if each.name.startswith(HELPER)}
    blocks = set(loop.blocks)
    return sum(call.callee not in helpers and flow.block_of(call.row) in blocks for call in flow.calls)


@dataclass(frozen=True, slots=True)
class _Work:
    compute_ops: int
    compute_op: str | None
    load_ops: int
    load_bytes: int | None
    async_load_ops: int
    shared_stores: int
    texture_loads: int

    @classmethod
    def of(cls, sass: Sass, rows: npt.NDArray[np.int64]) -> _Work:
        tiers: dict[str, Counter[str]] = {"tensor": Counter(), "float": Counter(), "integer": Counter()}
        loads = async_loads = stores = textures = total_bytes = 0
        is_size_known = True
        forms, counts = np.unique(sass.form[rows], return_counts=True)
        for number, count in zip(forms.tolist(), counts.tolist(), strict=True):
            form = sass.forms[number]
            opcode = form.opcode
            tier = None if is_move(form) else _tier(opcode)
            if tier:
                tiers[tier][opcode.family] += count
            tokens = (opcode.family, *opcode.modifiers)
            is_async = any(tokens[: len(head)] == head for head in _ASYNC_LOADS)
            if opcode.kind in _GLOBAL_LOADS or is_async:
                if is_async:
                    async_loads += count
                else:
                    loads += count
                is_size_known = is_size_known and opcode.width_bytes is not None
                total_bytes += (opcode.width_bytes or 0) * count
            stores += count * (opcode.kind == "shared_store")
            textures += count * (opcode.family in _TEXTURE_LOADS)
        chosen = next((tier for tier in tiers.values() if tier), Counter())
        return cls(
            compute_ops=chosen.total(),
            compute_op=chosen.most_common(1)[0][0] if chosen else None,
            load_ops=loads,
            load_bytes=total_bytes if is_size_known else None,
            async_load_ops=async_loads,
            shared_stores=stores,
            texture_loads=textures,
        )


@lru_cache(maxsize=4096)
def _tier(opcode: Opcode) -> str | None:
    """Which kind of compute an opcode is: tensor work outranks floating point, that outranks integer products."""
    if opcode.kind == "tensor":
        return "tensor" if opcode.flop != 0 else None
    if opcode.kind == "compute" and opcode.flop and opcode.unit != "uniform":
        return "float"
    if opcode.family in _INTEGER_MULTIPLIES and not {"MOV", "SHL", "IADD", "X", "U32"} & set(opcode.modifiers):
        return "integer"
    return None


def _place(
    sass: Sass, rows: npt.NDArray[np.int64], lines: SectionLines, chains: _Chains
) -> tuple[str, int, int] | None:
    """File, first and last line where a loop is written: one step inside the calls that all its rows share."""
    table_rows = np.unique(lines.rows_at(sass.pc[rows].astype(np.int64)))
    outermost_first = [chain[::-1] for chain in {chains.keys(row) for row in table_rows.tolist()} if chain]
    if not outermost_first:
        return None
    level = 0
    while all(len(chain) > level + 1 for chain in outermost_first) and (
        len({chain[level] for chain in outermost_first}) == 1
    ):
        level += 1
    places = [chain[level] for chain in outermost_first]
    file = Counter(file for file, _ in places).most_common(1)[0][0]
    numbers = [line for each, line in places if each == file]
    return file, min(numbers), max(numbers)
