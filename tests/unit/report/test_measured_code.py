"""Measured lines of compiled kernels: what they wait for, what was inlined, and hints of both kinds on one line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernel_lsp.analysis import FileAnalysis, analyze
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.model.kernel_sass import read_cubin_sass
from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.kernel_code import KernelCode, kernel_code
from kernel_lsp.ncu.kernel_measurement import measurements
from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.placement import BuiltKernel
from kernel_lsp.report.hints import line_hints
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.source.kernels import scan
from tests.unit.kernel_values import gpu
from tests.unit.ncu.conftest import action
from tests.unit.report.measured_kernel import BASE, MADE_AT, NOW, SAMPLES

WAIT, SPILL = "_Z4waitPfPKf", "_Z5spillPfPKf"
HEADER = """#pragma once
__device__ inline float twice(float x) {
    return x * x + 1.0f;
}
"""
# l.4 loads, l.5 (through the header's line 3) needs it. 40 values are live on l.11, and 768 threads twice on an SM
# have 40 registers each.
TEXT = """#include "twice.cuh"
__global__ void
wait(float* out, const float* in) {
    float x = in[threadIdx.x];
    out[threadIdx.x] = twice(x);
}
__global__ void __launch_bounds__(768, 2)
spill(float* out, const float* in) {
    float v[40], y = 0.0f;
#pragma unroll
    for (int i = 0; i < 40; ++i) v[i] = in[i * 1024 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 40; ++i) y = y * v[i] + v[39 - i];
    out[threadIdx.x] = y;
}
"""


@pytest.fixture(scope="module")
def built(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, str]:
    """The source, its cubin, and nvdisasm's text."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "twice.cuh").write_text(HEADER, "utf-8")
    source, out = folder / "wait.cu", folder / "wait.cubin"
    source.write_text(TEXT, "utf-8")
    argv = [toolkit / "bin" / "nvcc", "-cubin", "-lineinfo", "-arch=sm_86", source, "-o", out]
    subprocess.run([str(each) for each in argv], check=True, capture_output=True)
    disassembler = [str(toolkit / "bin" / "nvdisasm"), *ARGUMENTS, str(out)]
    text = subprocess.run(disassembler, check=True, capture_output=True, text=True).stdout
    return source, out.read_bytes(), text


@pytest.fixture(scope="module")
def file(built: tuple[Path, bytes, str]) -> FileAnalysis:
    """The file, measured: 80 of 100 samples where the header's FMA waits for the load; 20 on the spilling line."""
    source, cubin, text = built
    codes = {name: kernel_code(cubin, name, text) for name in (WAIT, SPILL)}
    wait, spill = codes[WAIT], codes[SPILL]
    assert wait is not None
    assert spill is not None
    samples = {
        WAIT: {
            SAMPLES + "long_scoreboard": {BASE + _pc(wait, source, 5, "FFMA"): 80.0},
            SAMPLES + "drain": {BASE + _pc(wait, source, 6, "EXIT"): 20.0},
        },
        SPILL: {
            SAMPLES + "lg_throttle": {BASE + _pc(spill, source, 11, "STL"): 20.0},
            SAMPLES + "wait": {BASE + _pc(spill, source, 14, "STG"): 80.0},
        },
    }
    profiles = {name: read_kernel_profile(action(name, BASE, columns)) for name, columns in samples.items()}
    kernels = tuple(measure(profiles[name], codes[name]) for name in samples)
    report = MeasuredReport(NcuReport("r.ncu-rep", "r", None, tuple(profiles.values()), (), ()), kernels, MADE_AT)
    binaries = read_cubin(cubin)
    names = {kernel.mangled: kernel.name for kernel in binaries.kernels}
    builds = {name: [BuiltKernel(code, TEXT)] for name, code in codes.items() if code is not None}
    found = measurements(names, lambda mangled: builds[mangled], str(source), TEXT, [report], {})
    sass = read_cubin_sass(cubin, text, "")
    return analyze(str(source), TEXT, binaries, gpu(), scan(TEXT), {}, sass=sass, measured=found)


def _pc(code: KernelCode, source: Path, line: int, family: str) -> int:
    """The address of the first such instruction of a line, inlined ones included."""
    assert code.lines is not None
    for at in range(0, code.instruction_bytes, 16):
        if family in code.text(at) and (str(source), line) in {(f.file, f.line) for f in code.lines.frames(at)}:
            return at
    raise AssertionError(f"no {family} on line {line}")


def test_a_hint_names_the_line_that_is_waited_for(file: FileAnalysis) -> None:
    hints = {hint.line: hint for hint in line_hints(file, None, NOW)}
    assert hints[5].text == "80 % stalls: long scoreboard <- l.4"
    assert "long scoreboard: waiting for the load on l.4." in hints[5].tooltip
    moved = {hint.line: hint for hint in line_hints(file, lambda line: line + 10, NOW)}
    assert moved[5].text == "80 % stalls: long scoreboard <- l.14"
    edited = {hint.line: hint for hint in line_hints(file, lambda line: None, NOW)}
    assert edited[5].text == "80 % stalls: long scoreboard"


def test_measured_and_compiled_hints_share_a_line(file: FileAnalysis) -> None:
    (text,) = (hint.text for hint in line_hints(file, None, NOW) if hint.line == 11)
    assert text.startswith("20 % stalls: LG throttle · ")
    assert "B spill stores" in text


def test_line_hover_joins_instructions_and_samples(file: FileAnalysis) -> None:
    text = line_hover(file, 5, now=NOW)
    assert text is not None
    order = [
        "1 FFMA",
        "80 % of the kernel's stall samples",
        "(measured, 80 of 100, report of",
        "Waits for ",
        "pc    ins",
    ]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "Waits for LDG.E of l.4 (80 samples)." in text
    assert text.count("Waits for") == 1  # what the code alone would say is not said twice
    assert "Inlined here: twice.cuh:3 (80 samples)." in text
    assert "Try first: " in text


def test_kernel_hover_names_the_hot_lines(file: FileAnalysis) -> None:
    wait = next(kernel for kernel in file.kernels if kernel.binary.mangled == WAIT)
    text = kernel_hover(wait, file, now=NOW)
    assert "- l.5: 80 %, long scoreboard, waiting for the load on l.4" in text
    assert "- l.6: 20 %, drain" in text
