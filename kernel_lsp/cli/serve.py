"""`kernel-lsp serve`: the language server on stdio, or for one client on a TCP port. Logs go to stderr or a file."""

from __future__ import annotations

import argparse
import logging
import sys

from kernel_lsp.cli.errors import CliError

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `serve`."""
    parser = subparsers.add_parser("serve", help="the language server (the default)", allow_abbrev=False)
    parser.add_argument("--stdio", action="store_true", help="standard input and output (the default)")
    parser.add_argument("--tcp", metavar="HOST:PORT", type=_address, help="serve one client on this address")
    parser.add_argument("--log-file", metavar="PATH", help="write the log here instead of to standard error")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="more in the log; -vv for all")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until the client ends it."""
    _log_to(options.log_file, options.verbose)
    from kernel_lsp.lsp.create import create_server
    from kernel_lsp.lsp.stdio import serve_stdio, serve_tcp

    if options.tcp:
        return serve_tcp(create_server, *options.tcp)
    return serve_stdio(create_server)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, got {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _log_to(path: str | None, verbosity: int) -> None:
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if path is not None:
        try:
            handler = logging.FileHandler(path, encoding="utf-8")
        except OSError as error:
            raise CliError(f"the log file {path} cannot be written: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    # pygls logs every message body at INFO: only its warnings are of use to people.
    logging.getLogger("kernel_lsp").setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
