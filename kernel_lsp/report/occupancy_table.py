"""Occupancy as aligned lines: every limit of one launch, or one line for each block size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernel_lsp.findings import wording
from kernel_lsp.model.occupancy import Occupancy, Resource


def limit_lines(occupancy: Occupancy, uses: Mapping[Resource, str]) -> list[str]:
    """The limits that `uses` names, with what the block uses of each; those that decide come first, with a mark."""
    limits: dict[Resource, int | None] = {
        "registers": occupancy.limit_registers,
        "warps": occupancy.limit_warps,
        "blocks": occupancy.limit_blocks,
        "shared": occupancy.limit_shared,
        "barriers": occupancy.limit_barriers,
    }
    names = sorted((name for name in limits if name in uses), key=lambda name: name not in occupancy.limiters)
    width = max(len(uses[name]) for name in names)
    lines = [f"{'limit':<10} {'uses':<{width}}  blocks/SM"]
    for name in names:
        mark = "   <- limit" if name in occupancy.limiters else ""
        number = "-" if limits[name] is None else str(limits[name])
        lines.append(f"{name:<10} {uses[name]:<{width}}  {number:>9}{mark}".rstrip())
    return lines


def block_size_lines(rows: Iterable[tuple[int, Occupancy]]) -> list[str]:
    """Threads, blocks per SM, warps, occupancy and limiters over block sizes."""
    lines = ["threads  blocks/SM  warps     occupancy  limit"]
    for threads, occupancy in rows:
        if not occupancy.blocks_per_sm:
            lines.append(f"{threads:>7}  {0:>9}  cannot start")
            continue
        warps = f"{occupancy.active_warps} of {occupancy.max_warps}"
        share = wording.percent(occupancy.theoretical)
        limit = wording.limiters(occupancy, short=True)
        lines.append(f"{threads:>7}  {occupancy.blocks_per_sm:>9}  {warps:<8}  {share:>9}  {limit}")
    return lines
