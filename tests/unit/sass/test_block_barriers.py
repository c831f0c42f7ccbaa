"""Needless block barriers: in listings where the answer follows by hand, and in kernels that nvcc compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp.cubin.block_barriers import needless_barriers
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.cubin.flow import control_flow
from kernel_lsp.model.kernel_sass import KernelSass, read_cubin_sass
from kernel_lsp.report.stall_words import barrier_sentences
from tests.oracle.cubin_corpus import build, tool_text
from tests.unit.sass.listing import decode

BAR = "BAR.SYNC.DEFER_BLOCKING 0x0"
STS, LDS = "STS [R2], R3", "LDS R4, [R5]"
LDG, STG = "LDG.E R4, desc[UR4][R2.64]", "STG.E desc[UR4][R2.64], R4"
SULD = "SULD.D.BA.1D.STRONG.SM.TRAP R4, [R2], UR4"


def needless(*lines: str, functions: dict[str, int] | None = None) -> tuple[int, ...]:
    sass = decode("\n".join(lines), functions=functions)
    return needless_barriers(sass, control_flow(sass, sass.codes[0]))


@pytest.mark.parametrize(
    ("before", "behind", "is_needed"),
    [
        (STS, LDS, True),
        (LDS, STS, True),
        (STS, STS, True),
        (LDS, LDS, False),
        (LDG, LDG, False),
        (LDG, STG, True),
        (STG, LDS, False),  # global memory is never shared memory
        (LDG, STS, False),
        ("ATOMS.ADD R4, [R2], R3", LDS, True),
        ("RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", LDG, True),
        ("ST.E desc[UR4][R2.64], R4", LDS, True),  # a generic address may lead anywhere
        (SULD, "TEX.LL RZ, R6, R8, R9, UR6, 2D, 0x1", False),
        ("SUST.D.BA.1D.STRONG.SM.IGN [R2], R4, UR4", SULD, True),
        (SULD, "SURED.D.BA.1D.ADD.STRONG.SYS.TRAP [R2], R4, UR4", True),
        ("LDGSTS.E [R2], desc[UR4][R4.64]", LDS, True),
        ("DEPBAR.LE SB0, 0x0", LDS, True),
        ("MEMBAR.SC.GPU", LDG, True),
        ("STL [R1], R3", "LDL R3, [R1]", False),  # each thread has its own
        ("HMMA.16816.F32 R4, R8, R12, R4", "SHFL.IDX PT, R4, R5, R6, 0x1f", False),
        ("NEVER.SEEN R4", LDS, True),
        (STS, "CS2R R4, SR_CLOCKLO", True),
        ("MOV R4, R5", "CS2R R4, SR_CLOCKLO", True),  # it makes the threads start together
        ("@!PT STS [R2], R3", LDS, False),  # never runs
    ],
)
def test_what_stands_on_both_sides_decides(before: str, behind: str, is_needed: bool) -> None:
    assert needless(before, BAR, behind, "EXIT") == (() if is_needed else (1,))


def test_of_two_at_once_one_can_go() -> None:
    assert needless(STS, BAR, BAR, LDS, "EXIT") == (2,)
    assert needless(STS, BAR, "IMAD R4, R5, R6, R7", BAR, BAR, LDS, "EXIT") == (3, 4)


def test_the_first_and_the_last_of_a_kernel() -> None:
    assert needless(BAR, STG, "EXIT") == (0,)
    assert needless(STG, BAR, "EXIT") == (1,)


def test_paths_around_loops_count() -> None:
    # s[t] = x; sync; use s; sync; again
    loop = (".top:", STS, BAR, LDS, BAR, "@P0 BRA `(.top)", "EXIT")
    assert needless(*loop) == ()
    # A third one before the store repeats the one at the end of the iteration before.
    third = (".top:", BAR, STS, BAR, LDS, BAR, "@P0 BRA `(.top)", "EXIT")
    assert needless(*third) == (4,)
    # One path into the loop writes without a barrier: the one at the head is needed, the one at the end is not.
    assert needless(STS, ".top:", BAR, LDS, "@P0 BRA `(.top)", LDS, "EXIT") == ()


@pytest.mark.parametrize(
    "line",
    [
        "BAR.SYNC.DEFER_BLOCKING 0x1, 0x80",
        "BAR.ARV 0x1, 0x80",
        "@P0 BAR.SYNC.DEFER_BLOCKING 0x0",
        "BAR.RED.POPC.DEFER_BLOCKING 0x0, P0",
        "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2], RZ",
        "UCGABAR_WAIT",
        "UTMALDG.2D [UR8], [UR4], desc[UR6]",
        "BRX R4 -0x10",
    ],
)
def test_kernels_beyond_the_rule_are_left_out(line: str) -> None:
    assert needless(BAR, BAR, STG, line, "EXIT") == ()


def test_what_callers_did_is_not_known() -> None:
    lines = ("CALL.REL.NOINC `(f)", "EXIT", "f:", BAR, LDS, "RET.REL.NODEC R20 `(k)")
    assert needless(*lines, functions={"f": 32}) == ()


SOURCE = """
__global__ void twice(float* x) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    __syncthreads();
    x[t] = s[255 - t];
}
__global__ void sum(float* x) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int k = 128; k > 0; k >>= 1) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) x[0] = s[0];
}
"""


@pytest.fixture(scope="module", params=["sm_75", "sm_86", "sm_90", "sm_120"])
def kernels(
    request: pytest.FixtureRequest, toolkit: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[KernelSass]:
    source = tmp_path_factory.mktemp("barriers") / "barriers.cu"
    source.write_text(SOURCE)
    cubin = build(source, request.param, toolkit)
    found = read_cubin_sass(cubin.data, tool_text(toolkit, cubin.path, "nvdisasm", *ARGUMENTS), "").sections
    return [found["_Z5twicePf"], found["_Z3sumPf"]]


def test_compiled_kernels(kernels: list[KernelSass]) -> None:
    twice, tree = kernels
    [row] = twice.needless_barriers
    assert twice.frames(row)[0].line in (6, 7)
    assert tree.needless_barriers == ()
    [said] = barrier_sentences(twice, twice.rows.own[twice.frames(row)[0].file, twice.frames(row)[0].line])
    assert said.startswith("The barrier orders nothing: from the last barrier to the next, no memory is used on both")
    assert barrier_sentences(twice, twice.rows.own[twice.frames(row)[0].file, 8]) == []
