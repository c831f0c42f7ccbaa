"""A real CMake project, opened with no configuration: three targets, a generated source, a header library, two types.

CMake writes the databases, and NVIDIA's tools judge: what our command builds has the machine code that the project's
own build puts into its object file.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.config import parse_config
from kernel_lsp.project.find_command import ProjectFiles, ToolkitFacts, find_command
from tests.cmake_projects import built, configured, copy_of


@pytest.fixture(scope="module")
def multi_config(toolkit: Path) -> Path:
    """The project with build/ for Debug, Release and RelWithDebInfo, as Ninja Multi-Config writes it."""
    return configured("multi", toolkit)


@pytest.fixture(scope="module")
def two_folders(toolkit: Path) -> Path:
    """The project with build/debug and build/release, written by the Makefile generator with response files."""
    return configured("folders", toolkit)


def find(root: Path, name: str, **options: object) -> BuildCommand:
    toolkit = ToolkitFacts(supported_archs=("sm_80", "sm_90"), version="13.5")
    arguments: dict[str, object] = {"files": ProjectFiles(), "workspace_roots": (root,), "toolkit": toolkit, **options}
    return find_command(root / name, **arguments)  # type: ignore[arg-type]


def listing(toolkit: Path, file: Path) -> list[str]:
    """The functions of sm_90 in an object or cubin, with their instructions and codes, as cuobjdump prints them."""
    words = [str(toolkit / "bin" / "cuobjdump"), "-sass", "-arch", "sm_90", str(file)]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return re.findall(r"Function : \S+|/\*[0-9a-f]{4}\*/ +.*?;|/\* 0x[0-9a-f]{16} \*/", printed)


def build(command: BuildCommand, toolkit: Path, output: Path) -> None:
    code = f"arch={command.virtual_arch},code={command.arch}"
    words = [
        str(toolkit / "bin" / "nvcc"),
        *command.flags,
        "-gencode",
        code,
        "-cubin",
        "-lineinfo",
        str(command.source),
        "-o",
        str(output),
    ]
    run = subprocess.run(words, cwd=command.cwd, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# Objects that CMake builds take a while: a plain target, and one whose code is linked later.
COMPARED = ("src/gemm.cu", "src/reduce.cu")


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("src/gemm.cu", "gemm", ("-DTILE_WIDTH=16", "--use_fast_math", "-DNDEBUG", "-O3", "-std=c++17")),
        ("build/generated_scale.cu", "gemm", ("-DTILE_WIDTH=16", "--use_fast_math", "-O3")),
        ("src/reduce.cu", "reduce", ("-DREDUCE_WARPS=8", "-rdc=true", "-O3")),
        ("src/bench.cu", "bench", ("-DTILE_WIDTH=16", "-O3")),
    ],
)
def test_every_file_gets_its_targets_release_flags(
    multi_config: Path, name: str, target: str, expected: tuple[str, ...], toolkit: Path, tmp_path: Path
) -> None:
    command = find(multi_config, name)
    assert command.skip_reason is None
    assert command.origin_path == multi_config / "build" / "compile_commands.json"
    assert set(expected) <= set(command.flags)
    assert ("-rdc=true" in command.flags) == (target == "reduce")
    assert command.origin_detail.startswith("Release (entry")
    assert command.arch == "sm_90"
    if name not in COMPARED:
        return
    object_file = f"CMakeFiles/{target}.dir/Release/{name.removeprefix('build/')}.o"
    theirs = listing(toolkit, built(multi_config, object_file))
    build(command, toolkit, tmp_path / "ours.cubin")
    assert len(theirs) > 8
    assert listing(toolkit, tmp_path / "ours.cubin") == theirs


def test_one_file_in_two_targets(multi_config: Path) -> None:
    first = find(multi_config, "src/shared.cu")
    assert "-rdc=true" in first.flags  # target reduce comes first in the database
    assert first.origin_detail.endswith("of 6)")


def test_the_debug_entry_can_be_picked(multi_config: Path) -> None:
    config = parse_config("database_entry: Debug\n", multi_config / "kernel-lsp.yaml")
    command = find(multi_config, "src/gemm.cu", config=config)
    assert command.origin_detail.startswith("Debug (entry")
    assert "-DNDEBUG" not in command.flags
    assert "-g" not in command.flags


@pytest.mark.parametrize("header", ["include/tiles/tile.cuh", "include/tiles/load.cuh"])
def test_headers_of_the_header_library(multi_config: Path, header: str, toolkit: Path, tmp_path: Path) -> None:
    command = find(multi_config, header)
    assert command.source in {multi_config / "src" / "gemm.cu", multi_config / "src" / "reduce.cu"}
    assert f"as included by src/{command.source.name}" in command.origin_detail
    build(command, toolkit, tmp_path / "header.cubin")


def test_header_beside_one_source(multi_config: Path) -> None:
    command = find(multi_config, "dir with blank/bench_size.h")
    assert command.source == multi_config / "src" / "bench.cu"


def test_two_build_folders_with_response_files(two_folders: Path, toolkit: Path, tmp_path: Path) -> None:
    for name in ("src/gemm.cu", "src/bench.cu", "src/reduce.cu", "include/tiles/tile.cuh"):
        command = find(two_folders, name)
        assert command.cwd == two_folders / "build" / "release", name
        assert "-DNDEBUG" in command.flags
        assert f"-I{two_folders}/include" in command.flags
        assert "release" in command.origin_detail
        build(command, toolkit, tmp_path / "out.cubin")
    assert f"-I{two_folders}/dir with blank" in find(two_folders, "src/bench.cu").flags
    config = parse_config("database_entry: debug\n", two_folders / "kernel-lsp.yaml")
    assert find(two_folders, "src/gemm.cu", config=config).cwd == two_folders / "build" / "debug"


def test_ninja_files_alone_are_enough(tmp_path: Path, toolkit: Path) -> None:
    """Without compile_commands.json the generator's own build.ninja tells the same flags."""
    root = copy_of("ninja", toolkit, tmp_path / "project")
    recorded = find(root, "src/gemm.cu")
    (root / "build" / "compile_commands.json").unlink()
    command = find(root, "src/gemm.cu")
    assert command.origin == "build.ninja"
    assert command.flags == recorded.flags
    assert command.arch == recorded.arch
