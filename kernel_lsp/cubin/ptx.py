"""Turns the PTX text that `-lineinfo` leaves in a cubin into facts that the machine code no longer has.

Those are the second number of `__launch_bounds__`, which kernels touch `extern __shared__` memory, and which
recurse, each by themselves or through a function they call. Lines in `.nv_debug_ptx_txt` end in zero bytes.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_NAME = rb"[A-Za-z_$%][\w$]*"
_HEAD = re.compile(rb"\.(entry|func)\s*(?:\([^()]*\)\s*)?(" + _NAME + rb")")
_MIN_BLOCKS = re.compile(rb"\.minnctapersm\s+(\d{1,9})\b")
_EXTERN_SHARED = re.compile(rb"\.extern\s+\.shared\s[^;]{0,400}?(" + _NAME + rb")\s*\[\s*\]\s*;")
_CALL = re.compile(rb"\bcall[.\w]*\s[^;]{0,100000};")
_IN_NAMES = b".%$_" + string.ascii_letters.encode() + string.digits.encode()
_LINE_ENDS = bytes.maketrans(b"\0", b"\n")


@dataclass(frozen=True, slots=True)
class PtxKernel:
    """What the PTX says of one kernel."""

    min_blocks_per_sm: int | None
    uses_dynamic_shared: bool
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

    callees: dict[bytes, set[bytes]] = {}
    for call in _CALL.finditer(text) if functions else ():
        callees.setdefault(owner(call.start()), set()).update(functions.intersection(re.findall(_NAME, call[0])))
    declared = {match.start(1): match[1] for match in _EXTERN_SHARED.finditer(text)}
    touching = {owner(place) for name in set(declared.values()) for place in _uses(text, name) if place not in declared}
    recursive = {name for name in callees if name in _reached(callees[name], callees)}
    kernels: dict[str, PtxKernel] = {}
    for start, is_entry, name in heads:
        if is_entry:
            body = text.find(b"{", start)
            bound = _MIN_BLOCKS.search(text, start, body) if body > 0 else None
            reached = _reached([name], callees)
            kernels[name.decode()] = PtxKernel(
                min_blocks_per_sm=int(bound[1]) if bound else None,
                uses_dynamic_shared=not reached.isdisjoint(touching),
                recurses=not reached.isdisjoint(recursive),
            )
    return kernels


def _uses(text: bytes, name: bytes) -> Iterator[int]:
    """Places where the name stands as a whole word."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if text[at - 1 : at].translate(None, _IN_NAMES) and text[end : end + 1].translate(None, _IN_NAMES[1:]):
            yield at
        at = text.find(name, end)


def _reached(names: Iterable[bytes], callees: dict[bytes, set[bytes]]) -> set[bytes]:
    """The named functions and all that they call, directly or not."""
    reached: set[bytes] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(callees.get(name, ()))
    return reached
