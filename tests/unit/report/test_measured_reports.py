"""Every text of every launch of real reports: it forms, holds no hole, and its numbers add up."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.analysis import FileAnalysis, analyze
from kernel_lsp.build.store import BuildStore
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.hardware.catalog import boards
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.ncu.attach import MeasuredKernel
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, LaunchRef, measurements
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.placement import BuiltKernel
from kernel_lsp.project.toolchain import find_toolchain
from kernel_lsp.report.document import build_report
from kernel_lsp.report.hints import line_hints
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.lens import measured_text
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.report.markdown import report_markdown
from kernel_lsp.report.measured_compare import compare_markdown
from kernel_lsp.report.profile_text import report_lines
from kernel_lsp.report.section import BuildFacts
from kernel_lsp.report.values import kernel_value
from kernel_lsp.session.measuring import profiled_launches
from kernel_lsp.session.profiles import ProfileLoader
from kernel_lsp.source.kernels import scan

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "ncu"
TEXT = "\n" * 3000  # the sources are not there: lines are those of the report's own cubin
HOLES = re.compile(r"\bNone\b(?! from what)|\bnan\b|\binf\b")
BARS = re.compile(r"```text\n((?:[A-Za-z][\w /]*?  +(?:< 1|\d+) %(?:  #+)?\n)+)```")


def reports() -> list[Any]:
    """The reports of the data folder; one that says why there is none, where it is missing."""
    found = sorted(DATA.glob("*.ncu-rep"))
    return [pytest.param(path, id=path.stem) for path in found] or [
        pytest.param(
            DATA, id="no data", marks=pytest.mark.skip(reason=f"left out: there are no measured reports at {DATA}")
        )
    ]


async def load(store: BuildStore, path: Path, toolkit: Path) -> MeasuredReport:
    environment = {**os.environ, "CUDA_HOME": str(toolkit)}
    return await ProfileLoader(store, environment, find_toolchain(settings={}, environment=environment)).load(path)


def measured_files(report: MeasuredReport) -> list[tuple[FileAnalysis, KernelMeasurement]]:
    """Each launch on the file of its hottest line, as if the report's own cubin was what is built now."""
    found = []
    for launch in report.kernels:
        mangled = launch.profile.mangled
        assert mangled is not None
        cubins = [read_cubin(data) for data in report.report.cubins]
        cubin, kernel = next((c, k) for c in cubins for k in c.kernels if k.mangled == mangled)
        path = _file(launch, kernel.definition.file if kernel.definition else "/none.cu")
        chosen = {mangled: LaunchRef(report.report.path, launch.profile.index)}
        measured = measurements({mangled: kernel.name}, _builds(launch), path, TEXT, [report], chosen)
        only = replace(cubin, kernels=(kernel,))
        board = next(board for board in boards() if board.arch == cubin.arch)
        launches = {mangled: profiled_launches(measured[mangled])}
        file = analyze(
            path, TEXT, only, GpuChoice(board, "report", "as profiled"), scan(""), launches, measured=measured
        )
        found.append((file, measured[mangled]))
    return found


def _builds(launch: MeasuredKernel) -> Callable[[str], list[BuiltKernel]]:
    return lambda _: [BuiltKernel(launch.code, TEXT)] if launch.code else []


def _file(launch: MeasuredKernel, otherwise: str) -> str:
    return launch.lines[0].file if launch.lines else otherwise


@pytest.mark.parametrize("path", reports())
async def test_every_text_forms(path: Path, toolkit: Path, tmp_path: Path) -> None:
    store = BuildStore(tmp_path / "cache")
    try:
        report = await load(store, path, toolkit)
    finally:
        store.close()
    files = measured_files(report)
    assert len(files) == len(report.kernels)
    for file, found in files:
        (kernel,) = file.kernels
        now = found.modified_at + timedelta(hours=2)
        texts = [kernel_hover(kernel, file, now=now), measured_text(kernel, now)]
        texts += [line_hover(file, line.line, now=now) or "" for line in found.placed.lines]
        texts += [hint.text + hint.tooltip for hint in line_hints(file, None, now)]
        texts += [report_markdown(build_report(file, BuildFacts((), "", None))), compare_markdown(found, found)]
        assert all(texts)
        for text in texts:
            without_names = text.replace(kernel.binary.name, "").replace(kernel.binary.short_name, "")
            assert not HOLES.search(without_names), text
            for block in BARS.findall(text):
                shares = [0.5 if share == "< 1" else int(share) for share in re.findall(r"(< 1|\d+) %", block)]
                assert sum(shares) <= 100 + len(shares) / 2, block
        _value_adds_up(found, kernel_value(kernel))
    assert not HOLES.search("\n".join(report_lines(report.report, report.kernels, {})))


def _value_adds_up(found: KernelMeasurement, value: Any) -> None:
    """Each sample stands on one line, or it is said where else."""
    stalls, samples = value["stalls"], found.profile.samples
    if samples is None:
        assert stalls is None
        return
    lines = stalls["lines"]
    total = sum(line["samples"] for line in lines)
    for key in ("samples_outside", "samples_without_line", "samples_on_lines_gone"):
        total += stalls[key]
    assert total == samples.total == stalls["samples"]
    assert all(sum(line["by_reason"].values()) == line["samples"] for line in lines)
    assert lines == sorted(lines, key=lambda line: (line["file"], line["line"]))
    if not samples.few:
        assert sum(line["share"] for line in lines) <= 1.0 + 1e-9
