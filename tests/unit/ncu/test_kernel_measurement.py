"""Which launch of which report is shown for a kernel, and its hot lines in the user's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.kernel_code import KernelCode
from kernel_lsp.ncu.kernel_measurement import LaunchRef, measurements
from kernel_lsp.ncu.kernel_profile import KernelProfile, NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.placement import BuiltKernel
from kernel_lsp.ncu.raw_report import Metric
from tests.unit.ncu.conftest import Build, action

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
BASE = 0x7F0000000000
NAME = "_Z4copyPfPKf"
HEADER = """#pragma once
__device__ inline float twice(const float* in) {
    return 2.0f * in[threadIdx.x];
}
"""
TEXT = """#include "load.cuh"
__global__ void copy(float* out, const float* in) {
    float x = twice(in);
    out[threadIdx.x] = x;
}
"""


def _source(folder: Path) -> Path:
    (folder / "load.cuh").write_text(HEADER, "utf-8")
    (folder / "copy.cu").write_text(TEXT, "utf-8")
    return folder / "copy.cu"


def _pc(code: KernelCode, family: str) -> int:
    assert code.code is not None
    texts = {16 * row: code.text(16 * row) for row in range(code.code.stop - code.code.start)}
    return next(pc for pc, text in texts.items() if family in text)


def _report(path: str, *profiles: KernelProfile, code: KernelCode | None = None) -> MeasuredReport:
    kernels = tuple(measure(profile, code) for profile in profiles)
    report = NcuReport(path, path, None, profiles, (), ())
    return MeasuredReport(report, kernels, datetime.now(timezone.utc))


def test_a_header_function_counts_on_the_line_that_calls_it(
    build: Build, code_of: Callable[[bytes, str], KernelCode], tmp_path: Path
) -> None:
    source = _source(tmp_path)
    code = code_of(build(source, "sm_86"), NAME)
    load, multiply = _pc(code, "LDG"), _pc(code, "FADD")  # nvcc doubles by an addition
    columns = {SAMPLES + "long_scoreboard": {BASE + multiply: 80.0}, SAMPLES + "wait": {BASE + load: 20.0}}
    profile = read_kernel_profile(action(NAME, BASE, columns))
    report = _report("a.ncu-rep", profile, code=code)

    found = measurements({NAME: "copy"}, lambda _: [BuiltKernel(code, TEXT)], str(source), TEXT, [report], {})[NAME]

    assert found.placed.fit == "exact"
    [hot] = found.hot
    assert (hot.line, hot.share, hot.reason) == (3, 1.0, "long_scoreboard")
    assert hot.here.samples == 100
    assert hot.waits_for is not None
    assert (hot.waits_for.producer_pc, hot.wait_line) == (load, 3)
    line = found.placed.line(3)
    assert line is not None
    # The load is the call's own by the line table, the addition is the header's.
    assert (line.cost.own.samples, line.here.samples) == (20, 100)


def test_the_newest_report_and_its_longest_launch_unless_chosen() -> None:
    def launch(index: int, duration_ns: float) -> KernelProfile:
        metrics = {"gpu__time_duration.sum": Metric(duration_ns, "ns")}
        return replace(read_kernel_profile(action(NAME, BASE, {}, metrics=metrics)), index=index)

    new = _report("new.ncu-rep", launch(0, 10), launch(1, 30), launch(2, 20))
    old = _report("old.ncu-rep", launch(0, 99))
    ask = {NAME: "copy(float *, const float *)"}

    def shown(chosen: dict[str, LaunchRef]) -> LaunchRef:
        return measurements(ask, lambda _: [], "copy.cu", TEXT, [new, old], chosen)[NAME].ref

    assert shown({}) == LaunchRef("new.ncu-rep", 1)
    assert shown({NAME: LaunchRef("old.ncu-rep", 0)}) == LaunchRef("old.ncu-rep", 0)
    assert shown({NAME: LaunchRef("gone.ncu-rep", 0)}) == LaunchRef("new.ncu-rep", 1)
    found = measurements(ask, lambda _: [], "copy.cu", TEXT, [new, old], {})[NAME]
    assert (found.number, len(found.launches), found.reports) == (2, 3, ("new.ncu-rep", "old.ncu-rep"))
    assert measurements({"_Z5otherv": "other()"}, lambda _: [], "copy.cu", TEXT, [new], {}) == {}
