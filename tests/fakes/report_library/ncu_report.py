"""Stands in for NVIDIA's ncu_report where this folder is on PYTHONPATH: reads what `tests/fakes/fake_report.py` writes.

Only what the reader's child process asks of the library. No report of a GPU is needed, and not the library itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def load_report(path: str) -> Context:
    """The report: behind the magic's line, one line of JSON, then the cubins."""
    return Context(json.loads(Path(path).read_bytes().split(b"\n", 2)[1]))


class Context:
    def __init__(self, head: dict[str, Any]) -> None:
        self._actions = [Action(action) for action in head["actions"]]

    def __iter__(self) -> Any:
        return iter([self._actions])

    def get_version(self) -> str:
        return "stand-in"


class Ids:
    """The addresses of a metric's instances."""

    def __init__(self, pcs: list[int]) -> None:
        self._pcs = pcs

    def as_uint64(self, index: int) -> int:
        return self._pcs[index]


class Metric:
    """A metric with its value, and instances by address where it has them."""

    ValueKind_DOUBLE, ValueKind_FLOAT, ValueKind_UINT64 = 1, 2, 3

    def __init__(self, value: Any, unit: str, by_pc: dict[int, int]) -> None:
        self._value, self._unit = value, unit
        self._pcs, self._values = list(by_pc), list(by_pc.values())

    def value(self, index: int | None = None) -> Any:
        return self._value if index is None else self._values[index]

    def unit(self) -> str:
        return self._unit

    def num_instances(self) -> int:
        return len(self._pcs)

    def has_correlation_ids(self) -> bool:
        return bool(self._pcs)

    def correlation_ids(self) -> Ids:
        return Ids(self._pcs)

    def kind(self, _: int) -> int:
        return self.ValueKind_UINT64

    def as_uint64(self, index: int) -> int:
        return self._values[index]


class Place:
    def __init__(self, file: str, line: int) -> None:
        self._file, self._line = file, line

    def file_name(self) -> str:
        return self._file

    def line(self) -> int:
        return self._line


class Action:
    """A launch of a kernel."""

    NameBase_FUNCTION, NameBase_DEMANGLED, NameBase_MANGLED = 0, 1, 2

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw
        self._metrics = {name: Metric(value, unit, {}) for name, (value, unit) in raw["metrics"].items()}
        for name, by_pc in raw["columns"].items():
            self._metrics[name] = Metric(sum(by_pc.values()), "", {int(pc): count for pc, count in by_pc.items()})
        self._metrics["launch__function_pcs"] = Metric(raw["base"], "", {})

    def name(self, base: int) -> str:
        return str(self._raw["mangled"] if base == self.NameBase_MANGLED else self._raw["name"])

    def metric_names(self) -> tuple[str, ...]:
        return tuple(self._metrics)

    def metric_by_name(self, name: str) -> Metric | None:
        return self._metrics.get(name)

    def source_info(self, pc: int) -> Place | None:
        place = self._raw["lines"].get(str(pc))
        return Place(*place) if place else None

    def source_files(self) -> dict[str, str]:
        return dict(self._raw["sources"])

    def rule_results_as_dicts(self) -> list[dict[str, Any]]:
        return list(self._raw["rules"])

    def source_markers(self) -> list[dict[str, Any]]:
        return []
