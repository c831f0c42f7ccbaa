"""Frozen values of one profiled launch: what was measured, in base units, and what the report leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernel_lsp.ncu.raw_report import PcLines, RuleMarker, RuleResult

IntColumn = npt.NDArray[np.int64]

# Fewer samples than this carry no percentage: a handful of samples says where, not how much.
FEW_SAMPLES = 50


@dataclass(frozen=True, slots=True)
class Device:
    """The device of the run. None where the report does not tell."""

    name: str | None  # "NVIDIA A100 80GB PCIe", as the driver says it
    arch: str | None  # "sm_80"
    sm_count: int | None
    max_warps: int | None
    max_blocks: int | None
    max_shared_bytes: int | None


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """How the kernel was launched, and what it took."""

    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    cluster_blocks: int | None  # None: not told, or no clusters
    registers: int | None
    static_shared_bytes: int | None
    dynamic_shared_bytes: int | None
    driver_shared_bytes: int | None
    shared_config_bytes: int | None  # the carveout of that run
    barriers: int | None
    waves_per_sm: float | None

    @property
    def grid_blocks(self) -> int | None:
        """Blocks in the grid."""
        return None if self.grid is None else self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int | None:
        """Threads per block."""
        return None if self.block is None else self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One part of a speed-of-light value, in percent of its peak."""

    metric: str
    pct: float


@dataclass(frozen=True, slots=True)
class SpeedOfLight:
    """Percent of peak. `memory` is the largest of L1/TEX, L2, DRAM and others, not DRAM alone; parts largest first."""

    sm: float | None
    memory: float | None
    l1tex: float | None
    l2: float | None
    dram: float | None
    sm_parts: tuple[Breakdown, ...]
    memory_parts: tuple[Breakdown, ...]


@dataclass(frozen=True, slots=True)
class ProfiledOccupancy:
    """Blocks per SM by each limit as ncu states them, theoretical and achieved occupancy (0..1)."""

    theoretical: float | None
    achieved: float | None
    achieved_warps: float | None
    limit_registers: int | None
    limit_shared: int | None
    limit_warps: int | None
    limit_blocks: int | None
    limit_barriers: int | None

    @property
    def blocks_per_sm(self) -> int | None:
        """The least of the limits."""
        limits = (self.limit_registers, self.limit_shared, self.limit_warps, self.limit_blocks, self.limit_barriers)
        known = [limit for limit in limits if limit is not None]
        return min(known) if len(known) >= 4 else None

    @property
    def limiters(self) -> tuple[str, ...]:
        """The limits that equal the result."""
        pairs = {
            "registers": self.limit_registers,
            "shared": self.limit_shared,
            "warps": self.limit_warps,
            "blocks": self.limit_blocks,
            "barriers": self.limit_barriers,
        }
        return tuple(name for name, limit in pairs.items() if limit is not None and limit == self.blocks_per_sm)


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Per scheduler and cycle: instructions issued (0..1), warps eligible, warps active; cycles between issues of a
    warp, and how many of them it spends in each state."""

    issue_active: float | None
    eligible_warps: float | None
    active_warps: float | None
    cycles_per_instruction: float | None
    states: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """Measured work of one precision. FLOP/s and bytes/s over the launch's own time; peaks at that run's clocks.

    Its place under the roofs: `model.roofline`.
    """

    precision: str
    flop_per_s: float
    peak_flop_per_s: float | None
    bytes_per_s: float | None
    peak_bytes_per_s: float | None
    flop: float | None  # of the whole launch
    dram_bytes: float | None


@dataclass(frozen=True, slots=True, eq=False)
class InstructionTable:
    """Counters by instruction: columns of one length, `pc` in bytes from the start of the kernel's code, rising.

    A column is None where the report lacks the metric; an instruction that a metric does not list counts 0. `samples`
    has a row per instruction and a column per entry of `reasons`, as the sampler noted them (`sampled` re-attributes).
    Addresses before the kernel or behind the code around it are kept: device functions, the runtime's own code.
    """

    base: int  # absolute address that `pc` counts from
    pc: IntColumn
    reasons: tuple[str, ...]
    samples: IntColumn
    executed: IntColumn | None
    thread_executed: IntColumn | None
    thread_executed_on: IntColumn | None  # predicated on
    divergent_branches: IntColumn | None
    memory_type: IntColumn | None  # bits: 4 global, 8 local, 16 shared
    access_type: IntColumn | None  # bits: 2 load, 4 store
    access_bits: IntColumn | None
    global_sectors: IntColumn | None
    global_sectors_ideal: IntColumn | None
    global_requests: IntColumn | None
    local_sectors: IntColumn | None
    shared_wavefronts: IntColumn | None
    shared_wavefronts_ideal: IntColumn | None
    lines: PcLines  # absolute addresses, ncu's own attribution

    def __len__(self) -> int:
        return len(self.pc)

    def said_lines(self) -> dict[int, tuple[str, int]]:
        """File and line by offset, as ncu attributes them."""
        said = self.lines
        return {
            int(pc) - self.base: (said.files[int(file)], int(line))
            for pc, file, line in zip(said.pcs, said.file, said.line, strict=True)
            if line
        }


@dataclass(frozen=True, slots=True)
class Samples:
    """Warp samples of the whole launch by reason, those of other code included."""

    total: int
    by_reason: Mapping[str, int]
    not_issued: Mapping[str, int]  # of them while the scheduler issued nothing
    interval_cycles: int | None
    dropped_bytes: int | None

    @property
    def few(self) -> bool:
        """Whether percentages of them would say more than they know."""
        return self.total < FEW_SAMPLES


@dataclass(frozen=True, slots=True)
class Missing:
    """What the report lacks: the fact, its metric, and the option of `ncu` that collects it.

    `option` is empty where its section was collected, and that ncu or device has no such metric.
    """

    fact: str
    metric: str
    option: str


@dataclass(frozen=True, slots=True, eq=False)
class KernelProfile:
    """One profiled launch."""

    index: int  # in its report, from 0
    name: str
    mangled: str | None
    device: Device
    launch: ProfiledLaunch
    duration_ns: float | None
    sm_hz: float | None
    dram_hz: float | None
    sol: SpeedOfLight
    occupancy: ProfiledOccupancy
    scheduler: Scheduler
    samples: Samples | None
    instructions: InstructionTable | None
    functions: tuple[int, ...]  # offsets of the functions that run in this launch, the kernel's own (0) first
    roofline: tuple[RooflinePoint, ...]
    pipes_pct: Mapping[str, float]  # use of each pipe while active, in percent
    by_opcode: Mapping[str, int]
    rules: tuple[RuleResult, ...]
    markers: tuple[RuleMarker, ...]
    missing: tuple[Missing, ...]
    sources: Mapping[str, str]  # embedded source text by build path


@dataclass(frozen=True, slots=True, eq=False)
class NcuReport:
    """A report understood: its launches in order, and the binaries that lie in it."""

    path: str
    digest: str
    collector: str | None  # "2024.1.1.0"
    kernels: tuple[KernelProfile, ...]
    cubins: tuple[bytes, ...]
    notes: tuple[str, ...]
