"""A cubin's table of calls (`.nv.callgraph`) tells which kernels' registers and stack other files can still raise.

The table is a list of pairs of symbol numbers in four parts, each behind a pair with a mark in the second place:
direct calls, functions whose address is taken, calls through pointers, uses of addresses. The linker gives a kernel the
registers of the hungriest function that it reaches; through a pointer that is any function of the program with the
same parameters whose address is taken. So a kernel without calls is final before the link, and one that calls through
pointers is final only when the whole program is linked.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kernel_lsp.cubin.elf import CubinElf

_PAIR = struct.Struct("<II")
_FIRST_MARK = 0xFFFFFFFC
_DIRECT, _THROUGH_POINTERS = 0xFFFFFFFF, 0xFFFFFFFD


@dataclass(frozen=True, slots=True)
class CallGraph:
    """Indices of symbols: who calls whom directly, and who calls through pointers."""

    callees: dict[int, tuple[int, ...]]
    pointer_callers: frozenset[int]

    def calls(self, caller: int) -> bool:
        """Whether this function calls any other, in whatever way."""
        return caller in self.callees or caller in self.pointer_callers

    def reaches_pointer_call(self, caller: int) -> bool:
        """Whether this function, or one that it calls directly, calls through a pointer."""
        seen, waiting = {caller}, [caller]
        while waiting:
            function = waiting.pop()
            if function in self.pointer_callers:
                return True
            following = [callee for callee in self.callees.get(function, ()) if callee not in seen]
            seen.update(following)
            waiting += following
        return False


def call_graph(elf: CubinElf) -> CallGraph | None:
    """The table of calls; None where there is none (before CUDA 12.4), or one of a form that is not known here."""
    content = elf.content(elf.section(".nv.callgraph"))
    if not content or len(content) % _PAIR.size:
        return None
    callees: dict[int, list[int]] = {}
    pointer_callers = set()
    part = 0
    for caller, callee in _PAIR.iter_unpack(content):
        if callee >= _FIRST_MARK:
            part = callee
        elif caller >= len(elf.symbols) or not part:
            return None
        elif part == _DIRECT:
            callees.setdefault(caller, []).append(callee)
        elif part == _THROUGH_POINTERS:
            pointer_callers.add(caller)
    if not part:
        return None
    return CallGraph({caller: tuple(found) for caller, found in callees.items()}, frozenset(pointer_callers))
