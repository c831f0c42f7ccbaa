"""Turns the number cells of a CSV page into numbers: which sign groups thousands and which starts the decimals.

ncu prints numbers by the locale of its run: "134221952", "32,746,880", "4.963,5", with U+00A0 between groups. One
page has one locale, so evidence from any cell holds for all: two groups, both signs, other than three digits behind a
sign. A cell that could be read both ways on a page without evidence is not read; `ambiguous` then holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SPACES = "\u00a0\u202f\u2009 '\u2019"
_NUMBER = re.compile(rf"^[-+]?\d[\d.,{_SPACES}]*(?:[eE][-+]?\d+)?$")
_GROUPS = re.compile(r"[-+]?\d{1,3}(?:[.,]\d{3})+")


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """The signs of one page. `decimal` and `thousands` are "." or "," where the page shows which, else None."""

    decimal: str | None
    thousands: str | None
    contradiction: tuple[str, str] | None  # two cells that cannot come from one locale

    def number(self, cell: str) -> float | int | None:
        """The cell's number; None for an empty cell, a text, or a number that could be read two ways."""
        text = cell.strip()
        if not _NUMBER.match(text):
            return None
        for space in _SPACES:
            text = text.replace(space, "")
        sign = _lone_sign(text)
        if sign is not None and sign not in (self.decimal, self.thousands):
            return None
        whole, point, rest = text.partition(self.decimal or ".")
        if self.thousands is not None and self.thousands in whole:
            if not _GROUPS.fullmatch(whole):
                return None
            whole = whole.replace(self.thousands, "")
        text = f"{whole}.{rest}" if point else whole
        try:
            return float(text) if any(mark in text for mark in ".eE") else int(text)
        except ValueError:
            return None

    def ambiguous(self, cell: str) -> bool:
        """Whether the cell is a number that this page does not say how to read."""
        return _lone_sign(cell.strip()) is not None and self.number(cell) is None


def number_format(cells: Iterable[str]) -> NumberFormat:
    """The signs that the number cells of a page give away."""
    decimal: dict[str, str] = {}  # sign -> the cell that shows it
    thousands: dict[str, str] = {}
    for cell in cells:
        text = cell.strip()
        if not _NUMBER.match(text):
            continue
        mantissa = re.split("[eE]", text)[0].lstrip("+-")
        if any(space in mantissa for space in _SPACES):
            for space in _SPACES:
                mantissa = mantissa.replace(space, "")
            # The groups are told by blanks, so a sign that is left starts the decimals.
            for sign in set(mantissa) & {".", ","}:
                decimal.setdefault(sign, cell)
            continue
        signs = [letter for letter in mantissa if letter in ".,"]
        if not signs:
            continue
        if len(signs) > 1 and not _GROUPS.fullmatch(
            mantissa[: mantissa.rfind(signs[-1])] if len(set(signs)) == 2 else mantissa
        ):
            continue  # "1.2.3" is no number
        if len(set(signs)) == 2:
            decimal.setdefault(signs[-1], cell)
            thousands.setdefault(signs[0], cell)
        elif len(signs) > 1:
            thousands.setdefault(signs[0], cell)
        else:
            before, _, behind = mantissa.partition(signs[0])
            if len(behind) != 3 or before == "0" or len(before) > 3:
                decimal.setdefault(signs[0], cell)
    contradiction = None
    for sign, other in ((".", ","), (",", ".")):
        if sign in decimal and sign in thousands:
            contradiction = (decimal[sign], thousands[sign])
        elif sign in decimal and other in decimal:
            contradiction = (decimal["."], decimal[","])
        elif sign in thousands and other in thousands:
            contradiction = (thousands["."], thousands[","])
    if contradiction:
        return NumberFormat(None, None, contradiction)
    found_decimal, found_thousands = next(iter(decimal), None), next(iter(thousands), None)
    if found_decimal and not found_thousands:
        found_thousands = "," if found_decimal == "." else "."
    if found_thousands and not found_decimal:
        found_decimal = "," if found_thousands == "." else "."
    return NumberFormat(found_decimal, found_thousands, None)


def _lone_sign(text: str) -> str | None:
    """The sign of a number such as "1.234" that is alone in it and has three digits behind; None for others."""
    match = re.fullmatch(r"[-+]?\d{1,3}([.,])\d{3}", text)
    return match[1] if match else None
