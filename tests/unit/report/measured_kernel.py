"""A measured kernel made by hand: a launch of four lines, its report, and how well it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.kernel_code import KernelCode
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, measurements
from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.placement import BuiltKernel
from kernel_lsp.ncu.raw_report import Metric, RuleResult
from kernel_lsp.session.measuring import profiled_launches
from tests.unit.kernel_values import PATH, analysed, kernel
from tests.unit.ncu.conftest import action

BASE = 0x7F0000000000
SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
MADE_AT = datetime(2025, 11, 29, 12, 2, tzinfo=timezone.utc)
NOW = MADE_AT + timedelta(hours=2, minutes=10)
TEXT = """__global__ void gemm(float* x) {
    __shared__ float t[64];
    float a = x[threadIdx.x];
    t[threadIdx.x] = a;
    x[threadIdx.x] = t[0] * a;
}
"""
# Line of the text -> samples by reason; one instruction a line.
SAMPLED = {
    3: {"long_scoreboard": 100, "selected": 20},
    4: {"long_scoreboard": 400, "mio_throttle": 60, "wait": 20, "not_selected": 20},
    5: {"short_scoreboard": 380},
}
SPEED = {
    "gpu__time_duration.sum": Metric(1_920_000.0, "ns"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": Metric(31.2, "%"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": Metric(88.1, "%"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": Metric(84.0, "%"),
}
ISSUE = {
    "smsp__issue_active.avg.per_cycle_active": Metric(0.35, ""),
    "smsp__warps_eligible.avg.per_cycle_active": Metric(0.71, ""),
    "smsp__warps_active.avg.per_cycle_active": Metric(10.0, ""),
}
LAUNCH = {
    **{f"launch__block_dim_{axis}": Metric(size, "") for axis, size in zip("xyz", (256, 1, 1), strict=True)},
    **{f"launch__grid_dim_{axis}": Metric(size, "") for axis, size in zip("xyz", (1024, 1, 1), strict=True)},
    "launch__waves_per_multiprocessor": Metric(13.05, ""),
    "sm__maximum_warps_per_active_cycle_pct": Metric(100.0, "%"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": Metric(81.0, "%"),
}
DEVICE = {
    "device__attribute_display_name": Metric("NVIDIA GeForce RTX 3070 Ti", ""),
    "device__attribute_compute_capability_major": Metric(8, ""),
    "device__attribute_compute_capability_minor": Metric(6, ""),
}
ALL = {**SPEED, **ISSUE, **LAUNCH, **DEVICE}
# FP32 FMA: 10 per cycle at 1 GHz = 20 GFLOPS of 1,000 x 2 x 1 GHz = 2 TFLOPS; DRAM 40 GB/s of 64 B x 5 GHz = 320 GB/s:
# 0.5 FLOP/byte against 6.25, so 160 GFLOPS are allowed and 12.5 % of them reached.
ROOFLINE = {
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": Metric(10.0, ""),
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": Metric(0.0, ""),
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed": Metric(0.0, ""),
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": Metric(1000.0, ""),
    "smsp__cycles_elapsed.avg.per_second": Metric(1e9, "cycle/second"),
    "sm__cycles_elapsed.avg.per_second": Metric(1e9, "cycle/second"),
    "dram__bytes.sum.per_second": Metric(40e9, "byte/second"),
    "dram__bytes.sum.peak_sustained": Metric(64.0, "byte/cycle"),
    "dram__cycles_elapsed.avg.per_second": Metric(5e9, "cycle/second"),
}


def columns(sampled: Mapping[int, Mapping[str, int]] = SAMPLED) -> dict[str, dict[int, float]]:
    """Samples by reason and address, and counters of the lines 3 (load), 4 (shared store), 5 (store)."""
    found: dict[str, dict[int, float]] = {}
    for line, by_reason in sampled.items():
        for reason, count in by_reason.items():
            found.setdefault(SAMPLES + reason, {})[pc(line)] = float(count)
    found["inst_executed"] = {pc(3): 8192.0, pc(4): 8192.0, pc(5): 8192.0}
    found["thread_inst_executed_true"] = {pc(3): 262144.0, pc(4): 163840.0, pc(5): 262144.0}  # 32, 20, 32 threads
    found["memory_l2_theoretical_sectors_global"] = {pc(3): 131072.0, pc(5): 32768.0}  # 16 and 4 per request
    found["memory_l2_theoretical_sectors_global_ideal"] = {pc(3): 32768.0, pc(5): 32768.0}  # 4 and 4
    found["memory_l1_wavefronts_shared"] = {pc(4): 65536.0}
    found["memory_l1_wavefronts_shared_ideal"] = {pc(4): 8192.0}
    found["memory_l2_theoretical_sectors_local"] = {pc(5): 4096.0}
    return found


def pc(line: int) -> int:
    """The address of the one instruction of a line."""
    return BASE + 16 * (line - 3)


def measurement(
    metrics: Mapping[str, Metric] = ALL,
    sampled: Mapping[int, Mapping[str, int]] | None = SAMPLED,
    *,
    built: str = "same",
    text: str = TEXT,
    profiled_text: str = "",
    name: str = "gemm",
    report: str = "/reports/gemm.ncu-rep",
    rules: tuple[RuleResult, ...] = (),
    file: str = PATH,
    others: int = 0,
) -> KernelMeasurement:
    """What a report says of `gemm`. `built` "same": the code built now is the profiled one, else another one.

    `sampled` None: a report without counters by line. `others`: shorter launches of it in the report.
    """
    mangled = f"_Z_{name}"
    table = {} if sampled is None else columns(sampled)
    sources = {file: profiled_text} if profiled_text else {}
    raw = action(
        mangled,
        BASE,
        table,
        metrics=metrics,
        lines={pc(line): (file, line) for line in (3, 4, 5)} if table else {},
        sources=sources,
    )
    profile = replace(read_kernel_profile(raw), rules=rules)
    profiles = [profile, *(replace(profile, index=1 + each, duration_ns=1.0) for each in range(others))]
    code = _code(mangled, b"profiled") if table else None
    kernels = tuple(measure(each, code) for each in profiles)
    made = MeasuredReport(NcuReport(report, report, "2024.1.1.0", tuple(profiles), (), ()), kernels, MADE_AT)
    now = BuiltKernel(_code(mangled, b"profiled" if built == "same" else b"built"), text)
    return measurements({mangled: name}, lambda _: [now], PATH, text, [made], {})[mangled]


def measured_file(found: KernelMeasurement, name: str = "gemm", text: str = TEXT) -> FileAnalysis:
    """The analysis of the file, with the one kernel measured."""
    binary = kernel(name, line=1, registers=32)
    return analysed([binary], {name: list(profiled_launches(found))}, text, measured={binary.mangled: found})


def _code(mangled: str, content: bytes) -> KernelCode:
    return KernelCode(mangled, "sm_86", content.ljust(48, b"\0"), None, None, None, ())
