"""`kernel-lsp roofline`: what if a kernel did so much work on so many bytes, in so much time; no file needed."""

from __future__ import annotations

import argparse
import json
import sys

from kernel_lsp.cli.argument_types import count, microseconds
from kernel_lsp.cli.errors import CliError
from kernel_lsp.cli.machine import add_machine_options, chosen_machine
from kernel_lsp.model.roofline import board_roof, precision_names, what_if
from kernel_lsp.report.roofline_text import roofline_lines
from kernel_lsp.report.roofline_value import roofline_document


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `roofline`."""
    parser = subparsers.add_parser(
        "roofline",
        help="place of work and traffic under a board's roofs, no file needed",
        epilog="FLOP count a multiply-add as two: 2MNK for a matrix product, 4BHS^2D for attention forward.",
        allow_abbrev=False,
    )
    add_machine_options(parser, "peaks")
    parser.add_argument("--flops", metavar="N", type=count, help="operations of one launch, as 4096 or 1.7e10")
    parser.add_argument("--bytes", metavar="N", type=count, help="bytes that come from and go to DRAM in it")
    parser.add_argument("--duration-us", metavar="X", type=microseconds, help="its time, from ncu or CUDA events")
    parser.add_argument("--precision", metavar="NAME", help="fp32, tf32, fp16, bf16, fp8, int8, fp64, ...")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the place.

    Raises:
        CliError: an option is missing, or a machine or a precision is unknown.
    """
    known = ", ".join(precision_names())
    if options.flops is None or options.bytes is None:
        raise CliError("roofline needs --flops N and --bytes N (of one launch; bytes that come from and go to DRAM)")
    if options.flops == 0 and options.bytes == 0:
        raise CliError("--flops and --bytes are both 0: there is nothing to place")
    if options.precision is None:
        raise CliError(f"roofline needs --precision: {known}")
    name = options.precision.lower()
    if name not in precision_names():
        raise CliError(f"--precision {options.precision}: unknown; known are {known}")
    gpu = chosen_machine(options)
    roof = board_roof(gpu.profile, name)
    seconds = None if options.duration_us is None else options.duration_us * 1e-6
    place = what_if(roof, options.flops, options.bytes, seconds)
    if options.format == "json":
        value = roofline_document(gpu, name, roof, place, options.duration_us)
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("\n".join(roofline_lines(gpu, roof, place, options.duration_us)) + "\n")
    return 0
