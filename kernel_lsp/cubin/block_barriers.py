"""Turns a kernel's memory accesses and block barriers into the barriers that order nothing.

A barrier of all threads (BAR.SYNC 0, `__syncthreads()`) is needed where something before it, back to the last barrier
on any path, and something behind it, up to the next one, may touch the same memory and one of the two writes. Shared
and global memory never overlap; whatever is not plainly one of them (generic accesses, asynchronous copies and their
waits, fences, calls) counts as touching everything, and beside a read of a clock a barrier is always needed. Kernels
with barriers of part of a block, mbarriers, clusters, TMA, warpgroups or tensor memory are left out, and those whose
branches are not all known.

The answer holds under the rule of `__syncthreads()`: all threads of the block meet at the same barrier. Its barriers
can be left out together: each is found with the others gone, those in the deepest loops first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.sass import ALWAYS_GUARD, NEVER_GUARD, NO_GUARD, Form, Sass

_SHARED_READ, _SHARED_WRITE, _GLOBAL_READ, _GLOBAL_WRITE, _ANY, _CLOCK = 1, 2, 4, 8, 16, 32
_TOUCHES = {
    **dict.fromkeys(("compute", "tensor", "const_load", "local_load", "local_store", "warp", "control"), 0),
    "shared_load": _SHARED_READ,
    "shared_store": _SHARED_WRITE,
    "shared_atomic": _SHARED_READ | _SHARED_WRITE,
    "global_load": _GLOBAL_READ,
    "texture": _GLOBAL_READ,
    "global_store": _GLOBAL_WRITE,
    "global_atomic": _GLOBAL_READ | _GLOBAL_WRITE,
}
_SURFACE_WRITES = {"SUST", "SURED", "SUATOM"}  # of the kind "texture"
_HARMLESS = {"S2R", "CS2R", "S2UR", "WARPSYNC", "ELECT"}  # of the kinds "special" and "sync"
_CALLS = {"CALL", "RET"}
_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
# Kernels with these are not answered for: barriers and copies of theirs are about other threads or other memory.
_BEYOND = {"B2R", "UCGABAR_ARV", "UCGABAR_WAIT"}
_BEYOND_UNITS = {"tma", "mbarrier", "warpgroup", "tcgen05", "cluster", "cta"}


def needless_barriers(sass: Sass, flow: Flow) -> tuple[int, ...]:
    """Rows of block barriers that order no two accesses, rising."""
    first, end = flow.code.start, flow.code.padding
    forms = {number: sass.forms[number] for number in set(sass.form[first:end].tolist())}
    barrier_forms = {number for number, form in forms.items() if form.opcode.family == "BAR"}
    if not barrier_forms or not flow.is_whole or any(_is_beyond(form) for form in forms.values()):
        return ()
    if not all(_is_of_all_threads(forms[number]) for number in barrier_forms):
        return ()
    touched_by_form = {number: _touched(form) for number, form in forms.items()}
    touched, barriers = [], set()
    for row, (form, guard) in enumerate(
        zip(sass.form[first:end].tolist(), sass.guard[first:end].tolist(), strict=True), first
    ):
        touched.append(0 if guard == NEVER_GUARD else touched_by_form[form])
        if form in barrier_forms and guard != NEVER_GUARD:
            if guard not in (NO_GUARD, ALWAYS_GUARD):
                return ()
            barriers.add(row)
    found: set[int] = set()
    depth = flow.loop_depth
    for row in sorted(barriers, key=lambda row: (-int(depth[row - first]), -row)):
        if not flow.reachable[flow.block_of(row)]:
            continue
        kept = barriers - found
        before = _before(row, flow, touched, kept)
        behind = _behind(row, flow, touched, kept)
        if not _conflict(before, behind):
            found.add(row)
    return tuple(sorted(found))


def _is_beyond(form: Form) -> bool:
    opcode = form.opcode
    is_async_tensor = opcode.kind in ("tensor", "tensor_memory") and opcode.latency == "async"
    return is_async_tensor or opcode.family in _BEYOND or opcode.unit in _BEYOND_UNITS


def _is_of_all_threads(form: Form) -> bool:
    """`BAR.SYNC.DEFER_BLOCKING 0x0`: number 0 and no count of threads."""
    return "SYNC" in form.opcode.modifiers and form.operands == "0x0"


def _touched(form: Form) -> int:
    opcode = form.opcode
    if opcode.family == "BAR":
        return 0
    if any(clock in form.operands for clock in _CLOCKS):
        return _CLOCK
    if opcode.family in _CALLS:
        return _ANY
    if opcode.family in _HARMLESS:
        return 0
    if opcode.family in _SURFACE_WRITES:
        return _GLOBAL_READ | _GLOBAL_WRITE
    return _TOUCHES.get(opcode.kind, _ANY) if opcode.known else _ANY


def _conflict(before: int, behind: int) -> bool:
    if (before | behind) & _CLOCK:
        return True  # it makes the threads start together
    if not before or not behind:
        return False
    if (before | behind) & _ANY:
        return True
    return any(
        (before | behind) & write and before & (read | write) and behind & (read | write)
        for read, write in ((_SHARED_READ, _SHARED_WRITE), (_GLOBAL_READ, _GLOBAL_WRITE))
    )


def _before(row: int, flow: Flow, touched: Sequence[int], barriers: set[int]) -> int:
    """What is touched on any path from the last barriers to a row."""
    kernels = {function.start for function in flow.code.functions if function.is_kernel}
    predecessors: list[list[int]] = [[] for _ in range(len(flow))]
    for block, targets in enumerate(flow.successors):
        for target in targets:
            predecessors[target].append(block)
    home = flow.block_of(row)
    found, ended = _until_barrier(range(row - 1, flow.starts[home] - 1, -1), flow, touched, barriers)
    waiting, seen = ([] if ended else [home]), set[int]()
    while waiting:
        block = waiting.pop()
        if block in flow.roots and flow.starts[block] not in kernels:
            found |= _ANY  # what the callers did
        for source in predecessors[block]:
            if source in seen or not flow.reachable[source]:
                continue
            seen.add(source)
            more, ended = _until_barrier(reversed(flow.rows(source)), flow, touched, barriers)
            found |= more
            if not ended:
                waiting.append(source)
    return found


def _behind(row: int, flow: Flow, touched: Sequence[int], barriers: set[int]) -> int:
    """What is touched on any path from a row to the next barriers."""
    home = flow.block_of(row)
    found, ended = _until_barrier(range(row + 1, flow.starts[home + 1]), flow, touched, barriers)
    waiting, seen = ([] if ended else [home]), set[int]()
    while waiting:
        for target in flow.successors[waiting.pop()]:
            if target in seen:
                continue
            seen.add(target)
            more, ended = _until_barrier(flow.rows(target), flow, touched, barriers)
            found |= more
            if not ended:
                waiting.append(target)
    return found


def _until_barrier(rows: Iterable[int], flow: Flow, touched: Sequence[int], barriers: set[int]) -> tuple[int, bool]:
    found = 0
    for row in rows:
        if row in barriers:
            return found, True
        found |= touched[row - flow.code.start]
    return found, False
