"""Turns values with ncu's unit names, which changed over its versions and scale by 1000, into base units."""

from __future__ import annotations

import re

_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SECONDS = re.compile(r"^(n|u|m|)(?:s|second|sec)$")
_SCALED = re.compile(r"^(K|k|M|G|T|)(hz|byte|inst|cycle|sector|warp|thread|block|register|flop|ops|request|branches)\b")


def in_base_unit(value: float, unit: str) -> float | None:
    """The value in seconds, hertz, bytes, percent ... ("us", "Ghz", "Kbyte/block", "%"); None: a unit not known.

    A divisor stays as it is: "Gbyte/s" gives bytes per second, "Kbyte/block" bytes per block.
    """
    top, slash, below = unit.partition("/")
    if not unit or unit == "%" or (slash and not top):
        return value
    if match := _SECONDS.match(top):
        return value * _PREFIXES[match[1]]
    if match := _SCALED.match(top):
        factor = _PREFIXES[match[1]]
        # "%/Kbyte", "1/us": what stands below is not ours to turn.
        return value * factor if below in ("", "s", "second", "cycle", "block", "thread", "sector", "inst") else None
    return value if top in ("%", "pct", "ratio", "1", "register", "instances", "pass", "KB") or top.isalpha() else None


def seconds_to_ns(seconds: float | None) -> float | None:
    """Nanoseconds, without the dust of the conversion back and forth."""
    return None if seconds is None else round(seconds * 1e9, 6)
