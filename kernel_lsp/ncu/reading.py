"""Turns a launch's measurements into a first reading: which of five classes it is in, and which states are healthy.

The order matters: speed of light first, then whether the schedulers issue, and only where they do not, stalls.
Thresholds and words are in `reading.yaml`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import yaml

from kernel_lsp.ncu.kernel_profile import KernelProfile
from kernel_lsp.ncu.stall_reasons import stall_reasons

SolClass = Literal["compute", "dram", "memory_path", "latency", "balanced"]


@dataclass(frozen=True, slots=True)
class SolReading:
    """`kind` None: the report has no speed of light. `culprit`: the unit that makes Memory what it is."""

    kind: SolClass | None
    words: str
    next_step: str
    culprit: str | None


@dataclass(frozen=True, slots=True)
class TailWave:
    """The last wave of a grid: `waves` in all, the last one `fill` full (0..1).

    `wasted` is the share of all block slots of the launch that it leaves empty; `costly` where that is much.
    """

    waves: float
    fill: float
    wasted: float
    costly: bool


@dataclass(frozen=True, slots=True)
class IssueReading:
    """Whether the schedulers issue. `stalls_matter` None: not known; then no stall is called a bottleneck."""

    issue_active: float | None
    stalls_matter: bool | None
    top_stalls: tuple[tuple[str, float], ...]  # reason, share of the cycles between two issues; healthy ones left out
    healthy: tuple[str, ...]  # sentences


# In these states nothing holds the warp up.
NO_STALL = frozenset({"selected", "not_selected"})


@cache
def reading_table() -> Mapping[str, Any]:
    """`reading.yaml`."""
    return MappingProxyType(yaml.safe_load(Path(__file__).with_name("reading.yaml").read_text(encoding="utf-8")))


def sol_reading(profile: KernelProfile) -> SolReading:
    """The class of a launch by its speed of light."""
    sm, memory, dram = profile.sol.sm, profile.sol.memory, profile.sol.dram
    if sm is None or memory is None:
        return SolReading(None, "", "", None)
    limits = reading_table()["thresholds"]
    culprit = _culprit(profile)
    is_dram = culprit == "DRAM" if culprit else dram is not None and dram >= memory - limits["dram_near_memory_pct"]
    high = limits["high_pct"]
    kind: SolClass
    if sm < high and memory < high:
        kind = "latency"
    elif sm >= high and memory >= high:
        kind = "balanced"
    elif sm >= high:
        kind = "compute"
    else:
        kind = "dram" if is_dram else "memory_path"
    words = reading_table()["readings"][kind]
    return SolReading(kind, words["words"], words["next"], culprit)


def tail_wave(profile: KernelProfile) -> TailWave | None:
    """The last wave; None without the number of waves, or where the grid is whole waves."""
    waves = profile.launch.waves_per_sm
    if waves is None or waves <= 0:
        return None
    limits = reading_table()["thresholds"]
    whole = math.floor(waves + 1e-9)
    fill = waves - whole
    if fill < 1e-9:
        return None
    wasted = (1 - fill) / (whole + 1)
    return TailWave(waves, fill, wasted, whole >= 1 and wasted >= limits["tail_waste"])


def issue_reading(profile: KernelProfile) -> IssueReading:
    """Issue slots first, stalls only where they are not used; healthy states are said to be healthy."""
    limits = reading_table()["thresholds"]
    issued = profile.scheduler.issue_active
    matter = None if issued is None else issued < limits["well_issued"]
    stalls = _stall_shares(profile)
    healthy: list[str] = []
    if issued is not None and not matter:
        healthy.append(
            f"The schedulers issue in {100 * issued:.0f} % of cycles: stalls are hidden, none of them is a bottleneck."
        )
    if stalls.get("not_selected", 0.0) > limits["stall_share"]:
        healthy.append("Not selected: more warps are ready than can issue. Healthy.")
    fine = healthy_reasons(profile)
    if stalls.get("math_pipe_throttle", 0.0) > limits["stall_share"] and "math_pipe_throttle" in fine:
        healthy.append("Math pipe throttle: the arithmetic pipe is busy, and it is the roof here. Healthy.")
    top = tuple(
        (reason, share) for reason, share in stalls.items() if reason not in fine and share > 0 and matter is not False
    )
    return IssueReading(issued, matter, top, tuple(healthy))


def healthy_reasons(profile: KernelProfile) -> frozenset[str]:
    """The states that hold nothing up in this launch: a busy arithmetic pipe among them where it is the roof."""
    is_compute = sol_reading(profile).kind == "compute"
    return NO_STALL | {name for name, reason in stall_reasons().items() if reason.healthy == "at_roof" and is_compute}


def _stall_shares(profile: KernelProfile) -> Mapping[str, float]:
    """Share of a warp's cycles by state, most first; from samples where the kernel's own metrics are missing."""
    states = profile.scheduler.states
    if states and (total := sum(states.values())):
        return {reason: cycles / total for reason, cycles in states.items()}
    samples = profile.samples
    if samples is None or samples.few:
        return {}
    ordered = sorted(samples.by_reason.items(), key=lambda item: (-item[1], item[0]))
    return {reason: count / samples.total for reason, count in ordered if count}


def memory_unit(profile: KernelProfile) -> str:
    """The unit that makes Memory what it is, in words; "memory" where the report does not tell."""
    memory, dram = profile.sol.memory, profile.sol.dram
    near = reading_table()["thresholds"]["dram_near_memory_pct"]
    is_dram = memory is not None and dram is not None and dram >= memory - near
    return _culprit(profile) or ("DRAM" if is_dram else "memory")


def _culprit(profile: KernelProfile) -> str | None:
    if not profile.sol.memory_parts:
        return None
    unit = profile.sol.memory_parts[0].metric.partition("__")[0]
    found: str | None = reading_table()["culprits"].get(unit)
    return found or unit
