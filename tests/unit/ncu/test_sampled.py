"""Samples go to the instruction that held the warp, on a kernel that is really built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.embedded_cubins import embedded_cubins
from kernel_lsp.ncu.kernel_code import KernelCode, kernel_code
from tests.unit.ncu.conftest import Build, action

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
BASE = 0x7F1234560000
SOURCE = """\
#include <cuda_pipeline.h>
__global__ void k(float *out, const float *in, int n) {
  __shared__ float tile[128];
  if (n < 0) {
    out[0] = 1.0f;
    return;
  }
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def code(
    build: Build, code_of: Callable[[bytes, str], KernelCode], tmp_path_factory: pytest.TempPathFactory
) -> KernelCode:
    path = tmp_path_factory.mktemp("src") / "k.cu"
    path.write_text(SOURCE, "utf-8")
    return code_of(build(path, "sm_86"), "_Z1kPfPKfi")


def places(code: KernelCode, opcode: str) -> list[int]:
    """Addresses of an opcode, in the disassembler's words."""
    return [pc for pc in range(0, code.instruction_bytes, 16) if opcode in code.text(pc).split(" ")[:2]]


def test_opcodes_from_the_bytes_are_the_disassemblers(code: KernelCode) -> None:
    import numpy as np

    pcs = np.arange(0, code.instruction_bytes, 16)
    words = [code.text(int(pc)).split(" ") for pc in pcs]
    families = [{part.split(".")[0] for part in each[:2]} for each in words]
    assert code.is_exit(pcs).tolist() == ["EXIT" in each for each in families]
    assert code.is_barrier(pcs).tolist() == ["BAR" in each for each in families]
    assert code.is_counted_wait(pcs).tolist() == ["DEPBAR" in each for each in families]
    assert sum(code.is_exit(pcs)) >= 2
    outside = np.array([-16, code.instruction_bytes, 8])
    assert not code.is_exit(outside).any()


def test_late_samples_go_back_by_one(code: KernelCode) -> None:
    exits, barrier, copies = (
        places(code, "EXIT"),
        *places(code, "BAR.SYNC.DEFER_BLOCKING")[:1],
        places(code, "LDGSTS.E"),
    )
    wait = next(pc for pc in range(0, code.instruction_bytes, 16) if code.text(pc).startswith("DEPBAR"))
    early = exits[0]
    columns = {
        SAMPLES + "drain": {BASE + early + 16: 7.0, BASE + exits[-1] + 16: 9.0},
        SAMPLES + "barrier": {BASE + barrier + 16: 5.0},
        SAMPLES + "long_scoreboard": {BASE + wait + 16: 4.0},
        SAMPLES + "wait": {BASE + barrier + 16: 3.0},
        "inst_executed": {BASE + pc: 1.0 for pc in range(0, exits[-1] + 16, 16)},
    }
    profile = read_kernel_profile(action("_Z1kPfPKfi", BASE, columns))
    measured = measure(profile, code)
    assert measured.sampled is not None
    assert measured.sample_count == 28
    by_pc = {int(pc): measured.sampled.by_reason(measured.sampled.pc.searchsorted([pc])) for pc in measured.sampled.pc}
    assert by_pc[early] == {"drain": 7}
    assert by_pc[exits[-1]] == {"drain": 9}
    assert by_pc[barrier] == {"barrier": 5}
    assert by_pc[barrier + 16] == {"wait": 3}, "only the late reasons move"
    assert by_pc[wait] == {"long_scoreboard": 4}
    lines = {cost.line: dict(cost.own.by_reason) for cost in measured.lines if cost.file.endswith("k.cu")}
    assert lines[11] == {"barrier": 5}
    assert lines[13] == {"drain": 16}, "both EXITs are the closing brace's"
    # what the copies' wait is for
    waits = [each for cost in measured.lines for each in cost.waits_for]
    assert [(each.pc, each.producer_pc, each.samples) for each in waits] == [(wait, copies[0], 4)]
    assert 8 in {line for each in waits for file, line in each.chain if file.endswith("k.cu")}


def test_samples_outside_the_kernel_are_kept_apart(code: KernelCode) -> None:
    columns = {
        SAMPLES + "wait": {BASE + 0x10: 60.0, BASE - 0x4000: 5.0, BASE + 0x100000: 2.0},
        "inst_executed": {BASE + 0x10: 10.0, BASE + 0x100000: 3.0},
    }
    profile = read_kernel_profile(action("_Z1kPfPKfi", BASE, columns))
    for known in (code, None):
        measured = measure(profile, known)
        assert measured.outside == {"wait": 5}
        assert measured.sample_count == 67
        assert sum(c.own.samples for c in measured.lines) + (measured.nowhere.samples if measured.nowhere else 0) == 62


def test_lines_without_a_cubin_are_ncus(code: KernelCode) -> None:
    columns = {SAMPLES + "wait": {BASE: 1.0, BASE + 16: 2.0}}
    places_ = {BASE: ("/ci/k.cu", 3), BASE + 16: ("/ci/k.cu", 4)}
    measured = measure(read_kernel_profile(action("_Z1kPfPKfi", BASE, columns, lines=places_)), None)
    assert [(cost.file, cost.line, cost.own.samples) for cost in measured.lines] == [
        ("/ci/k.cu", 4, 2),
        ("/ci/k.cu", 3, 1),
    ]
    assert measured.profile.samples is not None
    assert measured.profile.samples.few


def test_cubins_are_cut_out_whole(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(SOURCE, "utf-8")
    one, other = build(path, "sm_86"), build(path, "sm_90")
    report = b"NVR\0" + bytes(300) + one + b"between\x7fELF\x02\x01 not one" + other + one + b"tail"
    assert list(embedded_cubins(report)) == [one, other]
    assert list(embedded_cubins(report[: 400 + len(one)])) == [one]
    assert list(embedded_cubins(one[:-1])) == []
    for at in range(64):
        flipped = bytearray(one)
        flipped[at] ^= 0xFF
        list(embedded_cubins(bytes(flipped)))
    assert kernel_code(b"no cubin", "_Z1kPfPKfi") is None
    assert kernel_code(one, "_Z5otherv") is None


def test_a_damaged_cubin_in_a_report_loses_no_samples(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(SOURCE, "utf-8")
    cubin = build(path, "sm_86")
    columns = {SAMPLES + "wait": {BASE: 60.0}, SAMPLES + "drain": {BASE + 0x20: 5.0}}
    profile = read_kernel_profile(action("_Z1kPfPKfi", BASE, columns))
    for seed in range(300):
        flipped = bytearray(cubin)
        for step in range(1 + seed % 20):
            flipped[(seed * 7919 + step * 104729) % len(flipped)] ^= 1 << (seed % 8)
        assert measure(profile, kernel_code(bytes(flipped), "_Z1kPfPKfi")).sample_count == 65
