"""Project files and preferences -> a `Recipe`: the flags of one source, and where they come from.

What a file is built with is recorded (in a compile database, a build.ninja) or stated for all files (on the command
line, in kernel-lsp.yaml, in compile_flags.txt or .clangd); else flags are borrowed from a neighbour, or the default's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernel_lsp.project.choose_entry import Candidate, choose_entry
from kernel_lsp.project.command import CommandNote
from kernel_lsp.project.compile_db import NAME, Database, Databases, Entry
from kernel_lsp.project.config import ProjectConfig
from kernel_lsp.project.entry_flags import EntryFlags, read_entry, read_invocation
from kernel_lsp.project.flag_files import flags_from_files
from kernel_lsp.project.includers import CUDA_SUFFIX, IncludeIndex, distance
from kernel_lsp.project.invocation import Invocation, dialect_of_flags
from kernel_lsp.project.ninja_files import NinjaFiles
from kernel_lsp.project.search_folders import search_folders
from kernel_lsp.project.shell_hazard import HOST_PLATFORM

FALLBACK_FLAGS = ("-std=c++17", "-O3")
_SEARCH_WORDS = re.compile(
    r"""(?:-I|-isystem|--include-path|--system-include|--options-file|-optf|@)[= ]?(?:\\"[^"]*"|"[^"]*"|\S+)"""
)
_RELOCATABLE = re.compile(r"(?<!\S)(?:-rdc[= ]true|--relocatable-device-code[= ]true|-dc|--device-c|-fgpu-rdc)(?!\S)")
_CUDA_LANGUAGE = re.compile(r"-x[ =]?(?:cu|cuda)\b")


@dataclass(frozen=True, slots=True)
class CommandPreferences:
    """What the user asked for, whatever the project says. None and () mean: not asked."""

    explicit_flags: tuple[str, ...] | None = None  # `-- FLAGS` of the command line
    explicit_directory: Path | None = None  # what relative paths among them count from
    fallback_flags: tuple[str, ...] = ()  # for files that no project file speaks of
    compile_commands: Path | None = None
    arch: str | None = None
    arch_why: str = "setting"
    default_arch: str = "sm_86"
    default_arch_why: str = "default GPU"
    includers: tuple[Path, ...] = ()  # sources through which this header is wanted, the best first
    link_target: str | None = None  # the file is wanted for a device link into this target ("": not known)


@dataclass(slots=True)
class ProjectFiles:
    """The project files read so far, so that an unchanged file is not read twice. One per session."""

    databases: Databases = field(default_factory=Databases)
    includes: IncludeIndex = field(default_factory=IncludeIndex)
    ninja: NinjaFiles = field(default_factory=NinjaFiles)
    search_folders: dict[tuple[object, ...], tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Flags with their origin; `detail` is "Release (entry 2 of 3)" or the like."""

    flags: EntryFlags
    origin: str
    origin_path: Path | None
    detail: str = ""
    notes: tuple[CommandNote, ...] = ()


class FlagSources:
    """The places that speak of a project's flags; what was wrong with one of them is added to `notes`."""

    def __init__(
        self,
        files: ProjectFiles,
        preferences: CommandPreferences,
        config: ProjectConfig | None,
        roots: tuple[Path, ...],
        trusted: bool,
        environment: Mapping[str, str],
    ) -> None:
        self._files = files
        self._preferences = preferences
        self._config = config
        self.roots = roots
        self._trusted = trusted
        self._environment = environment
        self.notes: list[CommandNote] = []

    def recorded(self, source: Path) -> Recipe | None:
        """From a file that names this source; where a project or the user states flags, those replace them."""
        found: Recipe | None = None
        for paths in self._database_paths(source):
            found = self._from_databases(source, paths)
            if found:
                break
        if found is None:
            rule = self._files.ninja.rule_for(
                source, self.roots, self._environment, self._files.databases.build_folders, self.notes
            )
            flags = self._read(rule.entry, rule.path) if rule else None
            if rule and flags and not flags.unusable:
                found = Recipe(flags, "build.ninja", rule.path)
        return (self.stated(source, files=False) or found) if found else None

    def stated(self, source: Path, *, files: bool = True) -> Recipe | None:
        """Flags that were stated for all files: on the command line, in kernel-lsp.yaml, in a flags file."""
        preferences, config = self._preferences, self._config
        if preferences.explicit_flags is not None:
            directory = preferences.explicit_directory or source.parent
            flags = self._flag_words(preferences.explicit_flags, directory, from_user=True)
            return Recipe(flags, "command line", None)
        if config is not None and config.flags is not None:
            return Recipe(self._flag_words(config.flags, config.path.parent), "kernel-lsp.yaml", config.path)
        recorded = flags_from_files(source, self.roots, self.notes) if files else None
        if recorded is None:
            return None
        flags = self._flag_words(recorded.words, recorded.path.parent)
        return Recipe(flags, recorded.path.name, recorded.path)

    def _database_paths(self, source: Path) -> list[tuple[Path, ...]]:
        named = self._preferences.compile_commands
        if named is None and self._config is not None:
            named = self._config.compile_commands
        if named is not None:
            named = named if named.is_absolute() or not self.roots else self.roots[0] / named
            return [((named / NAME) if named.is_dir() else named,)]
        return list(self._files.databases.nearest(source, self.roots))

    def databases(self, document: Path) -> list[Database]:
        """The databases that may speak of this file, the nearest first."""
        return [self._database(path) for paths in self._database_paths(document) for path in paths]

    def cuda_files(self, databases: Sequence[Database]) -> list[str]:
        """The sources that the databases build as CUDA, in the form that the user's workspace has."""
        return [file for database in databases for file in self._user_forms(_cuda_files(database))]

    def relocatable_files(self, databases: Sequence[Database]) -> list[str]:
        """Those whose device code is linked later."""
        entries = (entry for database in databases for entry in database.entries)
        found = (entry.file for entry in entries if _RELOCATABLE.search(entry.text) and _is_cuda(entry))
        return list(dict.fromkeys(self._user_forms(tuple(found))))

    def search_folders(self, source: str, databases: Sequence[Database]) -> tuple[str, ...]:
        """The folders that a source's own flags search for headers, absolute. Most entries share theirs."""
        for database in databases:
            for entry in database.entries_for(source)[:1]:
                key = (database.path, entry.directory, *_SEARCH_WORDS.findall(entry.text))
                if key not in self._files.search_folders:
                    self._files.search_folders[key] = _folders(self._read(entry, database.path))
                return self._files.search_folders[key]
        recipe = self.stated(Path(source))
        return _folders(recipe.flags) if recipe else ()

    def _database(self, path: Path) -> Database:
        database = self._files.databases.load(path)
        for problem in database.problems:
            note = CommandNote("warning", problem, "warning")
            if note not in self.notes:
                self.notes.append(note)
        return database

    def _from_databases(self, source: Path, paths: Sequence[Path]) -> Recipe | None:
        candidates = [
            Candidate(path, self._read(entry, path))
            for path in paths
            for entry in self._database(path).entries_for(str(source))
        ]
        if not candidates:
            return None
        wanted = self._config.database_entry if self._config else None
        chosen = choose_entry(candidates, wanted, self._preferences.link_target)
        flags = chosen.candidate.flags
        if flags.unusable and flags.dialect != "hip":
            self.notes.append(CommandNote("warning", f"{source.name}: {flags.unusable}", "log"))
            return None
        return Recipe(flags, NAME, chosen.candidate.database, chosen.detail, chosen.notes)

    def _read(self, entry: Entry, origin: Path) -> EntryFlags:
        return read_entry(entry, roots=self._response_roots(origin), environment=self._environment)

    def _response_roots(self, origin: Path) -> tuple[Path, ...]:
        """Where response files may lie: the workspace, and the folder that the database really lies in."""
        return (*self.roots, origin.resolve().parent, origin.parent)

    def _flag_words(self, words: tuple[str, ...], directory: Path, *, from_user: bool = False) -> EntryFlags:
        dialect = dialect_of_flags(words)
        invocation = Invocation(dialect, dialect, words, str(directory), (), ())
        return read_invocation(
            invocation,
            platform=HOST_PLATFORM,
            roots=(*self.roots, directory),
            environment=self._environment,
            from_user=from_user,
        )

    def borrowed(self, document: Path) -> Recipe | None:
        """Flags of the nearest CUDA entry, for a file that is not in the database (not yet configured)."""
        for paths in self._database_paths(document):
            for path in paths:
                near = sorted(_cuda_files(self._database(path)), key=lambda file: distance(file, str(document)))
                for source in near[:5]:
                    recipe = self._from_databases(Path(source), (path,))
                    if recipe and not recipe.flags.unusable:
                        shown = self.shown(Path(source))
                        note = CommandNote(
                            "chosen", f"{NAME} has no entry for this file: flags of {shown}", "information"
                        )
                        return Recipe(recipe.flags, NAME, path, f"flags of {shown}", (note,))
        return None

    def fallback(self, source: Path) -> Recipe:
        words = self._preferences.fallback_flags or FALLBACK_FLAGS
        flags = self._flag_words(words, source.parent, from_user=self._trusted)
        return Recipe(flags, "default" if words == FALLBACK_FLAGS else "settings", None)

    def _user_forms(self, paths: Sequence[str]) -> Sequence[str]:
        """Paths of a database as the user's workspace names them, where a symlink lies between."""
        for root in self.roots:
            real = os.path.realpath(root) + os.sep
            if real != f"{root}{os.sep}":
                paths = [str(root / path[len(real) :]) if path.startswith(real) else path for path in paths]
        return paths

    def shown(self, path: Path) -> str:
        """The path as a message names it: from its workspace folder."""
        for root in self.roots:
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return str(path)


def _cuda_files(database: Database) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.file for entry in database.entries if _is_cuda(entry)))


def _is_cuda(entry: Entry) -> bool:
    """Whether the entry builds CUDA, told without taking its command apart."""
    if entry.file.endswith(CUDA_SUFFIX):
        return True
    return _CUDA_LANGUAGE.search(entry.text) is not None


def _folders(flags: EntryFlags) -> tuple[str, ...]:
    return search_folders(flags.device.flags, flags.directory)
