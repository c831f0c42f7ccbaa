"""`kernel-lsp profile REPORT...`: what Nsight Compute reports hold, on lines; two of them compared."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from kernel_lsp import __version__
from kernel_lsp.cli.common import load_reports
from kernel_lsp.cli.errors import CliError
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.source_paths import common_end
from kernel_lsp.report.profile_text import compare_lines, report_lines
from kernel_lsp.report.profile_value import report_entry

_SOURCE_SUFFIXES = {".cu", ".cuh", ".h", ".hpp", ".hxx", ".hh", ".cpp", ".cc", ".cxx", ".inl", ".inc", ".jl", ".py"}
_N_FILES_MAX = 20_000


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `profile`."""
    parser = subparsers.add_parser("profile", help="what Nsight Compute reports hold, on lines", allow_abbrev=False)
    parser.add_argument("reports", metavar="REPORT", nargs="+", help="a .ncu-rep or .ncu-repz, or a CSV page of ncu")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--source-root", metavar="DIR", type=Path, help="folder that holds the profiled sources")
    parser.add_argument("--compare", action="store_true", help="the second report against the first")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the reports."""
    if options.compare and len(options.reports) != 2:
        raise CliError(f"--compare takes two reports, not {len(options.reports)}")
    if options.source_root is not None and not options.source_root.is_dir():
        raise CliError(f"--source-root {options.source_root}: no such folder")
    loaded = load_reports([Path(report) for report in options.reports])
    files = _files_here(loaded, options.source_root)
    if options.format == "json":
        entries = [report_entry(each.report, each.kernels, files) for each in loaded]
        value = {"schema_version": 1, "kernel_lsp_version": __version__, "reports": entries}
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")
        return 0
    if options.compare:
        lines = list(compare_lines(loaded[0].kernels, loaded[1].kernels))
    else:
        lines = [line for each in loaded for line in (*report_lines(each.report, each.kernels, files), "")][:-1]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _files_here(loaded: list[MeasuredReport], root: Path | None) -> dict[str, str]:
    """Paths of the reports -> files under `root`, by the longest common end; one that could be two is left alone."""
    if root is None:
        return {}
    here: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here += [str(Path(folder, name)) for name in sorted(names) if Path(name).suffix.lower() in _SOURCE_SUFFIXES]
        if len(here) > _N_FILES_MAX:
            raise CliError(f"--source-root {root}: more than {_N_FILES_MAX} source files; name a smaller folder")
    found: dict[str, str] = {}
    for path in {cost.file for each in loaded for kernel in each.kernels for cost in kernel.lines}:
        ends = {each: common_end(path, each) for each in here}
        most = max(ends.values(), default=0)
        best = [each for each, count in ends.items() if count == most]
        if most and len(best) == 1:
            found[path] = best[0]
    return found
