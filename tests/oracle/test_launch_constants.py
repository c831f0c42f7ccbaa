"""The extents read from launches, against what nvcc's own host code launches with (recorded, no GPU needed)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.source.known_launches import KNOWN

RECORDER = Path(__file__).with_name("launch_recorder.cpp")
PRELUDE = """\
#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
static int a = 1, b = 2; static void **args = nullptr; static cudaStream_t stream = nullptr;
static void g(int, int) {} static int div_up(int n, int m) { return (n + m - 1) / m; }
"""


def compiled_case(number: int, before: str, statements: str) -> str:
    macros = [line.split()[1].partition("(")[0] for line in before.split("\n") if line.startswith("#define")]
    undefined = "".join(f"#undef {macro}\n" for macro in macros)
    return (
        f"namespace case_{number} {{\n{before}\n__global__ void f(int *p) {{}}\n"
        f"void host(int *p, int n) {{\n{statements}\n}}\n{undefined}}}\n"
    )


@pytest.fixture(scope="module")
def recorded(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, ...]]:
    """What each case launches with: grid, block and shared memory as nvcc's host code passes them."""
    if shutil.which("g++") is None:
        pytest.fail("no g++: apt-get install g++")
    folder = tmp_path_factory.mktemp("launches")
    cases = [compiled_case(number, before, text) for number, (before, text, _) in enumerate(KNOWN.values())]
    calls = "".join(f"case_{number}::host(nullptr, 7);\n" for number in range(len(KNOWN)))
    source = folder / "cases.cu"
    source.write_text(PRELUDE + "".join(cases) + f"int main() {{\n{calls}}}\n")
    for command in (
        [toolkit / "bin" / "nvcc", "-w", "-std=c++17", "-arch=sm_90", "-c", source, "-o", folder / "cases.o"],
        ["g++", "-c", RECORDER, "-o", folder / "recorder.o"],
        ["g++", folder / "cases.o", folder / "recorder.o", "-o", folder / "cases"],
    ):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    printed = subprocess.run([folder / "cases"], check=True, capture_output=True, text=True).stdout
    return [tuple(int(number) for number in line.split()) for line in printed.splitlines() if line[0].isdigit()]


def test_every_known_launch_is_what_the_compiler_launches(recorded: list[tuple[int, ...]]) -> None:
    assert len(recorded) == len(KNOWN)
    for (name, (_, _, expected)), launched in zip(KNOWN.items(), recorded, strict=True):
        grid, block, shared = expected
        if grid is not None:
            assert launched[:3] == grid, name
        assert (launched[3:6], launched[6]) == (block, shared), name
