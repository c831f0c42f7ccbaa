"""Turns an opcode such as "LDG.E.128" into what it is: class, unit, access width, FLOP, shape of its operands.

The table is `opcodes.csv` (one row per pattern; `source` says whether ptxas 13.0/13.5 was seen to emit it or whether
it is only listed by NVIDIA's CUDA Binary Utilities). A pattern matches whole tokens between dots: its first token is
the opcode's first token, and its other tokens occur among the opcode's in order; the longest pattern wins. Nothing is
ever matched by substring ("FFMA" is no "FFMA2"). An opcode without a row has class "unknown" and no numbers.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

UNKNOWN_CLASS = "unknown"

# Bytes per thread by modifier (facts: PTX types as ptxas prints them); without one of these an access is 4 bytes.
_SUFFIX_BYTES = {
    **dict.fromkeys(("U8", "S8"), 1),
    **dict.fromkeys(("U16", "S16"), 2),
    **dict.fromkeys(("64", "F64", "U64", "S64", "F32x2", "F16x4", "BF16x4"), 8),
    **dict.fromkeys(("128", "F32x4", "F16x8", "BF16x8"), 16),
    "256": 32,
}
_TMEM_LANE_REGISTERS = {"16dp128bit": 2, "16dp256bit": 4}
# Element bits of the A and B matrices by the letter(s) before "MMA".
_ELEMENT_BITS = {"H": 16, "I": 8, "B": 1, "D": 64, "Q": 8, "O": 4, "HG": 16, "IG": 8, "BG": 1, "QG": 8}
_WARPS_PER_GROUP = 4
_COMPACT_SHAPE = re.compile(r"^(8|16)(8)(\d+)$")
_LONG_SHAPE = re.compile(r"^(\d+)x(\d+)x(\d+)$")


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """M, N, K of a matrix instruction and the bits of one element of A and B, and of the accumulator.

    `threads` share the matrices: 32, or 128 where a warpgroup works together. Sparse forms (.SP) name the K of the
    dense product; A then holds half of it.
    """

    m: int
    n: int
    k: int
    element_bits: int
    accumulator_bits: int
    threads: int
    sparse: bool

    def registers(self, which: str) -> int:
        """32-bit registers a thread holds of matrix "a", "b" or "c"."""
        if which == "c":
            bits = self.m * self.n * self.accumulator_bits
        elif which == "a":
            bits = self.m * self.k * self.element_bits // (2 if self.sparse else 1)
        else:
            bits = self.n * self.k * self.element_bits
        return max(1, bits // (32 * self.threads))


@dataclass(frozen=True, slots=True)
class Opcode:
    """What one opcode is. `width_bytes` per thread: 0 no memory access, None not in the text (TMA) or not known.

    `flop` counts once per issue by one warp (a warpgroup instruction: that warp's quarter); sparse tensor
    instructions count their dense equivalent. 0: none by the usual convention. None: not known from the text.
    `destinations` and `registers` name the operand rules that `operands` applies.
    """

    text: str
    family: str
    modifiers: tuple[str, ...]
    kind: str
    unit: str
    latency: str  # fixed | variable | async | by_arch | ""
    width_bytes: int | None
    flop: int | None
    flop_scope: str  # warp | warpgroup | cta | ""
    destinations: str
    registers: str

    @property
    def known(self) -> bool:
        """Whether the table has a row for it."""
        return self.kind != UNKNOWN_CLASS


@dataclass(frozen=True, slots=True)
class _Row:
    tokens: tuple[str, ...]
    kind: str
    unit: str
    latency: str
    flop: str
    flop_scope: str
    destinations: str
    registers: str
    bytes_rule: str


@lru_cache(maxsize=1)
def _table() -> dict[str, tuple[_Row, ...]]:
    text = resources.files("kernel_lsp.cubin").joinpath("opcodes.csv").read_text(encoding="utf-8")
    by_family: dict[str, list[_Row]] = {}
    for row in csv.DictReader(text.splitlines()):
        tokens = tuple(row["pattern"].split("."))
        by_family.setdefault(tokens[0], []).append(
            _Row(
                tokens,
                row["class"],
                row["unit"],
                row["latency"],
                row["flop"],
                row["flop_scope"],
                row["destinations"],
                row["registers"],
                row["bytes"],
            )
        )
    return {family: tuple(sorted(rows, key=lambda row: -len(row.tokens))) for family, rows in by_family.items()}


@lru_cache(maxsize=1)
def classes() -> tuple[str, ...]:
    """All instruction classes, sorted, "unknown" last; positions in it are the values of class columns."""
    kinds = {row.kind for rows in _table().values() for row in rows}
    return (*sorted(kinds), UNKNOWN_CLASS)


@lru_cache(maxsize=4096)
def describe(text: str) -> Opcode:
    """What the opcode `text` ("HMMA.16816.F32") is; class "unknown" where the table has no row for it."""
    family, *modifiers = text.split(".")
    for row in _table().get(family, ()):
        if _occur_in_order(row.tokens[1:], modifiers):
            return Opcode(
                text=text,
                family=family,
                modifiers=tuple(modifiers),
                kind=row.kind,
                unit=row.unit,
                latency=row.latency,
                width_bytes=_width_bytes(row.bytes_rule, modifiers),
                flop=_flop(row.flop, text),
                flop_scope=row.flop_scope,
                destinations=row.destinations,
                registers=row.registers,
            )
    return Opcode(text, family, tuple(modifiers), UNKNOWN_CLASS, "", "", None, None, "", "", "unknown")


@lru_cache(maxsize=1024)
def matrix_shape(text: str) -> MatrixShape | None:
    """The shape in the mnemonic of an MMA ("HMMA.16816.F32", "HGMMA.64x128x16.F32"); None where it has none."""
    family, *modifiers = text.split(".")
    bits = _ELEMENT_BITS.get(family.removesuffix("MMA")) if family.endswith("MMA") else None
    if bits is None:
        return None
    for token in modifiers:
        found = _LONG_SHAPE.match(token) or _COMPACT_SHAPE.match(token)
        if found:
            break
    else:
        return None
    m, n, k = (int(part) for part in found.groups())
    if "TF32" in modifiers:
        bits = 32
    elif {"S4", "U4"} & set(modifiers):
        bits = 4
    return MatrixShape(
        m=m,
        n=n,
        k=k,
        element_bits=bits,
        accumulator_bits=64 if family == "DMMA" else 16 if _accumulates_f16(family, modifiers) else 32,
        threads=32 * (_WARPS_PER_GROUP if family.endswith("GMMA") else 1),
        sparse="SP" in modifiers,
    )


def _accumulates_f16(family: str, modifiers: list[str]) -> bool:
    """The first type after the shape is the accumulator's: HMMA.16816.F16, QMMA.16832.F16.E4M3.E4M3."""
    types = [token for token in modifiers if token in ("F16", "F32", "S32")]
    return bool(types) and types[0] == "F16" and family not in ("IMMA", "BMMA", "DMMA")


def _occur_in_order(wanted: tuple[str, ...], modifiers: list[str]) -> bool:
    left = iter(modifiers)
    return all(token in left for token in wanted)


def _width_bytes(rule: str, modifiers: list[str]) -> int | None:
    if rule == "":
        return 0
    if rule == "suffix":
        return next((_SUFFIX_BYTES[token] for token in modifiers if token in _SUFFIX_BYTES), 4)
    if rule == "matrix":  # LDSM.16.M88.4: that many 8x8 matrices, 4 bytes of each per thread; MT1616: twice that
        each = 8 if "MT1616" in modifiers else 4
        return each * int(modifiers[-1] if modifiers and modifiers[-1] in ("2", "4") else 1)
    if rule == "tmem":
        lanes = next((_TMEM_LANE_REGISTERS[token] for token in modifiers if token in _TMEM_LANE_REGISTERS), 1)
        repeat = next((int(token[1:]) for token in modifiers if re.fullmatch(r"x\d+", token)), 1)
        return 4 * lanes * repeat
    return int(rule) if rule.isdigit() else None


def _flop(rule: str, text: str) -> int | None:
    if rule == "":
        return 0
    if rule == "shape":
        shape = matrix_shape(text)
        return None if shape is None else 2 * shape.m * shape.n * shape.k * 32 // shape.threads
    return int(rule) if rule.isdigit() else None
