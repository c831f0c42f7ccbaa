"""Run folders: each compiler run gets a private temporary folder under the cache, removed whatever happens.

A server's folders stand under one parent that holds a locked file. The system drops the lock when the server dies,
also by SIGKILL, so the next start can tell a dead server's leftovers from a living neighbour's folders.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kernel_lsp.build.process import end_left_over

_LOCK_NAME = "lock"
_YOUNG_S = 60.0  # a neighbour may be between making its folder and locking the file


class Scratch:
    """The parent of this process's run folders. `root` None: no usable cache folder, the system's is used."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._parent: Path | None = None
        self._lock: int | None = None

    @contextlib.contextmanager
    def run_folder(self) -> Iterator[Path]:
        """A new empty private folder for one run; it is gone afterwards. Raises OSError where none can be made."""
        parent = self._open()
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
        try:
            yield folder
        finally:
            _remove(folder)

    def close(self) -> None:
        """Remove everything of this process and give the lock back."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                os.close(self._lock)
            self._lock = None
        if self._parent is not None:
            _remove(self._parent)
            self._parent = None
        atexit.unregister(self.close)

    def _open(self) -> Path:
        if self._parent is not None and self._parent.is_dir():
            return self._parent
        if self._root is not None:
            with contextlib.suppress(OSError):
                self._root.mkdir(parents=True, exist_ok=True)
                self._parent = Path(tempfile.mkdtemp(prefix="server-", dir=self._root))
                self._lock = _take_lock(self._parent / _LOCK_NAME)
        if self._parent is None or not self._parent.is_dir():
            self._parent = Path(tempfile.mkdtemp(prefix="kernel-lsp-"))
        atexit.register(self.close)
        return self._parent


def remove_stale(root: Path) -> int:
    """Remove the folders of servers that no longer live, and end what still works in them; returns how many."""
    n_removed = 0
    try:
        folders = [entry for entry in root.iterdir() if entry.name.startswith("server-")]
    except OSError:
        return 0
    for folder in folders:
        lock_path = folder / _LOCK_NAME
        try:
            if not lock_path.exists():
                if time.time() - folder.stat().st_mtime < _YOUNG_S:
                    continue
                _remove(folder)
                n_removed += 1
                continue
            lock = _take_lock(lock_path)
        except OSError:  # held by a living server, or not ours to touch
            continue
        os.close(lock)
        end_left_over(folder)
        _remove(folder)
        n_removed += 1
    return n_removed


def _take_lock(path: Path) -> int:
    """A descriptor that holds the lock (not inherited by children). Raises OSError where another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if sys.platform == "win32":  # not tested there
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(folder: Path) -> None:
    for _ in range(3):  # a killed child may still have been writing when the first round listed the folder
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
