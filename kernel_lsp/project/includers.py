"""A header (or a source that others include) -> the CUDA sources that read it, nearest first.

A cheap search of `#include` lines, no preprocessor: conditions are not evaluated, so a line behind an `#if` counts, and
whether the source really reads the file shows in its build.
"""

# Strings and os.path: a Path object for each of 10,000 files costs more than the search itself.
# ruff: noqa: PTH113, PTH116, PTH118, PTH119, PTH120, PTH206

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<"]([^<>"\n]+)[>"]', re.MULTILINE)
_MAX_SOURCE_BYTES = 4 << 20
_MAX_DEPTH = 12
_GOOD_FOR_S = 20.0
CUDA_SUFFIX = ".cu"
_SKIPPED_FOLDERS = {"node_modules", "__pycache__", "CMakeFiles", "site-packages"}


class IncludeIndex:
    """Include lines of the files read so far; a file is read again only when its time or size changed."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[int, int], tuple[str, ...]]] = {}
        self._found: dict[str, _Found] = {}

    def includes(self, path: str, open_texts: Mapping[str, str]) -> tuple[str, ...]:
        """What stands between the quotes or angle brackets, in order; of the editor's text where it is open."""
        if path in open_texts:
            return tuple(_INCLUDE.findall(open_texts[path]))
        try:
            stat = os.stat(path)
            stamp = (stat.st_mtime_ns, stat.st_size)
            cached = self._read.get(path)
            if cached and cached[0] == stamp:
                return cached[1]
            with Path(path).open(encoding="utf-8", errors="surrogateescape") as file:
                found = tuple(_INCLUDE.findall(file.read(_MAX_SOURCE_BYTES)))
        except (OSError, ValueError):
            return ()
        self._read[path] = (stamp, found)
        return found

    def includers(
        self,
        target: Path,
        candidates: Iterable[str],
        *,
        include_dirs: Callable[[str], tuple[str, ...]],
        open_texts: Mapping[str, str],
        roots: Sequence[Path],
    ) -> tuple[Path, ...]:
        """The candidates that read `target`, directly or through headers of the workspace.

        `include_dirs` gives a candidate's own search folders. Open files come first, then the nearest.
        """
        sources = [source for source in dict.fromkeys(candidates) if source != str(target)]
        known = self._found.get(str(target))
        if known is not None and known.holds(self, sources, open_texts):
            found = known.found
        else:
            search = _Search(self, target, include_dirs, open_texts, roots)
            found = [source for source in sources if search.includes_directly(source)]
            found = found or [source for source in sources if search.reads(source)]
            if found:
                asked = {path: self.includes(path, open_texts) for path in {*found, *open_texts}}
                self._found[str(target)] = _Found(time.monotonic(), sources, found, asked)
        found = sorted(found, key=lambda source: (source not in open_texts, distance(source, str(target))))
        return tuple(Path(source) for source in found)


@dataclass(frozen=True, slots=True)
class _Found:
    """The end of a search, good for a while: asking 10,000 files whether they changed costs more than the answer."""

    at_s: float
    sources: list[str]
    found: list[str]
    asked: dict[str, tuple[str, ...]]  # include lines of what was found, and of what the editor has open

    def holds(self, index: IncludeIndex, sources: list[str], open_texts: Mapping[str, str]) -> bool:
        """Whether the same search would end the same, as far as the files that matter most tell."""
        is_recent = time.monotonic() - self.at_s < _GOOD_FOR_S
        return (
            is_recent
            and self.sources == sources
            and self.asked.keys() >= open_texts.keys()
            and all(index.includes(path, open_texts) == lines for path, lines in self.asked.items())
        )


class _Search:
    """One search for the readers of one file; what a header includes is resolved once per set of search folders."""

    def __init__(
        self,
        index: IncludeIndex,
        target: Path,
        include_dirs: Callable[[str], tuple[str, ...]],
        open_texts: Mapping[str, str],
        roots: Sequence[Path],
    ) -> None:
        self._index = index
        self._include_dirs = include_dirs
        self._open_texts = open_texts
        self._target = os.path.realpath(target)
        self._name = target.name
        self._inside = tuple(f"{root}{os.sep}" for root in roots) or (f"{target.parent}{os.sep}",)
        self._resolved: dict[tuple[str, str, tuple[str, ...]], str | None] = {}
        self._texts: dict[str, tuple[str, ...]] = {}
        self._leads_nowhere: set[tuple[str, tuple[str, ...]]] = set()

    def includes_directly(self, source: str) -> bool:
        """Whether one of the source's own lines names the target."""
        texts = [text for text in self._includes(source) if text.endswith(self._name)]
        if not texts:
            return False
        dirs = self._include_dirs(source)
        found = (self._resolve(text, os.path.dirname(source), dirs) for text in texts)
        return any(path is not None and self._is_target(path) for path in found)

    def reads(self, source: str) -> bool:
        """Whether the source includes the target through other files of the workspace."""
        if not self._includes(source):
            return False
        dirs = self._include_dirs(source)
        seen: set[str] = set()
        level = [source]
        for _ in range(_MAX_DEPTH):
            following: list[str] = []
            for path in level:
                for text in self._includes(path):
                    found = self._resolve(text, os.path.dirname(path), dirs)
                    if found is None or found in seen or (found, dirs) in self._leads_nowhere:
                        continue
                    seen.add(found)
                    if self._is_target(found):
                        return True
                    if found.startswith(self._inside):
                        following.append(found)
            if not following:
                self._leads_nowhere.update((found, dirs) for found in seen)
                return False
            level = following
        return False

    def _includes(self, path: str) -> tuple[str, ...]:
        if path not in self._texts:
            self._texts[path] = self._index.includes(path, self._open_texts)
        return self._texts[path]

    def _is_target(self, path: str) -> bool:
        return path == self._target or (
            os.path.basename(path) == os.path.basename(self._target) and os.path.realpath(path) == self._target
        )

    def _resolve(self, text: str, folder: str, include_dirs: tuple[str, ...]) -> str | None:
        key = (folder, text, include_dirs)
        if key not in self._resolved:
            paths = (os.path.normpath(os.path.join(base, text)) for base in (folder, *include_dirs))
            self._resolved[key] = next((path for path in paths if os.path.isfile(path)), None)
        return self._resolved[key]


def cuda_sources_near(document: Path, roots: Sequence[Path], *, most: int = 4_000) -> tuple[str, ...]:
    """CUDA sources of the workspace folder that holds the document (of its own folder where none does)."""
    root = next((root for root in roots if document.is_relative_to(root)), None)
    found: list[str] = []
    for n_folders, (folder, names, files) in enumerate(os.walk(root or document.parent)):
        names[:] = sorted(name for name in names if root and name[0] != "." and name not in _SKIPPED_FOLDERS)
        found += [os.path.join(folder, name) for name in files if name.endswith(CUDA_SUFFIX)]
        if n_folders > 5_000 or len(found) > most:
            break
    return tuple(found[:most])


def distance(path: str, target: str) -> tuple[int, str]:
    """Steps from folder to folder, then the name."""
    here, there = os.path.dirname(path).split(os.sep), os.path.dirname(target).split(os.sep)
    n_common = len(os.path.commonprefix([here, there]))
    return len(here) + len(there) - 2 * n_common, path
