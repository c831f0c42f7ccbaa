"""What several benchmarks share: a row of the table, a kernel to build, the environment of a server."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SMALL_KERNEL = """// {unique}
__global__ void scale(float* out, const float* in, float factor, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * in[i];
}}
"""


@dataclass(frozen=True)
class Row:
    """What was measured, against what, and whether its bound holds."""

    name: str
    measured: str
    against: str
    bound: str
    holds: bool


def environment(folder: Path) -> dict[str, str]:
    """A server's, with a cache of its own."""
    return {**os.environ, "KERNEL_LSP_CACHE_DIR": str(folder / "cache")}


def hover_row(name: str, took: Sequence[float], against: str) -> Row:
    """Hovers, in seconds, against what an editor may wait for one."""
    p99 = sorted(took)[int(0.99 * (len(took) - 1))] * 1e3
    median = statistics.median(took) * 1e3
    return Row(name, f"median {median:.1f} ms, p99 {p99:.1f} ms ({len(took)} hovers)", against, "p99 20 ms", p99 < 20)
