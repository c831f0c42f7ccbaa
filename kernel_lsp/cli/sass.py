"""`kernel-lsp sass FILE`: every instruction with its line, callers, loop depth and live registers, as text or JSON."""

from __future__ import annotations

import argparse
import json
import sys

from kernel_lsp.cli.common import add_common_options, outcomes_of
from kernel_lsp.cli.errors import CliError, MissingToolError
from kernel_lsp.report.document import NoSuchKernelError, chosen_kernels
from kernel_lsp.report.sass_listing import sass_listing
from kernel_lsp.report.sass_value import sass_document


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `sass`."""
    parser = subparsers.add_parser(
        "sass",
        help="instructions of a file's kernels, with their lines",
        epilog="After -- come nvcc flags, used instead of the project's.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a .cu or .cuh, or a .cubin (no build then)")
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel, by any of its names")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_common_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the instructions."""
    outcome = outcomes_of([options.file], options)[0]
    analysis = outcome.analysis
    if analysis is None:
        errors = [f for f in outcome.findings if f.severity == "error"]
        why = "; ".join(f"l.{f.line}: {f.message}" for f in errors[:3]) or outcome.summary
        raise CliError(f"no instructions: {options.file} could not be built ({why})")
    try:
        kernels = chosen_kernels(analysis, options.kernel)
    except NoSuchKernelError as error:
        raise CliError(str(error)) from error
    if outcome.toolchain is not None and outcome.toolchain.nvdisasm is None:
        said = (tool.message for tool in outcome.toolchain.missing if tool.name == "nvdisasm")
        raise MissingToolError(next(said, "nvdisasm not found"))
    if options.format == "json":
        sys.stdout.write(json.dumps(sass_document(kernels), indent=1, ensure_ascii=False) + "\n")
        return 0
    for number, kernel in enumerate(kernels):
        if number:
            sys.stdout.write("\n")
        if kernel.sass is None:
            raise CliError(f"no instructions of {kernel.binary.short_name}: {kernel.sass_why}")
        sys.stdout.write(sass_listing(kernel, analysis.path).text)
    return 0
