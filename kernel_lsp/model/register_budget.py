"""How many registers a thread may take so that a wanted number of blocks still fits."""

from __future__ import annotations

from kernel_lsp.hardware.profile import SmLimits
from kernel_lsp.model.occupancy import LaunchShape, occupancy


def largest_register_count(limits: SmLimits, threads_per_block: int, blocks_per_sm: int) -> int:
    """The most registers per thread with which the registers of one SM hold `blocks_per_sm` blocks; 0: none do.

    Inverts the register limit of `occupancy()` by trying each allocation step (`register_unit` over a warp).
    """
    step = limits.register_unit // limits.warp_size
    # The architecture's own maximum (255) is no multiple of the step, so it is tried first.
    most = limits.max_registers_per_thread
    candidates: tuple[int, ...] = (most, *range(most // step * step, 0, -step))
    for registers in candidates:
        limit = occupancy(limits, LaunchShape(threads_per_block, registers)).limit_registers
        if limit is None or limit >= blocks_per_sm:
            return registers
    return 0
