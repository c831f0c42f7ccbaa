"""Options that several subcommands share, and the one call that turns them and a file into an outcome."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp.build.store import BuildStore, default_cache_folder
from kernel_lsp.cli.argument_types import block, whole
from kernel_lsp.cli.errors import CliError, MissingToolError
from kernel_lsp.hardware.catalog import UnknownArchError, UnknownGpuError, by_name, limits_for_arch
from kernel_lsp.model.launch import Launch
from kernel_lsp.project.find_command import HEADER_SUFFIXES
from kernel_lsp.project.includers import CUDA_SUFFIX
from kernel_lsp.project.toolchain import find_toolchain
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings

if TYPE_CHECKING:
    from kernel_lsp.analysis import FileAnalysis
    from kernel_lsp.findings.finding import Finding
    from kernel_lsp.ncu.measured_report import MeasuredReport

_MOST_REASONS = 3
_NOT_COMPILED = "KL905"


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """`--gpu --arch --profile-report --block --dynamic-shared --no-cache --config`, as everywhere."""
    machine = parser.add_mutually_exclusive_group()
    machine.add_argument("--gpu", metavar="NAME", default="", help="board whose limits and peaks are shown")
    machine.add_argument("--arch", metavar="sm_NN", default="", help="architecture that is built")
    parser.add_argument(
        "--profile-report",
        metavar="PATH",
        dest="profile_reports",
        type=Path,
        action="append",
        default=[],
        help="a report of Nsight Compute whose measurements are joined; the last of several counts first",
    )
    parser.add_argument("--block", metavar="N", type=block, help="threads per block, as 256 or 16x16")
    parser.add_argument("--dynamic-shared", metavar="B", type=whole, help="dynamic shared memory per block, bytes")
    parser.add_argument("--no-cache", action="store_true", help="build even if the same build is in the cache")
    parser.add_argument("--config", metavar="PATH", type=Path, help="kernel-lsp.yaml to use")


def outcomes_of(files: Iterable[str], options: argparse.Namespace) -> list[FileOutcome]:
    """Analyse each file in turn.

    Raises:
        CliError: a file that cannot be read or is no CUDA file, or options that contradict each other.
        MissingToolError: a file needs a build and nvcc is not there, or a report NVIDIA's reader.
    """
    _check_machine(options)
    paths = [_readable(file) for file in files]
    reports = tuple(reversed(load_reports(options.profile_reports))) if options.profile_reports else ()
    pipeline = Pipeline()

    async def analyse_all() -> list[FileOutcome]:
        return [await pipeline.analyze(replace(_request(path, options), reports=reports)) for path in paths]

    outcomes = asyncio.run(analyse_all())
    for outcome in outcomes:
        if outcome.build is not None and outcome.build.status == "tool missing":
            raise MissingToolError(outcome.build.reason)
        suffix = Path(outcome.path).suffix
        if outcome.build and outcome.build.status == "skipped" and suffix not in (CUDA_SUFFIX, *HEADER_SUFFIXES):
            raise CliError(f"{outcome.path}: {outcome.build.reason}")
        if outcome.analysis is None and suffix == ".cubin":
            said = "; ".join(finding.message for finding in outcome.findings) or outcome.summary
            raise CliError(f"{outcome.path}: {said}")
    for notice in dict.fromkeys(notice for outcome in outcomes for notice in outcome.notices):
        sys.stderr.write(f"kernel-lsp: {notice}\n")
    return outcomes


def analysis_of(outcome: FileOutcome, file: str, wanted: str) -> FileAnalysis:
    """What is known of the file named `file` on the command line.

    Raises:
        CliError: nothing is known; the message says why there is nothing `wanted`.
    """
    analysis = outcome.analysis
    if analysis is None:
        errors = [f"{_place(f, outcome)}: {f.message}" for f in outcome.findings if f.severity == "error"]
        why = errors or [finding.message for finding in outcome.findings] or [outcome.summary]
        more = f" and {len(why) - _MOST_REASONS} more" if len(why) > _MOST_REASONS else ""
        said = "; ".join(why[:_MOST_REASONS]) + more
        raise CliError(
            f"no {wanted}: {file} could not be built ({said})" if errors else f"no {wanted} of {file}: {said}"
        )
    return analysis


def tell_no_kernels(outcome: FileOutcome, file: str) -> None:
    """Says on stderr, of a file that was built, that it has none, and what was not compiled."""
    uncompiled = [finding.message for finding in outcome.findings if finding.code == _NOT_COMPILED]
    sys.stderr.write(f"kernel-lsp: {'; '.join([f'{file}: no kernels in this file', *uncompiled[:1]])}\n")


def _place(finding: Finding, outcome: FileOutcome) -> str:
    return f"l.{finding.line}" if finding.file == outcome.path else f"{Path(finding.file).name}:{finding.line}"


def load_reports(paths: Sequence[Path]) -> list[MeasuredReport]:
    """Reports and CSV pages of Nsight Compute, in the order of `paths`.

    Raises:
        CliError: one cannot be read; the message names the file and the cause.
        MissingToolError: NVIDIA's reader is not installed.
    """
    from kernel_lsp.ncu.raw_report import NcuError, ReaderMissingError
    from kernel_lsp.session.profiles import ProfileLoader

    async def load() -> list[MeasuredReport]:
        store = BuildStore(default_cache_folder())
        try:
            environment = dict(os.environ)
            loader = ProfileLoader(store, environment, find_toolchain(settings={}, environment=environment))
            return [await loader.load(path) for path in paths]
        finally:
            store.close()

    try:
        return asyncio.run(load())
    except ReaderMissingError as error:
        raise MissingToolError(str(error)) from error
    except NcuError as error:
        raise CliError(str(error)) from error


def request_for(file: str, options: argparse.Namespace) -> PipelineRequest:
    """What a file and the shared options ask for. Raises CliError as `outcomes_of` does."""
    _check_machine(options)
    return _request(_readable(file), options)


def _check_machine(options: argparse.Namespace) -> None:
    """An unknown board or architecture is an error here; in an editor it is only a message."""
    try:
        if options.gpu:
            by_name(options.gpu)
        if options.arch:
            limits_for_arch(options.arch)
    except (UnknownGpuError, UnknownArchError) as error:
        raise CliError(str(error)) from error
    if options.config is not None and not options.config.is_file():
        raise CliError(f"--config {options.config}: no such file")


def _readable(file: str) -> Path:
    path = Path(file)
    if path.is_dir():
        raise CliError(f"{file} is a folder: name its .cu files")
    if not path.is_file():
        raise CliError(f"{file}: no such file")
    return path.absolute()


def _request(path: Path, options: argparse.Namespace) -> PipelineRequest:
    return PipelineRequest(
        document=path,
        settings=replace(Settings(), gpu=options.gpu, arch=options.arch),
        roots=(Path.cwd(),),
        explicit_flags=options.nvcc_flags,
        launch=_launch(options),
        dynamic_shared_bytes=options.dynamic_shared,
        use_cache=not options.no_cache,
        config_file=options.config,
    )


def _launch(options: argparse.Namespace) -> Launch | None:
    if options.block is None:
        return None
    return Launch(options.block, None, options.dynamic_shared, None, "override", "--block")
