"""Finds a loop's global loads whose values go to shared memory and nowhere else: what asynchronous copies replace.

A value is followed through the loop's instructions in the order of their addresses, twice, so that a load at the end
that the next iteration stores is seen; where branches inside the loop matter, this is an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.cubin.sass import NEVER_GUARD
from kernel_lsp.model.kernel_sass import KernelSass, SassLoop

_LOADS = ("global_load", "generic_load")


@dataclass(frozen=True, slots=True)
class TileCopy:
    """A global load and the first store to shared memory that takes its value, by row."""

    load_row: int
    store_row: int


def tile_copies(kernel: KernelSass, loop: SassLoop) -> tuple[TileCopy, ...]:
    """The loads of one iteration of a loop that are only copied to shared memory, by row."""
    sass, flow = kernel.sass, kernel.flow
    rows = [
        row
        for row in flow.rows_of_loop(flow.loops[loop.work.index]).tolist()
        if kernel.loop_depth(row) == loop.work.depth and sass.guard[row] != NEVER_GUARD
    ]
    stores: dict[int, int] = {}
    used_elsewhere: set[int] = set()
    live: dict[int, int] = {}  # load row -> its registers that still hold the value
    for row in (*rows, *rows):
        registers, opcode = sass.forms[int(sass.form[row])].registers, sass.opcode(row)
        uses, defines = registers.uses or 0, registers.defines or 0
        for load, held in live.items():
            if not uses & held:
                continue
            if opcode.kind == "shared_store":
                stores.setdefault(load, row)
            else:
                used_elsewhere.add(load)
        live = {load: left for load, held in live.items() if (left := held & ~defines)}
        if opcode.kind in _LOADS and defines:
            live[row] = defines
    return tuple(TileCopy(load, stores[load]) for load in sorted(stores) if load not in used_elsewhere)
