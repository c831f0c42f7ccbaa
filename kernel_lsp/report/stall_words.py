"""Waiting in words: how far apart a line's arithmetic stands and what ptxas and the pipe ask for; needless barriers."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from kernel_lsp.cubin.opcodes import Opcode, matrix_shape
from kernel_lsp.findings import wording
from kernel_lsp.hardware.profile import HwProfile
from kernel_lsp.model.kernel_sass import KernelSass, Rows
from kernel_lsp.model.usual_stalls import UsualStall, pipe_clocks, usual_stall

FEWEST = 4  # matrix operations of one opcode on a line; fewer tell nothing of a pipe
FARTHEST_PLAIN = 16  # clocks between arithmetic of one stream
FEWEST_PLAIN, FEWEST_IN_LOOP = 16, 8  # the same of FFMA and DFMA: a division or sinf() takes up to nine
MOST_SENTENCES = 2
_PLAIN_PEAKS = {"FFMA": "fp32", "DFMA": "fp64"}


def stall_sentences(kernel: KernelSass, rows: Rows, profile: HwProfile) -> list[str]:
    """One sentence for each repeated opcode whose usual stall is on record, the most frequent first."""
    sass = kernel.sass
    if sass.control is None:
        return []
    by_opcode: dict[str, list[int]] = {}
    for row in rows.tolist():
        opcode = sass.opcode(row)
        if opcode.kind == "tensor" or opcode.family in _PLAIN_PEAKS:
            by_opcode.setdefault(opcode.text, []).append(row)
    found = []
    for text, of_one in sorted(by_opcode.items(), key=lambda item: (-len(item[1]), item[0])):
        opcode = sass.opcode(of_one[0])
        usual = usual_stall(opcode, sass.arch)
        gaps = _gaps(kernel, of_one)
        if len(of_one) < _fewest(kernel, opcode, of_one) or usual is None or not gaps:
            continue
        gap = Counter(gaps).most_common(1)[0][0]
        if opcode.kind != "tensor" and not usual.independent < gap <= FARTHEST_PLAIN:
            continue  # as close as the compiler ever puts them, or scattered among others
        said = f"{len(of_one):,} {text}, mostly {wording.counted(gap, 'clock')} apart by their stall counts"
        said += _chain_words(kernel, of_one, usual)
        found.append(said + _pipe(opcode, gap, profile))
    return found[:MOST_SENTENCES]


def barrier_sentences(kernel: KernelSass, rows: Rows) -> list[str]:
    """A sentence where barriers among the rows order nothing."""
    every = [row for row in rows.tolist() if kernel.sass.opcode(row).family == "BAR"]
    needless = set(kernel.needless_barriers).intersection(every)
    if not needless:
        return []
    which = "The barrier orders" if len(every) == 1 else f"{len(needless)} of {len(every)} barriers order"
    it, stands = ("it", "the last barrier") if len(needless) == 1 else ("them", "the last other barrier")
    return [
        f"{which} nothing: from {stands} to the next, no memory is used on both sides of {it} and written on one. "
        f"Without {it} the results are the same, where all threads of the block meet there as __syncthreads() requires."
    ]


def _fewest(kernel: KernelSass, opcode: Opcode, rows: list[int]) -> int:
    if opcode.kind == "tensor":
        return FEWEST
    return FEWEST_IN_LOOP if any(map(kernel.loop_depth, rows)) else FEWEST_PLAIN


def _gaps(kernel: KernelSass, rows: list[int]) -> list[int]:
    """Clocks between neighbours of a block, by the stall counts of all instructions between them."""
    control = kernel.sass.control
    assert control is not None
    passed = np.cumsum(control.stall[rows[0] : rows[-1] + 1], dtype=np.int64)
    at = np.array(rows) - rows[0]
    blocks = np.searchsorted(np.asarray(kernel.flow.starts), np.array(rows), side="right")
    clocks = passed[at] - control.stall[rows]
    gaps: list[int] = np.diff(clocks)[np.diff(blocks) == 0].tolist()
    return gaps


def _chain_words(kernel: KernelSass, rows: list[int], usual: UsualStall) -> str:
    """Whether each needs the result of the one before, and what ptxas usually leaves then."""
    forms = [kernel.sass.forms[int(kernel.sass.form[row])].registers for row in rows]
    blocks = [kernel.flow.block_of(row) for row in rows]
    pairs = [
        (one.defines, other.uses)
        for (one, block), (other, next_block) in pairwise(zip(forms, blocks, strict=True))
        if block == next_block
    ]
    n_chained = sum(bool((defines or 0) & (uses or 0)) for defines, uses in pairs)
    if any(defines is None or uses is None for defines, uses in pairs) or usual.dependent is None:
        dependent = f", or {usual.dependent} before one that needs the result" if usual.dependent else ""
        return f"; ptxas usually leaves {usual.independent}{dependent}"
    if not n_chained:
        return f"; none needs the result of the one before, and ptxas usually leaves {usual.independent} then"
    if n_chained == len(pairs):
        return f"; each needs the result of the one before, and ptxas usually leaves {usual.dependent} then"
    return (
        f"; {n_chained} need the result of the one before, for which ptxas usually leaves {usual.dependent}, "
        f"else {usual.independent}"
    )


def _pipe(opcode: Opcode, gap: int, profile: HwProfile) -> str:
    """What the pipe takes on this board, from its peak rate."""
    name = _peak_name(opcode) or ""
    peak, clock_mhz = profile.peaks.get(name), profile.peak_clock_mhz(name)
    if peak is None or not profile.sm_count or not clock_mhz:
        return "."
    clocks = pipe_clocks(opcode, peak.dense_tops * 1e6 / (profile.sm_count * clock_mhz))
    if clocks is None:
        return "."
    said = f". The pipe takes {clocks:.0f} for each (from the peak of {wording.board(profile)})"
    return said + (": closer ones would only wait there." if clocks >= gap else ".")


def _peak_name(opcode: Opcode) -> str | None:
    """The profile's precision for an opcode; None where the profile has none for it."""
    if opcode.family in _PLAIN_PEAKS:
        return _PLAIN_PEAKS[opcode.family]
    shape = matrix_shape(opcode.text)
    if shape is None or shape.sparse:
        return None
    if opcode.family in ("HMMA", "HGMMA"):
        if "TF32" in opcode.modifiers:
            return "tf32"
        kind = "bf16" if "BF16" in opcode.modifiers else "fp16"
        return f"{kind}_f{shape.accumulator_bits}acc"
    if opcode.family in ("IMMA", "IGMMA"):
        return "int4" if shape.element_bits == 4 else "int8"
    return "fp64_tensor" if opcode.family == "DMMA" else None
