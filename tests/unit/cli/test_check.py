"""`kernel-lsp check` and `report` over real builds, and what they say to wrong input."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kernel_lsp.cli import common
from kernel_lsp.cli.main import main

# 52,224 B of dynamic shared memory on sm_86: 1 block, at 50,176 B 2 (floor(102,400 / 2 / 128) * 128 - 1,024).
CLIFF = """// kernel-lsp: block=128 smem=52224
__global__ void past(float* x) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[127 - threadIdx.x];
}
"""
BROKEN = "__global__ void broken(float* x) { x[0] = missing; }\n"


@pytest.fixture
def cliff(tmp_path: Path) -> Path:
    path = tmp_path / "cliff.cu"
    path.write_text(CLIFF)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as end:  # argparse
        status = int(end.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def test_a_kernel_of_a_header_is_told_with_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "twice.cuh").write_text(
        "\ntemplate <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }\n"
        "inline __global__ void plain(float* x) { x[threadIdx.x] = 0; }\n"
    )
    source = tmp_path / "use.cu"
    source.write_text('#include "twice.cuh"\n\n\ntemplate __global__ void twice(float*);\n__global__ void own() {}\n')
    status, out, _ = run(capsys, "check", source, "--arch", "sm_86")
    assert status == 0
    places = {line.split()[1]: line.split()[0] for line in out.splitlines() if "regs" in line}
    assert places == {"twice<float>": "twice.cuh:2", "plain": "twice.cuh:3", "own": "l.5"}


def test_json_of_a_real_build(cliff: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", cliff, "--format", "json", "--arch", "sm_86")
    assert status == 0  # a warning, and --fail-on is error by default
    value = json.loads(out)
    assert value["schema_version"] == 1
    assert value["gpu"]["arch"] == "sm_86"
    assert value["tools"]["nvcc"].keys() == {"path", "version"}
    (file,) = value["files"]
    assert file["path"] == str(cliff)
    assert file["build"]["status"] == "ok"
    assert file["build"]["argv"][0].endswith("nvcc")
    assert "-arch=sm_86" in file["build"]["argv"]
    (kernel,) = file["kernels"]
    assert (kernel["mangled"], kernel["name"], kernel["line"]) == ("_Z4pastPf", "past(float*)", 2)
    (launch,) = kernel["launches"]
    assert (launch["threads"], launch["dynamic_shared_bytes"], launch["from"]) == (128, 52224, "comment")
    assert launch["occupancy"]["blocks_per_sm"] == 1
    (finding,) = file["findings"]
    assert (finding["code"], finding["line"], finding["column"], finding["end_column"]) == ("KL110", 2, 17, 21)


def test_text_names_place_severity_and_code(cliff: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", cliff, "--arch", "sm_86", "--fail-on", "warning")
    assert status == 1
    assert f"{cliff}:2:17: warning: 52,224 B of shared memory leaves 1 block/SM" in out
    assert "[KL110 shared-memory-cliff]" in out
    assert "1 warning in 1 file." in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--fail-on", "error"), 0),
        (("--fail-on", "warning"), 1),
        (("--fail-on", "information"), 1),
        (("--fail-on", "never"), 0),
        (("--fail-on", "warning", "--ignore", "KL110"), 0),
        (("--fail-on", "warning", "--ignore", "shared-memory-cliff"), 0),
        (("--fail-on", "warning", "--select", "KL201"), 0),
        (("--fail-on", "warning", "--select", "kl110,KL201"), 1),
        (("--fail-on", "warning", "--block", "128", "--dynamic-shared", "1024"), 0),
        (("--fail-on", "warning", "--dynamic-shared", "1024"), 0),
        (("--fail-on", "warning", "--dynamic-shared", "50177"), 1),
        (("--fail-on", "warning", "--gpu", "A100 SXM4 80GB"), 0),
    ],
)
def test_exit_status(cliff: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], status: int) -> None:
    machine = () if "--gpu" in arguments else ("--arch", "sm_86")
    assert run(capsys, "check", cliff, *machine, *arguments)[0] == status


def test_a_baseline_silences_what_it_knows(cliff: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    _, out, _ = run(capsys, "check", cliff, "--arch", "sm_86", "--format", "json")
    baseline.write_text(out)
    check = ("check", cliff, "--arch", "sm_86", "--fail-on", "warning", "--baseline", baseline)
    assert run(capsys, *check)[0] == 0
    cliff.write_text("\n\n" + CLIFF.replace("52224", "51200"))  # moved and changed, but the same finding
    assert run(capsys, *check)[0] == 0
    cliff.write_text(CLIFF + CLIFF.replace("past", "second"))
    status, out, _ = run(capsys, *check)
    assert status == 1
    assert out.count("KL110") == 1


def test_a_broken_file_is_an_error_on_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.cu"
    path.write_text(BROKEN)
    status, out, _ = run(capsys, "check", path, "--format", "json")
    (file,) = json.loads(out)["files"]
    assert (status, file["build"]["status"], file["kernels"]) == (1, "failed", [])
    assert [(f["code"], f["line"], f["severity"]) for f in file["findings"]] == [("KL901", 1, "error")]
    assert "missing" in file["findings"][0]["message"]
    status, out, err = run(capsys, "report", path)
    assert (status, out) == (2, "")
    assert "could not be built" in err


def test_a_cubin_needs_no_build(cliff: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cubin = tmp_path / "cliff.cubin"
    subprocess.run(["nvcc", "-cubin", "-lineinfo", "-arch=sm_86", "-o", cubin, cliff], check=True)
    _, out, _ = run(capsys, "check", cubin, "--format", "json")
    (file,) = json.loads(out)["files"]
    assert (file["build"]["status"], file["build"]["argv"]) == ("skipped", [])
    (kernel,) = file["kernels"]
    assert (kernel["file"], kernel["line"], kernel["resources"]["uses_dynamic_shared"]) == (str(cliff), 2, True)
    cubin.write_bytes(cubin.read_bytes()[:200])
    status, out, err = run(capsys, "check", cubin)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_sarif_paths_are_relative(
    cliff: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cliff.parent)
    _, out, _ = run(capsys, "check", "cliff.cu", "--arch", "sm_86", "--format", "sarif")
    (result,) = json.loads(out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "cliff.cu"


def test_report_to_a_file(cliff: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "report.md"
    status, out, _ = run(capsys, "report", cliff, "--arch", "sm_86", "-o", page)
    assert (status, out) == (0, "")
    text = page.read_text("utf-8")
    assert text.startswith("# Bottleneck report: cliff.cu\n")
    assert "[cliff.cu:2](cliff.cu#L2)" in text
    status, out, _ = run(capsys, "report", cliff, "--arch", "sm_86", "--format", "json", "--kernel", "past")
    assert (status, [k["name"] for k in json.loads(out)["kernels"]]) == (0, ["past(float*)"])
    status, _, err = run(capsys, "report", cliff, "--kernel", "future")
    assert (status, "there are: past" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "nowhere.cu"), "nowhere.cu: no such file"),
        (("check", "."), "is a folder"),
        (("check",), "FILE"),
        (("check", "{file}", "--format", "xml"), "--format"),
        (("check", "{file}", "--select", "KL999"), "no rule 'KL999'"),
        (("check", "{file}", "--gpu", "Voodoo 2"), "no GPU is called 'Voodoo 2'"),
        (("check", "{file}", "--arch", "sm_1"), "sm_1"),
        (("check", "{file}", "--gpu", "H100", "--arch", "sm_90"), "not allowed with"),
        (("check", "{file}", "--block", "0"), "expected a block"),
        (("check", "{file}", "--block", "1x2x3x4"), "expected a block"),
        (("check", "{file}", "--dynamic-shared", "4K"), "expected a whole number"),
        (("check", "{file}", "--baseline", "nowhere.json"), "baseline nowhere.json cannot be read"),
        (("check", "{file}", "--baseline", "{file}"), "is no JSON"),
        (("check", "{file}", "--config", "nowhere.yaml"), "nowhere.yaml: no such file"),
        (("frobnicate",), "frobnicate"),
        (("--tcp", "here"), "HOST:PORT"),
    ],
)
def test_usage_errors_are_one_line(
    cliff: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    status, out, err = run(capsys, *(word.replace("{file}", str(cliff)) for word in arguments))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize("command", ["check", "report", "sass"])
@pytest.mark.parametrize("name", ["README.md", "host.cpp", "kernel"])
def test_a_file_that_is_no_cuda_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    (tmp_path / name).write_text("int main() {}\n")
    status, out, err = run(capsys, command, tmp_path / name)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{name} is no CUDA file" in err


def test_a_source_of_any_name_that_the_project_builds_as_cuda(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernel.cc").write_text("__global__ void k(float* x) { x[0] = 1; }\n")
    (tmp_path / "host.cc").write_text("int main() {}\n")
    entries = [
        {"directory": str(tmp_path), "file": name, "command": f"{program} -c {name}"}
        for name, program in (("kernel.cc", "nvcc -x cu -arch=sm_86"), ("host.cc", "g++"))
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capsys, "check", "kernel.cc", "--format", "json")
    assert (status, [kernel["name"] for kernel in json.loads(out)["files"][0]["kernels"]]) == (0, ["k(float*)"])
    assert run(capsys, "check", "host.cc")[0] == 2


def test_a_header_that_nothing_includes_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lonely.cuh").write_text("#pragma once\n")
    status, out, _ = run(capsys, "check", tmp_path / "lonely.cuh", "--format", "json")
    (file,) = json.loads(out)["files"]
    assert (status, file["build"]["status"]) == (0, "skipped")
    assert [(f["code"], f["severity"]) for f in file["findings"]] == [("KL902", "warning")]
    assert run(capsys, "check", tmp_path / "lonely.cuh", "--fail-on", "warning")[0] == 1


@pytest.mark.parametrize("text", ["[]", "{}", '{"files": [{"findings": [{"code": 1}]}]}', '{"files": 3}', "null"])
def test_a_baseline_of_another_kind(cliff: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    baseline = tmp_path / "odd.json"
    baseline.write_text(text)
    status, out, err = run(capsys, "check", cliff, "--baseline", baseline)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_missing_compiler_is_status_3(
    cliff: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernel_lsp.project import toolchain
    from kernel_lsp.session.pipeline import Pipeline

    # Nothing on the machine: an environment without a PATH, and none of the usual places.
    monkeypatch.setattr(toolchain, "machine_places", lambda _: ())
    monkeypatch.setattr(toolchain, "own_wheel_places", lambda: ())
    monkeypatch.setattr(common, "Pipeline", lambda: Pipeline(environment={}))
    status, out, err = run(capsys, "check", cliff)
    assert (status, out) == (3, "")
    assert "pip install 'kernel-lsp[cuda]'" in err


def test_flags_after_two_dashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flags.cu"
    path.write_text("#ifndef WANTED\n#error flag missing\n#endif\n__global__ void k(float* x) { x[0] = 1; }\n")
    assert run(capsys, "check", path)[0] == 1
    status, out, _ = run(capsys, "check", path, "--format", "json", "--", "-DWANTED=1", "-std=c++17")
    assert (status, json.loads(out)["files"][0]["build"]["from"]) == (0, "command line")
