"""Kernels with a measurement made by hand: a launch as the reader would give it, on the lines of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.cubin.kernel import KernelBinary
from kernel_lsp.findings.finding import Finding
from kernel_lsp.model.launch import Launch
from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, measurements
from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.raw_report import Metric
from tests.unit.kernel_values import PATH, analysed, kernel
from tests.unit.ncu.conftest import action

BASE = 0x7F0000000000
MANGLED = "_Z_gemm"
SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
STATE = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
SECTORS = "memory_l2_theoretical_sectors_global"
LOCAL = "memory_l2_theoretical_sectors_local"
WAVEFRONTS = "memory_l1_wavefronts_shared"

# The kernel stands in lines 5 to 12, its name in line 5.
TEXT = "\n".join(
    [
        "// line 1",
        "__device__ float helper(float x) {",
        "    return x * 2.0f;",
        "}",
        "__global__ void gemm(float* out) {",
        *(f"    out[{line}] = helper({line});" for line in range(6, 12)),
        "}",
        "",
    ]
)

# An RTX 3070 Ti: 48 SMs of 48 warps; blocks of 256 threads, two an SM by their registers: 16 of 48 warps.
FACTS: Mapping[str, float] = {
    "launch__grid_dim_x": 960,
    "launch__grid_dim_y": 1,
    "launch__grid_dim_z": 1,
    "launch__block_dim_x": 256,
    "launch__block_dim_y": 1,
    "launch__block_dim_z": 1,
    "launch__waves_per_multiprocessor": 10,
    "launch__occupancy_limit_registers": 2,
    "launch__occupancy_limit_shared_mem": 16,
    "launch__occupancy_limit_warps": 6,
    "launch__occupancy_limit_blocks": 16,
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 6,
    "device__attribute_multiprocessor_count": 48,
    "device__attribute_max_warps_per_multiprocessor": 48,
    "sm__maximum_warps_per_active_cycle_pct": 100 / 3,
    "gpu__time_duration.sum": 1_000_000,
}
ISSUE = "smsp__issue_active.avg.per_cycle_active"
ELIGIBLE = "smsp__warps_eligible.avg.per_cycle_active"
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
WAVES = "launch__waves_per_multiprocessor"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"


def measurement(
    columns: Mapping[str, Mapping[int, float]] = {},
    facts: Mapping[str, float | str] = {},
    *,
    text: str = TEXT,
    profiled: str | None = None,
    carries_source: bool = True,
) -> KernelMeasurement:
    """A launch of `gemm`. `columns` hold a value by metric and line: one instruction a line, at 16 bytes times it.

    `profiled` is the text of the time of the profile (None: the same).
    """
    lines = sorted({line for values in columns.values() for line in values})
    made = action(
        MANGLED,
        BASE,
        {name: {BASE + 16 * line: value for line, value in values.items()} for name, values in columns.items()},
        lines={BASE + 16 * line: (PATH, line) for line in lines},
        sources={PATH: text if profiled is None else profiled} if carries_source else {},
        metrics={name: Metric(value, "ns" if "duration" in name else "") for name, value in {**FACTS, **facts}.items()},
    )
    profile = replace(read_kernel_profile(made), functions=(0,))
    report = NcuReport("/reports/gemm.ncu-rep", "digest", None, (profile,), (), ())
    read = MeasuredReport(report, (measure(profile, None),), datetime.now(timezone.utc))
    return measurements({MANGLED: "gemm"}, lambda _: [], PATH, text, [read], {})[MANGLED]


def judged(
    found: KernelMeasurement,
    kernels: Sequence[KernelBinary] | None = None,
    launch: Launch | None = None,
    text: str = TEXT,
    severities: Mapping[str, str] | None = None,
) -> FileAnalysis:
    """The file with that measurement of `gemm`."""
    return analysed(
        kernels or [kernel(line=5)],
        {"gemm": [launch]} if launch else {},
        text,
        measured={MANGLED: found},
        severities=severities,
    )


def of_code(file: FileAnalysis, code: str) -> list[Finding]:
    return [finding for finding in file.findings if finding.code == code]
