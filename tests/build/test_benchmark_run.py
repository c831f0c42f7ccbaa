"""Benchmarks with real processes: how often the command is run, with which sizes, and what a failing run ends."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from kernel_lsp.build.benchmark_run import BenchmarkError, BenchmarkOutput, BenchmarkPlan, benchmark_outputs
from kernel_lsp.build.store import BuildStore
from tests.build.test_process import alive, until
from tests.fakes import fake_ssh

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts and process groups of POSIX")


def bench(folder: Path, body: str = "") -> Path:
    """A program that appends its arguments to `log` and prints them."""
    program = folder / "bench"
    program.write_text(f'#!/bin/sh\necho "$*" >> "{folder}/log"\necho "n=$1: 1.5 ms" >&2\n{body}\n')
    program.chmod(0o755)
    return program


async def outputs(plan: BenchmarkPlan, store: BuildStore, **environment: str) -> list[BenchmarkOutput]:
    async with aclosing(benchmark_outputs(plan, store, {**os.environ, **environment})) as found:
        return [each async for each in found]


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines() if (folder / "log").exists() else []


async def test_warm_up_then_runs_for_each_size(tmp_path: Path, store: BuildStore) -> None:
    bench(tmp_path)
    plan = BenchmarkPlan(("./bench", "{size}", "n={size}"), ("64", "a b"), 1, 2, tmp_path)
    got = await outputs(plan, store)
    assert log(tmp_path) == ["64 n=64"] * 3 + ["a b n=a b"] * 3
    assert got == [BenchmarkOutput("64", "n=64: 1.5 ms")] * 2 + [BenchmarkOutput("a b", "n=a b: 1.5 ms")] * 2


async def test_without_sizes(tmp_path: Path, store: BuildStore) -> None:
    bench(tmp_path)
    got = await outputs(BenchmarkPlan(("./bench",), (), 0, 1, tmp_path), store)
    assert [each.size for each in got] == [""]
    assert log(tmp_path) == [""]


@pytest.mark.parametrize(
    ("command", "sizes", "part"),
    [
        (("./bench", "{size}"), (), "kernelLsp.benchmark.sizes is empty"),
        (("./bench",), ("64",), "holds no {size}"),
        (("./none",), (), "kernelLsp.benchmark.command: "),
        (("no-such-program",), (), "which is no program on PATH"),
    ],
)
async def test_settings_that_do_not_fit(
    tmp_path: Path, store: BuildStore, command: tuple[str, ...], sizes: tuple[str, ...], part: str
) -> None:
    bench(tmp_path)
    with pytest.raises(BenchmarkError) as raised:
        await outputs(BenchmarkPlan(command, sizes, 1, 2, tmp_path), store)
    assert part in str(raised.value)
    assert log(tmp_path) == []


async def test_a_failing_run_ends_the_benchmark(tmp_path: Path, store: BuildStore) -> None:
    bench(tmp_path, 'echo "CUDA error: out of memory" >&2; [ "$1" != 128 ]')
    plan = BenchmarkPlan(("./bench", "{size}"), ("64", "128", "256"), 0, 2, tmp_path)
    with pytest.raises(BenchmarkError, match=r"with size 128 ended with code 1: .*CUDA error: out of memory"):
        await outputs(plan, store)
    assert log(tmp_path) == ["64", "64", "128"]


async def test_sizes_pass_a_remote_shell(tmp_path: Path, store: BuildStore) -> None:
    home = tmp_path / "remote"
    fake_ssh.install(tmp_path / "bin", home, "/nowhere")
    bench(home)
    plan = BenchmarkPlan(("ssh", "gpuhost", "./bench {size}"), ("$(touch ran)",), 0, 1, tmp_path)
    await outputs(plan, store, PATH=os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]))
    assert log(home) == ["$(touch ran)"]
    assert not list(tmp_path.rglob("ran"))


async def test_cancel_leaves_no_process(tmp_path: Path, store: BuildStore) -> None:
    bench(tmp_path, f'"{sys.executable}" -c "import time; time.sleep(60)" & echo "$$ $!" > "{tmp_path}/pids"; wait')
    task = asyncio.create_task(outputs(BenchmarkPlan(("./bench",), (), 0, 1, tmp_path), store))
    pids = tmp_path / "pids"
    await until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))
