"""Argument texts become values: numbers and blocks, with an error that says what was expected."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal

_NUMBER = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE]\+?[0-9]{1,3})?", re.ASCII)
_MOST = Decimal("1e30")


def block(text: str) -> tuple[int, int, int]:
    """`256`, `16x16` or `16,16,1` as three sizes."""
    parts = text.replace(",", "x").split("x")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"expected a block such as 256 or 16x16, got {text!r}")
    x, y, z = ([int(part) for part in parts] + [1, 1])[:3]
    return (x, y, z)


def whole(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, got {text!r}")
    return int(text)


def count(text: str) -> int:
    """A count of operations or bytes: a whole number from 0 to 1e30, also written as `1.7e10`."""
    value = Decimal(text) if _NUMBER.fullmatch(text) else None
    if value is None or value > _MOST or value != value.to_integral_value():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 1e30, as 4096 or 1.7e10, got {text!r}")
    return int(value)


def microseconds(text: str) -> float:
    """A time from 0.001 us (1 ns) to 1e12 us."""
    value = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not 1e-3 <= value <= 1e12:
        raise argparse.ArgumentTypeError(f"expected microseconds from 0.001 to 1e12, as 32 or 70.5, got {text!r}")
    return value
