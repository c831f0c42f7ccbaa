"""Theoretical occupancy of a launch, exactly as NVIDIA's cuda_occupancy.h computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Resource = Literal["registers", "shared", "warps", "blocks", "barriers"]


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """What decides occupancy: threads, registers and shared memory of one block."""

    threads_per_block: int
    registers_per_thread: int
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    barriers: int = 0
    carveout_percent: int = -1  # -1: the driver's default, taken as the largest
    max_dynamic_shared_bytes: int | None = None  # None: the program opted in to what it launches with
    cluster_blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks per SM by each limit (None: no limit), the result, and every limit that equals it."""

    blocks_per_sm: int
    active_warps: int
    max_warps: int
    limiters: tuple[Resource, ...]
    limit_registers: int | None
    limit_shared: int | None
    limit_warps: int
    limit_blocks: int
    limit_barriers: int | None
    registers_per_block: int  # allocated
    shared_bytes_per_block: int  # allocated, reserve included
    is_upper_bound: bool  # clusters: what the GPCs allow is not known here

    @property
    def theoretical(self) -> float:
        """Active warps over the SM's maximum, 0..1."""
        return self.active_warps / self.max_warps


@dataclass(frozen=True, slots=True)
class Cliff:
    """The nearest step of one resource: `change` (in its unit) away, `to_value` gives `blocks_per_sm`."""

    resource: Literal["registers", "shared"]
    direction: Literal["up", "down"]  # of blocks_per_sm
    change: int
    to_value: int  # registers per thread; bytes of the block's own shared memory (static + dynamic)
    blocks_per_sm: int
