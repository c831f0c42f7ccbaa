"""Argument texts become values: whole numbers and blocks, with an error that says what was expected."""

from __future__ import annotations

import argparse


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
