"""The preprocessed text that nvcc keeps becomes the list of files it read, already while the compiler goes on."""

from __future__ import annotations

import asyncio
import os
import re
from functools import lru_cache
from pathlib import Path

from kernel_lsp.build.digests import FileDigests

_MARKER = re.compile(rb'(?:line)? ?\d+ "((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_PREREQUISITE = re.compile(rb"(?:\\[\\ #]|[^\s])+")
_POLL_S = 0.02
_N_BATCH = 8  # files digested before the event loop has its turn again


def files_read(preprocessed: bytes, cwd: Path, without: str = "") -> tuple[str, ...]:
    """Absolute paths in the order of first reading. `without`: a path that stands for another (an overlay copy)."""
    raw_names: dict[bytes, None] = {}
    for part in (b"\n" + preprocessed).split(b"\n#"):  # ten times faster than a regular expression over it all
        if match := _MARKER.match(part):
            raw_names[match[1]] = None
    paths: dict[str, None] = {}
    for raw in raw_names:
        name = os.fsdecode(_ESCAPE.sub(_unescaped, raw))
        if name.startswith("<") or name.endswith("//"):  # <built-in>, and the folder that gcc -g names
            continue
        path = tidy_path(str(cwd / name))
        if path != without:
            paths[path] = None
    return tuple(paths)


def files_of_rule(rule: bytes, cwd: Path) -> tuple[str, ...]:
    """Absolute paths of the files behind the colon of a make rule, as `-MD` writes it."""
    # A target may hold a colon itself (a drive), but none with a blank behind it.
    _, _, prerequisites = rule.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").partition(b": ")
    names = (os.fsdecode(re.sub(rb"\\([\\ #])|\$(\$)", rb"\1\2", raw)) for raw in _PREREQUISITE.findall(prerequisites))
    return tuple(dict.fromkeys(tidy_path(str(cwd / name)) for name in names))


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


class ReadAhead:
    """Lists and digests what a run reads while the compiler's later steps keep the other processors busy.

    The first build of a file has its result some 20 ms earlier for it.
    """

    def __init__(self, steps: Path, cwd: Path, without: str, digests: FileDigests) -> None:
        self._steps = steps
        self._cwd = cwd
        self._without = without
        self._digests = digests
        self._files: tuple[str, ...] = ()
        self._seen_bytes = -1

    async def follow(self) -> None:
        """Wait for the preprocessed text to stop growing, then work through it; cancelled when the run is over."""
        before = -1
        while True:
            size = self._size()
            if size > 0 and size == before:
                break
            before = size
            await asyncio.sleep(_POLL_S)
        self._read()
        for start in range(0, len(self._files), _N_BATCH):
            for path in self._files[start : start + _N_BATCH]:
                self._digests.digest(path)
            await asyncio.sleep(0)

    def files(self) -> tuple[str, ...]:
        """The files of the finished run; empty where it did not come as far as to leave its preprocessed text."""
        if self._size() != self._seen_bytes:
            self._read()
        return self._files

    def _text_path(self) -> Path | None:
        return next(self._steps.glob("*.ii"), None)

    def _size(self) -> int:
        path = self._text_path()
        try:
            return path.stat().st_size if path else -1
        except OSError:
            return -1

    def _read(self) -> None:
        path = self._text_path()
        try:
            text = path.read_bytes() if path else b""
        except OSError:
            text = b""
        self._files = files_read(text, self._cwd, self._without)
        self._seen_bytes = len(text)


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else code
