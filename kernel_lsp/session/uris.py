"""Document URIs and file paths: one key per document, paths for `file:` URIs, URIs as the client spells them."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

_DRIVE = re.compile(r"^/?([A-Za-z]):")


def uri_key(uri: str) -> str:
    """The same key for every spelling of a URI (percent escapes, case of a drive letter)."""
    plain = unquote(uri)
    scheme, colon, rest = plain.partition("://")
    if colon and scheme == "file":
        rest = _DRIVE.sub(lambda m: f"/{m.group(1).lower()}:", rest)
        return f"file://{rest}"
    return plain


def path_of(uri: str) -> Path | None:
    """The path of a `file:` URI on this machine; None for every other scheme (untitled, git, vscode-remote)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file":
        return None
    # urlsplit cuts at '?' and '#': clients escape them in paths, so an unescaped one is part of no path
    path = unquote(parts.path)
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{parts.netloc}{path}"
    elif os.name == "nt" and _DRIVE.match(path):
        path = path.lstrip("/")
    if not path or "\0" in path:
        return None
    return Path(path)


def real_path(path: str | Path) -> str:
    """The path with symbolic links resolved; what the compiler's tables and the client are compared by."""
    return os.path.normcase(os.path.realpath(path))


def folder_of_runs(source: Path, roots: tuple[Path, ...]) -> Path:
    """Where programs run for a source: the innermost workspace folder that holds it, else its own folder."""
    around = [root for root in roots if root in source.parents]
    return max(around, key=lambda root: len(root.parts), default=source.parent)


def is_cuda_source(uri: str, language_id: str) -> bool:
    """Whether a document is ours to analyse: by extension, and by language for headers and buffers without one."""
    suffix = PurePosixPath(unquote(uri)).suffix.lower()
    if suffix in (".cu", ".cuh"):
        return True
    return language_id in ("cuda", "cuda-cpp") and suffix not in (".c", ".cpp", ".cc", ".cxx", ".py", ".hip")
