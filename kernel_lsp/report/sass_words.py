"""Instructions in words: counts by opcode with the telling ones first, places, and chains of calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from kernel_lsp.cubin.linemap import Frame
from kernel_lsp.cubin.mix import is_move
from kernel_lsp.cubin.names import function_name
from kernel_lsp.cubin.sass import NEVER_GUARD, Form, Sass
from kernel_lsp.model.kernel_sass import Rows

# What a line is about stands before what it merely takes to get there.
_ORDER = {
    kind: rank
    for rank, kinds in enumerate(
        (
            ("tensor",),
            ("async_copy", "tensor_memory"),
            ("global_load", "global_store", "global_atomic", "generic_load", "generic_store", "texture"),
            ("local_load", "local_store"),
            ("shared_load", "shared_store", "shared_atomic"),
            ("sync",),
            ("warp",),
        )
    )
    for kind in kinds
}
LONGEST_SIGNATURE = 400  # letters
EDITED = "a line that was edited since"
_FLOAT_RANK = 0.5
_REST_RANK = len(_ORDER)
_OPERATOR = re.compile(r"<=>|<<=?|>>=?|<=?|>=?|->\*?")
# Where the width or the shape is the point, the whole opcode is named.
_NAMED_IN_FULL = {"tensor", "async_copy", "tensor_memory", "global_load", "global_store", "global_atomic"} | {
    *("generic_load", "generic_store", "local_load", "local_store", "shared_load", "shared_store", "shared_atomic"),
    *("texture", "sync"),
}


def opcode_counts(sass: Sass, rows: Rows) -> list[tuple[str, int]]:
    """Names and counts of the instructions that can run, the telling ones first; "unknown" for those without text."""
    rows = rows[sass.guard[rows] != NEVER_GUARD]
    totals: Counter[tuple[float, str]] = Counter()
    forms, counts = np.unique(sass.form[rows], return_counts=True)
    for number, count in zip(forms.tolist(), counts.tolist(), strict=True):
        totals[rank_and_name(sass.forms[number])] += count
    return [(name, count) for (_, name), count in sorted(totals.items(), key=lambda item: (item[0][0], -item[1]))]


def counts_text(sass: Sass, rows: Rows, most: int = 7) -> str:
    """`16 FFMA  32 LDS  12 others`."""
    counts = opcode_counts(sass, rows)
    if len(counts) > most + 1:
        rest = sum(count for _, count in counts[most:])
        counts = [*counts[:most], ("others", rest)]
    return "  ".join(f"{count:,} {name}" for name, count in counts)


def ranks_and_names(sass: Sass, rows: Rows) -> dict[int, tuple[float, str]]:
    """By form: how telling an instruction is, the lowest first, and the name under which it is counted here."""
    return {form: rank_and_name(sass.forms[form]) for form in np.unique(sass.form[rows]).tolist()}


def rank_and_name(form: Form) -> tuple[float, str]:
    """As `ranks_and_names`, of one form."""
    opcode = form.opcode
    if not opcode.family:
        return float(_REST_RANK + 1), "unknown"
    if is_move(form):
        return float(_REST_RANK), "MOV"
    if opcode.kind == "compute" and opcode.flop and opcode.unit != "uniform":
        return _FLOAT_RANK, opcode.family
    if opcode.kind == "tensor" and opcode.flop == 0:
        return float(_ORDER["shared_load"]), opcode.text  # moves matrices: MOVM
    name = opcode.text if opcode.kind in _NAMED_IN_FULL else opcode.family
    return float(_ORDER.get(opcode.kind, _REST_RANK)), name


def signature(full_name: str) -> str:
    """The whole name; the middle of one that fills a screen is left out."""
    if len(full_name) <= LONGEST_SIGNATURE:
        return full_name
    half = LONGEST_SIGNATURE // 2
    return f"{full_name[:half]} \N{HORIZONTAL ELLIPSIS} {full_name[-half:]}"


def _unmoved(line: int) -> int | None:
    return line


@dataclass(frozen=True, slots=True)
class Places:
    """Says where code stands, as seen from the file at `path`; `moved` gives where a line of it is after edits."""

    path: str
    moved: Callable[[int], int | None] = _unmoved

    def of(self, file: str, line: int) -> str:
        """`l.41` in the file itself, else `load.cuh:41`."""
        if file != self.path:
            return f"{PurePath(file).name}:{line}"
        now = self.moved(line)
        return EDITED if now is None else f"l.{now}"

    def chain(self, frames: Sequence[Frame], most: int = 4) -> str:
        """The calls outwards, `load.cuh:4 <- l.6`; the middle of a long chain is left out and counted."""
        places = [self.of(frame.file, frame.line) for frame in frames if frame.line]
        if len(places) > most:
            n_left = len(places) - most
            calls = "1 call" if n_left == 1 else f"{n_left} calls"
            places = [*places[: most // 2], f"({calls})", *places[-(most - most // 2) :]]
        return " <- ".join(places)


def function_words(mangled: str | None) -> str:
    """` (load_matrix_sync)` for an inlined function, "" for the kernel's own code."""
    return "" if mangled is None else f" ({last_name(function_name(mangled).short)})"


def last_name(name: str) -> str:
    """`ns::Mma<(int)3>::operator()` -> `Mma::operator()`: what tells functions apart where their place is beside."""
    plain, depth, at = "", 0, 0
    while at < len(name):
        symbol = _OPERATOR.match(name, at) if plain.endswith("operator") else None
        if symbol:
            plain, at = plain + symbol[0], symbol.end()
            continue
        letter = name[at]
        if letter in "<>" and name[at - 1 : at + 1] != "->":
            depth += 1 if letter == "<" else -1
        elif depth <= 0:
            plain += letter
        at += 1
    parts = plain.rstrip().split("::")
    return "::".join(parts[-2:]) if parts[-1].startswith("operator") else parts[-1]
