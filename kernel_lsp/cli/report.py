"""`kernel-lsp report FILE`: the bottleneck report, as Markdown or JSON, on standard output or into a file."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kernel_lsp.cli.common import add_common_options, analysis_of, outcomes_of, tell_no_kernels
from kernel_lsp.cli.errors import CliError
from kernel_lsp.report.json_document import report_value
from kernel_lsp.report.kernel_choice import NoSuchKernelError
from kernel_lsp.report.markdown import report_markdown
from kernel_lsp.session.report import report_of


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `report`."""
    parser = subparsers.add_parser(
        "report",
        help="the bottleneck report of a file or one of its kernels",
        epilog="After -- come nvcc flags, used instead of the project's.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a .cu or .cuh, or a .cubin (no build then)")
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel, by any of its names")
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown")
    parser.add_argument("-o", dest="output", metavar="PATH", type=Path, help="write here instead of standard output")
    add_common_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the report."""
    outcome = outcomes_of([options.file], options)[0]
    analysis_of(outcome, options.file, "report")
    try:
        report = report_of(outcome, options.kernel)
    except NoSuchKernelError as error:
        raise CliError(str(error)) from error
    if not report.kernels:
        tell_no_kernels(outcome, options.file)
    if options.format == "json":
        text = json.dumps(report_value(report), indent=2, ensure_ascii=False) + "\n"
    else:
        folder = options.output.absolute().parent if options.output else Path.cwd()
        text = report_markdown(report, str(folder))
    if options.output is None:
        sys.stdout.write(text)
        return 0
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"the report cannot be written to {options.output}: {error.strerror}") from error
    return 0
