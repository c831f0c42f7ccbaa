"""Turns `metrics.yaml` into one table: which metric names a fact may have, and what `ncu` collects them with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: its metric names, the newest first, and the section that collects it ("": always there)."""

    key: str
    names: tuple[str, ...]
    section: str
    optional: bool  # not said to be missing: other facts stand for it, or not every device has it


@dataclass(frozen=True, slots=True)
class Precision:
    """How the executed operations of one precision become FLOP, and where its peak stands."""

    key: str  # "fp32"
    flop: Mapping[str, int]  # FLOP of one executed thread instruction, by operation
    peak: str
    peak_flop: int
    section: str


@dataclass(frozen=True, slots=True)
class MetricNames:
    """All of `metrics.yaml`."""

    facts: Mapping[str, Fact]
    columns: Mapping[str, Fact]
    reasons: tuple[str, ...]
    breakdowns: Mapping[str, str]
    precisions: tuple[Precision, ...]
    by_opcode: tuple[str, ...]
    raw: Mapping[str, Any]

    def operation(self, kind: str, operation: str) -> tuple[str, ...]:
        """Metric names of an operation's `per_cycle`, `total` or `peak` value."""
        return tuple(pattern.format(op=operation) for pattern in self.raw["roofline"][kind])

    def sample_name(self, reason: str) -> str:
        """The metric with the samples of one reason, by instruction."""
        return f"{self.raw['samples']['prefix']}{reason}"

    def sections(self) -> tuple[str, ...]:
        """The sections of `ncu` that collect every fact, but for those that others stand for."""
        facts = [*self.facts.values(), *self.columns.values()]
        found = {fact.section for fact in facts if not fact.optional}
        found |= {precision.section for precision in self.precisions}
        found |= {self.raw[part]["section"] for part in ("pipes", "samples", "states")}
        return tuple(sorted(found - {""}))

    def request(self, report: str, *, sass: bool) -> dict[str, Any]:
        """What the reader's child process is asked for."""
        metrics = [name for fact in self.facts.values() for name in fact.names]
        metrics += [name for fact in self.columns.values() for name in fact.names]
        for precision in self.precisions:
            for kind in ("per_cycle", "total"):
                metrics += [name for operation in precision.flop for name in self.operation(kind, operation)]
            metrics += self.operation("peak", precision.peak)
        prefixes = [*self.raw["pipes"]["prefixes"], self.raw["samples"]["prefix"], self.raw["states"]["prefix"]]
        columns = [name for fact in self.columns.values() for name in fact.names]
        columns += [self.sample_name(reason) for reason in self.reasons]
        columns += self.facts["sample_count"].names
        return {
            "report": report,
            "metrics": metrics,
            "prefixes": prefixes,
            "lists": list(self.breakdowns.values()),
            "columns": columns,
            "by_opcode": list(self.by_opcode),
            "sass": sass,
        }


@cache
def metric_names() -> MetricNames:
    """The table of this package's `metrics.yaml`."""
    raw = yaml.safe_load(Path(__file__).with_name("metrics.yaml").read_text(encoding="utf-8"))
    roofline = raw["roofline"]
    return MetricNames(
        facts=_facts(raw["facts"]),
        columns=_facts(raw["columns"]),
        reasons=tuple(raw["reasons"]),
        breakdowns=MappingProxyType(raw["breakdowns"]),
        precisions=tuple(
            Precision(
                key, MappingProxyType(p["flop"]), p["peak"], p["peak_flop"], p.get("section", roofline["section"])
            )
            for key, p in roofline["precisions"].items()
        ),
        by_opcode=tuple(raw["by_opcode"]),
        raw=MappingProxyType(raw),
    )


def _facts(raw: Mapping[str, Any]) -> Mapping[str, Fact]:
    return MappingProxyType(
        {
            key: Fact(key, tuple(entry["names"]), entry.get("section", ""), bool(entry.get("optional")))
            for key, entry in raw.items()
        }
    )
