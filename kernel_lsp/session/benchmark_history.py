"""The last result of each benchmark command, kept in the cache so that the next one can be compared with it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from kernel_lsp.model.benchmark_times import Spread
from kernel_lsp.source.digest import recipe_digest

_FORMAT = 1
_MOST_FILES = 200  # results and pages
_FOLDER = "benchmarks"


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """The times of one benchmark."""

    ended_at: datetime
    spreads: tuple[Spread, ...]


class BenchmarkHistory:
    """The results of one source file's benchmark command. A damaged file counts as none."""

    def __init__(self, cache: Path, source: Path, command: Sequence[str]) -> None:
        key = recipe_digest([str(source), *command])[:16]
        self._folder = cache / _FOLDER
        self._path = self._folder / f"{key}.json"
        self.page = self._folder / f"{source.stem[:40]}-{key}.benchmark.md"

    def last(self) -> BenchmarkResult | None:
        """The result that was kept last."""
        try:
            value = json.loads(self._path.read_bytes())
            if value["format"] != _FORMAT:
                return None
            spreads = tuple(
                Spread(
                    str(each["name"]),
                    str(each["size"]),
                    int(each["n_times"]),
                    float(each["median_ns"]),
                    float(each["least_ns"]),
                    float(each["most_ns"]),
                )
                for each in value["spreads"]
            )
            if not all(0 < each.least_ns <= each.median_ns <= each.most_ns for each in spreads):
                return None
            return BenchmarkResult(datetime.fromisoformat(value["ended_at"]), spreads)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def keep(self, result: BenchmarkResult, page: str) -> None:
        """Keep a result and its page in place of the one before. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.page.write_text(page, "utf-8")
        value = {
            "format": _FORMAT,
            "ended_at": result.ended_at.isoformat(),
            "spreads": [asdict(each) for each in result.spreads],
        }
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(value), "utf-8")
        part.replace(self._path)
        self._make_room()

    def _make_room(self) -> None:
        with contextlib.suppress(OSError):
            by_age = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
            for path in by_age[_MOST_FILES:]:
                path.unlink(missing_ok=True)
