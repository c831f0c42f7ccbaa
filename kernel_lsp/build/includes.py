"""The preprocessed text that nvcc keeps becomes the list of files it read.

The disk is asked only whether two spellings of a path are one file.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

_MARKER = re.compile(rb'^(?:#|#line) \d+ "((?:[^"\\\n]|\\.)*)"', re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")


def files_read(preprocessed: bytes, cwd: Path, without: str = "") -> tuple[str, ...]:
    """Absolute paths in the order of first reading. `without`: a path that stands for another (an overlay copy)."""
    raw_names = dict.fromkeys(_MARKER.findall(preprocessed))
    paths: dict[str, None] = {}
    for raw in raw_names:
        name = os.fsdecode(_ESCAPE.sub(_unescaped, raw))
        if name.startswith("<") or name.endswith("//"):  # <built-in>, and the folder that gcc -g names
            continue
        path = tidy_path(str(cwd / name))
        if path != without:
            paths[path] = None
    return tuple(paths)


@lru_cache(maxsize=20_000)
def tidy_path(path: str) -> str:
    """The absolute path without `x/..` where that names the same file (it does not behind a symbolic link)."""
    tidy = os.path.normpath(path)
    if ".." not in path or tidy == path:
        return tidy
    try:
        return tidy if Path(tidy).samefile(path) else os.path.realpath(path)
    except OSError:
        return tidy


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else code
