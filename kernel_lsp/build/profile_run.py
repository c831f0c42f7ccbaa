"""One `ncu` run becomes a report file in the cache, or one message that says what went wrong and what to do.

ncu writes into a run folder, from where a report that is whole is moved to where reports are kept. Through a command
that reaches another machine it writes to /tmp there, and the user's second command copies the report from there.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.build import process
from kernel_lsp.build.kept_reports import keep
from kernel_lsp.build.store import BuildStore
from kernel_lsp.build.user_program import output_text, run_user_program
from kernel_lsp.ncu.command_line import profile_options, report_named
from kernel_lsp.ncu.failures import failure_message, program_ended_badly
from kernel_lsp.ncu.raw_report import REPORT_SUFFIXES
from kernel_lsp.project.user_command import UserCommandError, extended, filled, runs_here, with_program

logger = logging.getLogger(__name__)

PROFILE_LIMIT_S = 3600.0
FETCH_LIMIT_S = 600.0
_REMOTE_FOLDER = "/tmp"  # noqa: S108 - of the other machine; the name in it cannot be guessed
_MOST_LOGGED = 20_000  # letters


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """What to run. `command`, `program` and `fetch` are the user's words; `folder` is where they run."""

    kernel: str  # as a person says it
    mangled: str
    command: tuple[str, ...]
    program: tuple[str, ...]
    fetch: tuple[str, ...]
    launch_skip: int
    launch_count: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Collected:
    """A report that was written. `note`: what is odd about it ("": nothing)."""

    report: Path
    note: str


class ProfileError(Exception):
    """There is no report; the message says why and what to do."""


async def collect(plan: ProfilePlan, store: BuildStore, environment: Mapping[str, str], keep_in: Path) -> Collected:
    """Run ncu once and keep its report in `keep_in`.

    Raises:
        ProfileError: there is no report. asyncio.CancelledError passes through, with no process left behind.
    """
    try:
        with store.scratch.run_folder() as folder:
            report, note = await _collect(plan, environment, folder)
            kept = await asyncio.to_thread(keep, report, keep_in, plan.kernel)
            return Collected(kept, note)
    except UserCommandError as error:
        raise ProfileError(str(error)) from error
    except OSError as error:
        raise ProfileError(f"The report could not be kept in {keep_in} ({error.strerror or error}).") from error


async def _collect(plan: ProfilePlan, environment: Mapping[str, str], folder: Path) -> tuple[Path, str]:
    stem = f"kernel-lsp-{secrets.token_hex(8)}"
    output = f"{_REMOTE_FOLDER}/{stem}" if plan.fetch else str(folder / stem)
    try:
        options = profile_options(plan.mangled, output, launch_skip=plan.launch_skip, launch_count=plan.launch_count)
    except ValueError as error:
        raise ProfileError(f"{error}. Name another cache folder in KERNEL_LSP_CACHE_DIR.") from error
    command = with_program(plan.command, "profile.command", plan.folder, environment)
    program = plan.program
    if program[0].startswith("-"):
        raise ProfileError(
            f"kernelLsp.profile.program starts with {program[0]}, which ncu would take for its own option."
        )
    if runs_here(command):  # else it stands on another machine, or in a container
        program = with_program(program, "profile.program", plan.folder, environment)
    argv = extended(command, (*options, *program))
    logger.info("profiling in %s: %s", plan.folder, argv)
    ended = await run_user_program(
        argv, cwd=plan.folder, environment=environment, run_folder=folder, time_limit_s=PROFILE_LIMIT_S
    )
    text = output_text(ended)
    if ended.ending != "exited":
        raise ProfileError(_unfinished(ended, "kernelLsp.profile.command", PROFILE_LIMIT_S))
    report = await _fetched(plan, text, stem, environment, folder) if plan.fetch else _written(folder, stem)
    if report is None:
        logger.warning("ncu wrote no report; its output:\n%s", text[-_MOST_LOGGED:])
        raise ProfileError(_no_report(plan, text, ended, stem))
    return report, program_ended_badly(text) or ""


def _written(folder: Path, stem: str) -> Path | None:
    return next((path for suffix in REPORT_SUFFIXES if (path := folder / f"{stem}{suffix}").is_file()), None)


async def _fetched(
    plan: ProfilePlan, text: str, stem: str, environment: Mapping[str, str], folder: Path
) -> Path | None:
    """Copy the report that ncu says it has written on the other machine."""
    remote = report_named(text, stem)
    if remote is None:
        return None
    local = folder / f"{stem}{next((s for s in reversed(REPORT_SUFFIXES) if remote.endswith(s)), REPORT_SUFFIXES[0])}"
    words = with_program(plan.fetch, "profile.fetch", plan.folder, environment)
    argv = filled(words, {"remote": remote, "local": str(local)})
    logger.info("fetching the report: %s", argv)
    ended = await run_user_program(
        argv, cwd=plan.folder, environment=environment, run_folder=folder, time_limit_s=FETCH_LIMIT_S
    )
    if ended.ending != "exited":
        raise ProfileError(_unfinished(ended, "kernelLsp.profile.fetch", FETCH_LIMIT_S))
    if not local.is_file():
        said = output_text(ended).strip().splitlines()
        why = f": {said[-1][:200]}" if said else ""
        raise ProfileError(
            f"The report was written as {remote} on the other machine, but kernelLsp.profile.fetch did not copy it to "
            f"{{local}} (exit code {ended.code}){why}."
        )
    return local


def _no_report(plan: ProfilePlan, text: str, ended: process.Finished, stem: str) -> str:
    if report_named(text, stem) is not None and not plan.fetch:
        return (
            "ncu wrote its report, but not in this machine's file system. Name a command that copies it in "
            'kernelLsp.profile.fetch, for example ["scp", "gpuhost:{remote}", "{local}"].'
        )
    return failure_message(text, ended.code)


def _unfinished(ended: process.Finished, setting: str, limit_s: float) -> str:
    if ended.ending == "not started":
        return f"{setting} could not be started ({ended.error})."
    if ended.ending == "timeout":
        return f"{setting} ran longer than {limit_s / 60:.0f} minutes and was stopped."
    return f"{setting} printed more than {process.RUNAWAY_OUTPUT_BYTES >> 20} MB and was stopped."
