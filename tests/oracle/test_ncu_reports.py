"""Real reports: every number equal to what NVIDIA's ncu_report gives, and to what NVIDIA's own rules say of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_lsp.build.ncu_reader import ReportReader
from kernel_lsp.build.store import BuildStore
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.hardware.catalog import by_device_name, limits_for_arch
from kernel_lsp.model.occupancy import LaunchShape, occupancy
from kernel_lsp.ncu.attach import MeasuredKernel
from kernel_lsp.ncu.counters import read_report_values
from kernel_lsp.ncu.kernel_profile import KernelProfile, NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.metric_names import metric_names
from kernel_lsp.project.toolchain import find_toolchain
from kernel_lsp.session.profiles import ProfileLoader

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "ncu"
ROOT = Path(__file__).parents[2]
INSTALL = "pip install -e '.[ncu,dev]'"
# Reads with NVIDIA's library alone, as its documentation shows.
BARE = """
import json, sys
import ncu_report
found = []
for group in ncu_report.load_report(sys.argv[1]):
    for action in group:
        metrics, columns = {}, {}
        for name in action.metric_names():
            metric = action.metric_by_name(name)
            metrics[name] = metric.value()
            if metric.num_instances() and metric.has_correlation_ids() and metric.correlation_ids().kind() == 6:
                ids = metric.correlation_ids()
                columns[name] = [[ids.value(i), metric.value(i)] for i in range(metric.num_instances())]
        pcs = sorted({pc for name in ("inst_executed", "smsp__pcsamp_sample_count") for pc, _ in columns.get(name, [])})
        lines = {}
        for pc in pcs:
            info = action.source_info(pc)
            lines[pc] = [info.file_name(), info.line()] if info else None
        found.append({"name": action.name(action.NameBase_MANGLED), "metrics": metrics, "columns": columns,
                      "lines": lines, "rules": action.rule_results_as_dicts()})
json.dump(found, sys.stdout, default=str)
"""


def reports() -> list[Any]:
    """The reports of the data folder; one that says why there is none, where it is missing."""
    found = sorted(DATA.glob("*.ncu-rep"))
    return [pytest.param(path, id=path.stem) for path in found] or [
        pytest.param(
            DATA, id="no data", marks=pytest.mark.skip(reason=f"left out: there are no measured reports at {DATA}")
        )
    ]


@cache
def bare(path: Path) -> Any:
    """What NVIDIA's library says, read by a script of a few lines in a process of its own."""
    import json

    ended = subprocess.run([sys.executable, "-c", BARE, str(path)], capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.fail(f"ncu-report is not usable ({ended.stderr.strip().splitlines()[-1]}); {INSTALL}")
    return json.loads(ended.stdout)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BuildStore]:
    made = BuildStore(tmp_path / "cache")
    yield made
    made.close()


@pytest.fixture
def reader(store: BuildStore) -> ReportReader:
    return ReportReader(store, dict(os.environ))


async def read(reader: ReportReader, path: Path) -> NcuReport:
    return read_report_values(await reader.read(path))


async def load(store: BuildStore, path: Path, toolkit: Path) -> MeasuredReport:
    environment = {**os.environ, "CUDA_HOME": str(toolkit)}
    tools = find_toolchain(settings={}, environment=environment)
    assert tools.nvdisasm is not None
    return await ProfileLoader(store, environment, tools).load(path)


@pytest.mark.parametrize("path", reports())
async def test_every_value_is_what_the_library_says(reader: ReportReader, path: Path) -> None:
    raw = await reader.read(path)
    assert [action.mangled for action in raw.actions] == [each["name"] for each in bare(path)]
    for action, said in zip(raw.actions, bare(path), strict=True):
        assert len(action.metrics) > 60
        for name, metric in action.metrics.items():
            assert metric.value == said["metrics"][name], name
        wanted = {name for fact in metric_names().columns.values() for name in fact.names}
        assert {name for name in action.columns if name in wanted} == {
            name for name in said["columns"] if name in wanted
        }
        for name, column in action.columns.items():
            assert dict(zip(column.pcs.tolist(), column.values.tolist(), strict=True)) == dict(said["columns"][name])
        lines = {
            int(pc): [action.lines.files[file], int(line)]
            for pc, file, line in zip(action.lines.pcs, action.lines.file, action.lines.line, strict=True)
        }
        for pc, place in said["lines"].items():
            assert lines.get(int(pc)) == place


@pytest.mark.parametrize("path", reports())
async def test_totals_and_samples_add_up(reader: ReportReader, path: Path) -> None:
    for kernel, said in zip((await read(reader, path)).kernels, bare(path), strict=True):
        grid, block = kernel.launch.grid, kernel.launch.block
        assert grid is not None
        assert block is not None
        assert kernel.launch.grid_blocks == said["metrics"]["launch__grid_size"]
        assert kernel.launch.threads == said["metrics"]["launch__block_size"]
        assert kernel.duration_ns == pytest.approx(said["metrics"]["gpu__time_duration.sum"])
        table = kernel.instructions
        if table is None:
            assert kernel.samples is None
            assert {missing.fact for missing in kernel.missing} >= {"samples", "executed"}
            continue
        assert table.executed is not None
        assert int(table.executed.sum()) == said["metrics"]["inst_executed"]
        assert kernel.samples is not None
        assert int(table.samples.sum()) == kernel.samples.total
        if "smsp__pcsamp_sample_count" in said["metrics"]:
            assert kernel.samples.total == said["metrics"]["smsp__pcsamp_sample_count"]
        assert set(table.pc[table.executed > 0] % 16) == {0}
        assert table.pc.min() == 0


@pytest.mark.parametrize("path", reports())
async def test_occupancy_and_waves_are_ncus_own(reader: ReportReader, path: Path) -> None:
    """The model's limits, theoretical occupancy and waves from launch values alone, against ncu's."""
    for kernel in (await read(reader, path)).kernels:
        launch, device = kernel.launch, kernel.device
        assert device.arch is not None
        limits = limits_for_arch(device.arch)
        assert launch.shared_config_bytes is not None
        assert (limits.max_warps, limits.max_blocks, limits.shared_bytes) == (
            device.max_warps,
            device.max_blocks,
            device.max_shared_bytes,
        )
        # ncu counts shared memory against the run's own carveout from 2022.1 on, against the largest before.
        config = launch.shared_config_bytes if kernel_year(path) >= 2022 else limits.shared_bytes
        found = occupancy(
            replace(limits, shared_bytes=config, shared_carveouts_kib=()),
            LaunchShape(
                threads_per_block=launch.threads or 0,
                registers_per_thread=launch.registers or 0,
                static_shared_bytes=launch.static_shared_bytes or 0,
                dynamic_shared_bytes=launch.dynamic_shared_bytes or 0,
            ),
        )
        said = kernel.occupancy
        assert (found.limit_registers, found.limit_warps, found.limit_blocks) == (
            said.limit_registers,
            said.limit_warps,
            said.limit_blocks,
        )
        allocates = bool(launch.static_shared_bytes or launch.dynamic_shared_bytes or launch.driver_shared_bytes)
        if allocates:
            assert found.limit_shared == said.limit_shared
        assert found.theoretical == pytest.approx(said.theoretical)
        assert found.blocks_per_sm == said.blocks_per_sm
        assert launch.grid_blocks is not None
        assert device.sm_count is not None
        waves = launch.grid_blocks / (device.sm_count * found.blocks_per_sm)
        assert launch.waves_per_sm == pytest.approx(waves)


def kernel_year(path: Path) -> int:
    """The year of the ncu that wrote the report."""
    found = re.search(rb"(20\d\d)\.\d+\.\d+\.\d+ \(build", path.read_bytes())
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("path", reports())
async def test_speed_of_light_is_the_largest_of_its_parts(reader: ReportReader, path: Path) -> None:
    for kernel in (await read(reader, path)).kernels:
        for value, parts in ((kernel.sol.sm, kernel.sol.sm_parts), (kernel.sol.memory, kernel.sol.memory_parts)):
            assert value is not None
            assert parts[0].pct == pytest.approx(value, rel=1e-3)
            assert len(parts) >= 5


@pytest.mark.parametrize("path", reports())
async def test_what_nvidias_rules_print(reader: ReportReader, path: Path) -> None:
    """The percentages and counts inside the rules' messages, recomputed from the typed values."""
    checked = 0
    for kernel, said in zip((await read(reader, path)).kernels, bare(path), strict=True):
        assert len(kernel.rules) == len(said["rules"])
        for rule in said["rules"]:
            message = rule["rule_message"]["message"]
            check = RULES.get(rule["rule_identifier"])
            if check is not None and message:
                checked += check(kernel, message)
            if "speedup_estimation" in rule:
                assert any(
                    each.rule == rule["rule_identifier"] and each.speedup_pct == rule["speedup_estimation"]["speedup"]
                    for each in kernel.rules
                )
    # The rules of these two name no number that is checked here.
    assert checked or path.stem in {"a100_cutlass_lines", "rtx2080ti_basic"}, "no rule of this report was checked"


def _roofline_rule(kernel: KernelProfile, message: str) -> int:
    points = {point.precision: point for point in kernel.roofline}
    count = 0
    for words, precision in (("fp32", "fp32"), ("fp64", "fp64")):
        found = re.search(rf"(close to )?(\d+)% of (?:this device's|its) {words} peak", message)
        assert found is not None
        point = points[precision]
        assert point.peak_flop_per_s is not None
        share = 100 * point.flop_per_s / point.peak_flop_per_s
        assert round(share) == int(found[2])
        if found[1]:
            assert 0 < share < 1
        count += 1
    return count


def _occupancy_rule(kernel: KernelProfile, message: str) -> int:
    count = 0
    if found := re.search(r"theoretical \(([\d.]+)%\) and measured achieved occupancy \(([\d.]+)%\)", message):
        assert f"{100 * (kernel.occupancy.theoretical or 0):.1f}" == found[1]
        assert f"{100 * (kernel.occupancy.achieved or 0):.1f}" == found[2]
        count += 2
    if found := re.search(r"theoretical occupancy \(([\d.]+)%\) is limited by (.*?)\.", message):
        assert f"{100 * (kernel.occupancy.theoretical or 0):.1f}" == found[1]
        words = {"registers": "registers", "shared": "shared memory", "blocks": "number of blocks", "warps": "warps"}
        assert all(words[limiter] in message for limiter in kernel.occupancy.limiters)
        count += 2
    return count


def _issue_rule(kernel: KernelProfile, message: str) -> int:
    found = re.search(r"only issues an instruction every ([\d.]+) cycles", message)
    if not found:
        return 0
    assert f"{1 / (kernel.scheduler.issue_active or 0):.1f}" == found[1]
    active = re.search(r"an average of ([\d.]+) active warps per scheduler, but only an average of ([\d.]+)", message)
    assert active is not None
    assert f"{kernel.scheduler.active_warps:.2f}" == active[1]
    assert f"{kernel.scheduler.eligible_warps:.2f}" == active[2]
    return 3


def _stall_rule(kernel: KernelProfile, message: str) -> int:
    found = re.search(
        r"spends ([\d.]+) cycles being stalled.*about ([\d.]+)% of the total average of ([\d.]+)", message
    )
    if not found:
        return 0
    cycles = float(found[1])
    top = max(value for reason, value in kernel.scheduler.states.items() if reason != "not_selected")
    assert f"{top:.1f}" == f"{cycles:.1f}"
    latency = kernel.scheduler.cycles_per_instruction
    assert latency is not None
    assert f"{latency:.1f}" == found[3]
    assert f"{100 * top / latency:.1f}" == found[2]
    return 3


def _coalescing_rule(kernel: KernelProfile, message: str) -> int:
    table = kernel.instructions
    assert table is not None
    assert table.global_sectors is not None
    assert table.global_sectors_ideal is not None
    if found := re.search(r"expected (\d+) sectors, got (\d+) .* at PC @source:([0-9a-f]+):", message):
        row = int(np.searchsorted(table.pc, int(found[3], 16) - table.base))
        assert int(table.global_sectors_ideal[row]) == int(found[1])
        assert int(table.global_sectors[row]) == int(found[2])
        return 2
    if found := re.search(r"a total of (\d+) excessive sectors \((\d+)% of the total (\d+) sectors\)", message):
        assert int(table.global_sectors.sum() - table.global_sectors_ideal.sum()) == int(found[1])
        assert int(table.global_sectors.sum()) == int(found[3])
        return 2
    return 0


RULES = {
    "SOLFPRoofline": _roofline_rule,
    "Occupancy": _occupancy_rule,
    "TheoreticalOccupancy": _occupancy_rule,
    "AchievedOccupancy": _occupancy_rule,
    "IssueSlotUtilization": _issue_rule,
    "CPIStall": _stall_rule,
    "CPIStallBarrier": _stall_rule,
    "UncoalescedGlobalAccess": _coalescing_rule,
}


@pytest.mark.parametrize("path", reports())
async def test_the_report_alone_gives_binaries(reader: ReportReader, path: Path) -> None:
    report = await read(reader, path)
    decoded = [read_cubin(cubin) for cubin in report.cubins]
    for kernel in report.kernels:
        found = [each for cubin in decoded for each in cubin.kernels if each.mangled == kernel.mangled]
        assert found, kernel.mangled
        assert all(each.arch == kernel.device.arch for each in found)
        # The driver allots at least 16 registers: three of these reports say 16 for kernels of 10 and 15.
        assert kernel.launch.registers in {max(16, each.resources.registers) for each in found}
        assert kernel.launch.static_shared_bytes in {each.resources.static_shared_bytes for each in found}
        assert kernel.device.name is not None
        board = by_device_name(kernel.device.name)
        assert board is None or board.arch == kernel.device.arch


@pytest.mark.parametrize("path", reports())
async def test_lines_hold_all_samples(store: BuildStore, path: Path, toolkit: Path) -> None:
    for measured in (await load(store, path, toolkit)).kernels:
        kernel = measured.profile
        if kernel.samples is None:
            continue
        assert measured.sample_count == kernel.samples.total
        placed = sum(cost.own.samples for cost in measured.lines)
        nowhere = measured.nowhere.samples if measured.nowhere else 0
        assert placed + nowhere + sum(measured.outside.values()) == kernel.samples.total
        for cost in measured.lines:
            assert cost.within.samples >= cost.own.samples
        _drain_is_on_exits(measured)
        for cost in measured.lines:
            for wait in cost.waits_for:
                assert wait.instruction
                assert wait.producer


def _drain_is_on_exits(measured: MeasuredKernel) -> None:
    sampled, code = measured.sampled, measured.code
    assert sampled is not None
    assert code is not None
    assert code.sass is not None
    drain = sampled.samples[:, sampled.reasons.index("drain")]
    for pc in sampled.pc[drain > 0].tolist():
        assert "EXIT" in code.text(pc), "a warp drains its stores at an EXIT"


@pytest.mark.parametrize("path", [p for p in reports() if "lines" in str(p.id)] or reports()[:1])
async def test_innermost_lines_are_mostly_ncus(store: BuildStore, path: Path, toolkit: Path) -> None:
    """ncu goes through PTX and differs from the cubin's own table at some instructions (the table is right)."""
    for measured in (await load(store, path, toolkit)).kernels:
        table = measured.profile.instructions
        assert table is not None
        said = {
            int(pc) - table.base: (Path(table.lines.files[file]).name, int(line))
            for pc, file, line in zip(table.lines.pcs, table.lines.file, table.lines.line, strict=True)
        }
        ours = {
            pc: (Path(chain[0][0]).name, chain[0][1])
            for pc, chain in zip(measured.pc.tolist(), measured.chains, strict=True)
            if chain
        }
        same = sum(ours[pc] == said.get(pc) for pc in ours)
        assert same >= 0.8 * len(said)


@pytest.mark.parametrize("path", reports())
async def test_packed_reports_read_the_same(reader: ReportReader, path: Path, tmp_path: Path) -> None:
    zstd = pytest.importorskip("backports.zstd") if sys.version_info < (3, 14) else __import__("compression.zstd").zstd
    packed = tmp_path / "report.ncu-repz"
    packed.write_bytes(zstd.compress(path.read_bytes()))
    one, other = await reader.read(path), await reader.read(packed)
    assert [action.metrics for action in one.actions] == [action.metrics for action in other.actions]
    assert one.cubins == other.cubins
    renamed = tmp_path / "renamed.ncu-rep"
    shutil.copyfile(packed, renamed)
    assert (await reader.read(renamed)).digest == other.digest
