"""KL601 on kernels that are really built: what a line waits for is found in the machine code."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from kernel_lsp.analysis import FileAnalysis, analyze
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.findings.measured import loads_are_hidden
from kernel_lsp.hardware.catalog import by_name
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.kernel_code import KernelCode
from kernel_lsp.ncu.kernel_measurement import measurements
from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.placement import BuiltKernel
from kernel_lsp.ncu.raw_report import Metric
from kernel_lsp.source.kernels import scan
from tests.unit.ncu.conftest import Build, action

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
ISSUE = "smsp__issue_active.avg.per_cycle_active"
BASE = 0x7F5A3C000000
# The multiply-add of line 7 waits for the gather of line 6, whose address waits for the index of line 5.
GATHER = """__global__ void hot(const float* __restrict__ x, const int* __restrict__ idx,
                    float* __restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int j = idx[i];
  float v = x[j];
  y[i] = v * v + 1.0f;
}
"""


def analysed(
    source: Path, cubin: bytes, code: KernelCode, columns: dict[str, dict[int, float]], issue: float = 0.2
) -> FileAnalysis:
    """The file with a report of its own code."""
    text = source.read_text("utf-8")
    places = {name: {BASE + pc: value for pc, value in values.items()} for name, values in columns.items()}
    cc = "device__attribute_compute_capability_"
    facts = {ISSUE: Metric(issue, ""), f"{cc}major": Metric(9, ""), f"{cc}minor": Metric(0, "")}
    profile = read_kernel_profile(action(code.mangled, BASE, places, metrics=facts))
    report = NcuReport("hot.ncu-rep", "digest", None, (profile,), (), ())
    read = MeasuredReport(report, (measure(profile, code),), datetime.now(timezone.utc))
    path = str(source)
    found = measurements({code.mangled: "hot"}, lambda _: [BuiltKernel(code, text)], path, text, [read], {})
    gpu = GpuChoice(by_name("H100 SXM"), "setting", "as chosen")
    return analyze(path, text, read_cubin(cubin), gpu, scan(text), {}, measured=found)


def addresses(code: KernelCode, opcode: str) -> list[int]:
    return [pc for pc in range(0, code.instruction_bytes, 16) if opcode in code.text(pc)]


def test_the_load_that_a_line_waits_for_is_named(
    build: Build, code_of: Callable[[bytes, str], KernelCode], tmp_path: Path
) -> None:
    source = tmp_path / "hot.cu"
    source.write_text(GATHER, "utf-8")
    cubin = build(source, "sm_90")
    code = code_of(cubin, "_Z3hotPKfPKiPfi")
    (fma,) = addresses(code, "FFMA")
    index, gather = addresses(code, "LDG")
    (store,) = addresses(code, "STG")
    (address,) = (pc for pc in addresses(code, "IMAD.WIDE") if index < pc < gather)
    # 2,160 of 3,085 samples are on line 7 (70 %), 900 on line 6 (29 %).
    columns = {
        SAMPLES + "long_scoreboard": {fma: 2100.0, address: 900.0},
        SAMPLES + "lg_throttle": {store: 60.0},
        SAMPLES + "wait": {0: 25.0},
    }
    file = analysed(source, cubin, code, columns)
    found = {f.line: f for f in file.findings if f.code == "KL601"}
    assert {line: f.message for line, f in found.items()} == {
        7: "70 % of stall samples on this line: long scoreboard, waiting for the load on l.6 (measured)",
        6: "29 % of stall samples on this line: long scoreboard, waiting for the load on l.5 (measured)",
    }
    assert [(r.file, r.line, r.message) for r in found[7].related] == [
        (str(source), 6, f"what l.7 waits for: {code.text(gather)}")
    ]
    words = f"{found[7].message} {found[7].advice}".lower()
    assert "fma" not in words
    assert "multiply" not in words


def test_spills_that_the_launch_does_not_reach_are_only_a_hint(
    build: Build, code_of: Callable[[bytes, str], KernelCode], tmp_path: Path
) -> None:
    source = tmp_path / "local.cu"
    source.write_text(
        "__global__ void local(float* p, int k) {\n  float a[32] = {};\n"
        "  for (int i = 0; i < k; i++) a[(i * 7 + k) & 31] += p[i];\n  p[0] = a[k & 31];\n}\n",
        "utf-8",
    )
    cubin = build(source, "sm_90")
    code = code_of(cubin, "_Z5localPfi")
    local = "memory_l2_theoretical_sectors_local"
    touched = analysed(source, cubin, code, {local: {0: 0.0, 16: 8.0}})
    assert {f.code: f.severity for f in touched.findings}["KL204"] == "warning"
    idle = analysed(source, cubin, code, {local: {0: 0.0, 16: 0.0}})
    (array,) = (f for f in idle.findings if f.code == "KL204")
    assert (array.severity, "did not touch local memory" in array.advice) == ("hint", True)


def test_cp_async_is_not_advised_against_what_was_measured(
    build: Build, code_of: Callable[[bytes, str], KernelCode], tmp_path: Path
) -> None:
    """Where the schedulers issue well, loads are hidden: KL402's estimate by the ratio yields to that."""
    source = tmp_path / "hot.cu"
    source.write_text(GATHER, "utf-8")
    cubin = build(source, "sm_90")
    code = code_of(cubin, "_Z3hotPKfPKiPfi")
    columns = {SAMPLES + "wait": {0: 25.0}}
    for issue, hidden in ((0.9, True), (0.2, False)):
        (kernel,) = analysed(source, cubin, code, columns, issue).kernels
        assert loads_are_hidden(kernel) is hidden
