"""Findings as a SARIF 2.1.0 log, for code-scanning services: relative URIs under one root, one rule per code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

from kernel_lsp import __version__
from kernel_lsp.findings.catalogue import rule_texts
from kernel_lsp.findings.finding import Finding, Severity
from kernel_lsp.report.values import Json

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "ROOT"

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "information": "note", "hint": "none"}


def sarif_log(findings: Sequence[Finding], root: str) -> Json:
    """One run over all findings; paths are relative to the folder `root`, which the log itself does not name."""
    codes = sorted({finding.code for finding in findings})
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kernel-lsp",
                        "version": __version__,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {ROOT: {"description": {"text": "The folder the command ran in."}}},
                "results": [_result(finding, codes.index(finding.code), root) for finding in findings],
            }
        ],
    }


def _rule(code: str) -> Json:
    text = rule_texts()[code]
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in text.slug.split("-")),
        "shortDescription": {"text": text.title + "."},
        "help": {"text": f"See {text.page}."},
        "defaultConfiguration": {"level": _LEVELS[text.severity]},
        "properties": {"tags": [text.category]},
    }


def _result(finding: Finding, rule_index: int, root: str) -> Json:
    message = f"{finding.message}. {finding.advice}" if finding.advice else finding.message
    result: Json = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "kind": "informational" if finding.severity == "hint" else "fail",
        "message": {"text": message},
        "locations": [_location(finding.file, _region(finding), root)],
        "properties": {
            "severity": finding.severity,
            "kernel": finding.kernel,
            "evidence": [
                {"name": e.name, "value": e.value, "unit": e.unit, "kind": e.kind, "source": e.source}
                for e in finding.evidence
            ],
        },
    }
    if finding.related:
        result["relatedLocations"] = [
            _location(place.file, {"startLine": max(place.line, 1)}, root)
            | {"id": number, "message": {"text": place.message}}
            for number, place in enumerate(finding.related, start=1)
        ]
    return result


def _region(finding: Finding) -> Json:
    region = {"startLine": max(finding.line, 1), "endLine": max(finding.end_line, finding.line, 1)}
    if finding.column is not None:
        region["startColumn"] = finding.column
        if finding.end_column is not None:
            region["endColumn"] = finding.end_column
    return region


def _location(file: str, region: Json, root: str) -> Json:
    try:
        artifact = {"uri": relative_uri(file, root), "uriBaseId": ROOT}
    except ValueError:  # on another drive: only its own absolute URI names it
        artifact = {"uri": PurePath(file).as_uri()}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def relative_uri(file: str, root: str) -> str:
    """The file's URI relative to the folder `root`; raises ValueError for a file on another drive."""
    return quote(os.path.relpath(file, root).replace(os.sep, "/"), safe="/.-_~")
