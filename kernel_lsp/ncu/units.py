"""Turns values with ncu's unit names, which changed over its versions and scale by 1000, into base units."""

from __future__ import annotations

import re

_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SECONDS = re.compile(r"^(n|u|m|)(?:s|second|sec)$")
_SCALED = re.compile(r"^(K|k|M|G|T|)(hz|byte|inst|cycle|sector|warp|thread|block|register|flop|ops|request|branches)\b")


def in_base_unit(value: float, unit: str) -> float | None:
    """The value in seconds, hertz, bytes, percent ... ("us", "Ghz", "Kbyte/block", "%"); None: not a unit to turn.

    A divisor stays as it is: "Gbyte/s" gives bytes per second, "Kbyte/block" bytes per block; "%/Kbyte", whose divisor
    is scaled, is not turned.
    """
    top, _, below = unit.partition("/")
    if below not in ("s", "second") and (_factor(below) or 1.0) != 1.0:
        return None
    factor = _factor(top)
    return value if factor is None else value * factor


def _factor(unit: str) -> float | None:
    """What a scaled unit stands for ("Kbyte": 1000); None: a plain word, a count, a percentage."""
    match = _SECONDS.match(unit) or _SCALED.match(unit)
    return _PREFIXES[match[1]] if match else None


def seconds_to_ns(seconds: float | None) -> float | None:
    """Nanoseconds, without the dust of the conversion back and forth."""
    return None if seconds is None else round(seconds * 1e9, 6)
