"""A header that the compiler did not find -> the folder that has it: in the workspace, or in a PyPI package of NVIDIA.

For files that no project file speaks of, where the search folders are a guess in any case: only a folder that leaves no
choice is taken.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernel_lsp.project.find_command import HEADER_SUFFIXES
from kernel_lsp.project.includers import CUDA_SUFFIX, distance
from kernel_lsp.project.shell_hazard import path_hazard
from kernel_lsp.project.toolchain import Toolchain, is_from_pypi
from kernel_lsp.source.message import CompilerMessage

_NOT_FOUND = re.compile(r"(?:^|')([^'\"]+?)'?: No such file or directory$|cannot open source file \"([^\"]+)\"")
_SKIPPED_FOLDERS = {"node_modules", "__pycache__", "site-packages", "dist-packages", "CMakeFiles"}
_GOOD_FOR_S = 20.0
_MAX_FOLDERS = 20_000
_MAX_COMPARED_BYTES = 4 << 20


def missing_header(messages: Iterable[CompilerMessage]) -> str | None:
    """What stands between the quotes or angle brackets of the #include that found nothing; None: that is not the error.

    A relative step upwards is left out: it counts from the file that includes, not from a search folder.
    """
    for message in messages:
        found = _NOT_FOUND.search(message.text) if message.severity == "error" else None
        name = (found[1] or found[2]) if found else ""
        if name and not Path(name).is_absolute() and ".." not in Path(name).parts:
            return name
    return None


def package_folder(name: str, toolchain: Toolchain) -> str | None:
    """The folder of another of NVIDIA's PyPI packages (cuDNN, NCCL) beside the compiler's that has this header."""
    if not is_from_pypi(toolchain) or toolchain.nvcc is None:
        return None
    toolkit = toolchain.toolkit or toolchain.nvcc.path.resolve().parent.parent
    found = sorted(folder for folder in toolkit.parent.glob("*/include") if (folder / name).is_file())
    return str(found[0]) if len(found) == 1 and path_hazard(str(found[0])) is None else None


class WorkspaceHeaders:
    """Headers of the workspace folders by name, listed again when the list is some seconds old."""

    def __init__(self) -> None:
        self._listed: dict[Path, tuple[float, dict[str, list[str]]]] = {}

    def folders(self, name: str, near: Path, roots: Sequence[Path]) -> tuple[str, ...]:
        """The folders from which `name` is found, nearest to `near` first; of equal files only the nearest counts."""
        root = next((root for root in roots if near.is_relative_to(root)), None)
        if root is None:
            return ()
        paths = [path for path in self._named(root, os.path.basename(name)) if path.endswith(f"/{name}")]  # noqa: PTH119
        paths.sort(key=lambda path: distance(path, str(near)))
        different: dict[bytes, str] = {}
        for path in paths:
            different.setdefault(_content(path), path)
        folders = (path.removesuffix(f"/{name}") for path in different.values())
        return tuple(folder for folder in folders if path_hazard(folder) is None)

    def _named(self, root: Path, name: str) -> list[str]:
        at_s, by_name = self._listed.get(root, (0.0, {}))
        if not by_name or time.monotonic() - at_s > _GOOD_FOR_S:
            by_name = _headers_in(root)
            self._listed[root] = (time.monotonic(), by_name)
        return by_name.get(name, [])


def _headers_in(root: Path) -> dict[str, list[str]]:
    by_name: dict[str, list[str]] = {}
    for n_folders, (folder, names, files) in enumerate(os.walk(root)):
        names[:] = sorted(name for name in names if name[0] != "." and name not in _SKIPPED_FOLDERS)
        for file in files:
            if file.endswith((*HEADER_SUFFIXES, CUDA_SUFFIX)):
                by_name.setdefault(file, []).append(f"{folder}/{file}")
        if n_folders > _MAX_FOLDERS:
            break
    return by_name


def _content(path: str) -> bytes:
    """What tells files of one name apart; a file that cannot be read is like no other."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_MAX_COMPARED_BYTES)
    except OSError:
        return b"\0" + os.fsencode(path)
