"""compile_commands.json -> `Database`: entries indexed by the file they build, re-read only when the file changes.

Paths are compared in one normal form; where that finds nothing, files of the same name are compared by the place
that symlinks lead to. Windows forms are compared without case and with either slash.
"""

from __future__ import annotations

import json
import ntpath
import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kernel_lsp.project.words import Platform, platform_of

MAX_DATABASE_BYTES = 512 << 20
_FIRST_FOLDERS = ("build", "out")
_FOLDER_PREFIXES = ("build", "out", "cmake-build-", "_build", ".build")
_MAX_FOLDERS = 200
NAME = "compile_commands.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as the build wrote it; `file` is absolute and normalised, in the build's own form."""

    index: int  # 0-based place in the file
    directory: str
    file: str
    command: str | None
    arguments: tuple[str, ...] | None
    output: str
    platform: Platform

    @property
    def text(self) -> str:
        """The command in one line, for searching only: the words of `arguments` are joined by blanks."""
        return self.command if self.command is not None else " ".join(self.arguments or ())


@dataclass(frozen=True, slots=True)
class Database:
    """A database that was read; `problems` name what was left out, each with its place."""

    path: Path
    entries: tuple[Entry, ...]
    problems: tuple[str, ...]
    _by_path: dict[str, list[Entry]] = field(repr=False, compare=False)
    _by_name: dict[str, list[Entry]] = field(repr=False, compare=False)

    def entries_for(self, path: str) -> tuple[Entry, ...]:
        """The entries that build this file, in the database's order. Touches the disk only for same-named files."""
        found = self._by_path.get(path_key(path))
        if found:
            return tuple(found)
        real = os.path.realpath(path)
        found = self._by_path.get(path_key(real))
        if found:
            return tuple(found)
        names = {_name_key(path), _name_key(real)}
        return tuple(
            entry
            for name in sorted(names)
            for entry in self._by_name.get(name, ())
            if entry.platform == "posix" and _real_file(entry.file) == real
        )


def path_key(path: str) -> str:
    """Normal form for comparing; a Windows path in any letter case and with either slash has one key."""
    if platform_of(path) == "windows":
        return ntpath.normcase(ntpath.normpath(path))
    return posixpath.normpath(path)


def parse_database(text: str | bytes, path: Path, platform: Platform | None = None) -> Database:
    """Reads the text; what cannot be used becomes a problem that names the file and the place, never an error."""
    problems: list[str] = []
    entries: list[Entry] = []
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        rows = []
        problems.append(f"{path}:{error.lineno}:{error.colno}: not JSON ({error.msg}); the file is not used")
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        rows = []
        problems.append(f"{path}: not JSON ({type(error).__name__}); the file is not used")
    if not isinstance(rows, list):
        problems.append(f"{path}: expected a list of entries, got {_kind(rows)}; the file is not used")
        rows = []
    for index, row in enumerate(rows):
        entry = _entry(index, row, path, platform)
        if isinstance(entry, Entry):
            entries.append(entry)
        elif len(problems) < 20:
            problems.append(f"{path}: entry {index + 1}: {entry}; the entry is left out")
    by_path: dict[str, list[Entry]] = {}
    by_name: dict[str, list[Entry]] = {}
    for entry in entries:
        by_path.setdefault(path_key(entry.file), []).append(entry)
        by_name.setdefault(_name_key(entry.file), []).append(entry)
    return Database(path, tuple(entries), tuple(problems), by_path, by_name)


class Databases:
    """The databases read so far. A file is read again only when its size, time or inode changed."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[tuple[int, int, int], Database]] = {}
        self._subfolders: dict[Path, tuple[int, tuple[str, ...]]] = {}

    def load(self, path: Path) -> Database:
        """The database at `path`; a missing or unreadable file is an empty one with a problem that says so."""
        try:
            stat = path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            cached = self._read.get(path)
            if cached and cached[0] == stamp:
                return cached[1]
            if stat.st_size > MAX_DATABASE_BYTES:
                problem = f"{path}: larger than {MAX_DATABASE_BYTES >> 20} MB; the file is not used"
                database = Database(path, (), (problem,), {}, {})
            else:
                database = parse_database(path.read_bytes(), path)
        except OSError as error:
            self._read.pop(path, None)
            return Database(path, (), (f"{path}: cannot be read ({error.strerror})",), {}, {})
        self._read[path] = (stamp, database)
        return database

    def nearest(self, document: Path, roots: tuple[Path, ...]) -> Iterator[tuple[Path, ...]]:
        """Paths of databases, folder by folder from the document's upwards to its workspace folder (else the top)."""
        for folder in folders_upwards(document, roots):
            places = (folder, *self.build_folders(folder))
            found = tuple(place / NAME for place in places if (place / NAME).is_file())
            if found:
                yield found

    def build_folders(self, folder: Path) -> Iterator[Path]:
        """build/, out/ and the like; behind each the folders in it, where several build types live."""
        names = [name for name in self._names(folder) if name.lower().startswith(_FOLDER_PREFIXES)]
        names.sort(key=lambda name: (name not in _FIRST_FOLDERS, name))
        for name in names[:_MAX_FOLDERS]:
            yield folder / name
            subs = [sub for sub in self._names(folder / name) if not sub.startswith("CMakeFiles")]
            for sub in subs[:_MAX_FOLDERS]:
                yield folder / name / sub
                if (name, sub) == ("out", "build"):  # CMake presets of Visual Studio: out/build/x64-Release
                    yield from (folder / name / sub / preset for preset in self._names(folder / name / sub))

    def _names(self, folder: Path) -> tuple[str, ...]:
        """Names of the folders in a folder, listed again only when its time changed."""
        try:
            stamp = folder.stat().st_mtime_ns
            cached = self._subfolders.get(folder)
            if cached is None or cached[0] != stamp:
                with os.scandir(folder) as listing:
                    names = tuple(sorted(item.name for item in listing if item.is_dir()))
                cached = self._subfolders[folder] = (stamp, names)
        except OSError:
            return ()
        return cached[1]


def folders_upwards(document: Path, roots: tuple[Path, ...]) -> Iterator[Path]:
    """The document's folder and those above it; the workspace folder that holds it is the last."""
    holding = [root for root in roots if document.is_relative_to(root)]
    top = min(holding, key=lambda root: len(root.parts)) if holding else None
    for folder in document.parents:
        yield folder
        if folder == top:
            return


def _entry(index: int, row: object, path: Path, platform: Platform | None) -> Entry | str:
    if not isinstance(row, dict):
        return f"expected an object, got {_kind(row)}"
    file, directory = row.get("file"), row.get("directory")
    if not isinstance(file, str) or not file:
        return f'"file" is {_kind(file)}, not a text'
    if not isinstance(directory, str):
        if directory is not None:
            return f'"directory" is {_kind(directory)}, not a text'
        directory = str(path.parent)
    command, arguments = row.get("command"), row.get("arguments")
    if isinstance(arguments, list) and arguments and all(isinstance(word, str) for word in arguments):
        words: tuple[str, ...] | None = tuple(arguments)
        command = None
    elif isinstance(command, str) and command.strip():
        words = None
    else:
        return 'neither "arguments" (a list of texts) nor "command" (a text) can be used'
    if "\0" in file or "\0" in directory:
        return "a path holds a zero byte"
    kind = platform or platform_of(directory, file)
    join, normal = (ntpath.join, ntpath.normpath) if kind == "windows" else (posixpath.join, posixpath.normpath)
    if kind == "posix" and not posixpath.isabs(directory):
        directory = posixpath.normpath(posixpath.join(str(path.parent), directory))
    output = row.get("output")
    return Entry(
        index,
        directory,
        normal(join(directory, file)),
        command,
        words,
        output if isinstance(output, str) else "",
        kind,
    )


def _real_file(file: str) -> str | None:
    try:
        return os.path.realpath(file)
    except (OSError, ValueError):
        return None


def _name_key(path: str) -> str:
    return ntpath.basename(path).lower() if platform_of(path) == "windows" else posixpath.basename(path)


def _kind(value: object) -> str:
    return {
        dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"
    }.get(type(value), "a number")  # fmt: skip
