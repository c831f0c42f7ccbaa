"""What a kernel's instructions do on one source line: the line's own, those of functions inlined there, and callers.

Each instruction is the line's own exactly once, where its innermost frame stands; the same instruction also belongs to
every line of its chain of calls, as one that was inlined there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernel_lsp.cubin.linemap import Frame
from kernel_lsp.cubin.local_memory import LocalAccess
from kernel_lsp.cubin.opcodes import Opcode
from kernel_lsp.model.kernel_sass import KernelSass, Rows

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Inlined:
    """Instructions of one line of an inlined function, `function` by its mangled name."""

    file: str
    line: int
    function: str | None
    rows: Rows


@dataclass(frozen=True, slots=True)
class CallChain:
    """The calls through which a line's instructions came into the kernel, innermost first, and how many came so."""

    frames: tuple[Frame, ...]  # without the line itself
    count: int


@dataclass(frozen=True, slots=True)
class Awaited:
    """Instructions of this line that wait for a result made elsewhere, or by others of this line."""

    file: str | None  # of the innermost frame
    line: int | None
    own_line: int | None  # through which line of the asked file it came; None: through none
    opcode: str
    count: int  # instructions that wait


@dataclass(frozen=True, eq=False)
class LineSass:
    """One line of one kernel. `own` and `inlined` together hold each row of the line once."""

    file: str
    line: int
    own: Rows
    inlined: tuple[Inlined, ...]  # most instructions first
    chains: tuple[CallChain, ...]  # of `own`, most instructions first; empty where the line is not inlined
    loop_depth: int  # the deepest
    live_registers: int | None  # the most
    has_peak: bool

    @property
    def rows(self) -> Rows:
        """All rows of the line, rising."""
        return np.sort(np.concatenate([self.own, *(each.rows for each in self.inlined)]))

    def __len__(self) -> int:
        return len(self.own) + sum(len(each.rows) for each in self.inlined)


def line_sass(kernel: KernelSass, file: str, line: int) -> LineSass | None:
    """The instructions of a line, by the file's name as the kernel's line table spells it; None: it has none."""
    key = (file, line)
    within = kernel.rows.within.get(key)
    if within is None:
        return None
    own = kernel.rows.own.get(key, _NONE)
    live = kernel.live.general
    return LineSass(
        file=file,
        line=line,
        own=own,
        inlined=_inlined(kernel, np.setdiff1d(within, own, assume_unique=True)),
        chains=_chains(kernel, own),
        loop_depth=int(kernel.flow.loop_depth[within - kernel.code.start].max()),
        live_registers=None if live is None else int(live[within - kernel.code.start].max()),
        has_peak=kernel.live.peak_row is not None and kernel.live.peak_row in within,
    )


def awaited(kernel: KernelSass, line: LineSass) -> tuple[Awaited, ...]:
    """The loads and other slow results that the line's instructions wait for, most waits first.

    Only producers whose result the waiting instruction touches: six scoreboards are shared by all. Special registers
    (S2R) and constants (LDC) are left out.
    """
    rows = set(line.rows.tolist())
    producers_of_each = [
        {each.row for each in wait.producers if each.feeds and each.kind == "write"}
        for wait in kernel.waits
        if wait.row in rows
    ]
    names = _names(kernel, sorted(set().union(*producers_of_each)), line.file)
    found: Counter[Awaited] = Counter()
    for producers in producers_of_each:
        found.update({id(names[row]): names[row] for row in producers if row in names}.values())
    return tuple(replace(what, count=count) for what, count in found.most_common())


def _names(kernel: KernelSass, producers: Sequence[int], file: str) -> dict[int, Awaited]:
    """What each producer is called; those of one place and opcode are the same object. Quick ones have no name."""
    if not producers:
        return {}
    pcs = kernel.sass.pc[np.array(producers)].astype(np.int64)
    table_rows = kernel.lines.rows_at(pcs).tolist() if kernel.lines is not None else [-1] * len(producers)
    made: dict[tuple[int, str], Awaited] = {}
    alike: dict[Awaited, Awaited] = {}
    names: dict[int, Awaited] = {}
    for row, table_row in zip(producers, table_rows, strict=True):
        opcode = kernel.sass.opcode(row)
        if _is_quick(opcode):
            continue
        key = (table_row, opcode.text)
        if key not in made:
            frames = kernel.frames(row)
            own = frame_in(frames, file)
            named = Awaited(
                file=frames[0].file if frames else None,
                line=frames[0].line if frames else None,
                own_line=own.line if own else None,
                opcode=opcode.text,
                count=0,
            )
            made[key] = alike.setdefault(named, named)
        names[row] = made[key]
    return names


def _is_quick(opcode: Opcode) -> bool:
    """Reads of special registers and of constants, which stand in every kernel's head."""
    return opcode.kind in ("control", "const_load") or (opcode.kind == "special" and not opcode.unit)


def frame_in(frames: Iterable[Frame], file: str) -> Frame | None:
    """The innermost frame that stands in a file."""
    return next((frame for frame in frames if frame.file == file and frame.line), None)


@dataclass(frozen=True, slots=True)
class LocalLine:
    """Local memory accesses of one purpose under one chain of calls' innermost line; bytes are per thread."""

    frames: tuple[Frame, ...]  # innermost first; the chain of the first access
    stores: int
    loads: int
    store_bytes: int
    load_bytes: int
    loop_depth: int  # the deepest
    is_indexed: bool  # an address is computed at run time

    @property
    def accesses(self) -> int:
        """LDL and STL instructions."""
        return self.stores + self.loads


def local_lines(kernel: KernelSass, purpose: str, file: str | None = None) -> tuple[LocalLine, ...]:
    """The lines with local memory accesses of a purpose ("spill", "array"), most accesses first; for spills, most
    stores first: there registers ran out.

    With `file`, an access stands on the innermost line of its chain in that file, and those without one are left out.
    """
    grouped: dict[tuple[str, int], tuple[tuple[Frame, ...], list[LocalAccess]]] = {}
    for access in kernel.local or ():
        if access.purpose != purpose:
            continue
        frames = kernel.frames(access.row)
        place = next(iter(frames), None) if file is None else frame_in(frames, file)
        if place is None:
            continue
        chain = frames[frames.index(place) :]
        grouped.setdefault((place.file, place.line), (chain, []))[1].append(access)
    found = [
        LocalLine(
            frames=chain,
            stores=sum(each.is_store for each in accesses),
            loads=sum(not each.is_store for each in accesses),
            store_bytes=sum(each.width_bytes for each in accesses if each.is_store),
            load_bytes=sum(each.width_bytes for each in accesses if not each.is_store),
            loop_depth=max(each.loop_depth for each in accesses),
            is_indexed=any(each.slot is None for each in accesses),
        )
        for chain, accesses in grouped.values()
    ]

    def order(each: LocalLine) -> tuple[int, int, int]:
        first = each.stores if purpose == "spill" else each.accesses
        return -first, -each.accesses, each.frames[0].line

    return tuple(sorted(found, key=order))


def _inlined(kernel: KernelSass, rows: Rows) -> tuple[Inlined, ...]:
    lines = kernel.lines
    if lines is None or not len(rows):
        return ()
    at = lines.rows_at(kernel.sass.pc[rows].astype(np.int64))
    # Files by name: several entries of the table may stand for one file.
    number_of = {name: number for number, name in enumerate(dict.fromkeys(lines.files))}
    files = np.array([number_of[name] for name in lines.files], np.int64)[lines.file[at]]
    keys = np.stack([files, lines.line[at].astype(np.int64), lines.function[at].astype(np.int64)], axis=1)
    groups, group_of = np.unique(keys, axis=0, return_inverse=True)
    names = list(number_of)
    found = [
        Inlined(
            file=names[file],
            line=line,
            function=lines.functions[function] if function >= 0 else None,
            rows=rows[group_of.reshape(-1) == number],
        )
        for number, (file, line, function) in enumerate(groups.tolist())
    ]
    return tuple(sorted(found, key=lambda each: (-len(each.rows), each.file, each.line)))


def _chains(kernel: KernelSass, own: Rows) -> tuple[CallChain, ...]:
    lines = kernel.lines
    if lines is None or not len(own):
        return ()
    rows, counts = np.unique(lines.rows_at(kernel.sass.pc[own].astype(np.int64)), return_counts=True)
    found: Counter[tuple[Frame, ...]] = Counter()
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        chain = lines.frames_of_row(row)[1:]
        if chain:
            found[chain] += count
    return tuple(CallChain(frames, count) for frames, count in found.most_common())
