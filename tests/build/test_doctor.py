"""`kernel-lsp doctor` as a person runs it: a process with its output and exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.fake_nvcc import install

RUN = "import sys; from kernel_lsp.cli.main import main; sys.exit(main())"


def doctor(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, "doctor", *arguments],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def rows(output: str) -> dict[str, str]:
    """First value of each named row."""
    pairs = [line.split(None, 1) for line in output.splitlines() if line.startswith("  ")]
    return {pair[0]: pair[1] for pair in reversed(pairs) if len(pair) == 2}


def test_tools_with_their_versions(tmp_path: Path, toolkit: Path) -> None:
    ended = doctor(cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    found = rows(ended.stdout)
    for name in ("nvcc", "ptxas", "nvdisasm", "cuobjdump"):
        said = subprocess.run([str(toolkit / "bin" / name), "--version"], capture_output=True, text=True, check=True)
        assert f"V{found[name].split()[0]}" in said.stdout
        assert str(toolkit / "bin" / name) in found[name]
    assert "CUDA_HOME" in found["nvcc"]
    assert str(Path(os.environ["KERNEL_LSP_CACHE_DIR"])) in ended.stdout
    assert "\x1b" not in ended.stdout  # plain where the output is no terminal
    assert "Missing" not in ended.stdout


def test_the_command_of_a_file_and_what_became_of_its_flags(tmp_path: Path) -> None:
    source = tmp_path / "src" / "a b.cu"
    source.parent.mkdir()
    source.write_text("__global__ void k() {}\n")
    entry = {
        "directory": str(tmp_path),
        "arguments": ["nvcc", "-O2", "-DN=4", "-arch=sm_90", "-ccbin", "./evil", "-c", "src/a b.cu", "-o", "x.o"],
        "file": "src/a b.cu",
    }
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    ended = doctor(str(source), cwd=tmp_path)
    assert ended.returncode == 0
    found = rows(ended.stdout)
    assert str(tmp_path / "compile_commands.json") in found["from"]
    assert found["for"].startswith("sm_90 ")
    assert found["command"].endswith(f"-O2 -DN=4 -cubin -lineinfo -arch=sm_90 '{source}'")
    assert any(line.startswith("  refused") and "./evil" in line for line in ended.stdout.splitlines())
    assert any(line.startswith("  dropped") and "x.o" in line for line in ended.stdout.splitlines())
    assert not (tmp_path / "x.o").exists()


def test_a_clash_of_releases_is_a_problem(tmp_path: Path, toolkit: Path) -> None:
    home = tmp_path / "cuda"
    install(home / "bin", version="Cuda compilation tools, release 13.0, V13.0.88\n")
    (home / "bin" / "ptxas").symlink_to(toolkit / "bin" / "ptxas")
    ended = doctor(cwd=tmp_path, CUDA_HOME=str(home))
    assert ended.returncode == 0
    assert "nvcc 13.0, ptxas 13.5" in ended.stdout
    assert "pip install 'kernel-lsp[cuda]'" in ended.stdout


@pytest.mark.parametrize("file", ["absent.cu", "."])
def test_a_wrong_file_is_one_line(tmp_path: Path, file: str) -> None:
    ended = doctor(file, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert file in ended.stderr


def test_without_nvcc_the_status_is_3_and_one_command_is_named(tmp_path: Path) -> None:
    """A Python with the product's dependencies but none of NVIDIA's packages, on a machine without CUDA."""
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k() {}\n")
    script = (
        "import sys\nfrom kernel_lsp.project import toolchain\n"
        "toolchain.machine_places = lambda environment: ()\n"
        "toolchain.own_wheel_places = lambda: (toolchain.Place(toolchain.Path('/nowhere'), 'PyPI packages'),)\n"
        "from kernel_lsp.cli.main import main\nsys.exit(main())"
    )
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    environment.pop("CUDA_HOME")
    ended = subprocess.run(
        [sys.executable, "-c", script, "doctor", str(source)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    assert "nvcc not found" in ended.stdout
    assert "pip install 'kernel-lsp[cuda]'" in ended.stdout
    assert "nvcc -std=c++17 -O3 -cubin -lineinfo -arch=sm_86" in ended.stdout
