"""`kernel-lsp sass`: text and JSON of real builds, and what it says when there are no instructions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.project.toolchain import MissingTool, Toolchain
from kernel_lsp.session.pipeline import Pipeline
from tests.unit.cli.test_check import run

SOURCE = """__device__ __forceinline__ float load(const float* x, int i) { return x[i]; }

template <int N>
__global__ void __launch_bounds__(256) row_sum(const float* x, float* y, int n)
{
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        sum += load(x, i * N + threadIdx.x);
    }
    y[threadIdx.x] = sum;
}

template __global__ void row_sum<32>(const float*, float*, int);
template __global__ void row_sum<64>(const float*, float*, int);
"""
KEYS = {
    *("pc", "text", "opcode", "class", "bytes", "predicate", "stall", "yield", "wait", "read_barrier", "write_barrier"),
    *("live_registers", "file", "line", "inlined_at", "loop_depth", "samples", "by_reason"),
    *("target", "function"),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "row_sum.cu"
    path.write_text(SOURCE)
    return path


def test_json_holds_the_contract(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "sass", source, "--format", "json", "--arch", "sm_86")
    assert status == 0
    value = json.loads(out)
    assert [kernel["short_name"] for kernel in value["kernels"]] == ["row_sum<32>", "row_sum<64>"]
    kernel = value["kernels"][0]
    assert kernel["arch"] == "sm_86"
    assert all(each.keys() == KEYS for each in kernel["instructions"])
    [load] = [each for each in kernel["instructions"] if each["opcode"].startswith("LDG")]
    assert (load["class"], load["bytes"], load["loop_depth"]) == ("global_load", 4, 1)
    assert (load["file"], load["line"]) == (str(source), 1)
    assert load["inlined_at"] == [{"file": str(source), "line": 9}]
    [add] = [each for each in kernel["instructions"] if each["opcode"] == "FADD"]
    assert load["write_barrier"] in add["wait"]
    assert all(isinstance(each["live_registers"], int) for each in kernel["instructions"])


def test_one_kernel_by_name(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "sass", source, "--kernel", "row_sum<64>", "--arch", "sm_86")
    assert status == 0
    assert out.startswith("// void row_sum<64>(float const*, float*, int)\n// sm_86, ")
    assert "row_sum<32>" not in out
    assert "l.1 <- l.9" in out
    status, _, err = run(capsys, "sass", source, "--kernel", "absent", "--arch", "sm_86")
    assert status == 2
    assert "no kernel named 'absent'" in err
    assert "row_sum<32>" in err


def test_a_file_that_does_not_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.cu"
    path.write_text("__global__ void broken(float* x) { x[0] = missing; }\n")
    status, out, err = run(capsys, "sass", path)
    assert (status, out) == (2, "")
    assert "could not be built" in err
    assert err.count("\n") == 1


def test_the_text_has_the_control_words(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stall with Y where the scheduler is asked to take another warp, scoreboards waited for and set."""
    _, out, _ = run(capsys, "sass", source, "--kernel", "row_sum<32>", "--format", "json", "--arch", "sm_86")
    [kernel] = json.loads(out)["kernels"]
    _, out, _ = run(capsys, "sass", source, "--kernel", "row_sum<32>", "--arch", "sm_86")
    rows = {line.split()[0]: line for line in out.splitlines() if line[:1].isdigit()}
    assert any(each["yield"] for each in kernel["instructions"])
    for each in kernel["instructions"]:
        wait, write, read = each["wait"], each["write_barrier"], each["read_barrier"]
        words = [f"wait {''.join(map(str, wait))}"] if wait else []
        words += [f"R{read}"] if read is not None else []
        words += [f"W{write}"] if write is not None else []
        control = f" {each['stall']}{'Y' if each['yield'] else ' '} {' '.join(words)}"
        assert control in rows[f"{each['pc']:04x}"]


CALLS = """__device__ __noinline__ float heavy(const float* x, int n)
{
    float s = 0;
    for (int k = 0; k < n; k++) s += x[k] * x[k + 1];
    return s;
}
__global__ void calls(float* x, int n) { x[threadIdx.x] = heavy(x, n) + 1.0f; }
"""


def test_branches_and_calls_name_their_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What stands behind the kernel says which function it is of; labels and functions are addresses in JSON."""
    path = tmp_path / "calls.cu"
    path.write_text(CALLS)
    status, out, _ = run(capsys, "sass", path, "--format", "json", "--arch", "sm_90")
    assert status == 0
    [kernel] = json.loads(out)["kernels"]
    rows = kernel["instructions"]
    behind = [row for row in rows if row["function"] is not None]
    assert {row["function"] for row in behind} == {"heavy(float const*, int)"}
    assert [row["text"].startswith("RET") for row in behind][-1:] == [True]
    [call] = [row for row in rows if row["class"] == "control" and row["opcode"].startswith("CALL")]
    assert call["function"] is None
    assert call["target"] == behind[0]["pc"]
    backwards = [row for row in behind if row["target"] is not None and row["target"] < row["pc"]]
    assert backwards
    assert all(row["loop_depth"] == 1 for row in backwards)
    assert all(row["target"] is None for row in rows if row["class"] in ("compute", "global_load"))
    status, out, _ = run(capsys, "sass", path, "--arch", "sm_90")
    # The function starts anew: its first row has its line, whatever stood before.
    text = out.splitlines()
    assert " l.4" in text[text.index("// heavy(float const*, int)") + 1]


NAMESPACES = """namespace a { __global__ void k(float* x) { x[0] = 1; } }
namespace b { __global__ void k(float* x) { x[0] = 2; } }
namespace { template <int N, class T> __global__ void hidden(T* x) { x[N] = N; } }
__global__ void k(float* x) { x[1] = 3; } __global__ void k2(float* x) { x[1] = 3; }
__global__ void k(double* x) { x[1] = 3; }
void run(float* x) { hidden<3><<<1, 32>>>(x); hidden<4><<<1, 32>>>(x); }
"""
HIDDEN = "void (anonymous namespace)::hidden"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("k", ["k(double*)", "k(float*)"]),
        ("::k", ["k(double*)", "k(float*)"]),
        ("k( double * )", ["k(double*)"]),
        ("void k(float*)", ["k(float*)"]),
        ("b::k", ["b::k(float*)"]),
        ("_ZN1a1kEPf", ["a::k(float*)"]),
        ("hidden", [f"{HIDDEN}<3, float>(float*)", f"{HIDDEN}<4, float>(float*)"]),
        ("hidden<3>", [f"{HIDDEN}<3, float>(float*)"]),
        ("hidden<4,float>", [f"{HIDDEN}<4, float>(float*)"]),
        ("(anonymous namespace)::hidden<4, float>", [f"{HIDDEN}<4, float>(float*)"]),
    ],
)
def test_a_kernel_is_found_by_the_name_that_stands_in_the_source(
    asked: str, found: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Overloads and instances that share a name are all meant; a whole name is never a part of a longer one."""
    path = tmp_path / "names.cu"
    path.write_text(NAMESPACES)
    status, out, _ = run(capsys, "sass", path, "--kernel", asked, "--format", "json", "--arch", "sm_86")
    assert status == 0
    assert sorted(kernel["name"] for kernel in json.loads(out)["kernels"]) == found


def test_names_that_are_near_stand_first_where_none_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "names.cu"
    path.write_text(NAMESPACES)
    status, _, err = run(capsys, "sass", path, "--kernel", "hid", "--arch", "sm_86")
    assert status == 2
    near = "(anonymous namespace)::hidden<3, float>, (anonymous namespace)::hidden<4, float>"
    assert err == f"kernel-lsp: no kernel named 'hid' in {path}; there are: {near}, a::k, b::k, k, k2\n"


def test_kernels_stand_by_line_in_text_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.cu"
    path.write_text("__global__ void later(float* x) { x[0] = 1; }\n__global__ void earlier(float* x) { x[0] = 2; }\n")
    status, out, _ = run(capsys, "sass", path, "--arch", "sm_86")
    assert status == 0
    assert [line for line in out.splitlines() if line.endswith("(float*)")] == [
        "// later(float*)",
        "// earlier(float*)",
    ]


def test_a_file_without_kernels_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.cu"
    path.write_text("template <int N> __global__ void k(float* x) { x[0] = N; }\n")
    status, out, err = run(capsys, "sass", path)
    assert (status, out) == (0, "")
    assert "none.cu: no kernels in this file; not compiled: template k is not instantiated" in err
    status, out, err = run(capsys, "sass", path, "--kernel", "k")
    assert (status, out) == (2, "")
    assert err == f"kernel-lsp: no kernel named 'k' in {path}; it has none\n"


def test_nothing_to_build_says_why(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "sass", source, "--arch", "sm_50")
    assert (status, out) == (2, "")
    assert "sm_50" in err
    assert "is not supported by nvcc" in err
    assert err.count("\n") == 1


def test_what_was_built_differently_is_told(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "sass", source, "--kernel", "row_sum<32>", "--", "-G")
    assert status == 0
    assert out.startswith("// void row_sum<32>")
    assert "analysed without -G" in err


@pytest.fixture
def no_nvdisasm(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Pipeline._toolchain
    missing = MissingTool("nvdisasm", (), "nvdisasm not found. Install it with: pip install 'kernel-lsp[cuda]'.")

    async def without(self: Pipeline, *arguments: Any) -> Toolchain:
        return replace(await found(self, *arguments), nvdisasm=None, missing=(missing,))

    monkeypatch.setattr(Pipeline, "_toolchain", without)


@pytest.mark.usefixtures("no_nvdisasm")
def test_without_nvdisasm_the_rest_is_there(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "check", source, "--format", "json", "--arch", "sm_86", "--fail-on", "never")
    assert status == 0
    assert err == "kernel-lsp: nvdisasm not found. Install it with: pip install 'kernel-lsp[cuda]'.\n"
    [file] = json.loads(out)["files"]
    for kernel in file["kernels"]:
        assert kernel["resources"]["registers"] > 0
        assert kernel["mix"] is None
        assert "pip install" in kernel["mix_why"]
    status, out, err = run(capsys, "sass", source, "--arch", "sm_86")
    assert (status, out) == (3, "")
    assert "pip install 'kernel-lsp[cuda]'" in err


def test_check_has_mix_loops_and_pressure(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", source, "--format", "json", "--arch", "sm_86", "--fail-on", "never")
    assert status == 0
    for kernel in json.loads(out)["files"][0]["kernels"]:
        assert kernel["mix"]["LDG"] == kernel["mix"]["FADD"] == 1
        [loop] = kernel["loops"]
        assert (loop["first_line"], loop["last_line"], loop["depth"], loop["innermost"]) == (8, 9, 1, True)
        assert (loop["compute_op"], loop["compute_ops"], loop["load_ops"], loop["load_bytes"]) == ("FADD", 1, 1, 4)
        assert (loop["ratio"], loop["class"], loop["cp_async"]) == (1.0, "low", None)
        assert loop["cp_async_why"] == "the loop stores nothing to shared memory"
        assert kernel["pressure"]["peak_registers"] <= kernel["resources"]["registers"]
        assert kernel["pressure"]["line"] in range(1, 12)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_terminal_that_lacks_letters_is_told_in_one_line(form: str, tmp_path: Path) -> None:
    """Names of other alphabets on an ASCII terminal: no half output, no trace."""
    path = tmp_path / "grün.cu"
    header = tmp_path / "größe.cuh"
    header.write_text(
        "#pragma once\n\n\n__device__ __forceinline__ float one(const float* x)\n{\n    return x[3];\n}\n"
    )
    path.write_text('#include "größe.cuh"\n__global__ void k(float* x) { x[0] = one(x); }\n')
    command = [sys.executable, "-m", "kernel_lsp", "sass", str(path), "--arch", "sm_86", "--format", form]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert re.fullmatch(
        rb"kernel-lsp: standard output is ascii and has no '\\x[0-9a-f]+'; set PYTHONIOENCODING=utf-8\s+", done.stderr
    )
