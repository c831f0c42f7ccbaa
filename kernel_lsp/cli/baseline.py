"""Reads an earlier `check --format json` and tells which findings are new since.

Lines move and numbers change with every edit, so a finding is known by its code, its file's name and its kernel
(without a kernel: by its message). A known one that has become graver is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from kernel_lsp.cli.errors import CliError
from kernel_lsp.findings.finding import Finding
from kernel_lsp.findings.run import SEVERITIES

_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Baseline:
    """The gravest severity of each known finding, as an index of SEVERITIES."""

    known: Mapping[tuple[str, str, str], int]

    def new(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Those that the baseline does not hold."""
        return tuple(f for f in findings if SEVERITIES.index(f.severity) < self._known_rank(f))

    def _known_rank(self, finding: Finding) -> int:
        return self.known.get(_key(finding.code, finding.file, finding.kernel, finding.message), len(SEVERITIES))


def _key(code: str, file: str, kernel: str | None, message: str) -> tuple[str, str, str]:
    return code, PurePath(file).name, kernel or message


def read_baseline(file: str) -> Baseline:
    """The baseline of a JSON file; raises CliError where it is not one."""
    path = Path(file)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise CliError(f"baseline {file} is larger than {_MAX_BYTES >> 20} MB")
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CliError(f"baseline {file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CliError(f"baseline {file} is no JSON: {error}") from error
    known: dict[tuple[str, str, str], int] = {}
    try:
        for entry in _findings(value):
            key = _key(entry["code"], entry["file"], entry["kernel"], entry["message"])
            known[key] = min(known.get(key, len(SEVERITIES)), SEVERITIES.index(entry["severity"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CliError(f"baseline {file} is not the output of `kernel-lsp check --format json`") from error
    return Baseline(known)


def _findings(value: Any) -> Iterable[Any]:
    for entry in value["files"]:
        yield from entry["findings"]
