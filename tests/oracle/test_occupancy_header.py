"""Occupancy against NVIDIA's cuda_occupancy.h itself, built with gcc, over random launches and all edges."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_lsp.hardware.catalog import compute_capabilities, limits_for_cc
from kernel_lsp.hardware.profile import SmLimits
from kernel_lsp.model.occupancy import LaunchShape, LaunchShapeError, header_limiting_factors, occupancy

SOURCE = Path(__file__).with_name("occupancy_header.c")
BITS = {"warps": 1, "registers": 2, "shared": 4, "blocks": 8, "barriers": 16}
RANDOM_LAUNCHES = 1000  # per compute capability


@pytest.fixture(scope="module")
def header(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that asks the header of the toolkit's wheel."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.fail("no gcc: apt-get install gcc")
    program = tmp_path_factory.mktemp("oracle") / "occupancy_header"
    subprocess.run(
        [gcc, "-O1", "-std=gnu99", f"-I{toolkit / 'include'}", str(SOURCE), "-o", str(program)],
        check=True,
        capture_output=True,
        text=True,
    )
    return program


def limits_of_header(compute_capability: str) -> SmLimits:
    """The limits as the header of CUDA 13.5 knows them: 10.3 with 32 barrier slots, where that of 13.0 has 64."""
    limits = limits_for_cc(compute_capability)
    return replace(limits, barrier_slots=32) if compute_capability == "10.3" else limits


def random_shapes(chance: random.Random, limits: SmLimits) -> Iterator[LaunchShape]:
    most = limits.shared_optin_bytes_per_block
    for _ in range(RANDOM_LAUNCHES):
        dynamic = chance.choice((0, chance.randint(0, 8192), chance.randint(0, most + 2048)))
        yield LaunchShape(
            threads_per_block=chance.choice((chance.randint(1, 1024), 32 * chance.randint(1, 32))),
            registers_per_thread=chance.choice((chance.randint(0, 255), chance.randint(16, 96))),
            static_shared_bytes=chance.choice((0, chance.randint(0, 49152))),
            dynamic_shared_bytes=dynamic,
            barriers=chance.choice((0, 1, 1, chance.randint(0, 16))),
            carveout_percent=chance.choice((-1, -1, chance.randint(0, 100))),
            max_dynamic_shared_bytes=chance.choice((None, None, chance.randint(0, most))),
        )


def edge_shapes(limits: SmLimits) -> Iterator[LaunchShape]:
    base = LaunchShape(threads_per_block=128, registers_per_thread=32, barriers=1)
    for registers in (*range(258), 300):
        yield replace(base, registers_per_thread=registers)
        yield replace(base, registers_per_thread=registers, threads_per_block=32 * (registers % 32 + 1))
    for threads in (0, 1, 31, 32, 33, 95, 96, 97, 672, 992, 993, 1023, 1024, 1025, 2048):
        for registers in (16, 64, 65, 96):
            yield replace(base, threads_per_block=threads, registers_per_thread=registers)
    for blocks in range(1, 17):
        unit, reserve = limits.shared_unit_bytes, limits.shared_reserved_bytes_per_block
        edge = limits.shared_bytes // blocks // unit * unit - reserve
        for dynamic in (edge - 1, edge, edge + 1):
            yield replace(base, threads_per_block=32, dynamic_shared_bytes=dynamic)
            yield replace(base, threads_per_block=32, static_shared_bytes=min(dynamic, 1000), carveout_percent=50)
    for carveout in range(-2, 102):
        for dynamic in (0, 10_000, 60_000):
            yield replace(base, carveout_percent=carveout, dynamic_shared_bytes=dynamic)
    default, optin = limits.shared_default_bytes_per_block, limits.shared_optin_bytes_per_block
    for most in (default - 1025, default - 1024, default - 1, default, default + 1, optin, optin + 1):
        for dynamic in (most - 1, most, most + 1):
            yield replace(base, dynamic_shared_bytes=dynamic, max_dynamic_shared_bytes=most)
            yield replace(base, static_shared_bytes=1, dynamic_shared_bytes=dynamic, max_dynamic_shared_bytes=most)
    for barriers in range(17):
        yield replace(base, threads_per_block=32, barriers=barriers)


def question(limits: SmLimits, shape: LaunchShape) -> str:
    most = shape.max_dynamic_shared_bytes
    numbers = (
        *limits.compute_capability.split("."),
        limits.max_threads,
        limits.max_registers_per_block,
        limits.registers,
        limits.shared_default_bytes_per_block,
        limits.shared_bytes,
        limits.shared_optin_bytes_per_block,
        limits.shared_reserved_bytes_per_block,
        shape.threads_per_block,
        shape.registers_per_thread,
        shape.static_shared_bytes,
        shape.dynamic_shared_bytes,
        shape.carveout_percent,
        shape.barriers,
        -1 if most is None else most,
    )
    return " ".join(map(str, numbers))


def our_answer(limits: SmLimits, shape: LaunchShape) -> str:
    try:
        result = occupancy(limits, shape)
    except LaunchShapeError:
        return "error 1"  # CUDA_OCC_ERROR_INVALID_INPUT
    numbers = (
        result.blocks_per_sm,
        sum(BITS[factor] for factor in header_limiting_factors(result)),
        result.limit_warps,
        result.limit_registers,
        result.limit_shared,
        result.limit_blocks,
        result.limit_barriers,
        result.registers_per_block,
        result.shared_bytes_per_block,
    )
    return " ".join("-1" if number is None else str(number) for number in numbers)


def test_equal_to_the_header(header: Path) -> None:
    chance = random.Random(86)
    asked: list[tuple[SmLimits, LaunchShape]] = []
    for compute_capability in compute_capabilities():
        limits = limits_of_header(compute_capability)
        asked += [(limits, shape) for shape in (*random_shapes(chance, limits), *edge_shapes(limits))]
    assert len(asked) > 40_000
    text = "\n".join(question(limits, shape) for limits, shape in asked) + "\n"
    answers = subprocess.run([header], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(asked)
    different = [
        (limits.arch, shape, answer, our_answer(limits, shape))
        for (limits, shape), answer in zip(asked, answers, strict=True)
        if answer != our_answer(limits, shape)
    ]
    assert different == []
    refused = sum(answer.startswith("error") for answer in answers)
    assert 0 < refused < len(answers) / 20
