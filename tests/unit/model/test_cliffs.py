"""Steps of occupancy against tables worked out from the published rules, and against a search value by value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.hardware.catalog import compute_capabilities, limits_for_arch, limits_for_cc
from kernel_lsp.hardware.profile import SmLimits
from kernel_lsp.model.cliffs import (
    block_size_rows,
    cliffs,
    double_buffer_projection,
    largest_launchable_block,
    max_dynamic_shared_keeping_blocks,
)
from kernel_lsp.model.occupancy import Cliff, LaunchShape, occupancy

# Largest shared memory of a block's own (bytes) for 1..8 blocks per SM: floor(SM / n / unit) x unit - reserve, capped
# by the opt-in size; the line of 100 KiB was also measured on an RTX 5090.
LARGEST_SHARED = {
    ("7.0", "7.2"): (98304, 49152, 32768, 24576, 19456, 16384, 13824, 12288),
    ("7.5",): (65536, 32768, 21760, 16384, 13056, 10752, 9216, 8192),
    ("8.0", "8.7"): (166912, 82944, 54912, 40960, 32512, 26880, 22912, 19968),
    ("8.6", "8.8", "8.9", "12.0", "12.1"): (101376, 50176, 33024, 24576, 19456, 16000, 13568, 11776),
    ("9.0", "10.0", "10.3", "11.0"): (232448, 115712, 76800, 57344, 45568, 37888, 32256, 28160),
    ("10.7",): (334848, 166912, 110848, 82944, 66048, 54912, 46848, 40960),
}
# Most registers per thread for n blocks per SM, by threads per block (65,536 registers per SM).
MOST_REGISTERS = {
    128: {16: 32, 12: 40, 10: 48, 9: 56, 8: 64, 7: 72, 6: 80, 5: 96, 4: 128, 3: 168, 2: 255},
    256: {8: 32, 6: 40, 5: 48, 4: 64, 3: 80, 2: 128, 1: 255},
    512: {4: 32, 3: 40, 2: 64, 1: 128},
    1024: {2: 32, 1: 64},
}
SMALL = LaunchShape(threads_per_block=32, registers_per_thread=16)


def step(limits: SmLimits, shape: LaunchShape, resource: str, direction: str) -> Cliff | None:
    found = [cliff for cliff in cliffs(limits, shape) if (cliff.resource, cliff.direction) == (resource, direction)]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    ("compute_capability", "edges"), [(cc, edges) for ccs, edges in LARGEST_SHARED.items() for cc in ccs]
)
def test_shared_memory_edges(compute_capability: str, edges: tuple[int, ...]) -> None:
    limits = limits_for_cc(compute_capability)
    for blocks, edge in enumerate(edges, start=1):
        at_edge = replace(SMALL, dynamic_shared_bytes=edge)
        assert occupancy(limits, at_edge).blocks_per_sm == blocks
        assert step(limits, at_edge, "shared", "down") == Cliff("shared", "down", 1, edge + 1, blocks - 1)
        past = replace(SMALL, dynamic_shared_bytes=edge + 1)
        assert step(limits, past, "shared", "up") == Cliff("shared", "up", -1, edge, blocks)
        assert max_dynamic_shared_keeping_blocks(limits, replace(at_edge, dynamic_shared_bytes=edge - 100)) == edge


@pytest.mark.parametrize(
    ("threads", "blocks", "most"), [(t, n, r) for t, row in MOST_REGISTERS.items() for n, r in row.items()]
)
def test_register_edges(threads: int, blocks: int, most: int) -> None:
    for arch in ("sm_90", "sm_86", "sm_75"):
        limits = limits_for_arch(arch)
        if blocks > limits.max_warps // (threads // 32) or blocks > limits.max_blocks:
            continue  # no such number of blocks there
        assert occupancy(limits, LaunchShape(threads, most)).blocks_per_sm == blocks
        down = step(limits, LaunchShape(threads, most), "registers", "down")
        if most == 255:
            assert down is None
        else:
            fewer = max((n for n, r in MOST_REGISTERS[threads].items() if r > most), default=0)
            assert down == Cliff("registers", "down", 1, most + 1, fewer)
            up = step(limits, LaunchShape(threads, most + 1), "registers", "up")
            assert up == Cliff("registers", "up", -1, most, blocks)


def test_hover_example() -> None:
    # 36 registers, blocks of 256 on sm_86: 6 blocks; registers go by 8, so 40 is free and 41 costs one; no step up,
    # because 6 blocks of 8 warps fill the 48 warps.
    found = cliffs(limits_for_arch("sm_86"), LaunchShape(256, 36, static_shared_bytes=2048, barriers=1))
    assert [cliff for cliff in found if cliff.resource == "registers"] == [Cliff("registers", "down", 5, 41, 5)]
    assert all(cliff.direction == "down" for cliff in found)


def test_diagnostic_examples() -> None:
    sm_86 = limits_for_arch("sm_86")
    # 72 registers hold blocks of 256 at 3 per SM; at 64 it would be 4.
    assert step(sm_86, LaunchShape(256, 72), "registers", "up") == Cliff("registers", "up", -8, 64, 4)
    # 52,224 B leave 1 block; 50,176 B would give 2.
    past = LaunchShape(128, 32, dynamic_shared_bytes=52224)
    assert step(sm_86, past, "shared", "up") == Cliff("shared", "up", -2048, 50176, 2)
    # A block more by registers alone, but shared memory holds it at 1: no step up by registers.
    assert step(sm_86, replace(past, registers_per_thread=128), "registers", "up") is None


def test_kernel_of_96_registers_gains_a_block_at_80() -> None:
    assert step(limits_for_arch("sm_90"), LaunchShape(224, 96), "registers", "up") == Cliff(
        "registers", "up", -16, 80, 3
    )


def test_launch_that_cannot_start() -> None:
    sm_90 = limits_for_arch("sm_90")
    assert occupancy(sm_90, LaunchShape(1024, 65)).blocks_per_sm == 0
    assert cliffs(sm_90, LaunchShape(1024, 65)) == (Cliff("registers", "up", -1, 64, 1),)
    assert max_dynamic_shared_keeping_blocks(sm_90, LaunchShape(1024, 65)) is None
    assert cliffs(sm_90, LaunchShape(1025, 32)) == ()
    too_much = LaunchShape(128, 32, dynamic_shared_bytes=300_000)
    assert cliffs(sm_90, too_much) == (Cliff("shared", "up", 232448 - 300_000, 232448, 1),)


def test_dynamic_shared_memory_that_keeps_the_blocks() -> None:
    # 56 KB + 1 KB reserved = a quarter of 228 KB.
    sm_90 = limits_for_arch("sm_90")
    unknown = LaunchShape(512, 32, barriers=1)
    assert occupancy(sm_90, unknown).blocks_per_sm == 4
    assert max_dynamic_shared_keeping_blocks(sm_90, unknown) == 57344
    assert occupancy(sm_90, replace(unknown, dynamic_shared_bytes=57344)).blocks_per_sm == 4
    assert occupancy(sm_90, replace(unknown, dynamic_shared_bytes=57345)).blocks_per_sm == 3
    assert max_dynamic_shared_keeping_blocks(sm_90, replace(unknown, static_shared_bytes=1000)) == 56344


def test_double_buffering_30_kb_tiles_crosses_the_cliff() -> None:
    projection = double_buffer_projection(
        limits_for_arch("sm_86"), LaunchShape(128, 32, static_shared_bytes=30 * 1024), 30 * 1024
    )
    assert (projection.before.blocks_per_sm, projection.after.blocks_per_sm) == (3, 1)
    assert projection.shared_bytes == 60 * 1024
    assert projection.crosses_cliff


def test_double_buffering_that_costs_nothing() -> None:
    projection = double_buffer_projection(
        limits_for_arch("sm_86"), LaunchShape(256, 40, static_shared_bytes=2048), 2048
    )
    assert (projection.before.blocks_per_sm, projection.after.blocks_per_sm) == (6, 6)
    assert not projection.crosses_cliff
    with pytest.raises(ValueError, match="not part of the block's 2048 B"):
        double_buffer_projection(limits_for_arch("sm_86"), LaunchShape(256, 40, static_shared_bytes=2048), 4096)


@pytest.mark.parametrize(
    ("arch", "registers", "threads"),
    [
        ("sm_90", 96, 640),
        ("sm_90", 64, 1024),
        ("sm_90", 65, 896),
        ("sm_90", 255, 256),
        ("sm_53", 64, 512),
        ("sm_60", 65, 896),
    ],
)
def test_largest_block_that_can_start(arch: str, registers: int, threads: int) -> None:
    # By hand: warps in fours x registers by eights x 32 <= registers of a block; 65 -> 72: 65536 / (72 x 32) = 28.4.
    shape = LaunchShape(1, registers)
    assert largest_launchable_block(limits_for_arch(arch), shape) == threads


def test_no_block_can_start() -> None:
    assert largest_launchable_block(limits_for_arch("sm_86"), LaunchShape(1, 32, dynamic_shared_bytes=120_000)) == 0


def test_rows_over_block_sizes() -> None:
    rows = block_size_rows(limits_for_arch("sm_90"), LaunchShape(1, 96))
    blocks = {threads: found.blocks_per_sm for threads, found in rows}
    assert list(blocks) == [64, 128, 192, 256, 384, 512, 768, 1024]
    assert (blocks[128], blocks[256], blocks[1024]) == (5, 2, 0)


SHAPES = st.builds(
    LaunchShape,
    threads_per_block=st.integers(1, 1024),
    registers_per_thread=st.integers(0, 255),
    static_shared_bytes=st.integers(0, 49152),
    dynamic_shared_bytes=st.integers(0, 230_000),
    barriers=st.integers(0, 16),
    carveout_percent=st.sampled_from([-1, 0, 10, 50, 100]),
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(compute_capabilities()).map(limits_for_cc), SHAPES)
def test_steps_are_the_nearest(limits: SmLimits, shape: LaunchShape) -> None:
    now = occupancy(limits, shape).blocks_per_sm
    for cliff in cliffs(limits, shape):
        if cliff.resource == "registers":
            there = replace(shape, registers_per_thread=cliff.to_value)
            before = replace(there, registers_per_thread=cliff.to_value - (1 if cliff.change > 0 else -1))
        else:
            there = replace(shape, static_shared_bytes=0, dynamic_shared_bytes=cliff.to_value)
            before = replace(there, dynamic_shared_bytes=cliff.to_value - (1 if cliff.change > 0 else -1))
        assert occupancy(limits, there).blocks_per_sm == cliff.blocks_per_sm
        if cliff.direction == "up":
            assert cliff.change < 0
            assert occupancy(limits, before).blocks_per_sm <= now < cliff.blocks_per_sm
        else:
            assert cliff.change > 0
            assert cliff.blocks_per_sm < now == occupancy(limits, before).blocks_per_sm


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(compute_capabilities()).map(limits_for_cc), SHAPES)
def test_no_register_step_is_missed(limits: SmLimits, shape: LaunchShape) -> None:
    now = occupancy(limits, shape).blocks_per_sm
    blocks = [occupancy(limits, replace(shape, registers_per_thread=count)).blocks_per_sm for count in range(256)]
    registers = shape.registers_per_thread
    up = next((count for count in range(registers - 1, 0, -1) if blocks[count] > now), None)
    down = next((count for count in range(registers + 1, 256) if blocks[count] < now), None)
    found = {cliff.direction: cliff.to_value for cliff in cliffs(limits, shape) if cliff.resource == "registers"}
    assert found == {name: value for name, value in (("up", up), ("down", down)) if value is not None}
