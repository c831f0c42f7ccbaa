"""Findings of real reports: every message is well formed, and its numbers are those of the report."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_lsp.analysis import analyze
from kernel_lsp.build.ncu_reader import ReportReader
from kernel_lsp.build.store import BuildStore
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.kernel import Cubin
from kernel_lsp.findings.finding import Finding
from kernel_lsp.hardware.catalog import by_device_name, by_name
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.ncu.attach import MeasuredKernel, measure
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, measurements
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.raw_report import RawAction
from kernel_lsp.project.toolchain import find_toolchain
from kernel_lsp.session.measuring import profiled_launches
from kernel_lsp.session.profiles import ProfileLoader
from kernel_lsp.source.kernels import scan
from tests.oracle.test_source_markers import reports

MOST_FILES = 3
LONGEST = 120
SOL = {
    "SM": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BuildStore]:
    made = BuildStore(tmp_path / "cache")
    yield made
    made.close()


def percent(share: float) -> str:
    """Whole percent, halves up."""
    return "< 1 %" if 0 < share < 0.005 else f"{int(100 * share + 0.5)} %"


def rows_of(found: KernelMeasurement, line: int) -> list[int]:
    """Rows of the instruction table whose innermost line in the file this is."""
    measured, table = found.measured, found.profile.instructions
    assert table is not None
    pcs = {
        pc
        for pc, chain in zip(measured.pc.tolist(), measured.chains, strict=True)
        if next((at for file, at in chain if file == found.placed.built_path), None) == line
    }
    return [row for row, pc in enumerate(table.pc.tolist()) if pc in pcs]


def hot_line(finding: Finding, found: KernelMeasurement, action: RawAction) -> None:
    share = re.search(r"(\d+ %) of stall samples on this line", finding.message)
    assert share is not None
    total = sum(
        int(value.value or 0)
        for name, value in action.metrics.items()
        if re.fullmatch(r"smsp__pcsamp_warps_issue_stalled_[a-z_]+(?<!_not_issued)", name)
    )
    sampled = found.measured.sampled
    assert sampled is not None
    chains = zip(found.measured.chains, sampled.samples.sum(axis=1).tolist(), strict=True)
    here = sum(
        count
        for chain, count in chains
        if next((at for file, at in chain if file == found.placed.built_path), None) == finding.line
    )
    assert percent(here / total) == share[1]
    assert 10 * here >= total
    issue = action.metrics.get("smsp__issue_active.avg.per_cycle_active")
    assert issue is None or float(issue.value or 0) < 0.8


def uncoalesced(finding: Finding, found: KernelMeasurement, action: RawAction) -> None:
    said = re.search(r"([\d.]+) sectors per request where ([\d.]+) would do; excess (\S+ \S+) of the", finding.message)
    assert said is not None
    table = found.profile.instructions
    assert table is not None
    assert table.global_sectors is not None
    assert table.global_sectors_ideal is not None
    assert table.executed is not None
    rows = rows_of(found, finding.line)
    taken, ideal = int(table.global_sectors[rows].sum()), int(table.global_sectors_ideal[rows].sum())
    requests = sum(int(table.executed[row]) for row in rows if table.global_sectors[row])
    assert (f"{taken / requests:.3g}", f"{ideal / requests:.3g}") == (said[1], said[2])
    everything = next(m.value for name, m in action.metrics.items() if re.search(r"l2_.*_global$", name))
    assert percent((taken - ideal) / float(everything or 0)) == said[3]


def bank_conflicts(finding: Finding, found: KernelMeasurement, action: RawAction) -> None:
    said = re.search(r"([\d.]+)x the wavefronts this line needs; excess (\S+ \S+) of the kernel's", finding.message)
    assert said is not None
    table = found.profile.instructions
    assert table is not None
    assert table.shared_wavefronts is not None
    assert table.shared_wavefronts_ideal is not None
    rows = rows_of(found, finding.line)
    taken, ideal = int(table.shared_wavefronts[rows].sum()), int(table.shared_wavefronts_ideal[rows].sum())
    everything = float(action.metrics["memory_l1_wavefronts_shared"].value or 0)
    assert (f"{taken / ideal:.3g}", percent((taken - ideal) / everything)) == (said[1], said[2])


def tail_wave(finding: Finding, found: KernelMeasurement, action: RawAction) -> None:
    said = re.search(r"([\d.,]+) waves, the last (\S+ \S+) full: (\S+ \S+) of block slots", finding.message)
    assert said is not None
    waves = float(action.metrics["launch__waves_per_multiprocessor"].value or 0)
    assert (f"{waves:,.2f}", percent(waves % 1)) == (said[1], said[2])
    assert percent((1 - waves % 1) / (waves // 1 + 1)) == said[3]
    per_wave = re.search(r"A wave is ([\d,]+) block", finding.advice)
    assert per_wave is not None
    grid = float(action.metrics["launch__grid_size"].value or 0)
    assert grid / int(per_wave[1].replace(",", "")) == pytest.approx(waves)


def low_issue(finding: Finding, found: KernelMeasurement, action: RawAction) -> None:
    issue = float(action.metrics["smsp__issue_active.avg.per_cycle_active"].value or 0)
    assert issue < 0.6
    assert finding.message.partition("schedulers ")[2].startswith(f"issue in {percent(issue)} of cycles")
    if said := re.search(r"a grid of ([\d,]+) blocks? is ([\d.]+) of a wave", finding.message):
        assert int(said[1].replace(",", "")) == action.metrics["launch__grid_size"].value
        assert float(said[2]) == pytest.approx(
            float(action.metrics["launch__waves_per_multiprocessor"].value or 0), rel=0.05
        )
    if said := re.search(r"(\S+ %) of a warp's time is ([a-zA-Z ]+) \(", finding.message):
        prefix = "smsp__average_warps_issue_stalled_"
        states = {
            name.removeprefix(prefix).removesuffix("_per_issue_active.ratio"): float(metric.value or 0)
            for name, metric in action.metrics.items()
            if name.startswith(prefix) and name.endswith("_per_issue_active.ratio") and "not_issued" not in name
        }
        reason = said[2].lower().replace(" ", "_")
        assert percent(states[reason] / sum(states.values())) == said[1]


def occupancy(finding: Finding, found: KernelMeasurement, action: RawAction) -> None:
    said = re.search(r"(\S+ %) achieved of (\S+ %) theoretical", finding.message)
    assert said is not None
    achieved = float(action.metrics["sm__warps_active.avg.pct_of_peak_sustained_active"].value or 0)
    theoretical = float(action.metrics["sm__maximum_warps_per_active_cycle_pct"].value or 0)
    assert (percent(achieved / 100), percent(theoretical / 100)) == (said[1], said[2])
    assert theoretical - achieved > 10


def local_traffic(finding: Finding, found: KernelMeasurement, action: RawAction) -> None:
    said = re.search(r"(\S+ %) of all sectors of the kernel", finding.message)
    assert said is not None
    local, everywhere = (
        float(action.metrics[f"memory_l2_theoretical_sectors_{space}"].value or 0) for space in ("local", "global")
    )
    assert percent(local / (local + everywhere)) == said[1]


def first_reading(finding: Finding, found: KernelMeasurement, action: RawAction) -> None:
    if said := re.search(r"at (\d+ %) of peak, (SM|memory) at (\S+ \S+) \(", finding.message):
        values = {name: float(action.metrics[metric].value or 0) for name, metric in SOL.items()}
        assert percent(max(values.values()) / 100) == said[1]
        assert max(values.values()) >= 80
        assert percent(values[said[2]] / 100) == said[3]
    else:
        issue = float(action.metrics["smsp__issue_active.avg.per_cycle_active"].value or 0)
        assert issue >= 0.8
        assert f"issue in {percent(issue)} of cycles" in finding.message


CHECKS: dict[str, Callable[[Finding, KernelMeasurement, RawAction], None]] = {
    "KL601": hot_line,
    "KL602": uncoalesced,
    "KL603": bank_conflicts,
    "KL604": tail_wave,
    "KL605": low_issue,
    "KL606": occupancy,
    "KL607": local_traffic,
    "KL608": first_reading,
}
# What the reports of the shared folder have to say; further ones may say anything that is right.
KNOWN = {
    "a100_cutlass_lines": {"KL601", "KL605"},
    "a100_join_samples": {"KL604", "KL605", "KL606"},
    "a40_julia_lines": {"KL601", "KL605", "KL607", "KL608"},
    "gh200_kokkos_basic": set(),
    "gtx1660_divergence_basic": {"KL606"},
    "rtx2080ti_basic": {"KL608"},
    "rtx3070_scan_samples": {"KL605"},
    "rtx3090_sort_pipeline": {"KL604", "KL606", "KL608"},
}


def texts(kernel: MeasuredKernel) -> dict[str, str]:
    """The files with most samples, each line with a text of its own: their real text is not there."""
    longest: Counter[str] = Counter()
    samples: Counter[str] = Counter()
    for cost in kernel.lines:
        longest[cost.file] = max(longest[cost.file], cost.line)
        samples[cost.file] += cost.own.samples
    files = [file for file, _ in samples.most_common(MOST_FILES)]
    return {file: "\n".join(f"// {line}" for line in range(1, longest[file] + 2)) for file in files} or {"/k.cu": ""}


@pytest.mark.parametrize("path", reports())
async def test_messages_say_what_was_measured(store: BuildStore, path: Path, toolkit: Path) -> None:
    environment = {**os.environ, "CUDA_HOME": str(toolkit)}
    raw = await ReportReader(store, environment).read(path)
    tools = find_toolchain(settings={}, environment=environment)
    read = await ProfileLoader(store, environment, tools).load(path)
    binaries = {each.mangled: each for cubin in read.report.cubins for each in read_cubin(cubin).kernels}
    codes = set()
    for action, kernel in zip(raw.actions, read.kernels, strict=True):
        mangled = kernel.profile.mangled or ""
        binary = binaries[mangled]
        gpu = by_device_name(kernel.profile.device.name or "") or by_name("RTX 3070 Ti")
        for file, text in texts(kernel).items():
            profile = replace(kernel.profile, sources={file: text})
            alone = MeasuredReport(read.report, (measure(profile, kernel.code),), read.modified_at)
            found = measurements({mangled: binary.name}, lambda _: [], file, text, [alone], {})
            judged = analyze(
                file,
                text,
                Cubin(binary.arch, (binary,), (), "", False),
                GpuChoice(gpu, "report", ""),
                scan(text),
                {mangled: profiled_launches(found[mangled])},
                measured=found,
            )
            for finding in judged.findings:
                if finding.code not in CHECKS:
                    continue
                codes.add(finding.code)
                message = finding.message.removeprefix(f"{binary.short_name}: ")
                assert len(message) <= LONGEST, message
                assert not re.search(r"[{}]|None|nan", finding.message + finding.advice), finding
                assert "(measured" in finding.message
                assert all(e.kind == "measured" and e.source == f"ncu:{path.name}" for e in finding.evidence)
                CHECKS[finding.code](finding, found[mangled], action)
    assert codes == KNOWN.get(path.stem, codes)
