"""The command line's entry: parses arguments, runs one subcommand, and turns its end into an exit status.

0 fine, 1 findings at or above --fail-on, 2 usage or input error (one line on stderr), 3 a tool is missing.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from kernel_lsp import __version__
from kernel_lsp.cli.errors import CliError

COMMANDS = ("serve", "check", "report", "sass", "profile", "occupancy", "roofline", "doctor")
_TOP_OPTIONS = {"-h", "--help", "--version"}


class _Parser(argparse.ArgumentParser):
    """Says a usage error in one line, with where to read on."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {' '.join(message.split())} (see {self.prog} --help)\n")
        sys.exit(2)


def build_parser(commands: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of the named subcommands; each is a module of this package with `add_parser` and `run`."""
    parser = _Parser(
        prog="kernel-lsp",
        description="Shows on the lines of a CUDA source what limits its kernels.",
        epilog="Without a subcommand: the language server on standard input and output.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kernel-lsp {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in commands:
        importlib.import_module(f"kernel_lsp.cli.{command}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    arguments, nvcc_flags = _split_flags(list(sys.argv[1:] if argv is None else argv))
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in _TOP_OPTIONS):
        arguments.insert(0, "serve")
    # Only the chosen command's module is loaded: an editor starts `serve` with every window.
    chosen = [arguments[0]] if arguments[0] in COMMANDS else COMMANDS
    options = build_parser(chosen).parse_args(arguments)
    options.nvcc_flags = nvcc_flags
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except CliError as error:
        sys.stderr.write(f"kernel-lsp: {error}\n")
        return error.exit_status
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        said = f"standard output is {error.encoding} and has no {letter!a}; set PYTHONIOENCODING=utf-8"
        sys.stderr.write(f"kernel-lsp: {said}\n")
        return 2
    except BrokenPipeError:
        # The reader has gone (`| head`): nothing is left to say, and Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def _split_flags(arguments: list[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """`check a.cu -- -O3` -> (`check a.cu`, (`-O3`,)); None where there is no `--`."""
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], tuple(arguments[at + 1 :])
