"""Frozen values of `hw_profiles/*.yaml`: the limits of a compute capability and the peaks of a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Provenance = Literal["published", "computed", "both agree", "conflict"]

_CORE_CLOCK = ("fp64", "fp32", "fp16", "bf16", "fp64_tensor")


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one SM of a compute capability can hold. Source of every value: `hw_profiles/sm/limits.yaml`."""

    compute_capability: str  # "8.6"
    arch: str  # "sm_86"
    architecture: str  # "Ampere"
    tegra: bool  # a Jetson: its binaries and those of the other GPUs of its generation do not mix
    warp_size: int
    schedulers: int  # warp schedulers
    max_warps: int
    max_threads: int
    max_blocks: int
    max_threads_per_block: int
    registers: int  # 32-bit, per SM
    max_registers_per_block: int
    max_registers_per_thread: int
    launch_check_registers_per_thread: int  # what a launch is checked against: one more than can be addressed
    register_unit: int  # registers, allocated by warp
    register_partitions: int
    launch_check_partitions: int  # the launch must also fit an SM of so many partitions (differs on 6.0 only)
    shared_bytes: int  # largest carveout
    static_shared_max_bytes: int
    shared_default_bytes_per_block: int
    shared_optin_bytes_per_block: int
    shared_reserved_bytes_per_block: int
    shared_unit_bytes: int
    shared_carveouts_kib: tuple[int, ...]  # ascending; empty where the SM's shared memory is fixed
    shared_banks: int
    shared_bank_bytes: int
    l1_kib: int  # L1 and texture, with the shared memory where they share one memory
    l2_sector_bytes: int
    line_bytes: int  # of L1 and L2
    constant_bytes: int
    local_bytes_per_thread: int
    barriers_per_block: int
    barrier_slots: int | None  # per SM; None: no limit
    max_cluster_blocks_portable: int | None  # None: no clusters
    max_cluster_blocks: int | None  # with the non-portable attribute; None: no clusters, or not stated
    notes: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Peak:
    """A peak rate of a board at its quoted clock, in TFLOP/s (TOP/s for integers)."""

    precision: (
        str  # fp64 fp32 fp16 bf16 | tensor: fp64_tensor tf32 fp16_f16acc fp16_f32acc bf16_f32acc fp8_f32acc ... int8
    )
    dense_tops: float
    sparse_tops: float | None
    computed_tops: float | None  # SMs x operations per clock x clock
    provenance: Provenance
    source: str
    note: str | None  # what the provenance leaves unsaid: "the published figure is the sparse one"


@dataclass(frozen=True, slots=True)
class HwProfile:
    """One board: its SM count, bandwidth and peaks, with the limits of its compute capability.

    An architecture that no board of the catalogue has ("sm_107") gives a profile without a board: its name is the
    architecture's, its limits are exact, and all that belongs to a board is None or empty.
    """

    name: str  # "GeForce RTX 3070 Ti"
    slug: str  # "rtx-3070-ti", the YAML's file name
    chip: str | None  # "GA104"
    arch: str  # "sm_86"
    limits: SmLimits
    sm_count: int | None
    boost_clock_mhz: float | None
    tensor_clock_mhz: float | None  # the clock the tensor peaks are quoted at
    dram_gb_per_s: float | None
    dram_source: str | None
    l2_mib: float | None
    half_rate_f32_accumulate: bool
    warps_to_hide_latency: int | None  # rule of thumb of the source material, labelled as such; None: not stated
    peaks: Mapping[str, Peak]
    confidence: str
    notes: tuple[str, ...]
    source: str

    @property
    def short_name(self) -> str:
        """What people call the board: "RTX 3070 Ti"."""
        return self.name.removeprefix("GeForce ").removeprefix("Tesla ")

    def peak_clock_mhz(self, precision: str) -> float | None:
        """The clock that a peak is quoted at: the CUDA cores' for them and for FP64 on tensor cores, else the tensor
        cores' own."""
        return self.boost_clock_mhz if precision in _CORE_CLOCK else self.tensor_clock_mhz


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """A chosen profile and the reason: `why` is a word of the CLI contract, `detail` a sentence for people."""

    profile: HwProfile
    why: Literal["default", "setting", "flags", "detected", "report"]
    detail: str
