"""What several benchmarks share: a row of the table, a kernel to build, the environment of a server."""

from __future__ import annotations

import os
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
