"""Document -> `BuildCommand`: where the flags come from, which entry, which architecture, and what was left out.

The order: flags given on the command line, kernel-lsp.yaml, the nearest compile_commands.json, a build.ninja (of a
PyTorch extension), compile_flags.txt and .clangd, the user's own default flags. A header is analysed through a source
that includes it. Files are read, nothing is run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from kernel_lsp.project.arch import choose_arch
from kernel_lsp.project.command import BuildCommand, CommandNote
from kernel_lsp.project.config import ProjectConfig
from kernel_lsp.project.flag_sources import CommandPreferences, FlagSources, ProjectFiles, Recipe
from kernel_lsp.project.includers import CUDA_SUFFIX, IncludeIndex, cuda_sources_near
from kernel_lsp.project.shell_hazard import path_hazard

__all__ = ["HEADER_SUFFIXES", "CommandPreferences", "ProjectFiles", "ToolkitFacts", "find_command"]

HEADER_SUFFIXES = (".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".ipp", ".tcc", ".tpp")


@dataclass(frozen=True, slots=True)
class ToolkitFacts:
    """What is known of the nvcc that will build, and of the GPU that runs the code. None: not known."""

    supported_archs: tuple[str, ...] | None = None  # `nvcc --list-gpu-code`
    version: str = ""  # "13.0"
    machine_arch: str | None = None
    machine_why: str = "this machine's GPU"


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
    readers: Sequence[Path] = (),
) -> BuildCommand:
    """The command for one absolute path. Never raises for what a project file holds; notes say what was wrong.

    `environment` is the user's (NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS, TORCH_EXTENSIONS_DIR are read); the build
    must take the two NVCC variables out of nvcc's own environment, their words are in `flags` already.
    `open_texts` are the editor's texts, by path: sources that are open are preferred as includers of a header.
    `readers` are sources whose builds are known to hold the document, whatever their #include lines say.
    """
    preferences = preferences or CommandPreferences()
    sources = FlagSources(files, preferences, config, tuple(workspace_roots), trusted, environment or {})
    finder = _Finder(
        document,
        sources,
        preferences,
        toolkit or ToolkitFacts(),
        config,
        trusted,
        {str(path): text for path, text in (open_texts or {}).items()},
        tuple(readers),
        files.includes,
    )
    return finder.command()


class _Finder:
    """One search; its methods are the steps of it."""

    def __init__(
        self,
        document: Path,
        sources: FlagSources,
        preferences: CommandPreferences,
        toolkit: ToolkitFacts,
        config: ProjectConfig | None,
        trusted: bool,
        open_texts: Mapping[str, str],
        readers: tuple[Path, ...],
        includes: IncludeIndex,
    ) -> None:
        self._document = document
        self._sources = sources
        self._preferences = preferences
        self._toolkit = toolkit
        self._config = config
        self._trusted = trusted
        self._open_texts = open_texts
        self._readers = readers
        self._includes = includes

    def command(self) -> BuildCommand:
        """A source's own record first, a header's (some tools write one) only where no source reads it."""
        document, sources = self._document, self._sources
        if hazard := path_hazard(str(document)):
            return self._skipped(f"the file's path cannot be given to nvcc: {hazard}")
        is_header = document.suffix in HEADER_SUFFIXES
        recipe = None if is_header or self._preferences.includers else sources.recorded(document)
        if recipe is None and document.suffix == CUDA_SUFFIX:
            recipe = sources.stated(document)
        if recipe is not None:
            return self._built(document, recipe)
        includers = self._includers()
        if includers:
            return self._built_through(includers)
        recipe = sources.recorded(document)
        if recipe is None and document.suffix == CUDA_SUFFIX:
            recipe = sources.borrowed(document) or sources.fallback(document)
        if recipe is not None:
            return self._built(document, recipe)
        absent = f"no CUDA source that includes {document.name} was found"
        if document.suffix not in HEADER_SUFFIXES:
            return self._skipped(f"{document.name} is no CUDA file (.cu, .cuh) by its name, and {absent}")
        return self._skipped(f"{absent}; name one under `headers:` in kernel-lsp.yaml")

    def _includers(self) -> tuple[Path, ...]:
        document, preferences, config = self._document, self._preferences, self._config
        named = list(preferences.includers)
        for pattern, source in config.headers if config and not named else ():
            relative = os.path.relpath(document, config.path.parent) if config else ""
            if fnmatchcase(relative, pattern) or fnmatchcase(document.name, pattern):
                named.append(source)
        existing = tuple(source for source in named if source.is_file())
        if existing:
            return existing
        for source in named:
            self._sources.notes.append(
                CommandNote("warning", f"{source}: no such file to analyse this one through", "warning")
            )
        databases = self._sources.databases(document)
        known = [path for path in self._open_texts if path.endswith(CUDA_SUFFIX)]
        known += self._sources.cuda_files(databases)

        def found_among(candidates: Sequence[str]) -> tuple[Path, ...]:
            return self._includes.includers(
                document,
                candidates,
                include_dirs=lambda source: self._sources.search_folders(source, databases),
                open_texts=self._open_texts,
                roots=self._sources.roots,
            )

        found = found_among(known)
        if not found and document.suffix != CUDA_SUFFIX:
            found = found_among(sorted(set(cuda_sources_near(document, self._sources.roots)) - set(known)))
        opened = [source for source in found if str(source) in self._open_texts]
        return tuple(dict.fromkeys((*opened, *self._readers, *found)))

    def _built_through(self, includers: tuple[Path, ...]) -> BuildCommand:
        source, sources = includers[0], self._sources
        recipe = sources.recorded(source) or sources.stated(source) or sources.fallback(source)
        detail = f"as included by {sources.shown(source)} (1 of {len(includers)})"
        detail = f"{recipe.detail}, {detail}" if recipe.detail else detail
        note = CommandNote(
            "chosen", f"{self._document.name} {detail}; `headers:` in kernel-lsp.yaml picks another source"
        )
        through = Recipe(recipe.flags, recipe.origin, recipe.origin_path, detail, (*recipe.notes, note))
        return self._built(source, through, includers[1:])

    def _built(self, source: Path, recipe: Recipe, alternatives: tuple[Path, ...] = ()) -> BuildCommand:
        flags, preferences, toolkit = recipe.flags, self._preferences, self._toolkit
        notes = [*self._sources.notes, *recipe.notes, *flags.notes]
        arch = preferences.arch or (self._config.arch if self._config else None)
        choice = choose_arch(
            flags.device.targets,
            setting=arch,
            setting_why=preferences.arch_why if preferences.arch else "kernel-lsp.yaml",
            machine_arch=toolkit.machine_arch,
            machine_why=toolkit.machine_why,
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
            target=flags.target,
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
            notes=tuple(self._sources.notes),
            skip_reason=reason,
        )
