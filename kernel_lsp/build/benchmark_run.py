"""The user's benchmark command becomes the outputs of its runs: for each size some to warm up, then some that count."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.build import process
from kernel_lsp.build.store import BuildStore
from kernel_lsp.build.user_program import output_text, run_user_program
from kernel_lsp.project.user_command import UserCommandError, filled, placeholders, with_program

logger = logging.getLogger(__name__)

RUN_LIMIT_S = 900.0
_MOST_LOGGED = 20_000  # letters
_NO_SIZE = ("",)


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """What to run. `command` is the user's words with `{size}` in them where there are `sizes`; it runs in `folder`."""

    command: tuple[str, ...]
    sizes: tuple[str, ...]
    n_warmup: int
    n_runs: int
    folder: Path


@dataclass(frozen=True, slots=True)
class BenchmarkOutput:
    """What a run that counts printed. `size` is "" where the plan has none."""

    size: str
    text: str


class BenchmarkError(Exception):
    """A benchmark that could not be run; the message says why and what to do."""


async def benchmark_outputs(
    plan: BenchmarkPlan, store: BuildStore, environment: Mapping[str, str]
) -> AsyncGenerator[BenchmarkOutput, None]:
    """Run the command as often as the plan says, one run after the other, and give the outputs that count.

    Raises:
        BenchmarkError: a run failed; those after it are not started.
    """
    takes_size = "size" in placeholders(plan.command)
    if takes_size and not plan.sizes:
        raise BenchmarkError(
            "kernelLsp.benchmark.command holds {size}, but kernelLsp.benchmark.sizes is empty. Name the sizes to run."
        )
    if plan.sizes and not takes_size:
        raise BenchmarkError(
            "kernelLsp.benchmark.sizes is set, but kernelLsp.benchmark.command holds no {size} to put them in."
        )
    try:
        words = with_program(plan.command, "benchmark.command", plan.folder, environment)
    except UserCommandError as error:
        raise BenchmarkError(str(error)) from error
    try:
        with store.scratch.run_folder() as folder:
            for size in plan.sizes or _NO_SIZE:
                argv = filled(words, {"size": size})
                logger.info("benchmark in %s: %s", plan.folder, argv)
                for number in range(plan.n_warmup + plan.n_runs):
                    ended = await run_user_program(
                        argv, cwd=plan.folder, environment=environment, run_folder=folder, time_limit_s=RUN_LIMIT_S
                    )
                    text = output_text(ended)
                    if ended.ending != "exited" or ended.code != 0:
                        logger.warning("the benchmark failed; its output:\n%s", text[-_MOST_LOGGED:])
                        raise BenchmarkError(_failure(ended, text, size))
                    if number >= plan.n_warmup:
                        yield BenchmarkOutput(size, text)
    except OSError as error:
        raise BenchmarkError(f"There is no temporary folder for the benchmark ({error.strerror or error}).") from error


def _failure(ended: process.Finished, text: str, size: str) -> str:
    what = f"kernelLsp.benchmark.command{f' with size {size}' if size else ''}"
    if ended.ending == "not started":
        return f"{what} could not be started ({ended.error})."
    if ended.ending == "timeout":
        return f"{what} ran longer than {RUN_LIMIT_S / 60:.0f} minutes and was stopped."
    if ended.ending == "runaway output":
        return f"{what} printed more than {process.RUNAWAY_OUTPUT_BYTES >> 20} MB and was stopped."
    last = [line.strip()[:200] for line in text.splitlines() if line.strip()][-2:]
    said = f": {' / '.join(last).rstrip('.')}" if last else ""
    return f"{what} ended with code {ended.code}{said}. The whole output is in the log."
