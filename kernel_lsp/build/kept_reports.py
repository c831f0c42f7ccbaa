"""Reports of profile commands that were run from the editor, kept in the cache; the oldest go when there are many."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from kernel_lsp.ncu.raw_report import REPORT_SUFFIXES
from kernel_lsp.source.digest import content_digest

MOST_REPORTS = 32  # of one workspace
MOST_BYTES = 256 << 20
_FOLDER = "profiles"
_MOST_NAME = 40


def reports_folder(cache: Path, workspace: Path) -> Path:
    """Where the reports of one workspace folder are kept."""
    return cache / _FOLDER / content_digest(str(workspace).encode("utf-8", "surrogateescape"))[:16]


def kept_reports(folder: Path) -> tuple[Path, ...]:
    """The reports in such a folder, the newest first."""
    return tuple(path for _, _, path in _by_age(folder))


def keep(report: Path, folder: Path, kernel: str) -> Path:
    """Move a report into the folder under a name that tells kernel and time, and make room. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", kernel).strip("-")[:_MOST_NAME] or "kernel"
    when = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S-%f")
    kept = folder / f"{name}-{when}{report.suffix}"
    # First beside its place (the run folder may be on another file system), so that nobody reads half of it.
    part = folder / f".{kept.name}.part"
    try:
        shutil.move(report, part)
        part.replace(kept)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    _make_room(folder, kept)
    return kept


def _make_room(folder: Path, newest: Path) -> None:
    total = 0
    for position, (_, size, path) in enumerate(_by_age(folder)):
        total += size
        if path != newest and (position >= MOST_REPORTS or total > MOST_BYTES):
            with contextlib.suppress(OSError):
                path.unlink()


def _by_age(folder: Path) -> Iterable[tuple[float, int, Path]]:
    found = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix in REPORT_SUFFIXES:
                with contextlib.suppress(OSError):
                    stat = path.stat()
                    found.append((stat.st_mtime, stat.st_size, path))
    return sorted(found, key=lambda each: (-each[0], str(each[2])))
