"""Paths become content digests; a file is read again only when the system says that it changed."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from pathlib import Path

from kernel_lsp.source.digest import content_digest

# A file written within the clock's coarseness can change again with an equal time stamp: read it each time.
_RACY_NS = 2_000_000_000
_N_FILES_MAX = 20_000


class FileDigests:
    """Digests of files by path, remembered by (size, times, inode) within this process."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[tuple[int, int, int, int, int], str]] = OrderedDict()

    def digest(self, path: str) -> str | None:
        """64 hexadecimal digits; None where the file cannot be read."""
        try:
            status = os.stat(path)  # noqa: PTH116 - some hundred headers per save
            stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            digest = content_digest(Path(path).read_bytes())
        except (OSError, ValueError):
            self._known.pop(path, None)
            return None
        if time.time_ns() - status.st_mtime_ns > _RACY_NS:
            self._known[path] = (stamp, digest)
            while len(self._known) > _N_FILES_MAX:
                self._known.popitem(last=False)
        return digest
