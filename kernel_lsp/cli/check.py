"""`kernel-lsp check FILE...`: findings as text, JSON or SARIF, with an exit status that a build can stop on."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kernel_lsp.cli.baseline import read_baseline
from kernel_lsp.cli.common import add_common_options, outcomes_of
from kernel_lsp.findings.catalogue import rule_texts
from kernel_lsp.findings.finding import Finding
from kernel_lsp.findings.run import SEVERITIES
from kernel_lsp.report.check_value import CheckedFile, by_place, check_value
from kernel_lsp.report.sarif import sarif_log
from kernel_lsp.report.values import Json
from kernel_lsp.session.outcome import FileOutcome

_STATUS = {"ok": "ok", "skipped": "skipped", "tool missing": "skipped"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `check`."""
    parser = subparsers.add_parser(
        "check",
        help="findings of files, as text, JSON or SARIF",
        epilog="After -- come nvcc flags, used instead of the project's.",
        allow_abbrev=False,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a .cu or .cuh, or a .cubin (no build then)")
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text")
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "information", "never"),
        default="error",
        help="exit status 1 from this severity on (default: error)",
    )
    parser.add_argument(
        "--baseline", metavar="FILE", help="output of an earlier check --format json; only what is new counts"
    )
    parser.add_argument("--select", metavar="CODES", type=_codes, default=(), help="only these, as KL101,spill")
    parser.add_argument("--ignore", metavar="CODES", type=_codes, default=(), help="all but these")
    add_common_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check the files and print what was found."""
    baseline = read_baseline(options.baseline) if options.baseline else None
    outcomes = outcomes_of(options.files, options)
    files = [
        CheckedFile(
            path=outcome.path,
            build=build_value(outcome),
            analysis=outcome.analysis,
            findings=_selected(outcome.findings, options.select, options.ignore),
        )
        for outcome in outcomes
    ]
    if baseline is not None:
        files = [replace(file, findings=baseline.new(file.findings)) for file in files]
    if options.format == "json":
        gpu = next((outcome.gpu for outcome in outcomes if outcome.gpu is not None), None)
        _write_json(check_value(gpu, tools_value(outcomes), files))
    elif options.format == "sarif":
        found = by_place(finding for file in files for finding in file.findings)
        _write_json(sarif_log(found, str(Path.cwd())))
    else:
        from kernel_lsp.cli.check_text import print_files

        print_files(files, outcomes)
    return 1 if _fails(files, options.fail_on) else 0


def build_value(outcome: FileOutcome) -> Json:
    """`build` of the contract."""
    build, command = outcome.build, outcome.command
    value: Json = {
        "status": "skipped" if build is None else _STATUS.get(build.status, "failed"),
        "argv": [] if build is None else list(build.argv),
        "cwd": None if build is None else str(build.cwd),
        "from": None if command is None else command.origin,
        "seconds": None if build is None else round(build.seconds, 3),
        "cached": build is not None and build.cached,
    }
    if command is not None:
        value["arch"] = command.arch
        value["arch_why"] = command.arch_why
        value["from_detail"] = command.origin_detail or None
        value["notes"] = [note.message for note in command.notes]
    reason = (build.reason if build is not None else "") or (command.skip_reason if command is not None else "")
    if reason:
        value["reason"] = reason
    return value


def tools_value(outcomes: Sequence[FileOutcome]) -> Json:
    """`tools` of the contract: an empty object for a tool that was not found or not needed."""
    toolchain = next((outcome.toolchain for outcome in outcomes if outcome.toolchain is not None), None)
    found = {} if toolchain is None else {tool.name: tool for tool in toolchain.tools()}
    return {
        name: {"path": str(found[name].path), "version": found[name].version} if name in found else {}
        for name in ("nvcc", "ptxas", "nvdisasm", "cuobjdump")
    }


def _codes(text: str) -> tuple[str, ...]:
    by_name = {rule.slug: code for code, rule in rule_texts().items()}
    codes = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        code = by_name.get(word, word.upper())
        if code not in rule_texts():
            raise argparse.ArgumentTypeError(f"no rule {word!r}; there are {', '.join(rule_texts())}")
        codes.append(code)
    return tuple(codes)


def _selected(findings: Iterable[Finding], select: Sequence[str], ignore: Sequence[str]) -> tuple[Finding, ...]:
    return tuple(f for f in findings if (not select or f.code in select) and f.code not in ignore)


def _fails(files: Iterable[CheckedFile], fail_on: str) -> bool:
    if fail_on == "never":
        return False
    counted = SEVERITIES[: [str(s) for s in SEVERITIES].index(fail_on) + 1]
    return any(finding.severity in counted for file in files for finding in file.findings)


def _write_json(value: Json) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
