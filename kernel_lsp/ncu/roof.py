"""Turns a launch's speed of light into the unit that is at its peak, where one is.

There warps wait for that unit, and more warps or fewer stalls change nothing. Whether the unit's work is useful is
another question: accesses in excess of the ideal keep it just as busy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernel_lsp.ncu.kernel_profile import KernelProfile
from kernel_lsp.ncu.reading import memory_unit, reading_table

_PIPE = re.compile(r"__(?:inst_executed_)?pipe_([a-z0-9]+)")


@dataclass(frozen=True, slots=True)
class Roof:
    """The unit that is at its peak as far as kernels get, in words ("DRAM", "L2", "ALU pipe"), and percent of it.

    `side` is the throughput that it makes; the load/store pipe belongs to SM throughput, and to memory by what helps.
    """

    side: Literal["sm", "memory"]
    unit: str
    pct: float
    next_step: str
    wasted: str  # "94 % of the shared-memory wavefronts are in excess"; "": not so much of its work


def roof(profile: KernelProfile) -> Roof | None:
    """The side of the speed of light that is at its peak (`roof_pct`); None: neither, or not known."""
    sm, memory, least = profile.sol.sm, profile.sol.memory, reading_table()["thresholds"]["roof_pct"]
    if max(sm or 0.0, memory or 0.0) < least:
        return None
    readings = reading_table()["readings"]
    if sm is not None and (memory is None or sm >= memory):
        pipe = _pipe(profile)
        kind = "memory_path" if pipe in reading_table()["memory_pipes"] else "compute"
        words = reading_table()["pipe_words"].get(pipe, pipe.upper()) + " pipe" if pipe else "SM"
        waste = _waste(profile, "L1/TEX") if kind == "memory_path" else ""
        return Roof("sm", words, sm, readings[kind]["next"], waste)
    unit = memory_unit(profile)
    next_step = readings["dram" if unit == "DRAM" else "memory_path"]["next"]
    return Roof("memory", unit, memory or 0.0, next_step, _waste(profile, unit))


def _waste(profile: KernelProfile, unit: str) -> str:
    """How much of L1's or L2's work is in excess of the ideal, in words.

    Of DRAM's it is not told: L2 may serve what is in excess.
    """
    table = profile.instructions
    if table is None or unit not in ("L1/TEX", "L2"):
        return ""
    kinds = [("global sectors", table.global_sectors, table.global_sectors_ideal)]
    if unit == "L1/TEX":
        kinds.append(("shared-memory wavefronts", table.shared_wavefronts, table.shared_wavefronts_ideal))
    found = []
    for words, done, ideal in kinds:
        if done is not None and ideal is not None and done.any():
            found.append((float(np.maximum(done - ideal, 0).sum() / done.sum()), words))
    share, words = max(found, default=(0.0, ""))
    return f"{100 * share:.0f} % of the {words} are in excess" if share >= _least_waste() else ""


def _least_waste() -> float:
    return float(reading_table()["thresholds"]["roof_waste"])


def _pipe(profile: KernelProfile) -> str | None:
    """The pipe that makes SM throughput what it is: "alu", "fma"; None: another part of the SM, or not told."""
    parts = profile.sol.sm_parts
    found = _PIPE.search(parts[0].metric) if parts else None
    return found[1] if found else None
