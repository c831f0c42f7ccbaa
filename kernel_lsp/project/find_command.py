"""Document -> `BuildCommand`: where the flags come from, which entry, which architecture, and what was left out.

The order: flags given on the command line, kernel-lsp.yaml, the nearest compile_commands.json, a PyTorch
extension's build.ninja, compile_flags.txt and .clangd, the user's own default flags. A header is analysed through
a source that includes it. Files are read, nothing is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from kernel_lsp.project.arch import choose_arch
from kernel_lsp.project.choose_entry import Candidate, choose_entry
from kernel_lsp.project.command import BuildCommand, CommandNote
from kernel_lsp.project.compile_db import NAME, Database, Databases, Entry
from kernel_lsp.project.config import ProjectConfig
from kernel_lsp.project.entry_flags import EntryFlags, read_entry, read_invocation
from kernel_lsp.project.flag_files import flags_from_files
from kernel_lsp.project.includers import CUDA_SUFFIX, IncludeIndex, cuda_sources_near, distance
from kernel_lsp.project.invocation import Invocation, dialect_of_flags
from kernel_lsp.project.ninja_files import NinjaFiles
from kernel_lsp.project.nvcc_options import match_option
from kernel_lsp.project.shell_hazard import HOST_PLATFORM, path_hazard

FALLBACK_FLAGS = ("-std=c++17", "-O3")
_SEARCH_WORDS = re.compile(
    r"""(?:-I|-isystem|--include-path|--system-include|--options-file|-optf|@)[= ]?(?:\\"[^"]*"|"[^"]*"|\S+)"""
)
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
    includer: Path | None = None  # a source through which this header is wanted


@dataclass(frozen=True, slots=True)
class ToolkitFacts:
    """What is known of the nvcc that will build, and of the machine. None: not known."""

    supported_archs: tuple[str, ...] | None = None  # `nvcc --list-gpu-code`
    version: str = ""  # "13.0"
    machine_arch: str | None = None


@dataclass(slots=True)
class ProjectFiles:
    """The project files read so far, so that an unchanged file is not read twice. One per session."""

    databases: Databases = field(default_factory=Databases)
    includes: IncludeIndex = field(default_factory=IncludeIndex)
    ninja: NinjaFiles = field(default_factory=NinjaFiles)
    search_folders: dict[tuple[object, ...], tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Recipe:
    flags: EntryFlags
    origin: str
    origin_path: Path | None
    detail: str = ""
    notes: tuple[CommandNote, ...] = ()


def find_command(
    document: Path,
    *,
    files: ProjectFiles,
    preferences: CommandPreferences | None = None,
    toolkit: ToolkitFacts | None = None,
    config: ProjectConfig | None = None,
    workspace_roots: Sequence[Path] = (),
    trusted: bool = False,
    environment: Mapping[str, str] | None = None,
    open_texts: Mapping[Path, str] | None = None,
) -> BuildCommand:
    """The command for one absolute path. Never raises for what a project file holds; notes say what was wrong.

    `environment` is the user's (NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS, TORCH_EXTENSIONS_DIR are read); the build
    must take the two NVCC variables out of nvcc's own environment, their words are in `flags` already.
    `open_texts` are the editor's texts, by path: sources that are open are preferred as includers of a header.
    """
    finder = _Finder(
        document,
        files,
        preferences or CommandPreferences(),
        toolkit or ToolkitFacts(),
        config,
        tuple(workspace_roots),
        trusted,
        environment or {},
        {str(path): text for path, text in (open_texts or {}).items()},
    )
    return finder.command()


class _Finder:
    """One search; its methods are the steps of it."""

    def __init__(
        self,
        document: Path,
        files: ProjectFiles,
        preferences: CommandPreferences,
        toolkit: ToolkitFacts,
        config: ProjectConfig | None,
        roots: tuple[Path, ...],
        trusted: bool,
        environment: Mapping[str, str],
        open_texts: Mapping[str, str],
    ) -> None:
        self._document = document
        self._files = files
        self._preferences = preferences
        self._toolkit = toolkit
        self._config = config
        self._roots = roots
        self._trusted = trusted
        self._environment = environment
        self._open_texts = open_texts
        self._notes: list[CommandNote] = []

    def command(self) -> BuildCommand:
        """The steps in order."""
        if hazard := path_hazard(str(self._document)):
            return self._skipped(f"the file's path cannot be given to nvcc: {hazard}")
        recipe = self._recorded(self._document) if self._preferences.includer is None else None
        if recipe is not None:
            return self._built(self._document, recipe)
        is_source = self._document.suffix == CUDA_SUFFIX
        recorded = is_source and self._stated(self._document) is not None
        includers = () if recorded else self._includers()
        if includers:
            return self._built_through(includers)
        if not is_source:
            name = self._document.name
            return self._skipped(
                f"no CUDA source that includes {name} was found; name one under `headers:` in kernel-lsp.yaml"
            )
        return self._built(
            self._document, self._stated(self._document) or self._borrowed() or self._fallback(self._document)
        )

    # Where flags come from

    def _recorded(self, source: Path) -> _Recipe | None:
        """From a file that names this source; where a project or the user states flags, those replace them."""
        found: _Recipe | None = None
        for paths in self._database_paths(source):
            found = self._from_databases(source, paths)
            if found:
                break
        if found is None:
            rule = self._files.ninja.rule_for(source, self._roots, self._environment, self._notes)
            flags = self._read(rule.entry, rule.path) if rule else None
            if rule and flags and not flags.unusable:
                found = _Recipe(flags, "build.ninja", rule.path)
        return (self._stated(source, files=False) or found) if found else None

    def _stated(self, source: Path, *, files: bool = True) -> _Recipe | None:
        """Flags that were stated for all files: on the command line, in kernel-lsp.yaml, in a flags file."""
        preferences, config = self._preferences, self._config
        if preferences.explicit_flags is not None:
            directory = preferences.explicit_directory or source.parent
            flags = self._flag_words(preferences.explicit_flags, directory, from_user=True)
            return _Recipe(flags, "command line", None)
        if config is not None and config.flags is not None:
            return _Recipe(self._flag_words(config.flags, config.path.parent), "kernel-lsp.yaml", config.path)
        recorded = flags_from_files(source, self._roots, self._notes) if files else None
        if recorded is None:
            return None
        flags = self._flag_words(recorded.words, recorded.path.parent)
        return _Recipe(flags, recorded.path.name, recorded.path)

    def _database_paths(self, source: Path) -> list[tuple[Path, ...]]:
        named = self._preferences.compile_commands
        if named is None and self._config is not None:
            named = self._config.compile_commands
        if named is not None:
            return [((named / NAME) if named.is_dir() else named,)]
        return list(self._files.databases.nearest(source, self._roots))

    def _database(self, path: Path) -> Database:
        database = self._files.databases.load(path)
        for problem in database.problems:
            note = CommandNote("warning", problem, "warning")
            if note not in self._notes:
                self._notes.append(note)
        return database

    def _from_databases(self, source: Path, paths: Sequence[Path]) -> _Recipe | None:
        candidates = [
            Candidate(path, self._read(entry, path))
            for path in paths
            for entry in self._database(path).entries_for(str(source))
        ]
        if not candidates:
            return None
        chosen = choose_entry(candidates, self._config.database_entry if self._config else None)
        flags = chosen.candidate.flags
        if flags.unusable and flags.dialect != "hip":
            self._notes.append(CommandNote("warning", f"{source.name}: {flags.unusable}", "log"))
            return None
        return _Recipe(flags, NAME, chosen.candidate.database, chosen.detail, chosen.notes)

    def _read(self, entry: Entry, origin: Path) -> EntryFlags:
        return read_entry(entry, roots=self._response_roots(origin), environment=self._environment)

    def _response_roots(self, origin: Path) -> tuple[Path, ...]:
        """Where response files may lie: the workspace, and the folder that the database really lies in."""
        return (*self._roots, origin.resolve().parent, origin.parent)

    def _flag_words(self, words: tuple[str, ...], directory: Path, *, from_user: bool = False) -> EntryFlags:
        dialect = dialect_of_flags(words)
        invocation = Invocation(dialect, dialect, words, str(directory), (), ())
        return read_invocation(
            invocation,
            platform=HOST_PLATFORM,
            roots=(*self._roots, directory),
            environment=self._environment,
            from_user=from_user,
        )

    def _borrowed(self) -> _Recipe | None:
        """Flags of the nearest CUDA entry, for a file that is not in the database (not yet configured)."""
        for paths in self._database_paths(self._document):
            for path in paths:
                near = sorted(_cuda_files(self._database(path)), key=lambda file: distance(file, str(self._document)))
                for source in near[:5]:
                    recipe = self._from_databases(Path(source), (path,))
                    if recipe and not recipe.flags.unusable:
                        shown = self._shown(Path(source))
                        note = CommandNote(
                            "chosen", f"{NAME} has no entry for this file: flags of {shown}", "information"
                        )
                        return _Recipe(recipe.flags, NAME, path, f"flags of {shown}", (note,))
        return None

    def _fallback(self, source: Path) -> _Recipe:
        words = self._preferences.fallback_flags or FALLBACK_FLAGS
        flags = self._flag_words(words, source.parent, from_user=self._trusted)
        return _Recipe(flags, "default" if words == FALLBACK_FLAGS else "settings", None)

    # Headers

    def _includers(self) -> tuple[Path, ...]:
        document, preferences, config = self._document, self._preferences, self._config
        named = [preferences.includer] if preferences.includer else []
        for pattern, source in config.headers if config and not named else ():
            relative = os.path.relpath(document, config.path.parent) if config else ""
            if fnmatchcase(relative, pattern) or fnmatchcase(document.name, pattern):
                named.append(source)
        existing = tuple(source for source in named if source.is_file())
        if existing:
            return existing
        for source in named:
            self._notes.append(CommandNote("warning", f"{source}: no such file to analyse this one through", "warning"))
        candidates = [path for path in self._open_texts if path.endswith(CUDA_SUFFIX)]
        databases = [self._database(path) for paths in self._database_paths(document) for path in paths]
        candidates += [file for database in databases for file in self._user_forms(_cuda_files(database))]
        found = self._find_includers(candidates, databases)
        if not found and document.suffix != CUDA_SUFFIX:
            known = set(candidates)
            near = [file for file in cuda_sources_near(document, self._roots) if file not in known]
            found = self._find_includers(near, databases)
        return found

    def _find_includers(self, candidates: Sequence[str], databases: Sequence[Database]) -> tuple[Path, ...]:
        return self._files.includes.includers(
            self._document,
            candidates,
            include_dirs=lambda source: self._include_dirs(source, databases),
            open_texts=self._open_texts,
            roots=self._roots,
        )

    def _include_dirs(self, source: str, databases: Sequence[Database]) -> tuple[str, ...]:
        """Search folders of a candidate's own flags, absolute. Most entries of a database share theirs."""
        for database in databases:
            for entry in database.entries_for(source)[:1]:
                key = (database.path, entry.directory, *_SEARCH_WORDS.findall(entry.text))
                if key not in self._files.search_folders:
                    self._files.search_folders[key] = _search_folders(self._read(entry, database.path))
                return self._files.search_folders[key]
        recipe = self._stated(Path(source))
        return _search_folders(recipe.flags) if recipe else ()

    def _built_through(self, includers: tuple[Path, ...]) -> BuildCommand:
        source = includers[0]
        recipe = self._recorded(source) or self._stated(source) or self._fallback(source)
        detail = f"as included by {self._shown(source)} (1 of {len(includers)})"
        detail = f"{recipe.detail}, {detail}" if recipe.detail else detail
        note = CommandNote(
            "chosen", f"{self._document.name} {detail}; `headers:` in kernel-lsp.yaml picks another source"
        )
        through = _Recipe(recipe.flags, recipe.origin, recipe.origin_path, detail, (*recipe.notes, note))
        return self._built(source, through, includers[1:])

    def _user_forms(self, paths: Sequence[str]) -> Sequence[str]:
        """Paths of a database as the user's workspace names them, where a symlink lies between."""
        for root in self._roots:
            real = os.path.realpath(root) + os.sep
            if real != f"{root}{os.sep}":
                paths = [str(root / path[len(real) :]) if path.startswith(real) else path for path in paths]
        return paths

    def _shown(self, path: Path) -> str:
        for root in (*self._roots, self._document.parent):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return str(path)

    # The command

    def _built(self, source: Path, recipe: _Recipe, alternatives: tuple[Path, ...] = ()) -> BuildCommand:
        flags, preferences, toolkit = recipe.flags, self._preferences, self._toolkit
        notes = [*self._notes, *recipe.notes, *flags.notes]
        arch = preferences.arch or (self._config.arch if self._config else None)
        choice = choose_arch(
            flags.device.targets,
            setting=arch,
            setting_why=preferences.arch_why if preferences.arch else "kernel-lsp.yaml",
            machine_arch=toolkit.machine_arch,
            supported=toolkit.supported_archs,
            toolkit=toolkit.version,
            default_arch=preferences.default_arch,
            default_why=preferences.default_arch_why,
        )
        skip_reason = flags.unusable or choice.skip_reason
        if flags.unusable:
            notes.append(CommandNote("warning", flags.unusable, "information"))
        else:
            notes += choice.notes
        cwd = Path(flags.directory)
        if not cwd.is_dir():
            fallback = recipe.origin_path.parent if recipe.origin_path else source.parent
            notes.append(CommandNote("warning", f"{cwd}: no such folder; built in {fallback}", "warning"))
            cwd = fallback
        hazard = path_hazard(str(source)) or path_hazard(str(cwd))
        if hazard and skip_reason is None:
            skip_reason = f"the path of the file or of its build folder cannot be given to nvcc: {hazard}"
        compiler = flags.compiler
        if compiler and not self._trusted:
            notes.append(
                CommandNote("refused", f"{compiler}: the entry's compiler is not run in an untrusted workspace")
            )
            compiler = None
        return BuildCommand(
            source=source,
            document=self._document,
            flags=flags.device.flags,
            arch="" if flags.unusable else choice.arch,
            arch_why="" if flags.unusable else choice.why,
            cwd=cwd,
            origin=recipe.origin,
            origin_path=recipe.origin_path,
            origin_detail=recipe.detail,
            compiler=compiler,
            environment=flags.environment,
            notes=tuple(dict.fromkeys(notes)),
            skip_reason=skip_reason,
            virtual_arch="" if flags.unusable else choice.virtual,
            alternatives=alternatives,
        )

    def _skipped(self, reason: str) -> BuildCommand:
        return BuildCommand(
            source=self._document,
            document=self._document,
            flags=(),
            arch="",
            arch_why="",
            cwd=self._document.parent,
            origin="default",
            origin_path=None,
            origin_detail="",
            compiler=None,
            environment=(),
            notes=tuple(self._notes),
            skip_reason=reason,
        )


def _cuda_files(database: Database) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.file for entry in database.entries if _is_cuda(entry)))


def _is_cuda(entry: Entry) -> bool:
    """Whether the entry builds CUDA, told without taking its command apart."""
    if entry.file.endswith(CUDA_SUFFIX):
        return True
    return _CUDA_LANGUAGE.search(entry.text) is not None


def _search_folders(flags: EntryFlags) -> tuple[str, ...]:
    words = flags.device.flags
    folders = []
    position = 0
    while position < len(words):
        matched = match_option(words[position : position + 2], 0)
        if matched and matched.option.long in {"--include-path", "--system-include"}:
            folders += [str(Path(flags.directory, part)) for part in matched.value.split(",")]
        position += len(matched.words) if matched else 1
    return tuple(folders)
