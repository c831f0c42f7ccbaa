"""Which sources seem to define a name that a device link misses."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kernel_lsp.project.definitions import likely_definers


@pytest.mark.parametrize(
    ("text", "is_definition"),
    [
        ("__device__ float far(float x) { return x; }", True),
        ("__device__ float ns::Type::far(float x,\n  int y) const noexcept\n{ return x; }", True),
        ("template <> __device__ float far<int>(float x) {}", True),
        ("__device__ int far = 3;", True),
        ("namespace n { __constant__ float far[100]; }", True),
        ("static int x; __device__ int near, far;", True),
        ("__managed__ int far{3};", True),
        ("extern __device__ float far(float x);", False),
        ("__device__ float far(float x);", False),
        ("extern __device__ int far;", False),
        ("extern __constant__ float far[];", False),
        ("// __device__ float far(float x) { return x; }", False),
        ("/* __device__ float far(float x) { return x; } */", False),
        ("__global__ void k(float* p) { *p = far(*p); }", False),
        ("__device__ float farther(float x) { return x; }", False),
        ("float x = far;", False),
    ],
)
def test_a_definition_is_told_from_a_mention(tmp_path: Path, text: str, is_definition: bool) -> None:
    path = tmp_path / "a.cu"
    path.write_text(text + "\n")
    found = likely_definers({"far"}, str(tmp_path / "own.cu"), [str(path), str(tmp_path / "gone.cu")])
    assert found == {"far": (str(path),) if is_definition else ()}


def test_the_nearest_comes_first_and_never_the_file_itself(tmp_path: Path) -> None:
    places = ["x/y/far.cu", "x/own.cu", "x/z.cu", "far.cu"]
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("__device__ int far(int x) { return x; }\n__device__ int here;\n")
    paths = [str(tmp_path / place) for place in places]
    found = likely_definers({"far", "here", "nowhere"}, paths[1], paths)
    assert found["far"] == found["here"] == (paths[2], paths[3], paths[0])
    assert found["nowhere"] == ()


@pytest.mark.parametrize(
    "text",
    [
        "far " * 400_000,
        "far(" * 400_000,
        "far<" * 400_000,
        "__device__ " * 150_000 + "far",
        "/*far " * 300_000,
        "far(" + "x, " * 500_000 + ") {",
    ],
)
def test_a_hostile_text_ends_soon(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.cu").write_text(text)
    start = time.process_time()
    likely_definers({"far"}, "own.cu", [str(tmp_path / "a.cu")])
    assert time.process_time() - start < 2
