"""Occupancy against the recorded answers of cuda_occupancy.h, worked examples and what must always hold."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.hardware.catalog import compute_capabilities, limits_for_arch, limits_for_cc
from kernel_lsp.hardware.profile import SmLimits
from kernel_lsp.model.occupancy import (
    LaunchShape,
    LaunchShapeError,
    Occupancy,
    header_limiting_factors,
    occupancy,
)

VECTORS = Path(__file__).parents[2] / "data" / "occ_vectors.csv"
ANSWERS = (
    "blocks_per_sm",
    "active_warps_per_sm",
    "max_warps_per_sm",
    "limiting_factors",
    "limit_warps",
    "limit_registers",
    "limit_shared_memory",
    "limit_blocks",
    "limit_barriers",
    "alloc_regs_per_block",
    "alloc_smem_bytes_per_block",
)


def shape_of(row: dict[str, str]) -> LaunchShape:
    return LaunchShape(
        threads_per_block=int(row["threads_per_block"]),
        registers_per_thread=int(row["regs_per_thread"]),
        static_shared_bytes=int(row["static_smem_bytes"]),
        dynamic_shared_bytes=int(row["dyn_smem_bytes"]),
        barriers=int(row["barriers"]),
        carveout_percent=int(row["carveout_percent"]),
        max_dynamic_shared_bytes=int(row["max_dyn_smem_bytes"]),
    )


def answers_of(result: Occupancy) -> list[str]:
    numbers = (
        result.limit_warps,
        result.limit_registers,
        result.limit_shared,
        result.limit_blocks,
        result.limit_barriers,
        result.registers_per_block,
        result.shared_bytes_per_block,
    )
    factors = "|".join({"shared": "shared_memory"}.get(name, name) for name in header_limiting_factors(result))
    return [
        str(result.blocks_per_sm),
        str(result.active_warps),
        str(result.max_warps),
        factors,
        *("" if number is None else str(number) for number in numbers),
    ]


def test_every_recorded_launch_agrees() -> None:
    compared: Counter[str] = Counter()
    with VECTORS.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            compared[row["status"]] += 1
            if row["status"] == "invalid_input":
                with pytest.raises(LaunchShapeError):
                    occupancy(limits_for_cc(row["cc"]), shape_of(row))
            else:
                result = occupancy(limits_for_cc(row["cc"]), shape_of(row))
                assert answers_of(result) == [row[name] for name in ANSWERS], row
    assert compared == {"ok": 6441, "invalid_input": 90}


def test_recorded_difference_of_the_newer_header() -> None:
    # CUDA 13.5 gives 10.3 half the barrier slots; with that one limit changed the same code gives its answers.
    limits = replace(limits_for_cc("10.3"), barrier_slots=32)
    compared = 0
    with VECTORS.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["differs_in_other_header"]:
                result = occupancy(limits, shape_of(row))
                blocks, factors = answers_of(result)[0], answers_of(result)[3]
                assert row["differs_in_other_header"] == f"13.5: blocks={blocks} factors={factors}"
                compared += 1
    assert compared == 28


# Kernel of 96 registers in blocks of 7 warps, and round register counts: public reports of calculators that were one
# block too high. percent = blocks x warps / max warps.
GRANULARITY = [
    ("sm_90", 96, 224, 2, 64, 21.9),
    ("sm_90", 40, 256, 6, 64, 75.0),
    ("sm_90", 41, 256, 5, 64, 62.5),
    ("sm_80", 96, 224, 2, 64, 21.9),
    ("sm_89", 96, 224, 2, 48, 29.2),
    ("sm_86", 40, 256, 6, 48, 100.0),
    ("sm_75", 40, 256, 4, 32, 100.0),
    ("sm_86", 42, 256, 5, 48, 83.3),
    ("sm_90", 96, 128, 5, 64, 31.2),
    ("sm_90", 96, 256, 2, 64, 25.0),
    ("sm_90", 96, 640, 1, 64, 31.2),
    ("sm_90", 96, 672, 0, 64, 0.0),
    ("sm_90", 96, 1024, 0, 64, 0.0),
]


@pytest.mark.parametrize(("arch", "registers", "threads", "blocks", "max_warps", "percent"), GRANULARITY)
def test_register_granularity(
    arch: str, registers: int, threads: int, blocks: int, max_warps: int, percent: float
) -> None:
    result = occupancy(limits_for_arch(arch), LaunchShape(threads, registers))
    assert (result.blocks_per_sm, result.max_warps) == (blocks, max_warps)
    assert 100 * result.theoretical == pytest.approx(percent, abs=0.06)


@pytest.mark.parametrize(
    ("arch", "shared", "blocks"),
    [("sm_86", 49152, 2), ("sm_86", 57344, 1), ("sm_86", 50176, 2), ("sm_86", 50177, 1), ("sm_86", 51200, 1)],
)
def test_shared_memory_edge_of_two_blocks(arch: str, shared: int, blocks: int) -> None:
    result = occupancy(limits_for_arch(arch), LaunchShape(128, 32, dynamic_shared_bytes=shared))
    assert result.blocks_per_sm == blocks
    assert result.limiters == ("shared",)


def test_limiters_are_all_that_equal_the_result() -> None:
    result = occupancy(limits_for_arch("sm_86"), LaunchShape(256, 40, static_shared_bytes=2048, barriers=1))
    assert result.blocks_per_sm == 6
    assert result.limiters == ("registers", "warps")
    # 12 barriers: 24 slots hold 2 blocks, and barriers alone limit; the header's marks keep those set before.
    barriers = occupancy(limits_for_arch("sm_120"), LaunchShape(64, 32, barriers=12))
    assert barriers.blocks_per_sm == 2
    assert barriers.limiters == ("barriers",)
    assert header_limiting_factors(barriers) == ("warps", "blocks", "barriers")


def test_carveout_of_zero_holds_eight_blocks_of_the_reserve() -> None:
    result = occupancy(limits_for_arch("sm_86"), LaunchShape(32, 16, carveout_percent=0))
    assert (result.blocks_per_sm, result.limiters) == (8, ("shared",))


def test_clusters_are_an_upper_bound() -> None:
    limits = limits_for_arch("sm_90")
    plain = occupancy(limits, LaunchShape(256, 32))
    for size in (2, 8, 16):
        assert occupancy(limits, LaunchShape(256, 32, cluster_blocks=size)) == replace(plain, is_upper_bound=True)
    assert occupancy(limits, LaunchShape(256, 32, cluster_blocks=1)) == plain


@pytest.mark.parametrize(
    ("arch", "shape", "message"),
    [
        ("sm_86", LaunchShape(0, 32), "at least 1 thread"),
        ("sm_86", LaunchShape(128, -1), "cannot be negative: -1 registers"),
        ("sm_86", LaunchShape(128, 32, static_shared_bytes=-1), "-1 B static"),
        ("sm_86", LaunchShape(128, 32, dynamic_shared_bytes=-1), "-1 B dynamic"),
        ("sm_86", LaunchShape(128, 32, barriers=-1), "-1 barriers"),
        ("sm_86", LaunchShape(128, 32, carveout_percent=101), "0 to 100 percent, or -1"),
        ("sm_86", LaunchShape(128, 32, carveout_percent=-2), "0 to 100 percent, or -1"),
        ("sm_86", LaunchShape(128, 32, cluster_blocks=2), "sm_86 has no clusters"),
        ("sm_90", LaunchShape(128, 32, cluster_blocks=17), "at most 16 blocks"),
        ("sm_90", LaunchShape(128, 32, cluster_blocks=0), "at least 1 block"),
    ],
)
def test_invalid_shapes_are_named(arch: str, shape: LaunchShape, message: str) -> None:
    with pytest.raises(LaunchShapeError, match=message):
        occupancy(limits_for_arch(arch), shape)


LIMITS = st.sampled_from(compute_capabilities()).map(limits_for_cc)
SHAPES = st.builds(
    LaunchShape,
    threads_per_block=st.integers(1, 1100),
    registers_per_thread=st.integers(0, 260),
    static_shared_bytes=st.integers(0, 49152),
    dynamic_shared_bytes=st.integers(0, 340_000),
    barriers=st.integers(0, 16),
    carveout_percent=st.integers(-1, 100),
)


@given(LIMITS, SHAPES)
def test_result_is_the_least_limit_and_fits_the_sm(limits: SmLimits, shape: LaunchShape) -> None:
    result = occupancy(limits, shape)
    every = {
        "registers": result.limit_registers,
        "shared": result.limit_shared,
        "warps": result.limit_warps,
        "blocks": result.limit_blocks,
        "barriers": result.limit_barriers,
    }
    assert result.blocks_per_sm == min(limit for limit in every.values() if limit is not None)
    assert list(result.limiters) == [name for name, limit in every.items() if limit == result.blocks_per_sm]
    assert 0 <= result.theoretical <= 1
    assert result.blocks_per_sm * result.registers_per_block <= limits.registers
    assert result.blocks_per_sm * result.shared_bytes_per_block <= limits.shared_bytes
    assert result.blocks_per_sm * shape.threads_per_block <= limits.max_threads


@given(LIMITS, SHAPES, st.integers(0, 40))
def test_more_registers_never_mean_more_blocks(limits: SmLimits, shape: LaunchShape, more: int) -> None:
    hungrier = replace(shape, registers_per_thread=shape.registers_per_thread + more)
    assert occupancy(limits, hungrier).blocks_per_sm <= occupancy(limits, shape).blocks_per_sm


@given(LIMITS, SHAPES, st.integers(0, 60_000))
def test_more_shared_memory_never_means_more_blocks(limits: SmLimits, shape: LaunchShape, more: int) -> None:
    hungrier = replace(shape, dynamic_shared_bytes=shape.dynamic_shared_bytes + more)
    assert occupancy(limits, hungrier).blocks_per_sm <= occupancy(limits, shape).blocks_per_sm


@given(LIMITS, SHAPES, st.integers(0, 8))
def test_more_barriers_never_mean_more_blocks(limits: SmLimits, shape: LaunchShape, more: int) -> None:
    hungrier = replace(shape, barriers=shape.barriers + more)
    assert occupancy(limits, hungrier).blocks_per_sm <= occupancy(limits, shape).blocks_per_sm
