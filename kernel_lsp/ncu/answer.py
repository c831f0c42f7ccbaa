"""Turns what the reader's child process wrote (one line of JSON, then raw columns) into a frozen RawReport.

The child is the project's own, but what it read is not: every length is checked before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from kernel_lsp.ncu.raw_report import (
    NO_LINES,
    Column,
    Metric,
    NcuError,
    PcLines,
    RawAction,
    RawReport,
    RuleMarker,
    RuleResult,
)

_RULE_KINDS = {0: "none", 1: "ok", 2: "optimization", 3: "warning", 4: "error"}
_SPEEDUP_SCOPES = {1: "local", 2: "global"}


def read_answer(answer: bytes, path: str, digest: str) -> RawReport:
    """The report in an answer of the child process. Raises NcuError with the child's reason, or for a broken answer."""
    line, _, rest = answer.partition(b"\n")
    try:
        head = json.loads(line)
        if "error" in head:
            raise NcuError(f"{path}: {head['error']}")
        blobs = _blobs(rest, head["blob_bytes"])
        cubins = tuple(blobs[index] for index in head["cubins"])
        actions = tuple(_action(json.loads(blobs[index]), blobs) for index in head["actions"])
        notes = _notes(head)
        collector = head["collector"]
    except NcuError:
        raise
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise NcuError(f"{path}: the reader's answer is broken ({error})") from error
    return RawReport(path, digest, collector and str(collector).partition(" ")[0], actions, cubins, notes)


def _notes(head: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    if not head["unpacked"]:
        notes.append(
            "The kernels' binaries in it were not read: unpacking .ncu-repz takes the package backports.zstd "
            "(pip install 'kernel-lsp[ncu]')."
        )
    if head["cubins_left_out"]:
        notes.append(f"{head['cubins_left_out']} of its binaries were left out for their size.")
    return tuple(notes)


def _blobs(data: bytes, sizes: list[int]) -> list[bytes]:
    if sum(sizes) != len(data) or min(sizes, default=0) < 0:
        raise ValueError(f"{len(data)} bytes where {sum(sizes)} were announced")
    blobs = []
    at = 0
    for size in sizes:
        blobs.append(data[at : at + size])
        at += size
    return blobs


def _action(raw: Mapping[str, Any], blobs: list[bytes]) -> RawAction:
    sass = raw["sass"]
    return RawAction(
        name=str(raw["name"] or raw["mangled"]),
        mangled=str(raw["mangled"]),
        metrics=MappingProxyType({name: Metric(value, str(unit)) for name, (value, unit) in raw["metrics"].items()}),
        columns=MappingProxyType(
            {name: _column(blobs[pcs], blobs[values]) for name, (pcs, values) in raw["columns"].items()}
        ),
        by_opcode=MappingProxyType(next(iter(raw["by_opcode"].values()), {})),
        functions=tuple(int(start) for start in raw["functions"]),
        lines=_lines(raw["lines"], blobs),
        sources=MappingProxyType(
            {str(p): blobs[text].decode("utf-8", "replace") for p, text in raw["sources"].items()}
        ),
        rules=tuple(_rule(rule) for rule in raw["rules"]),
        markers=tuple(
            RuleMarker(str(m["rule"]), str(m["message"]), m["pc"] or None, m["file"], m["line"]) for m in raw["markers"]
        ),
        sass=None if sass is None else MappingProxyType({int(pc): str(text) for pc, text in sass}),
    )


def _column(pcs: bytes, values: bytes) -> Column:
    addresses = np.frombuffer(pcs, np.dtype("<u8"))
    numbers = np.frombuffer(values, np.dtype("<f8"))
    if len(addresses) != len(numbers):
        raise ValueError(f"{len(addresses)} addresses for {len(numbers)} values")
    if len(addresses) > 1 and not (addresses[1:] > addresses[:-1]).all():
        order = np.argsort(addresses, kind="stable")
        addresses, numbers = addresses[order], numbers[order]
    return Column(addresses, numbers)


def _lines(raw: Mapping[str, Any], blobs: list[bytes]) -> PcLines:
    pcs, file, line = (np.frombuffer(blobs[index], np.dtype("<u8")) for index in raw["rows"])
    if not len(pcs):
        return NO_LINES
    if not len(pcs) == len(file) == len(line) or int(file.max()) >= len(raw["files"]):
        raise ValueError("lines of files that are not listed")
    return PcLines(tuple(raw["files"]), pcs, file.astype(np.int32), line.astype(np.int32))


def _rule(raw: Mapping[str, Any]) -> RuleResult:
    message = raw.get("rule_message") or {}
    speedup = raw.get("speedup_estimation")
    return RuleResult(
        rule=str(raw.get("rule_identifier", "")),
        section=str(raw.get("section_identifier", "")),
        kind=_RULE_KINDS.get(message.get("type", 0), "none"),
        title=str(message.get("title", "")),
        message=str(message.get("message", "")),
        speedup_pct=float(speedup["speedup"]) if speedup else None,
        speedup_scope=_SPEEDUP_SCOPES.get(speedup["type"]) if speedup else None,
    )
