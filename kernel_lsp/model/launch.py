"""How a kernel is launched: block, grid and dynamic shared memory, with where each was learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LaunchOrigin = Literal["override", "profile", "config", "comment", "launch_bounds", "source"]


@dataclass(frozen=True, slots=True)
class Launch:
    """One way a kernel is launched. None means unknown, never a guess."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int] | None
    dynamic_shared_bytes: int | None
    cluster: int | None
    origin: LaunchOrigin
    where: str  # "gemm.cu:41", "kernel-lsp.yaml", "line 3", "--block"
    kernel_args: tuple[str, ...] = ()  # template arguments written at the launch, e.g. ("16",)
    dynamic_shared_where: str | None = None  # where dynamic_shared_bytes was learnt, if not at `where`

    @property
    def threads(self) -> int:
        """Threads per block."""
        return self.block[0] * self.block[1] * self.block[2]
