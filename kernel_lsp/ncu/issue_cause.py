"""Turns a launch whose schedulers issue little into the cause, and says which costs it does not have at all.

The order: a grid that leaves the GPU empty, limits that leave few warps, warps that are fewer than they could be, and
only then what the warps wait for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from kernel_lsp.ncu.kernel_profile import KernelProfile
from kernel_lsp.ncu.reading import issue_reading, reading_table
from kernel_lsp.ncu.roof import roof
from kernel_lsp.ncu.stall_reasons import Cost


@dataclass(frozen=True, slots=True)
class IssueCause:
    """Why the schedulers of a launch issue little.

    grid: all blocks are resident at once and do not fill the GPU; occupancy: its limits leave few warps; imbalance: far
    fewer warps are resident than the limits allow; stall: the warps are there and wait, most of all for `stall`
    (`share` of the cycles between two issues); mixed: they do, and no reason takes enough to be called the one;
    unknown: the report does not tell.
    """

    kind: Literal["grid", "occupancy", "imbalance", "stall", "mixed", "unknown"]
    stall: str | None = None
    share: float = 0.0


def busy_sms_are_full(profile: KernelProfile) -> bool:
    """Whether an SM that has blocks of this grid holds as many as the limits of occupancy allow, as far as is known."""
    blocks, sms, most = profile.launch.grid_blocks, profile.device.sm_count, profile.occupancy.blocks_per_sm
    return blocks is not None and bool(sms) and most is not None and math.ceil(blocks / (sms or 1)) >= most


def issue_cause(profile: KernelProfile) -> IssueCause | None:
    """Why the schedulers issue little; None where they do not, where that is not known, and at a roof."""
    limits = reading_table()["thresholds"]
    issued, eligible = profile.scheduler.issue_active, profile.scheduler.eligible_warps
    if issued is None or issued >= limits["low_issue"] or roof(profile) is not None:
        return None
    if eligible is None or eligible < limits["few_eligible"]:
        waves = profile.launch.waves_per_sm
        if waves is not None and (waves < limits["small_grid_waves"] or (waves < 1 and not busy_sms_are_full(profile))):
            return IssueCause("grid")
        theoretical, achieved = profile.occupancy.theoretical, profile.occupancy.achieved
        if theoretical is not None and theoretical < limits["low_occupancy"]:
            return IssueCause("occupancy")
        gap = None if theoretical is None or achieved is None else theoretical - achieved
        if achieved is not None and achieved < limits["low_occupancy"] and (gap or 0.0) > limits["occupancy_gap"]:
            return IssueCause("imbalance")
    top = next(iter(issue_reading(profile).top_stalls), None)
    if top is None:
        return IssueCause("unknown")
    return IssueCause("stall" if top[1] > limits["stall_share"] else "mixed", *top)


def absent_costs(profile: KernelProfile) -> frozenset[Cost]:
    """What the report shows that the launch had none of; what it does not tell is not absent."""
    table = profile.instructions
    absent: set[Cost] = set()
    if table is None:
        return frozenset()
    if table.shared_wavefronts is not None and table.shared_wavefronts_ideal is not None:
        absent |= {"bank_conflicts"} if (table.shared_wavefronts <= table.shared_wavefronts_ideal).all() else set()
    if table.global_sectors is not None and table.global_sectors_ideal is not None:
        absent |= {"uncoalesced"} if (table.global_sectors <= table.global_sectors_ideal).all() else set()
    if table.local_sectors is not None:
        absent |= set() if table.local_sectors.any() else {"local_memory"}
    return frozenset(absent)
