"""Compilers that hang, crash, flood or print garbage: one clear message each, no process and no file left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_lsp.build import process
from kernel_lsp.build.nvcc import build
from kernel_lsp.build.probe import detect_gpu, probe
from kernel_lsp.build.result import BuildResult
from kernel_lsp.build.store import BuildStore
from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.toolchain import Toolchain, find_toolchain
from tests.fakes.fake_nvcc import install

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake is a POSIX script")

CommandMaker = Callable[..., BuildCommand]


def toolchain_of(nvcc: Path) -> Toolchain:
    return find_toolchain(settings={"nvcc": str(nvcc)}, environment={}, usual_places=(), wheel_places=())


def kernel(folder: Path) -> Path:
    path = folder / "k.cu"
    path.write_text("__global__ void k() {}\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


async def built_by(folder: Path, store: BuildStore, command: CommandMaker, **plan: object) -> BuildResult:
    limit_s = plan.pop("limit_s", 20.0)
    assert isinstance(limit_s, float)
    nvcc = install(folder / "fake", **plan)
    return await build(command(kernel(folder)), toolchain_of(nvcc), store, time_limit_s=limit_s)


def left_over(folder: Path) -> tuple[list[str], list[Path]]:
    """Processes of the fake in `folder`, and run folders."""
    found = subprocess.run(["pgrep", "-f", str(folder / "fake")], capture_output=True, text=True, check=False)
    processes = [pid for pid in found.stdout.split() if _runs(int(pid))]
    return processes, list((folder / "cache" / "tmp").glob("server-*/run-*"))


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    return False


async def until_nothing_left(folder: Path, within_s: float = 2.0) -> None:
    deadline = time.monotonic() + within_s
    while left_over(folder) != ([], []):
        assert time.monotonic() < deadline, left_over(folder)
        await asyncio.sleep(0.02)


async def test_no_nvcc_is_one_clear_message(tmp_path: Path, store: BuildStore, command: CommandMaker) -> None:
    none = find_toolchain(settings={}, environment={"PATH": "/nowhere"}, usual_places=(), wheel_places=())
    built = await build(command(kernel(tmp_path)), none, store)
    assert (built.status, built.cubin, built.messages) == ("tool missing", None, ())
    for part in ("nvcc not found", "kernelLsp.tools.nvcc", "PATH", "pip install 'kernel-lsp[cuda]'"):
        assert part in built.reason


@pytest.mark.parametrize(
    ("plan", "parts"),
    [
        ({"exit": 7}, ["exit status 7", "It said nothing"]),
        ({"exit": 1, "stderr": "\x1b[31mKaboom\x07\n"}, ["Kaboom"]),
        ({"exit": 1, "stdout_hex": "fffe00010203"}, ["exit status 1"]),
        ({"exit": 0}, ["wrote no cubin"]),
        ({"exit": 0, "stdout": "hello\n"}, ["wrote no cubin", "hello"]),
        ({"signal": 11}, ["SIGSEGV"]),
        ({"exit": 1, "flood_bytes": 6_000_000}, ["exit status 1", "xxx"]),
    ],
)
async def test_failures(
    tmp_path: Path, store: BuildStore, command: CommandMaker, plan: dict[str, object], parts: list[str]
) -> None:
    built = await built_by(tmp_path, store, command, **plan)
    assert (built.status, built.cubin) == ("failed", None)
    for part in ("nvcc", *parts):
        assert part in built.reason
    assert built.reason.isprintable()
    assert len(built.reason) < 500
    assert left_over(tmp_path) == ([], [])


async def test_a_cubin_that_is_garbage_is_handed_on_as_it_is(
    tmp_path: Path, store: BuildStore, command: CommandMaker
) -> None:
    """Whether bytes are a cubin is for the decoder to say."""
    built = await built_by(tmp_path, store, command, cubin_hex="00ff")
    assert (built.status, built.cubin) == ("ok", b"\x00\xff")


async def test_a_program_that_cannot_start(tmp_path: Path, store: BuildStore, command: CommandMaker) -> None:
    nvcc = tmp_path / "fake" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_bytes(b"\x7fELF and no more")
    nvcc.chmod(0o755)
    built = await build(command(kernel(tmp_path)), toolchain_of(nvcc), store)
    assert built.status == "failed"
    assert "could not be started" in built.reason


async def test_a_hang_ends_at_the_time_limit_with_all_its_children(
    tmp_path: Path, store: BuildStore, command: CommandMaker
) -> None:
    built = await built_by(tmp_path, store, command, hang=True, stubborn=True, children=2, limit_s=1.0)
    assert built.status == "timeout"
    assert "longer than 1 s" in built.reason
    await until_nothing_left(tmp_path)
    again = await built_by(tmp_path, store, command, exit=3)
    assert again.cached is False  # a time limit is no result


async def test_endless_output_is_stopped(
    tmp_path: Path, store: BuildStore, command: CommandMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "RUNAWAY_OUTPUT_BYTES", 4 << 20)
    built = await built_by(tmp_path, store, command, flood_bytes=-1)
    assert built.status == "failed"
    assert "without end" in built.reason
    await until_nothing_left(tmp_path)


async def test_children_that_outlive_nvcc_do_not_hold_the_result(
    tmp_path: Path, store: BuildStore, command: CommandMaker
) -> None:
    built = await built_by(tmp_path, store, command, children=2, exit=1, stderr="k.cu(1): error: x\n")
    assert (built.status, built.reason) == ("failed", "k.cu:1: x")
    await until_nothing_left(tmp_path)


async def test_cancelling_leaves_no_process_and_no_file(
    tmp_path: Path, store: BuildStore, command: CommandMaker
) -> None:
    task = asyncio.ensure_future(built_by(tmp_path, store, command, hang=True, stubborn=True, children=2))
    deadline = time.monotonic() + 10
    while len(list((tmp_path / "cache" / "tmp").glob("server-*/run-*/tmpxft_*"))) < 2:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_nothing_left(tmp_path)
    assert time.monotonic() - started < 2


async def test_cancelling_a_real_build(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    heavy = tmp_path / "heavy.cu"
    body = "".join(f"  v = v * v + {number}.5f * x[{number}];\n" for number in range(20_000))
    heavy.write_text("__global__ void k(float *x) {\n  float v = x[0];\n" + body + "  x[1] = v;\n}\n")
    task = asyncio.ensure_future(build(command(heavy), tools, store))
    deadline = time.monotonic() + 30
    while not list((tmp_path / "cache" / "tmp").glob("server-*/run-*/steps/*.ii")):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list((tmp_path / "cache" / "tmp").glob("server-*/run-*")) == []
    found = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False)
    assert [pid for pid in found.stdout.split() if _runs(int(pid))] == []


@pytest.mark.parametrize("version", ["", "garbage \x00\x1b[0m", "nvcc: something else 1.2.3"])
async def test_a_version_that_is_none(tmp_path: Path, store: BuildStore, version: str) -> None:
    nvcc = install(tmp_path / "fake", version=version, stdout="what?\n", exit=1)
    probed = await probe(toolchain_of(nvcc), store, os.environ)
    assert probed.nvcc is not None
    assert (probed.nvcc.version, probed.gpu_code, probed.toolkit) == (None, (), None)
    assert any(str(nvcc) in problem and "--version" in problem for problem in probed.problems)


async def test_a_probe_is_bounded_in_time(tmp_path: Path, store: BuildStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_lsp.build.probe._TIME_LIMIT_S", 0.5)
    nvcc = install(tmp_path / "fake", version=None, hang=True)
    started = time.monotonic()
    probed = await probe(toolchain_of(nvcc), store, os.environ)
    assert time.monotonic() - started < 5
    assert probed.nvcc is not None
    assert probed.nvcc.version is None


async def test_answers_of_tools_are_kept_but_not_those_of_scripts(
    tmp_path: Path, toolkit: Path, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    run = process.run

    async def counted(argv: list[str], **options: object) -> process.Finished:
        calls.append(argv[0])
        return await run(argv, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "run", counted)
    real = find_toolchain(settings={"nvcc": str(toolkit / "bin")}, environment=os.environ)
    later = await probe(real, BuildStore(tmp_path / "cache"), os.environ)  # `tools` asked before
    assert (calls, later) == ([], tools)
    assert later.nvcc is not None
    said = subprocess.run([str(later.nvcc.path), "--version"], capture_output=True, text=True, check=True).stdout
    assert f"V{later.nvcc.version}" in said
    assert later.toolkit == toolkit.resolve()
    assert {"sm_75", "sm_86", "sm_90", "sm_120"} <= set(later.gpu_code)

    script = toolchain_of(install(tmp_path / "fake"))
    for n_asked in (1, 2):
        await probe(script, BuildStore(tmp_path / "cache"), os.environ)
        assert len(calls) == 3 * n_asked


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("NVIDIA H200, 9.0\n", ("NVIDIA H200", "sm_90")),
        ("NVIDIA GeForce RTX 3070 Ti, 8.6\nTesla T4, 7.5\n", ("NVIDIA GeForce RTX 3070 Ti", "sm_86")),
        ("NVIDIA Graphics, Special, 12.0\n", ("NVIDIA Graphics, Special", "sm_120")),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", None),
        ("[N/A], [N/A]\n", None),
        ("", None),
    ],
)
async def test_gpu_by_what_nvidia_smi_says(tmp_path: Path, said: str, expected: tuple[str, str] | None) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'X'\n{said}X\n")
    program.chmod(0o755)
    gpu = await detect_gpu({"PATH": f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin"})
    assert (None if gpu is None else (gpu.name, gpu.arch)) == expected
