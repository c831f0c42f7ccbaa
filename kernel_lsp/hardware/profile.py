"""Frozen values of `hw_profiles/*.yaml`: the limits of a compute capability and the peaks of a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Provenance = Literal["published", "computed", "both agree", "conflict"]


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one SM of a compute capability can hold. Source of every value: `hw_profiles/limits.yaml`."""

    compute_capability: str  # "8.6"
    arch: str  # "sm_86"
    architecture: str  # "Ampere"
    warp_size: int
    max_warps: int
    max_threads: int
    max_blocks: int
    max_threads_per_block: int
    registers: int  # 32-bit, per SM
    max_registers_per_block: int
    max_registers_per_thread: int
    register_unit: int  # registers, allocated by warp
    register_partitions: int
    shared_bytes: int  # largest carveout
    shared_default_bytes_per_block: int
    shared_optin_bytes_per_block: int
    shared_reserved_bytes_per_block: int
    shared_unit_bytes: int
    shared_carveouts_kib: tuple[int, ...]  # empty where the SM's shared memory is fixed
    barriers_per_block: int
    barrier_slots: int | None  # per SM; None: no limit
    max_cluster_blocks_portable: int | None
    max_cluster_blocks: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Peak:
    """A peak rate of a board at its quoted clock, in TFLOP/s (TOP/s for integers)."""

    precision: str  # fp64 fp32 fp16 bf16 | tensor: fp64_tensor tf32 fp16_f16acc fp16_f32acc bf16_f32acc fp8_f32acc ... int8
    dense_tops: float
    sparse_tops: float | None
    computed_tops: float | None  # SMs x operations per clock x clock
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True)
class HwProfile:
    """One board: its SM count, bandwidth and peaks, with the limits of its compute capability."""

    name: str  # "GeForce RTX 3070 Ti"
    slug: str  # "rtx-3070-ti", the YAML's file name
    chip: str  # "GA104"
    arch: str  # "sm_86"
    limits: SmLimits
    sm_count: int | None
    boost_clock_mhz: float | None
    tensor_clock_mhz: float | None
    dram_gb_per_s: float
    l2_mib: float | None
    half_rate_f32_accumulate: bool
    warps_to_hide_latency: int | None  # rule of thumb of the source material, labelled as such; None: not stated
    peaks: Mapping[str, Peak]
    confidence: str
    notes: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """A chosen profile and the reason: `why` is a word of the CLI contract, `detail` a sentence for people."""

    profile: HwProfile
    why: Literal["default", "setting", "flags", "detected", "report"]
    detail: str
