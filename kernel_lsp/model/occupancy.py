"""A launch and the limits of an SM become its theoretical occupancy, exactly as NVIDIA's cuda_occupancy.h has it.

The rules (registers by warp and partition, shared memory by unit with the system's part, carveout, warps, blocks,
barriers) are those of the header of CUDA 13.0, with its quirks, in plain integer arithmetic: this is called for
thousands of launches at a time. Taken as the header's defaults: partitioned global caching off, no virtual resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernel_lsp.hardware.profile import SmLimits

Resource = Literal["registers", "shared", "warps", "blocks", "barriers"]

NO_LIMIT = 1 << 62


class LaunchShapeError(ValueError):
    """A launch shape that no SM has an answer for; the message says which value and what is allowed."""


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


def occupancy(limits: SmLimits, shape: LaunchShape) -> Occupancy:
    """Blocks and warps that reside on one SM, and what limits them. 0 blocks: the launch cannot start.

    A launch in clusters gets the same number, marked as an upper bound: how many clusters fit depends on the SMs of
    each GPC, which differ from board to board and are known to the driver alone.

    Raises:
        LaunchShapeError: a value outside what the hardware defines (no threads, carveout of 101 %, negative sizes,
            clusters where there are none).
    """
    _check(limits, shape)
    threads = shape.threads_per_block
    warps = -(-threads // limits.warp_size)
    by_registers = register_limit(limits, threads, shape.registers_per_thread)
    by_shared = shared_limit(
        limits,
        shape.static_shared_bytes,
        shape.dynamic_shared_bytes,
        shape.carveout_percent,
        shape.max_dynamic_shared_bytes,
    )
    by_warps = warp_limit(limits, threads)
    by_blocks = limits.max_blocks
    by_barriers = barrier_limit(limits, shape.barriers)
    blocks = min(by_registers, by_shared, by_warps, by_blocks, by_barriers)
    limiters: list[Resource] = []
    if by_registers == blocks:
        limiters.append("registers")
    if by_shared == blocks:
        limiters.append("shared")
    if by_warps == blocks:
        limiters.append("warps")
    if by_blocks == blocks:
        limiters.append("blocks")
    if by_barriers == blocks:
        limiters.append("barriers")
    return Occupancy(
        blocks_per_sm=blocks,
        active_warps=blocks * warps,
        max_warps=limits.max_warps,
        limiters=tuple(limiters),
        limit_registers=None if by_registers == NO_LIMIT else by_registers,
        limit_shared=None if by_shared == NO_LIMIT else by_shared,
        limit_warps=by_warps,
        limit_blocks=by_blocks,
        limit_barriers=None if by_barriers == NO_LIMIT else by_barriers,
        registers_per_block=_registers_per_warp(limits, shape.registers_per_thread) * warps,
        shared_bytes_per_block=allocated_shared_bytes(limits, shape.static_shared_bytes + shape.dynamic_shared_bytes),
        is_upper_bound=shape.cluster_blocks is not None and shape.cluster_blocks > 1,
    )


def header_limiting_factors(result: Occupancy) -> tuple[Resource, ...]:
    """The limiting factors as cuda_occupancy.h reports them, in its order.

    The header marks warps, registers, shared memory and blocks before the barriers lower the count, and does not clear
    the marks, so a launch that barriers alone limit is reported as, say, "blocks, barriers". `Occupancy.limiters` is
    what people should see; this is for comparing with NVIDIA's tools.
    """
    registers = NO_LIMIT if result.limit_registers is None else result.limit_registers
    shared = NO_LIMIT if result.limit_shared is None else result.limit_shared
    least = min(result.limit_warps, registers, shared, result.limit_blocks)
    factors: list[Resource] = []
    if result.limit_warps == least:
        factors.append("warps")
    if registers == least:
        factors.append("registers")
    if shared == least:
        factors.append("shared")
    if result.limit_blocks == least:
        factors.append("blocks")
    if result.limit_barriers is not None and result.limit_barriers <= least:
        factors.append("barriers")
    return tuple(factors)


def warp_limit(limits: SmLimits, threads: int) -> int:
    """Blocks of `threads` threads that the SM's warp slots hold; 0 above the largest block."""
    if threads > limits.max_threads_per_block:
        return 0
    return limits.max_warps // -(-threads // limits.warp_size)


def register_limit(limits: SmLimits, threads: int, registers: int) -> int:
    """Blocks that the register file holds; 0 where the launch is refused, NO_LIMIT for kernels without registers."""
    per_warp = _registers_per_warp(limits, registers)
    if not per_warp:
        return NO_LIMIT
    if registers > limits.launch_check_registers_per_thread:
        return 0
    warps = -(-threads // limits.warp_size)
    blocks = _blocks_in_partitions(limits, warps, per_warp, limits.register_partitions)
    if limits.launch_check_partitions == limits.register_partitions:
        return blocks
    return blocks if _blocks_in_partitions(limits, warps, per_warp, limits.launch_check_partitions) else 0


def shared_limit(
    limits: SmLimits, static: int, dynamic: int, carveout_percent: int = -1, max_dynamic: int | None = None
) -> int:
    """Blocks that the shared memory holds; 0 where the launch is refused, NO_LIMIT for blocks that take none."""
    if max_dynamic is None:
        max_dynamic = max(limits.shared_default_bytes_per_block - static, dynamic, 0)
    reserve = limits.shared_reserved_bytes_per_block
    allocated = allocated_shared_bytes(limits, static + dynamic)
    opted_in = static + reserve + max_dynamic > limits.shared_default_bytes_per_block
    per_block = limits.shared_optin_bytes_per_block if opted_in else limits.shared_default_bytes_per_block
    if dynamic > max_dynamic or allocated > per_block + reserve:
        return 0
    if not allocated:
        return NO_LIMIT
    capacity = limits.shared_bytes
    if limits.shared_carveouts_kib and carveout_percent != -1:
        capacity = _snapped_up(limits, carveout_percent * limits.shared_bytes // 100)
        if capacity < allocated:  # a preference gives way so that one block fits
            capacity = _snapped_up(limits, allocated)
    return capacity // allocated


def barrier_limit(limits: SmLimits, barriers: int) -> int:
    """Blocks that the SM's barrier slots allow; NO_LIMIT where barriers do not limit."""
    if barriers <= 0 or limits.barrier_slots is None:
        return NO_LIMIT
    return limits.barrier_slots // barriers


def allocated_shared_bytes(limits: SmLimits, own_bytes: int) -> int:
    """Shared memory that a block occupies: its own bytes and the system's, rounded up to the unit."""
    unit = limits.shared_unit_bytes
    return -(-(own_bytes + limits.shared_reserved_bytes_per_block) // unit) * unit


def _registers_per_warp(limits: SmLimits, registers: int) -> int:
    unit = limits.register_unit
    return -(-registers * limits.warp_size // unit) * unit


def _blocks_in_partitions(limits: SmLimits, warps: int, per_warp: int, partitions: int) -> int:
    # The launch check assumes that every partition gets the same number of warps, hence the rounding up.
    if per_warp * (-(-warps // partitions) * partitions) > limits.max_registers_per_block:
        return 0
    return limits.registers // partitions // per_warp * partitions // warps


def _snapped_up(limits: SmLimits, size_bytes: int) -> int:
    for kib in limits.shared_carveouts_kib:
        if size_bytes <= kib * 1024:
            return kib * 1024
    return limits.shared_bytes


def _check(limits: SmLimits, shape: LaunchShape) -> None:
    if shape.threads_per_block < 1:
        raise LaunchShapeError(f"a block needs at least 1 thread, not {shape.threads_per_block}")
    most_dynamic = shape.max_dynamic_shared_bytes or 0
    if (
        shape.registers_per_thread < 0
        or shape.static_shared_bytes < 0
        or shape.dynamic_shared_bytes < 0
        or most_dynamic < 0
        or shape.barriers < 0
    ):
        raise LaunchShapeError(
            f"registers, bytes and barriers cannot be negative: {shape.registers_per_thread} registers, "
            f"{shape.static_shared_bytes} B static, {shape.dynamic_shared_bytes} B dynamic (at most {most_dynamic}), "
            f"{shape.barriers} barriers"
        )
    if limits.shared_carveouts_kib and not -1 <= shape.carveout_percent <= 100:
        raise LaunchShapeError(f"a carveout is 0 to 100 percent, or -1 for the default, not {shape.carveout_percent}")
    cluster = shape.cluster_blocks
    if cluster is not None and cluster != 1:
        _check_cluster(limits, cluster)


def _check_cluster(limits: SmLimits, cluster: int) -> None:
    if cluster < 1:
        raise LaunchShapeError(f"a cluster has at least 1 block, not {cluster}")
    if limits.max_cluster_blocks_portable is None:
        raise LaunchShapeError(f"{limits.arch} has no clusters (they begin with sm_90)")
    if limits.max_cluster_blocks is not None and cluster > limits.max_cluster_blocks:
        raise LaunchShapeError(
            f"a cluster of {limits.arch} has at most {limits.max_cluster_blocks} blocks, not {cluster}"
        )
