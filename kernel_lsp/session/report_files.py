"""Settings and workspace folders become the report files that are there: named ones, and those that a search finds.

The search is bounded and reads folders only; it runs in a thread.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.ncu.raw_report import REPORT_SUFFIXES

_NAMED_SUFFIXES = (*REPORT_SUFFIXES, ".csv")
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})
_MOST_ENTRIES = 50_000
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class ReportPlaces:
    """Where reports may be: workspace folders to search, and names by the user's settings, as they wrote them."""

    searched: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    names_from: tuple[Path, ...] = ()  # folders that relative names count from
    added: tuple[Path, ...] = ()  # by a profile command of ours

    @property
    def is_somewhere(self) -> bool:
        """Whether there is any place to look."""
        return bool(self.searched or self.names or self.added)


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A file that may be a report. `is_named`: by the user, not found by a search."""

    path: Path
    modified_ns: int
    size_bytes: int
    is_named: bool


@dataclass(frozen=True, slots=True)
class FoundReports:
    """The files, newest first; what is wrong with names of the settings; whether a search ended at its limit."""

    files: tuple[ReportFile, ...]
    problems: tuple[str, ...]
    is_cut: bool


def is_report(path: Path) -> bool:
    """Whether a file is a report by its name."""
    return path.suffix.lower() in REPORT_SUFFIXES


def find_reports(places: ReportPlaces, known: Iterable[Path] | None = None) -> FoundReports:
    """All report files. With `known`, the workspace is not searched: those that are known are looked at again."""
    found: dict[Path, ReportFile] = {}
    problems = []
    cut = _Cut()
    for name in places.names:
        paths = [*_named(name, places.names_from)]
        if not paths:
            problems.append(f"kernelLsp.reports.paths: {name}: {_absent(name, places.names_from)}")
        for path in paths:
            if path.is_dir():
                _add(found, _search(path, cut), is_named=True)
            elif path.suffix.lower() in _NAMED_SUFFIXES:
                _add(found, [path], is_named=True)
            else:
                problems.append(f"kernelLsp.reports.paths: {path}: no .ncu-rep, .ncu-repz or .csv file")
    _add(found, places.added, is_named=True)
    if known is None:
        for root in places.searched:
            _add(found, _search(root, cut), is_named=False)
    else:
        _add(found, known, is_named=False)
    files = tuple(sorted(found.values(), key=lambda file: (-file.modified_ns, str(file.path))))
    return FoundReports(files, tuple(problems), cut.happened)


@dataclass(slots=True)
class _Cut:
    happened: bool = False


def _named(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    try:
        path = Path(name).expanduser()
        candidates = [path] if path.is_absolute() else [folder / path for folder in folders]
        yield from (each for each in candidates if each.exists())
    except (OSError, ValueError, RuntimeError):  # a NUL, no such user
        return


def _absent(name: str, folders: tuple[Path, ...]) -> str:
    if Path(name).is_absolute() or name.startswith("~"):
        return "no such file or folder"
    return "no such file or folder in the workspace" if folders else "a relative path needs a workspace folder"


def _add(found: dict[Path, ReportFile], paths: Iterable[Path], *, is_named: bool) -> None:
    for path in paths:
        if path in found:
            continue
        try:
            stat = path.stat()
        except OSError:  # it went meanwhile
            continue
        found[path] = ReportFile(path, stat.st_mtime_ns, stat.st_size, is_named)


def _search(root: Path, cut: _Cut) -> Iterator[Path]:
    """Reports below a folder, near ones first; not in hidden folders, behind links, in installed packages."""
    waiting = deque([(str(root), 0)])
    left = _MOST_ENTRIES
    while waiting:
        folder, depth = waiting.popleft()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        cut.happened = True
                        return
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _DEEPEST and not name.startswith(".") and name not in _PASSED_OVER:
                            waiting.append((entry.path, depth + 1))
                    elif os.path.splitext(name)[1].lower() in REPORT_SUFFIXES:  # noqa: PTH122 - a Path for each entry is slow
                        yield Path(entry.path)
        except OSError:  # gone, or not ours to read
            continue
