"""Profiles and benchmarks from settings: refusals, one at a time, before and after, damaged results."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.build.store import BuildStore
from kernel_lsp.model.benchmark_times import JSON_LINES, Spread
from kernel_lsp.session.benchmark_history import BenchmarkHistory
from kernel_lsp.session.gpu_runs import NOT_TRUSTED, GpuRunError, GpuRuns, RunPlace
from kernel_lsp.session.settings import Settings, resolve
from tests.build.test_process import until
from tests.fakes import fake_ncu

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts of POSIX")

SCALE = "_Z5scalePf"


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[GpuRuns]:
    store = BuildStore(tmp_path / "cache")
    yield GpuRuns(store, os.environ)
    store.close()


@pytest.fixture
def place(tmp_path: Path) -> RunPlace:
    """A trusted workspace with a source in a folder of it."""
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    source = root / "src" / "k.cu"
    source.write_text("")
    return RunPlace(source, (root,), Settings(), trusted=True)


def with_settings(place: RunPlace, **values: object) -> RunPlace:
    return replace(place, settings=replace(place.settings, **values))  # type: ignore[arg-type]


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_programs_run_in_the_innermost_workspace_folder(tmp_path: Path) -> None:
    source = tmp_path / "a" / "b" / "c" / "k.cu"
    place = RunPlace(source, (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "x"), Settings(), trusted=True)
    assert place.folder == tmp_path / "a" / "b"
    assert replace(place, roots=()).folder == source.parent


async def test_nothing_is_run_without_trust(runs: GpuRuns, place: RunPlace, tmp_path: Path) -> None:
    canary = script(tmp_path / "canary", f'touch "{tmp_path}/ran"')
    words = (str(canary),)
    wary = replace(
        with_settings(place, profile_command=words, profile_program=words, benchmark_command=words), trusted=False
    )
    with pytest.raises(GpuRunError, match=NOT_TRUSTED):
        await runs.profile(wary, "scale", SCALE)
    with pytest.raises(GpuRunError, match=NOT_TRUSTED):
        await runs.benchmark(wary)
    assert not (tmp_path / "ran").exists()


async def test_empty_settings_say_what_to_set(runs: GpuRuns, place: RunPlace) -> None:
    with pytest.raises(
        GpuRunError, match=r'kernelLsp\.profile\.program is empty: .*\["\./build/app", "1024"\].*-lineinfo'
    ):
        await runs.profile(place, "scale", SCALE)
    with pytest.raises(GpuRunError, match=r"kernelLsp\.benchmark\.command is empty: .*kernelLsp\.benchmark\.sizes"):
        await runs.benchmark(place)


async def test_a_profile_is_kept_for_its_workspace(runs: GpuRuns, place: RunPlace, tmp_path: Path) -> None:
    ncu = fake_ncu.install(tmp_path / "bin", launches=[SCALE])
    got = await runs.profile(
        with_settings(place, profile_command=(str(ncu),), profile_program=("true",)), "scale", SCALE
    )
    assert got.report.parent == runs.reports_folder(place)
    assert got.report.parent != runs.reports_folder(replace(place, roots=()))


async def test_one_at_a_time(runs: GpuRuns, place: RunPlace, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    ncu = fake_ncu.install(tmp_path / "bin", hang=True, marks=str(marks))
    words = {"profile_command": (str(ncu),), "profile_program": ("true",), "benchmark_command": ("true",)}
    busy = with_settings(place, **words)
    first = asyncio.create_task(runs.profile(busy, "scale", SCALE))
    await until(lambda: len(list(marks.glob("[0-9]*"))) == 2)
    with pytest.raises(GpuRunError, match="The profile of scale is still running: wait for it, or cancel it"):
        await runs.benchmark(busy)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(GpuRunError, match="no time in its output"):  # the next one may run
        await runs.benchmark(busy)


async def test_the_end_waits_for_what_runs(runs: GpuRuns, place: RunPlace, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    ncu = fake_ncu.install(tmp_path / "bin", hang=True, marks=str(marks))
    busy = with_settings(place, profile_command=(str(ncu),), profile_program=("true",))
    task = asyncio.create_task(runs.profile(busy, "scale", SCALE))
    await until(lambda: len(list(marks.glob("[0-9]*"))) == 2)
    await runs.end()
    assert task.cancelled()


def bench(place: RunPlace, ms: str) -> RunPlace:
    script(place.folder / "bench", f'echo "{{\\"name\\": \\"gemm\\", \\"size\\": $1, \\"ms\\": {ms}}}"')
    return with_settings(place, benchmark_command=("./bench", "{size}"), benchmark_sizes=("64", "128"))


async def test_before_and_after(runs: GpuRuns, place: RunPlace) -> None:
    first = await runs.benchmark(bench(place, "2.0"))
    assert first.line == "gemm 64: 2.00 ms"
    assert "before" not in first.page.read_text()
    second = await runs.benchmark(bench(place, "1.5"))
    assert second.page == first.page
    assert second.line == "gemm 64: 1.50 ms, 25.0 % less time (2.00 ms before)"
    assert "| gemm | 128 | 1.50 ms | 1.50 ms to 1.50 ms | 3 | 2.00 ms | 25.0 % less time |" in second.page.read_text()


async def test_another_command_has_its_own_result(runs: GpuRuns, place: RunPlace) -> None:
    first = await runs.benchmark(bench(place, "2.0"))
    other = await runs.benchmark(with_settings(bench(place, "1.0"), benchmark_command=("./bench", "{size}", "x")))
    assert other.page != first.page
    assert "before" not in other.line


async def test_a_failed_benchmark_keeps_the_result_before(runs: GpuRuns, place: RunPlace) -> None:
    await runs.benchmark(bench(place, "2.0"))
    with pytest.raises(GpuRunError, match="The benchmark ran, but line 1 of its output: '0' ms is not a time"):
        await runs.benchmark(bench(place, "0"))
    assert (await runs.benchmark(bench(place, "1.0"))).line.endswith("(2.00 ms before)")


async def test_no_time_is_said_after_the_first_run_that_counts(runs: GpuRuns, place: RunPlace) -> None:
    script(place.folder / "bench", f'echo "took 3 s"; echo x >> "{place.folder}/log"')
    with pytest.raises(GpuRunError, match=r"no time in its output; it is read for lines such as"):
        await runs.benchmark(with_settings(place, benchmark_command=("./bench",)))
    assert (place.folder / "log").read_text() == "x\nx\n"  # one to warm up, one that counts


@given(st.binary(max_size=200) | st.recursive(st.none() | st.floats() | st.text(max_size=3), st.lists).map(json.dumps))
def test_a_damaged_result_counts_as_none(tmp_path_factory: pytest.TempPathFactory, content: bytes | str) -> None:
    history = BenchmarkHistory(tmp_path_factory.getbasetemp(), Path("/k.cu"), ("x",))
    path = history.page.parent / f"{history.page.name.removeprefix('k-').partition('.')[0]}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert history.last() is None


@pytest.mark.parametrize("change", [{"median_ns": -1.0}, {"least_ns": 9.0}, {"size": None}, {"n_times": "x"}])
def test_a_result_that_cannot_be_counts_as_none_or_is_read_as_text(tmp_path: Path, change: dict[str, object]) -> None:
    history = BenchmarkHistory(tmp_path, Path("/k.cu"), ("x",))
    row = {"name": "k", "size": "1", "n_times": 1, "median_ns": 2.0, "least_ns": 1.0, "most_ns": 3.0, **change}
    path = history.page.parent / f"{history.page.name.removeprefix('k-').partition('.')[0]}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"format": 1, "ended_at": "2025-11-30T14:02:00+00:00", "spreads": [row]}))
    last = history.last()
    assert last is None or last.spreads == (Spread("k", "None", 1, 2.0, 1.0, 3.0),)
    assert (last is None) == ("size" not in change)


def test_settings_are_checked() -> None:
    settings, problems = resolve(
        {
            "benchmark": {"pattern": r"(\d+) ms", "runs": 0, "sizes": [64]},
            "profile": {"launchSkip": -1, "command": "ncu"},
        }
    )
    assert settings == Settings()
    assert [problem.partition(":")[0] for problem in problems] == [
        "kernelLsp.profile.command",
        "kernelLsp.profile.launchSkip",
        "kernelLsp.benchmark.sizes",
        "kernelLsp.benchmark.pattern",
        "kernelLsp.benchmark.runs",
    ]
    assert "it needs a group named ms, us or ns" in problems[3]
    assert resolve({"benchmark": {"pattern": r"(?P<us>\d+) us"}})[1] == ()
    assert Settings().benchmark_pattern == JSON_LINES
