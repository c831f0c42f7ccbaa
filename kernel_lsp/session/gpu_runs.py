"""Profiles and benchmarks that the user asks for: from settings and document to a kept report or result, one at a time.

They run programs that the user's settings name, so nothing here is started in a workspace that is not trusted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kernel_lsp.build.benchmark_run import BenchmarkError, BenchmarkPlan, benchmark_outputs
from kernel_lsp.build.kept_reports import reports_folder
from kernel_lsp.build.profile_run import Collected, ProfileError, ProfilePlan, collect
from kernel_lsp.build.store import BuildStore
from kernel_lsp.model.benchmark_times import BenchmarkOutputError, Timing, compared, spreads, times_in
from kernel_lsp.report.benchmark_text import BenchmarkPage, benchmark_line, benchmark_markdown
from kernel_lsp.session.benchmark_history import BenchmarkHistory, BenchmarkResult
from kernel_lsp.session.settings import Settings
from kernel_lsp.session.uris import folder_of_runs

NO_PROGRAM = (
    "kernelLsp.profile.program is empty: name the program that launches the kernel, and its arguments, for example "
    '["./build/app", "1024"]. Build it with -lineinfo, so that what is measured finds its lines.'
)
NO_BENCHMARK = (
    "kernelLsp.benchmark.command is empty: name a program that prints times of CUDA events, and its arguments, for "
    'example ["./build/bench", "{size}"], and the sizes in kernelLsp.benchmark.sizes.'
)
NOT_TRUSTED = "This workspace is not trusted: no program that settings name is run."


class GpuRunError(Exception):
    """Nothing was measured; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Whose run it is: the source, the workspace folders, the settings of now, and whether they are trusted."""

    source: Path
    roots: tuple[Path, ...]
    settings: Settings
    trusted: bool

    @property
    def folder(self) -> Path:
        """Where the programs run."""
        return folder_of_runs(self.source, self.roots)


@dataclass(frozen=True, slots=True)
class Benchmarked:
    """A finished benchmark: its page, and the line that says the most."""

    page: Path
    line: str


class GpuRuns:
    """The one run that may be under way: two on one GPU would disturb each other's times."""

    def __init__(self, store: BuildStore, environment: Mapping[str, str]) -> None:
        self._store = store
        self._environment = environment
        self._running: asyncio.Task[object] | None = None
        self._what = ""

    def reports_folder(self, place: RunPlace) -> Path:
        """Where the reports of this place's workspace are kept."""
        return reports_folder(self._cache(), place.folder)

    async def profile(self, place: RunPlace, kernel: str, mangled: str) -> Collected:
        """Measure one kernel with ncu. Cancelling the calling task ends it.

        Raises:
            GpuRunError: there is no report.
        """
        settings = place.settings
        self._check(place, settings.profile_program, NO_PROGRAM)
        plan = ProfilePlan(
            kernel,
            mangled,
            settings.profile_command,
            settings.profile_program,
            settings.profile_fetch,
            settings.profile_launch_skip,
            settings.profile_launch_count,
            place.folder,
        )
        self._begin(f"the profile of {kernel}")
        try:
            return await collect(plan, self._store, self._environment, self.reports_folder(place))
        except ProfileError as error:
            raise GpuRunError(str(error)) from error
        finally:
            self._running = None

    async def benchmark(self, place: RunPlace) -> Benchmarked:
        """Run the benchmark command and compare with its last result. Cancelling the calling task ends it.

        Raises:
            GpuRunError: there are no times.
        """
        settings = place.settings
        self._check(place, settings.benchmark_command, NO_BENCHMARK)
        plan = BenchmarkPlan(
            settings.benchmark_command,
            settings.benchmark_sizes,
            settings.benchmark_warmup,
            settings.benchmark_runs,
            place.folder,
        )
        self._begin("the benchmark")
        try:
            timings: list[Timing] = []
            async with aclosing(benchmark_outputs(plan, self._store, self._environment)) as outputs:
                async for output in outputs:
                    timings += await asyncio.to_thread(times_in, output.text, settings.benchmark_pattern, output.size)
            return await asyncio.to_thread(self._kept, place, plan, timings)
        except (BenchmarkError, BenchmarkOutputError) as error:
            said = str(error)
            whole = said if isinstance(error, BenchmarkError) else f"The benchmark ran, but {said}."
            raise GpuRunError(whole) from error
        finally:
            self._running = None

    async def end(self) -> None:
        """Stop what runs; no process of it is left afterwards."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _check(self, place: RunPlace, words: tuple[str, ...], if_empty: str) -> None:
        if not place.trusted:
            raise GpuRunError(NOT_TRUSTED)
        if not words:
            raise GpuRunError(if_empty)
        if self._running is not None:
            raise GpuRunError(f"{self._what[0].upper()}{self._what[1:]} is still running: wait for it, or cancel it.")

    def _begin(self, what: str) -> None:
        self._running, self._what = asyncio.current_task(), what

    def _kept(self, place: RunPlace, plan: BenchmarkPlan, timings: list[Timing]) -> Benchmarked:
        history = BenchmarkHistory(self._cache(), place.source, plan.command)
        before = history.last()
        result = BenchmarkResult(datetime.now().astimezone(), spreads(timings))
        comparisons = compared(result.spreads, before.spreads if before is not None else ())
        page = BenchmarkPage(
            place.source.name,
            plan.command,
            result.ended_at,
            before.ended_at if before is not None else None,
            plan.n_runs,
            plan.n_warmup,
        )
        try:
            history.keep(result, benchmark_markdown(page, comparisons))
        except OSError as error:
            raise BenchmarkError(
                f"The result could not be kept at {history.page} ({error.strerror or error})."
            ) from error
        return Benchmarked(history.page, benchmark_line(comparisons))

    def _cache(self) -> Path:
        assert self._store.folder is not None
        return self._store.folder
