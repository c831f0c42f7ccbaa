"""`kernel-lsp doctor [FILE]`: what the machine offers, what is missing and the one command that brings it.

With a file: the command that would build it, where that comes from, and what was dropped or refused on the way.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kernel_lsp import __version__
from kernel_lsp.build.arguments import shown_argv
from kernel_lsp.build.probe import Gpu
from kernel_lsp.build.store import CACHE_VARIABLE, DEFAULT_BUDGET_BYTES, BuildStore, default_cache_folder
from kernel_lsp.cli.common import add_common_options, request_for
from kernel_lsp.cli.errors import CliError
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.session.outcome import PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.planning import DEFAULT_GPU, Plan
from kernel_lsp.session.settings import Settings

_NOTE_STYLES = {"refused": "yellow", "warning": "yellow", "dropped": "dim"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `doctor`."""
    parser = subparsers.add_parser(
        "doctor",
        help="tools, versions, GPU, and which command would build a file",
        epilog="After -- come nvcc flags, used instead of the project's.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="a .cu or .cuh")
    add_common_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the state of things; 3 where nvcc is missing."""
    request = request_for(options.file, options) if options.file else None
    toolchain, gpu, plan = asyncio.run(_ask(request))
    console = Console(soft_wrap=True, highlight=False, emoji=False, markup=False)
    sections = [
        ("Program", _program()),
        ("Tools", _tools(toolchain)),
        ("GPU", _gpu(gpu)),
        ("Cache", _cache()),
        ("Problems", [Text(problem, "yellow") for problem in toolchain.problems]),
        ("Missing", [Text(missing.message, "bold yellow") for missing in toolchain.missing]),
    ]
    if plan is not None:
        sections.append((str(plan.path), _command(plan, toolchain)))
    first = True
    for title, lines in sections:
        shown = list(lines)
        if not shown:
            continue
        if not first:
            console.print()
        first = False
        console.print(Text(title, "bold"))
        for line in shown:
            console.print(Text("  ") + line)
    return 3 if toolchain.nvcc is None else 0


async def _ask(request: PipelineRequest | None) -> tuple[Toolchain, Gpu | None, Plan | None]:
    pipeline = Pipeline()
    try:
        if request is None:
            return await pipeline.toolchain(Settings()), await pipeline.machine_gpu(), None
        plan, toolchain = await pipeline.command(request)
        return toolchain, await pipeline.machine_gpu(), plan
    except OSError as error:
        raise CliError(f"{request.document if request else ''} cannot be read: {error.strerror or error}") from error
    finally:
        pipeline.close()


def _program() -> Iterator[Text]:
    yield _row("kernel-lsp", __version__, str(Path(__file__).parent.parent))
    yield _row("Python", platform.python_version(), sys.executable)


def _tools(toolchain: Toolchain) -> Iterator[Text]:
    for tool in toolchain.tools():
        yield _row(tool.name, tool.version or "unknown", str(tool.path), tool.where)
    if toolchain.gpu_code:
        yield _row("builds for", ", ".join(toolchain.gpu_code))
    if sys.platform != "win32":
        host = shutil.which("g++") or shutil.which("gcc")
        yield (
            _row("host compiler", host)
            if host
            else Text(
                "host compiler  not found: nvcc needs one. Install g++ (Debian, Ubuntu: apt install g++).", "yellow"
            )
        )


def _gpu(gpu: Gpu | None) -> Iterator[Text]:
    if gpu is not None:
        yield Text(f"{gpu.name} ({gpu.arch})")
    else:
        yield Text(
            f"none found by nvidia-smi; numbers are for the {DEFAULT_GPU} unless --gpu, kernelLsp.gpu or the flags say"
            " otherwise"
        )


def _cache() -> Iterator[Text]:
    folder = default_cache_folder()
    used = BuildStore(folder).disk_bytes()
    yield Text(f"{folder}: {_megabytes(used)} of at most {_megabytes(DEFAULT_BUDGET_BYTES)}")
    parent = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        yield Text(f"{parent} cannot be written: builds are not kept. Name another in {CACHE_VARIABLE}.", "yellow")


def _command(plan: Plan, toolchain: Toolchain) -> Iterator[Text]:
    command = plan.command
    origin = command.origin if command.origin_path is None else str(command.origin_path)
    yield _row("from", origin + (f", {command.origin_detail}" if command.origin_detail else ""))
    if command.source != command.document:
        yield _row("through", f"{command.source}, which includes it")
    yield _row("for", f"{command.arch} ({command.arch_why})")
    yield _row("in", str(command.cwd))
    if command.skip_reason is not None:
        yield Text(f"not built: {command.skip_reason}", "yellow")
    else:
        nvcc = Path("nvcc") if toolchain.nvcc is None else toolchain.nvcc.path
        yield _row("command", shlex.join(shown_argv(command, nvcc)))
    for name, value in command.environment:
        yield _row("with", f"{name}={value}")
    for note in command.notes:
        yield _row(note.kind, note.message, style=_NOTE_STYLES.get(note.kind, ""))
    for notice in plan.notices:
        if notice not in toolchain.problems:
            yield Text(notice, "yellow")


def _row(name: str, *values: str, style: str = "") -> Text:
    """A name in a column of its own, then the values, the last of several in a quieter tone."""
    row = Text(f"{name:<13} ", "dim") + Text(values[0], style)
    for value in values[1:]:
        row.append(f"  {value}", "dim")
    return row


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 20):.1f} MB"
