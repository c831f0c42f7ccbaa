"""A launch and the limits of an SM become the nearest steps of its occupancy: what a little more or less would cost.

Every answer is found by asking the limits of `occupancy` itself, which fall as a resource grows, so no second formula
can disagree with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from kernel_lsp.hardware.profile import SmLimits
from kernel_lsp.model.occupancy import Cliff, LaunchShape, Occupancy, occupancy, register_limit, shared_limit

Stepped: TypeAlias = Literal["registers", "shared"]

USUAL_BLOCK_SIZES = (64, 128, 192, 256, 384, 512, 768, 1024)


@dataclass(frozen=True, slots=True)
class DoubleBufferProjection:
    """A launch before and after its tile buffers are doubled (software pipelining in two stages)."""

    buffer_bytes: int  # of the buffers as they are
    shared_bytes: int  # of the block's own shared memory afterwards
    before: Occupancy
    after: Occupancy

    @property
    def crosses_cliff(self) -> bool:
        """Whether doubling costs resident blocks."""
        return self.after.blocks_per_sm < self.before.blocks_per_sm


def cliffs(limits: SmLimits, shape: LaunchShape) -> tuple[Cliff, ...]:
    """The nearest step down and up of blocks per SM, for registers and for the block's own shared memory.

    A step is of the result, not of one limit: no step up is given where another limit would void it (all warps taken,
    say), and a step down is the first value that really lowers the result. A step down to 0 blocks is one that the
    launch would not survive. Shared memory is static and dynamic together; growth is taken to be dynamic, with the
    opt-in that it needs.

    Raises:
        LaunchShapeError: as `occupancy`.
    """
    found = occupancy(limits, shape)
    now, threads = found.blocks_per_sm, shape.threads_per_block
    own = shape.static_shared_bytes + shape.dynamic_shared_bytes
    fixed = [found.limit_warps, found.limit_blocks, found.limit_barriers]
    beside_registers = _least(*fixed, found.limit_shared)
    beside_shared = _least(*fixed, found.limit_registers)

    def with_registers(registers: int) -> int:
        return min(beside_registers, register_limit(limits, threads, registers))

    def with_shared(total: int) -> int:
        return min(beside_shared, shared_limit(limits, 0, total, shape.carveout_percent))

    steps = (
        _up("registers", with_registers, shape.registers_per_thread, now, least=1),
        _down("registers", with_registers, shape.registers_per_thread, now, most=limits.max_registers_per_thread),
        _up("shared", with_shared, own, now, least=0),
        _down("shared", with_shared, own, now, most=limits.shared_optin_bytes_per_block + 1),
    )
    return tuple(step for step in steps if step is not None)


def double_buffer_projection(limits: SmLimits, shape: LaunchShape, buffer_bytes: int) -> DoubleBufferProjection:
    """What doubling `buffer_bytes` of the block's own shared memory does to its residency.

    Raises:
        LaunchShapeError: as `occupancy`.
        ValueError: the block has not so much shared memory of its own.
    """
    own = shape.static_shared_bytes + shape.dynamic_shared_bytes
    if not 0 <= buffer_bytes <= own:
        raise ValueError(f"buffers of {buffer_bytes} B are not part of the block's {own} B of shared memory")
    doubled = replace(
        shape, dynamic_shared_bytes=shape.dynamic_shared_bytes + buffer_bytes, max_dynamic_shared_bytes=None
    )
    return DoubleBufferProjection(
        buffer_bytes=buffer_bytes,
        shared_bytes=own + buffer_bytes,
        before=occupancy(limits, shape),
        after=occupancy(limits, doubled),
    )


def max_dynamic_shared_keeping_blocks(limits: SmLimits, shape: LaunchShape) -> int | None:
    """The most dynamic shared memory (bytes per block) with which as many blocks reside as with the shape's own.

    None: not one block resides as it is.

    Raises:
        LaunchShapeError: as `occupancy`.
    """
    now = occupancy(limits, shape).blocks_per_sm
    if not now:
        return None

    def keeps(dynamic: int) -> bool:
        return shared_limit(limits, shape.static_shared_bytes, dynamic, shape.carveout_percent) >= now

    return _last(keeps, shape.dynamic_shared_bytes, limits.shared_optin_bytes_per_block + 1)


def largest_launchable_block(limits: SmLimits, shape: LaunchShape) -> int:
    """The most threads per block with which the kernel can start, in whole warps; 0: with none. The shape's threads
    do not matter.

    Raises:
        LaunchShapeError: as `occupancy`.
    """
    for threads in range(limits.max_threads_per_block, 0, -limits.warp_size):
        if occupancy(limits, replace(shape, threads_per_block=threads)).blocks_per_sm:
            return threads
    return 0


def block_size_rows(limits: SmLimits, shape: LaunchShape) -> tuple[tuple[int, Occupancy], ...]:
    """Threads and occupancy over the usual block sizes, for a launch whose block is not known. The shape's threads do
    not matter.

    Raises:
        LaunchShapeError: as `occupancy`.
    """
    return tuple(
        (threads, occupancy(limits, replace(shape, threads_per_block=threads))) for threads in USUAL_BLOCK_SIZES
    )


def _least(*limits: int | None) -> int:
    return min(limit for limit in limits if limit is not None)


def _down(resource: Stepped, blocks_with: Callable[[int], int], value: int, now: int, most: int) -> Cliff | None:
    if now == 0 or value >= most or blocks_with(most) >= now:
        return None
    to_value = _last(lambda more: blocks_with(more) >= now, value, most) + 1
    return Cliff(resource, "down", to_value - value, to_value, blocks_with(to_value))


def _up(resource: Stepped, blocks_with: Callable[[int], int], value: int, now: int, least: int) -> Cliff | None:
    if value <= least or blocks_with(least) <= now:
        return None
    to_value = _last(lambda less: blocks_with(less) > now, least, value)
    return Cliff(resource, "up", to_value - value, to_value, blocks_with(to_value))


def _last(holds: Callable[[int], bool], first: int, beyond: int) -> int:
    """The last value for which `holds` is true: it is at `first`, it is not at `beyond`, and it changes once."""
    while beyond - first > 1:
        middle = (first + beyond) // 2
        if holds(middle):
            first = middle
        else:
            beyond = middle
    return first
