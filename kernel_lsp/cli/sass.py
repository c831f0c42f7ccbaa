"""`kernel-lsp sass FILE`: every instruction with its line, callers, loop depth and live registers, as text or JSON."""

from __future__ import annotations

import argparse
import json
import sys

from kernel_lsp.cli.common import add_common_options, analysis_of, outcomes_of, tell_no_kernels
from kernel_lsp.cli.errors import CliError, MissingToolError
from kernel_lsp.report.kernel_choice import NoSuchKernelError, chosen_kernels
from kernel_lsp.report.sass_listing import sass_listing
from kernel_lsp.report.sass_value import in_order, sass_document

_BUILD_NOTE = "KL903"  # what was built is not exactly what was asked for


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
    analysis = analysis_of(outcome, options.file, "instructions")
    try:
        kernels = chosen_kernels(analysis, options.kernel)
    except NoSuchKernelError as error:
        raise CliError(str(error)) from error
    if outcome.toolchain is not None and outcome.toolchain.nvdisasm is None:
        said = (tool.message for tool in outcome.toolchain.missing if tool.name == "nvdisasm")
        raise MissingToolError(next(said, "nvdisasm not found"))
    if kernels and all(kernel.sass is None for kernel in kernels):
        raise CliError(f"no instructions of {kernels[0].binary.short_name}: {kernels[0].sass_why}")
    for note in (finding.message for finding in outcome.findings if finding.code == _BUILD_NOTE):
        sys.stderr.write(f"kernel-lsp: {note}\n")
    if not kernels:
        tell_no_kernels(outcome, options.file)
    if options.format == "json":
        sys.stdout.write(json.dumps(sass_document(kernels), indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("\n".join(sass_listing(kernel, analysis.path).text for kernel in in_order(kernels)))
    return 0
