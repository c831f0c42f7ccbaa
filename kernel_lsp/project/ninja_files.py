"""Finds the build.ninja that builds a file: PyTorch's extension caches, build/temp.*, and build folders.

torch.utils.cpp_extension writes no compile database; its build.ninja is the only record of an extension's flags.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.project.command import CommandNote
from kernel_lsp.project.compile_db import Entry, folders_upwards
from kernel_lsp.project.ninja import NinjaEdge, NinjaError, read_ninja
from kernel_lsp.project.words import platform_of

_MAX_FILES = 500


@dataclass(frozen=True, slots=True)
class NinjaRule:
    """An edge that builds the file, as an entry; `path` is the build.ninja."""

    path: Path
    entry: Entry


class NinjaFiles:
    """The ninja files read so far; read again only when their size or time changed."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[tuple[int, int], tuple[NinjaEdge, ...]]] = {}

    def rule_for(
        self,
        source: Path,
        roots: tuple[Path, ...],
        environment: Mapping[str, str],
        build_folders: Callable[[Path], Iterable[Path]],
        notes: list[CommandNote],
    ) -> NinjaRule | None:
        """The first edge with this source as an explicit input; what could not be read is added to `notes`.

        `build_folders` lists the folders beside a source's where build files may lie.
        """
        real = os.path.realpath(source)
        for path in _candidates(source, roots, environment, build_folders):
            for edge in self._edges(path, notes):
                if not any(
                    Path(name).name == source.name and os.path.realpath(path.parent / name) == real
                    for name in edge.inputs
                ):
                    continue
                try:
                    command = edge.command()
                except NinjaError as error:
                    notes.append(CommandNote("warning", f"{path}: {error}", "warning"))
                    continue
                if command:
                    output = edge.outputs[0] if edge.outputs else ""
                    directory = str(path.parent)
                    kind = platform_of(directory)
                    return NinjaRule(path, Entry(0, directory, str(source), command, None, output, kind))
        return None

    def _edges(self, path: Path, notes: list[CommandNote]) -> tuple[NinjaEdge, ...]:
        try:
            stat = path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            cached = self._read.get(path)
            if cached is None or cached[0] != stamp:
                cached = self._read[path] = (stamp, read_ninja(path))
        except (NinjaError, OSError, ValueError, RecursionError) as error:
            notes.append(CommandNote("warning", f"{path}: not used ({error})", "log"))
            return ()
        return cached[1]


def _candidates(
    source: Path,
    roots: tuple[Path, ...],
    environment: Mapping[str, str],
    build_folders: Callable[[Path], Iterable[Path]],
) -> Iterator[Path]:
    for folder in folders_upwards(source, roots):
        paths = (place / "build.ninja" for place in (folder, *build_folders(folder)))
        yield from (path for path in paths if path.is_file())
    named = environment.get("TORCH_EXTENSIONS_DIR")
    home = environment.get("HOME") or environment.get("USERPROFILE")
    caches = [Path(named)] if named else [Path(home, ".cache", "torch_extensions")] if home else []
    for cache in caches:
        for pattern in ("*/build.ninja", "*/*/build.ninja"):
            yield from sorted(cache.glob(pattern))[:_MAX_FILES]
