"""`examples/transpose.cu` as if Nsight Compute had measured it on an RTX 3070 Ti: 8192 x 8192 floats, base clocks.

The instructions are those of the real build; the counters are worked out from what they do:
- 65,536 blocks of 8 warps execute every instruction once: 524,288 executions, 32 threads each.
- each load and store of global memory is coalesced: 4 sectors of 32 B for 32 threads of 4 B.
- each shared load of the first kernel takes 32 wavefronts (a column of the tile lies in one bank); all others take 1.
- DRAM: 2 x 268 MB in 1.24 ms are 433 GB/s, in 1.02 ms 526 GB/s, of 608 GB/s: 71 % and 87 %.
- L1: 4 x 32 wavefronts x 524,288 on 48 SMs are 1.40 M cycles, 75 % of 1.24 ms at 1.5 GHz; with all others 82 %.
- 43 instructions x 524,288 on 192 schedulers: 0.117 M issues in 1.86 M cycles (6.3 %) and 1.53 M (7.7 %).
A warp's cycles between two instructions, by reason, are its active warps over the issue rate; samples follow them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.fake_report import FakeLaunch, write_report

BASE = 0x7F3A_0000_0000
EXECUTED = 65_536 * 8
SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
CONFLICTS = "_Z19transpose_conflictsPfPKfi"
PADDED = "_Z16transpose_paddedPfPKfi"
GPU = "RTX 3070 Ti"


@dataclass(frozen=True)
class Kernel:
    """What differs between the kernels. `cycles`: between two instructions of a warp, by reason."""

    duration_us: float
    sm: float
    memory: float
    l1tex: float
    l2: float
    dram: float
    issue: float
    eligible: float
    active: float
    wavefronts: int  # of one shared load
    cycles: Mapping[str, float]


KERNELS = {
    CONFLICTS: Kernel(
        *(1240.0, 9.8, 82.3, 82.3, 46.0, 71.2, 0.063, 0.07, 11.15, 32),
        {"short_scoreboard": 83, "long_scoreboard": 42, "mio_throttle": 33, "barrier": 13, "wait": 3, "selected": 1},
    ),
    PADDED: Kernel(
        *(1020.0, 9.1, 86.5, 18.4, 51.0, 86.5, 0.077, 0.08, 10.96, 1),
        {"long_scoreboard": 112, "barrier": 17, "lg_throttle": 8, "short_scoreboard": 3, "wait": 3, "selected": 1},
    ),
}
_COMMON: dict[str, tuple[float | str, str]] = {
    **{f"launch__block_dim_{axis}": (size, "block") for axis, size in zip("xyz", (32, 8, 1), strict=True)},
    **{f"launch__grid_dim_{axis}": (size, "") for axis, size in zip("xyz", (256, 256, 1), strict=True)},
    "launch__grid_size": (65536, ""),
    "launch__block_size": (256, ""),
    "launch__registers_per_thread": (26, "register/thread"),
    "launch__shared_mem_per_block_dynamic": (0, "byte/block"),
    "launch__shared_mem_per_block_driver": (1024, "byte/block"),
    "launch__shared_mem_config_size": (32768, "byte"),
    "launch__waves_per_multiprocessor": (65536 / (48 * 6), ""),
    "launch__occupancy_limit_registers": (8, "block"),
    "launch__occupancy_limit_shared_mem": (6, "block"),
    "launch__occupancy_limit_warps": (6, "block"),
    "launch__occupancy_limit_blocks": (16, "block"),
    "sm__maximum_warps_per_active_cycle_pct": (100.0, "%"),
    "gpc__cycles_elapsed.avg.per_second": (1.5e9, "hz"),
    "dram__cycles_elapsed.avg.per_second": (9.5e9, "hz"),
    "smsp__cycles_elapsed.avg.per_second": (1.5e9, "hz"),
    "sm__cycles_elapsed.avg.per_second": (1.5e9, "hz"),
    "dram__bytes.sum.peak_sustained": (64, "byte/cycle"),
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": (48 * 128, "inst/cycle"),
    **{
        f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed": (0, "inst/cycle")
        for op in ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma")
    },
    "device__attribute_display_name": (f"NVIDIA GeForce {GPU}", ""),
    "device__attribute_compute_capability_major": (8, ""),
    "device__attribute_compute_capability_minor": (6, ""),
    "device__attribute_multiprocessor_count": (48, ""),
    "device__attribute_max_warps_per_multiprocessor": (48, ""),
}


class TransposeRuns:
    """Runs of both kernels as `source`, a copy of the example, is built now."""

    def __init__(self, source: Path, nvcc: str) -> None:
        self._source = source
        command = [sys.executable, "-m", "kernel_lsp", "sass", str(source), "--gpu", GPU, "--format", "json"]
        listed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
        self._kernels = json.loads(listed)["kernels"]
        # Built as the server does by itself: the code is the same, byte for byte.
        argv = [nvcc, "-cubin", "-lineinfo", "-std=c++17", "-O3", "-arch=sm_86", source.name, "-o", "/dev/stdout"]
        built = subprocess.run(argv, cwd=source.parent, capture_output=True, timeout=120, check=True)
        self._cubin = built.stdout

    def write(self, path: Path, *, speed: float = 1.0, age_s: float = 0.0) -> Path:
        """Write a run as a report of `age_s` ago; `speed` 2 is half the time."""
        launches = [_launch(KERNELS[each["mangled"]], each, self._source, speed) for each in self._kernels]
        write_report(path, launches, self._cubin)
        os.utime(path, (time.time() - age_s, time.time() - age_s))
        return path


def _launch(of: Kernel, kernel: Mapping[str, Any], source: Path, speed: float) -> FakeLaunch:
    columns: dict[str, dict[int, int]] = {}
    lines = {}
    for row in kernel["instructions"]:
        lines[BASE + row["pc"]] = (row["file"], row["line"])
        for name, count in _counters(row, of):
            columns.setdefault(name, {})[BASE + row["pc"]] = count
    for reason, cycles in of.cycles.items():
        columns[SAMPLES + reason] = _placed(reason, round(50 * cycles), kernel["instructions"])
    metrics = dict(_COMMON)
    metrics["gpu__time_duration.sum"] = (of.duration_us * 1000 / speed, "ns")
    for name, pct in (
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", of.sm),
        ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", of.memory),
        ("l1tex__throughput.avg.pct_of_peak_sustained_active", of.l1tex),
        ("lts__throughput.avg.pct_of_peak_sustained_elapsed", of.l2),
        ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", of.dram),
        ("sm__warps_active.avg.pct_of_peak_sustained_active", 100 * of.active / 12),
    ):
        metrics[name] = (pct, "%")
    parts = {
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": of.l1tex,
        "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": of.l2,
        "dram__cycles_active.avg.pct_of_peak_sustained_elapsed": of.dram,
    }
    metrics["breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"] = (",".join(parts), "")
    metrics.update({name: (pct, "%") for name, pct in parts.items()})
    metrics["launch__shared_mem_per_block_static"] = (4096 if of.wavefronts > 1 else 4224, "byte/block")
    metrics["sm__warps_active.avg.per_cycle_active"] = (4 * of.active, "warp")
    metrics["smsp__issue_active.avg.per_cycle_active"] = (of.issue, "")
    metrics["smsp__warps_eligible.avg.per_cycle_active"] = (of.eligible, "warp")
    metrics["smsp__warps_active.avg.per_cycle_active"] = (of.active, "warp")
    metrics["smsp__average_warp_latency_per_inst_issued.ratio"] = (sum(of.cycles.values()), "")
    for reason, cycles in of.cycles.items():
        metrics[f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"] = (cycles, "")
    for pipe, pct in (("lsu", of.sm), ("alu", 1.6), ("fma", 1.4)):
        metrics[f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active"] = (pct, "%")
    metrics["dram__bytes.sum.per_second"] = (2 * 8192 * 8192 * 4 / of.duration_us * 1e6 * speed, "byte/second")
    metrics["gpc__cycles_elapsed.max"] = (of.duration_us * 1500 / speed, "cycle")
    metrics["memory_l2_theoretical_sectors_local"] = (0, "")
    metrics["smsp__branch_targets_threads_divergent"] = (0, "")
    text = source.read_text(encoding="utf-8")
    return FakeLaunch(kernel["mangled"], kernel["name"], BASE, metrics, columns, lines, {str(source): text})


def _counters(row: Mapping[str, Any], of: Kernel) -> Iterator[tuple[str, int]]:
    yield "inst_executed", EXECUTED
    yield "thread_inst_executed", EXECUTED * 32
    yield "thread_inst_executed_true", EXECUTED * 32
    opcode = row["opcode"].partition(".")[0]
    if opcode in ("LDG", "STG", "LDS", "STS"):
        yield "memory_type", 4 if opcode in ("LDG", "STG") else 16
        yield "memory_access_type", 2 if opcode in ("LDG", "LDS") else 4
        yield "memory_access_size_type", 32
    if opcode in ("LDG", "STG"):
        yield "memory_l1_tag_requests_global", EXECUTED
        yield "memory_l2_theoretical_sectors_global", EXECUTED * 4
        yield "memory_l2_theoretical_sectors_global_ideal", EXECUTED * 4
    if opcode in ("LDS", "STS"):
        yield "memory_l1_wavefronts_shared", EXECUTED * (of.wavefronts if opcode == "LDS" else 1)
        yield "memory_l1_wavefronts_shared_ideal", EXECUTED


def _placed(reason: str, count: int, rows: list[dict[str, Any]]) -> dict[int, int]:
    """Samples of a reason where the sampler puts them; most on the first of the instructions that wait alike."""
    pcs = {
        opcode: [BASE + row["pc"] for row in rows if row["opcode"].partition(".")[0] == opcode]
        for opcode in ("LDG", "STS", "LDS", "STG", "BAR")
    }
    where = {
        "long_scoreboard": pcs["STS"],  # for what LDG brings
        "short_scoreboard": pcs["STG"],  # for what LDS brings
        "mio_throttle": pcs["LDS"][1:],
        "lg_throttle": pcs["LDG"][1:],
        "barrier": [pcs["BAR"][0] + 16],  # noted one instruction late
    }.get(reason, [BASE + row["pc"] for row in rows])
    shares = [4 if place == 0 else 1 for place in range(len(where))]
    if reason in ("wait", "selected"):
        shares = [1] * len(where)
    each = [count * share // sum(shares) for share in shares]
    each[0] += count - sum(each)
    return {pc: number for pc, number in zip(where, each, strict=True) if number}
