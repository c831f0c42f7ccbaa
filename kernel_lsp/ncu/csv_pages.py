"""Turns the bytes of one of ncu's CSV pages into a RawReport: raw, details, live `--csv`, or source.

What may stand around the table: program output and ==PROF== lines ahead of it, a byte order mark, UTF-16 (PowerShell),
error lines alone. Columns are taken by their names; rows may be shorter than the header. Every cell has its own unit.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from kernel_lsp.ncu.csv_numbers import NumberFormat, number_format
from kernel_lsp.ncu.csv_source import SOURCE_HEADERS, read_source_page
from kernel_lsp.ncu.raw_report import Metric, NcuError, RawAction, RawReport, RuleResult
from kernel_lsp.source.lines import split_lines

_MOST_BYTES = 256 << 20
_TRIPLE = re.compile(r"^\((\d+), (\d+), (\d+)\)$")
_RULE_KINDS = {"OPT": "optimization", "WRN": "warning", "ERR": "error", "INF": "ok"}
# Columns that are no metric.
_FIXED = frozenset(
    (
        *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"),
        *("Block Size", "Grid Size", "Device", "CC", "Section Name", "Body Item Label"),
        *("Metric Name", "Metric Unit", "Metric Value", "Invocations", "Minimum", "Maximum", "Average"),
        *("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"),
    )
)


def read_csv_page(data: bytes, path: str, digest: str) -> RawReport:
    """The launches of a CSV page.

    Raises:
        NcuError: binary data, no table of ncu's, errors of ncu alone, or numbers of two locales.
    """
    text = _text(data, path)
    lines = split_lines(text)
    start, kind = _header(lines, path)
    if kind == "source":
        actions, notes = read_source_page(lines[start:], labels()["source"], path)
        return RawReport(path, digest, None, actions, (), notes)
    rows = _rows(lines[start:])
    header = rows[0]
    columns = {name: position for position, name in reversed(list(enumerate(header)))}
    reader = _LongPage(columns, rows[1:], path) if "Metric Name" in columns else _WidePage(columns, rows[1:], path)
    return RawReport(path, digest, None, tuple(reader.actions()), (), tuple(reader.notes))


@cache
def labels() -> Mapping[str, Any]:
    """The table of `csv_labels.yaml`."""
    table = yaml.safe_load(Path(__file__).with_name("csv_labels.yaml").read_text(encoding="utf-8"))
    return MappingProxyType(table)


def _text(data: bytes, path: str) -> str:
    if len(data) > _MOST_BYTES:
        raise NcuError(f"{path}: {len(data) >> 20} MB of CSV are more than is read ({_MOST_BYTES >> 20} MB)")
    if not data.strip():
        raise NcuError(f"{path}: the file is empty")
    if data.startswith(b"NVR\0"):
        raise NcuError(f"{path}: a report, not CSV: name it .ncu-rep")
    encoding = "utf-8-sig"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in data[:4096]:
        raise NcuError(f"{path}: binary data, not CSV")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        if encoding == "utf-16":
            raise NcuError(f"{path}: damaged UTF-16 text") from None
        return data.decode("latin-1")  # a program's output in another encoding; ncu's own text is ASCII


def _header(lines: Sequence[str], path: str) -> tuple[int, str]:
    errors = []
    for index, line in enumerate(lines):
        bare = line.lstrip()
        if bare.startswith(SOURCE_HEADERS):
            return index, "source"
        if '"Kernel Name"' in line and '"ID"' in line:
            return index, "table"
        if line.startswith("==ERROR=="):
            errors.append(line.removeprefix("==ERROR==").strip())
    if errors:
        raise NcuError(f"{path}: ncu wrote only errors: {errors[0]}")
    raise NcuError(f"{path}: no table of ncu's in it (export with: ncu --import REPORT --csv --page raw)")


def _rows(lines: Sequence[str]) -> list[list[str]]:
    """The table's rows; program output and ==PROF== lines between them are no rows."""
    kept = [line for line in lines if line.startswith('"')]
    csv.field_size_limit(1 << 24)
    return list(csv.reader(kept))


class _Page:
    """What both kinds of table share."""

    def __init__(self, columns: Mapping[str, int], rows: list[list[str]], path: str) -> None:
        self._columns = columns
        self._rows = rows
        self._path = path
        self.notes: list[str] = []

    def _cell(self, row: Sequence[str], name: str) -> str:
        position = self._columns.get(name, -1)
        return row[position] if 0 <= position < len(row) else ""

    def _format(self, cells: Iterator[str]) -> NumberFormat:
        found = number_format(cells)
        if found.contradiction:
            one, other = found.contradiction
            raise NcuError(
                f"{self._path}: its numbers are written in two ways ({one} and {other}); export it again with LC_ALL=C"
            )
        return found

    def _note_ambiguous(self, cells: Sequence[str]) -> None:
        if cells:
            others = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
            self.notes.append(
                f"{cells[0]}{others} could mean two numbers, and nothing on the page tells which; not read. "
                "Export it again with LC_ALL=C."
            )

    def _launch(self, row: Sequence[str]) -> dict[str, Metric]:
        """Launch and device from the fixed columns."""
        metrics: dict[str, Metric] = {}
        for column, name in (("Block Size", "launch__block"), ("Grid Size", "launch__grid")):
            if match := _TRIPLE.match(self._cell(row, column)):
                for axis, size in zip("xyz", match.groups(), strict=True):
                    metrics[f"{name}_dim_{axis}"] = Metric(int(size), "")
        major, dot, minor = self._cell(row, "CC").partition(".")
        if dot and major.isdecimal() and minor.isdecimal():
            metrics["device__attribute_compute_capability_major"] = Metric(int(major), "")
            metrics["device__attribute_compute_capability_minor"] = Metric(int(minor), "")
        return metrics


class _WidePage(_Page):
    """The raw page: a row of units, then a row for each launch with a column for each metric."""

    def actions(self) -> list[RawAction]:
        metric_columns = {name: position for name, position in self._columns.items() if name not in _FIXED}
        units: list[str] = []
        launches = []
        for row in self._rows:
            if not self._cell(row, "ID"):
                units = row
            elif self._cell(row, "ID") != "ID":  # a second export behind the first repeats the header
                launches.append(row)
        form = self._format(row[p] for row in launches for p in metric_columns.values() if p < len(row))
        ambiguous: list[str] = []
        found = []
        for row in launches:
            metrics = self._launch(row)
            for name, position in metric_columns.items():
                if position >= len(row) or not row[position]:
                    continue
                cell = row[position]
                number = form.number(cell)
                if number is None and form.ambiguous(cell):
                    ambiguous.append(cell)
                    continue
                metrics[name] = Metric(cell if number is None else number, _at(units, position))
            found.append(RawAction(self._cell(row, "Kernel Name"), None, MappingProxyType(metrics)))
        self._note_ambiguous(ambiguous)
        return found


class _LongPage(_Page):
    """The details page and live output: a row for each metric of each launch, and a row for what each rule says."""

    def actions(self) -> list[RawAction]:
        value_column = "Metric Value" if "Metric Value" in self._columns else "Average"
        form = self._format(self._cell(row, value_column) for row in self._rows)
        launches: dict[tuple[str, ...], tuple[dict[str, Metric], list[RuleResult], str]] = {}
        ambiguous: list[str] = []
        for row in self._rows:
            name = self._cell(row, "Kernel Name")
            if not name or name == "Kernel Name":
                continue
            key = (self._cell(row, "Process ID"), self._cell(row, "ID"), name)
            if "ID" not in self._columns:  # a summary: one block of rows for each kernel and shape
                key = (self._cell(row, "Grid Size"), self._cell(row, "Block Size"), name)
            metrics, rules, _ = launches.setdefault(key, (self._launch(row), [], name))
            if self._cell(row, "Rule Name"):
                rules.append(self._rule(row, form))
                continue
            cell = self._cell(row, value_column)
            metric = _metric_name(
                self._cell(row, "Section Name"), self._cell(row, "Body Item Label"), self._cell(row, "Metric Name")
            )
            if not cell or metric in metrics:
                continue
            number = form.number(cell)
            if number is None and form.ambiguous(cell):
                ambiguous.append(cell)
                continue
            metrics[metric] = Metric(cell if number is None else number, self._cell(row, "Metric Unit"))
        self._note_ambiguous(ambiguous)
        return [
            RawAction(name, None, MappingProxyType(metrics), rules=tuple(rules))
            for metrics, rules, name in launches.values()
        ]

    def _rule(self, row: Sequence[str], form: NumberFormat) -> RuleResult:
        speedup = self._cell(row, "Estimated Speedup")
        # Percentages are printed with up to three decimals, never grouped: "9.741" is no thousands.
        number = form.number(speedup) if not re.fullmatch(r"\d{1,2}\.\d{3}", speedup) else float(speedup)
        return RuleResult(
            rule=self._cell(row, "Rule Name"),
            section=self._cell(row, "Section Name"),
            kind=_RULE_KINDS.get(self._cell(row, "Rule Type"), "none"),
            title="",
            message=self._cell(row, "Rule Description"),
            speedup_pct=None if number is None else float(number),
            speedup_scope=(self._cell(row, "Estimated Speedup Type") or None) if number is not None else None,
        )


def _metric_name(section: str, item: str, label: str) -> str:
    """The metric behind a label; a label that is not known keeps its section: "Occupancy/Cluster Occupancy"."""
    if "__" in label:
        return label
    known: Mapping[str, str] = labels()["details"].get(section, {})
    return known.get(f"{item}/{label}" if item else label) or "/".join(part for part in (section, item, label) if part)


def _at(cells: Sequence[str], position: int) -> str:
    return cells[position] if position < len(cells) else ""
