"""Reports of Nsight Compute: hovers while the server reads them, and reading them against NVIDIA's library alone."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.client import KERNEL_LSP, MeasuringClient
from benchmarks.row import SMALL_KERNEL, Row, environment, hover_row
from kernel_lsp.build.ncu_reader import ReportReader
from kernel_lsp.build.store import BuildStore
from kernel_lsp.ncu.counters import read_report_values
from kernel_lsp.project.toolchain import find_toolchain
from kernel_lsp.session.profiles import ProfileLoader
from tests.oracle.test_ncu_reports import BARE, DATA

BARE_WITH_SASS = BARE.replace(
    "        found.append(", "        text = {pc: action.sass_by_pc(pc) for pc in pcs}\n        found.append(", 1
)
LEFT_OUT = f"reports of Nsight Compute: left out, there are none at {DATA}"


def reports() -> list[Path]:
    """The measured reports, the largest first; none where they are not at hand."""
    return sorted(DATA.glob("*.ncu-rep"), key=lambda path: -path.stat().st_size)


async def hover_during_load(folder: Path, n: int) -> Row:
    """Hovers on a file while the server reads all reports of its workspace, again and again by a server each time."""
    root = folder / "measured"
    root.mkdir()
    path = root / "hovered.cu"
    path.write_text(SMALL_KERNEL.format(unique="measured"))
    for report in reports():
        shutil.copy(report, root / report.name)
    size_mb = sum(report.stat().st_size for report in reports()) / 1e6
    took: list[float] = []
    while len(took) < n:
        client = MeasuringClient()
        await client.start(KERNEL_LSP, root, environment(folder), progress=True)
        began = time.perf_counter()
        client.open(path)
        await client.next_diagnostics(path, began)
        await client.hover(path, 1, 17)  # the first loads what hovers need
        done = asyncio.create_task(client.progress_ended("Reading reports"))
        took += await client.hovers_until(done, path)
        await client.stop()
    return hover_row("hover while reports are read", took, f"{len(reports())} reports, {size_mb:.1f} MB")


async def reading(folder: Path, n: int) -> list[Row]:
    """Each report to typed values, and to measured lines with what waits are for, in processor time.

    Against scripts that read the same with NVIDIA's library: its counters, lines and rules; the same with the SASS.
    """
    environment_here = dict(os.environ)
    tools = find_toolchain(settings={}, environment=environment_here)
    found: dict[str, dict[str, float]] = {"counters": {}, "instructions too": {}}
    for report in reports():
        took: dict[str, list[float]] = {}
        for i in range(n):
            store = BuildStore(folder / f"reading{i}")  # nothing is kept from the turn before
            began = _processor_s()
            read_report_values(await ReportReader(store, environment_here).read(report))
            took.setdefault("counters", []).append(_processor_s() - began)
            began = _processor_s()
            await ProfileLoader(store, environment_here, tools).load(report)
            took.setdefault("instructions too", []).append(_processor_s() - began)
            store.close()
            for name, script in (("bare counters", BARE), ("bare instructions too", BARE_WITH_SASS)):
                began = _processor_s()
                command = [sys.executable, "-c", script, str(report)]
                await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
                took.setdefault(name, []).append(_processor_s() - began)
        for name, ratios in found.items():
            ratios[report.stem] = statistics.median(took[name]) / statistics.median(took[f"bare {name}"])
    rows = []
    for name, ratios in found.items():
        worst = max(ratios, key=lambda stem: ratios[stem])
        rows.append(
            Row(
                f"reading a report, {name}",
                f"median {statistics.median(ratios.values()):.2f}x, worst {ratios[worst]:.2f}x",
                f"ncu-report alone, processor time; worst: {worst}",
                "1.30x",
                ratios[worst] <= 1.30,
            )
        )
    return rows


def _processor_s() -> float:
    """Processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
