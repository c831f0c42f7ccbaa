"""`--gpu` or `--arch` of the what-ifs, which need no file, become the machine that the numbers are for."""

from __future__ import annotations

import argparse

from kernel_lsp.cli.errors import CliError
from kernel_lsp.hardware.catalog import UnknownArchError, UnknownGpuError, choose
from kernel_lsp.hardware.profile import GpuChoice


def add_machine_options(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare both; `what` of the machine counts: "limits"."""
    machine = parser.add_mutually_exclusive_group()
    machine.add_argument("--gpu", metavar="NAME", help=f"board whose {what} count")
    machine.add_argument("--arch", metavar="sm_NN", help=f"architecture whose {what} count")


def chosen_machine(options: argparse.Namespace) -> GpuChoice:
    """The board named, the one that stands for the architecture, or the default.

    Raises:
        CliError: an unknown machine.
    """
    try:
        return choose(setting=options.gpu, arch=options.arch)
    except (UnknownGpuError, UnknownArchError) as error:
        raise CliError(str(error)) from error
