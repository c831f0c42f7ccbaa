"""Turns local memory accesses into what they are for: register spills, local arrays, or the calling convention.

ptxas (12.6 and later) lists the instructions that spill or refill. Every other access to local memory is to an array or
to a variable whose address is taken, or, in code with calls, saves a register or passes an argument as CUDA's calling
convention asks (printf's arguments, for one). An address [R1] or [R1+0x10] is a fixed slot of the frame; any other base
means a run-time index.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.operands import GENERAL_MASK
from kernel_lsp.cubin.sass import NEVER_GUARD, Sass

_SLOT = re.compile(r"\[R1(?:\+(-?0x[0-9a-f]+))?\]")
_STACK_POINTER = 1 << 1
# Registers that a called function gives back as it found them.
_CALLEE_SAVED = sum(1 << number for number in (2, *range(16, 32)))


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """One LDL or STL that can run. `purpose`: "spill", "array", "convention", or None where ptxas did not say."""

    row: int
    is_store: bool
    width_bytes: int
    purpose: str | None
    slot: int | None  # byte offset from the stack pointer; None: the index is computed at run time
    loop_depth: int


def local_accesses(sass: Sass, flow: Flow, spill_offsets: Collection[int] | None) -> tuple[LocalAccess, ...]:
    """The local memory accesses of a section, by row.

    `spill_offsets`: byte offsets that the cubin lists as spills and refills; None where it lists none because its
    ptxas does not (before 12.6): then fixed slots have no known purpose.
    """
    code = flow.code
    saves = _saves_of_registers(sass, flow)
    found: list[LocalAccess] = []
    for row, name in enumerate(sass.families(code.start, code.padding), code.start):
        if name not in ("LDL", "STL") or sass.guard[row] == NEVER_GUARD:
            continue
        form = sass.forms[int(sass.form[row])]
        slot = _SLOT.search(form.operands)
        found.append(
            LocalAccess(
                row=row,
                is_store=name == "STL",
                width_bytes=form.opcode.width_bytes or 4,
                purpose=_purpose(int(sass.pc[row]), bool(slot), spill_offsets, row in saves),
                slot=int(slot[1] or "0", 16) if slot else None,
                loop_depth=int(flow.loop_depth[row - code.start]),
            )
        )
    return tuple(_name_arguments(found, flow))


def _name_arguments(found: list[LocalAccess], flow: Flow) -> list[LocalAccess]:
    """Stores to slots that nothing here reads, in code that calls outside the section, are the call's arguments."""
    calls_outside = any(call.callee is None for call in flow.calls)
    if not calls_outside or any(access.slot is None for access in found):
        return found
    loaded = {access.slot for access in found if not access.is_store}
    return [
        replace(access, purpose="convention")
        if access.is_store and access.purpose == "array" and access.slot not in loaded
        else access
        for access in found
    ]


def _purpose(pc: int, is_slot: bool, spill_offsets: Collection[int] | None, is_save: bool) -> str | None:
    if spill_offsets is not None and pc in spill_offsets:
        return "spill"
    if not is_slot:
        return "array"
    if is_save:
        return "convention"
    return "array" if spill_offsets is not None else None


def _saves_of_registers(sass: Sass, flow: Flow) -> set[int]:
    """Rows of functions other than a kernel that save a caller's registers before their first own value, and that load
    them back from there."""
    found: set[int] = set()
    for function in flow.code.functions:
        if function.is_kernel:
            continue
        written = 0
        saved: dict[str, int] = {}  # the address -> registers
        for row in range(function.start, function.stop):
            form = sass.forms[int(sass.form[row])]
            defines, uses = form.registers.defines or 0, form.registers.uses or 0
            slot = _SLOT.search(form.operands)
            if slot and form.opcode.family == "STL":
                data = uses & GENERAL_MASK & ~_STACK_POINTER
                if data and not data & ~_CALLEE_SAVED and not data & written:
                    saved[slot[0]] = data
                    found.add(row)
            elif slot and form.opcode.family == "LDL" and defines and saved.get(slot[0]) == defines:
                found.add(row)
            written |= defines
    return found
