"""Turns the PTX text that `-lineinfo` leaves in a cubin into facts that the machine code no longer has.

Those are the second number of `__launch_bounds__`, which kernels touch `extern __shared__` memory, and which
recurse, each by themselves or through a function they call. Lines in `.nv_debug_ptx_txt` end in zero bytes.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = rb"[A-Za-z_$%][\w$]*"
_HEAD = re.compile(rb"\.(entry|func)\s*(?:\([^()]*\)\s*)?(" + _NAME + rb")")
_MIN_BLOCKS = re.compile(rb"\.minnctapersm\s+(\d{1,9})\b")
_EXTERN_SHARED = re.compile(rb"\.extern\s+\.shared\s([^;]{0,1000});")
_ARRAY_NAME = re.compile(rb"([\w$]{1,500})\s{0,9}\[\s{0,9}\]\s{0,9}\Z")
_MOST_EXTERN_ARRAYS = 100
_CALL = re.compile(rb"\bcall[.\w]*\s[^;]{0,100000};")
_IN_NAMES = b".%$_" + string.ascii_letters.encode() + string.digits.encode()
_LINE_ENDS = bytes.maketrans(b"\0", b"\n")


@dataclass(frozen=True, slots=True)
class PtxKernel:
    """What the PTX says of one kernel."""

    min_blocks_per_sm: int | None
    uses_dynamic_shared: bool | None  # None: more such arrays than are looked for
    recurses: bool


def read_ptx(section: bytes) -> dict[str, PtxKernel]:
    """Facts by mangled kernel name, from the content of `.nv_debug_ptx_txt`; nothing where that holds no PTX."""
    text = section.translate(_LINE_ENDS)
    heads = [(match.start(), match[1] == b"entry", match[2]) for match in _HEAD.finditer(text)]
    if not heads:
        return {}
    starts = [start for start, _, _ in heads]
    functions = frozenset(name for _, is_entry, name in heads if not is_entry)

    def owner(place: int) -> bytes:
        """The function whose text holds the place; empty before the first."""
        at = bisect_right(starts, place) - 1
        return heads[at][2] if at >= 0 else b""

    callers: dict[bytes, set[bytes]] = {}
    callees: dict[bytes, set[bytes]] = {}
    for call in _CALL.finditer(text) if functions else ():
        caller = owner(call.start())
        for callee in functions.intersection(re.findall(_NAME, call[0])):
            callees.setdefault(caller, set()).add(callee)
            callers.setdefault(callee, set()).add(caller)
    declared = _extern_arrays(text)
    arrays = set(declared.values())
    known = len(arrays) <= _MOST_EXTERN_ARRAYS
    touching = {owner(place) for name in arrays if known for place in _uses(text, name) if place not in declared}
    users = _with_callers(touching, callers)
    recursive = _leading_to_cycles(callees, callers)
    kernels: dict[str, PtxKernel] = {}
    for start, is_entry, name in heads:
        if is_entry:
            body = text.find(b"{", start)
            bound = _MIN_BLOCKS.search(text, start, body) if body > 0 else None
            kernels[name.decode()] = PtxKernel(
                min_blocks_per_sm=int(bound[1]) if bound else None,
                uses_dynamic_shared=name in users if known else None,
                recurses=name in recursive,
            )
    return kernels


def _extern_arrays(text: bytes) -> dict[int, bytes]:
    """Place of the name in each `.extern .shared` declaration -> the name."""
    found = {}
    for declaration in _EXTERN_SHARED.finditer(text):
        array = _ARRAY_NAME.search(declaration[1])
        if array:
            found[declaration.start(1) + array.start(1)] = array[1]
    return found


def _uses(text: bytes, name: bytes) -> Iterator[int]:
    """Places where the name stands as a whole word."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if text[at - 1 : at].translate(None, _IN_NAMES) and text[end : end + 1].translate(None, _IN_NAMES[1:]):
            yield at
        at = text.find(name, end)


def _with_callers(names: set[bytes], callers: dict[bytes, set[bytes]]) -> set[bytes]:
    """The named functions and all that call them, directly or not."""
    reached = set(names)
    waiting = list(names)
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller not in reached:
                reached.add(caller)
                waiting.append(caller)
    return reached


def _leading_to_cycles(callees: dict[bytes, set[bytes]], callers: dict[bytes, set[bytes]]) -> set[bytes]:
    """The functions whose calls do not all end: what is left after taking away, again and again, those that do."""
    open_calls = {name: len(called) for name, called in callees.items()}
    ending = [name for name in callers if name not in open_calls]
    while ending:
        for caller in callers.get(ending.pop(), ()):
            open_calls[caller] -= 1
            if not open_calls[caller]:
                ending.append(caller)
    return {name for name, count in open_calls.items() if count}
