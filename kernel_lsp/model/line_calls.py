"""What a kernel's instructions call without inlining, and from where the functions behind a kernel are called.

Functions that were not inlined stand in the kernel's section behind it, each once. NVIDIA's own among them (division,
square root, the slow paths of the math library) belong to no source line.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from kernel_lsp.cubin.linemap import Frame
from kernel_lsp.cubin.names import is_nvidias
from kernel_lsp.cubin.sass import CodeFunction
from kernel_lsp.model.kernel_sass import KernelSass, Rows

_NAMED = re.compile(r"^`\(([^)]+)\)$")


@dataclass(frozen=True, slots=True)
class Called:
    """A function that was not inlined: its mangled name, its instructions (None: it is linked later), calls to it."""

    function: str
    instruction_count: int | None
    is_helper: bool  # NVIDIA's own
    n_calls: int


@dataclass(frozen=True, slots=True)
class CalledFrom:
    """Instructions of a line that stand in a function behind the kernel, and the places of the calls to it."""

    function: str  # mangled
    count: int
    places: tuple[tuple[Frame, ...], ...]  # chains, innermost first; by address


def own_function(kernel: KernelSass, row: int) -> CodeFunction | None:
    """The function behind the kernel that holds a row; None for the kernel's own code."""
    found = next((each for each in kernel.code.functions if each.start <= row < each.stop), None)
    return None if found is None or found.start == kernel.code.start else found


def mangled_name(function: CodeFunction) -> str:
    """`$_Z5callsPfi$_Z5heavyPKfi` -> `_Z5heavyPKfi`."""
    return function.name.rpartition("$")[2]


def called(kernel: KernelSass, rows: Rows) -> tuple[Called, ...]:
    """The functions that these rows call, in the order of the first call; those behind a pointer are left out."""
    at = {function.start: function for function in kernel.code.functions}
    here = set(rows.tolist())
    counts: Counter[str] = Counter()
    found: dict[str, Called] = {}
    for call in kernel.flow.calls:
        if call.row not in here:
            continue
        function = None if call.callee is None else at.get(call.callee)
        named = _NAMED.match(kernel.sass.forms[int(kernel.sass.form[call.row])].operands)
        if function is not None:
            name, size = mangled_name(function), function.stop - function.start
        elif named:
            name, size = named[1].rpartition("$")[2], None
        else:
            continue
        counts[name] += 1
        found.setdefault(name, Called(name, size, is_nvidias(name), 0))
    return tuple(
        Called(each.function, each.instruction_count, each.is_helper, counts[name]) for name, each in found.items()
    )


def called_from(kernel: KernelSass, rows: Rows) -> tuple[CalledFrom, ...]:
    """For those of the rows that stand in functions behind the kernel: which, and from where it is called."""
    counts: Counter[int] = Counter()
    for row in rows.tolist():
        if (function := own_function(kernel, row)) is not None:
            counts[function.start] += 1
    by_start = {function.start: function for function in kernel.code.functions}
    return tuple(
        CalledFrom(
            mangled_name(by_start[start]),
            count,
            tuple(dict.fromkeys(kernel.frames(call.row) for call in kernel.flow.calls if call.callee == start)),
        )
        for start, count in counts.most_common()
    )
