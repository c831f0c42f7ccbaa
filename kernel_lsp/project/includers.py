"""A header (or a source that others include) -> the CUDA sources that read it, nearest first.

A cheap search of `#include` lines, no preprocessor: conditions are not evaluated, so a line behind an `#if` counts.
"""

# Strings and os.path: a Path object for each of 10,000 files costs more than the search itself.
# ruff: noqa: PTH113, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<"]([^<>"\n]+)[>"]', re.MULTILINE)
_MAX_SOURCE_BYTES = 4 << 20
_MAX_DEPTH = 12
CUDA_SUFFIX = ".cu"
_SKIPPED_FOLDERS = {"node_modules", "__pycache__", "CMakeFiles", "site-packages"}


class IncludeIndex:
    """Include lines of the files read so far; a file is read again only when its time or size changed."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[int, int], tuple[str, ...]]] = {}

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
        candidates: Iterable[Path],
        *,
        include_dirs: Callable[[Path], tuple[str, ...]],
        open_texts: Mapping[str, str],
        roots: Sequence[Path],
    ) -> tuple[Path, ...]:
        """The candidates that read `target`, directly or through headers of the workspace.

        `include_dirs` gives a candidate's own search folders. Open files come first, then the nearest.
        """
        search = _Search(self, target, open_texts, roots)
        ordered = sorted(
            set(candidates) - {target}, key=lambda path: (str(path) not in open_texts, distance(path, target))
        )
        direct = tuple(
            source
            for source in ordered
            if any(text.endswith(target.name) for text in self.includes(str(source), open_texts))
            and search.reads(source, include_dirs(source), depth=1)
        )
        return direct or tuple(
            source for source in ordered if search.reads(source, include_dirs(source), depth=_MAX_DEPTH)
        )


class _Search:
    """One search for the readers of one file; what headers include is resolved once per set of search folders."""

    def __init__(self, index: IncludeIndex, target: Path, open_texts: Mapping[str, str], roots: Sequence[Path]) -> None:
        self._index = index
        self._open_texts = open_texts
        self._target = os.path.realpath(target)
        self._inside = tuple(f"{root}{os.sep}" for root in roots) or (f"{target.parent}{os.sep}",)
        self._resolved: dict[tuple[str, str, tuple[str, ...]], str | None] = {}
        self._leads_nowhere: set[tuple[str, tuple[str, ...]]] = set()

    def reads(self, source: Path, include_dirs: tuple[str, ...], depth: int) -> bool:
        """Whether `source` includes the target within `depth` steps."""
        seen: set[str] = set()
        level = [str(source)]
        for _ in range(depth):
            following: list[str] = []
            for path in level:
                for text in self._index.includes(path, self._open_texts):
                    found = self._resolve(text, os.path.dirname(path), include_dirs)
                    if found is None or found in seen or (found, include_dirs) in self._leads_nowhere:
                        continue
                    seen.add(found)
                    if self._is_target(found):
                        return True
                    if found.startswith(self._inside):
                        following.append(found)
            level = following
        if depth == _MAX_DEPTH and not level:
            self._leads_nowhere.update((found, include_dirs) for found in seen)
        return False

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


def cuda_sources_near(document: Path, roots: Sequence[Path], *, most: int = 4_000) -> tuple[Path, ...]:
    """CUDA sources of the workspace folder that holds the document (of its own folder where none does)."""
    root = next((root for root in roots if document.is_relative_to(root)), None)
    found: list[Path] = []
    for n_folders, (folder, names, files) in enumerate(os.walk(root or document.parent)):
        names[:] = sorted(name for name in names if root and name[0] != "." and name not in _SKIPPED_FOLDERS)
        found += [Path(folder, name) for name in files if name.endswith(CUDA_SUFFIX)]
        if n_folders > 5_000 or len(found) > most:
            break
    return tuple(found[:most])


def distance(path: Path, target: Path) -> tuple[int, str]:
    """Steps from folder to folder, then the name."""
    here, there = path.parent.parts, target.parent.parts
    n_common = len(os.path.commonprefix([here, there]))
    return len(here) + len(there) - 2 * n_common, str(path)
