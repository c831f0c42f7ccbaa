"""A relocatable cubin is linked with those files of its project that define what it calls.

Which program a file becomes part of stands in no compile command. Who defines a function does not depend on it where
one file alone does, of those that the database builds for linking: that one is built as its own entry says (found again
in the store), and so on for what it calls itself. Where two could be meant, one is missing, or it takes too long, there
is no link but a reason: the numbers before linking are lower bounds all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.build.arguments import program_stamp
from kernel_lsp.build.device_link import DeviceLink, device_link, is_relocatable, nvlink_of
from kernel_lsp.build.nvcc import build
from kernel_lsp.build.result import BuildResult
from kernel_lsp.build.store import FORMAT, BuildStore
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.device_link import defined_names
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.cubin.names import function_name
from kernel_lsp.project.definitions import likely_definers, linked_sources
from kernel_lsp.project.find_command import CommandPreferences, ProjectFiles, ToolkitFacts, find_command
from kernel_lsp.project.flag_sources import FlagSources
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.session.outcome import PipelineRequest, ProjectLink
from kernel_lsp.session.planning import Plan
from kernel_lsp.source.digest import content_digest, recipe_digest

MOST_FILES = 16
_MOST_TRIED = 6  # files that look as if they defined a name


@dataclass(frozen=True, slots=True)
class _Part:
    """The relocatable code of one source, built as its own entry says."""

    source: str
    target: str  # what CMake builds it for, "" where that is not known
    cubin: bytes
    defined: frozenset[str]  # mangled names that other files can link with
    files: tuple[str, ...]  # that the build read


class _NoLinkError(Exception):
    """Why there is no link, in words that follow "before linking: "; `files` may change that."""

    def __init__(self, reason: str, files: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.files = tuple(files)


class ProjectLinker:
    """Links one source at a time; remembers between saves which source defines what."""

    def __init__(self, files: ProjectFiles, environment: Mapping[str, str]) -> None:
        self.files = files
        self.environment = environment
        self.definers: dict[tuple[str, str], str] = {}  # (source that misses it, mangled name) -> source

    async def link(
        self, request: PipelineRequest, plan: Plan, toolchain: Toolchain, built: BuildResult, store: BuildStore
    ) -> ProjectLink | None:
        """What a link with other files gives; None where no kernel needs one.

        Never raises for what files or tools do; asyncio.CancelledError passes through.
        """
        nvlink = nvlink_of(toolchain)
        assert built.cubin is not None
        if nvlink is None or not await asyncio.to_thread(_has_bounds, built.cubin):
            return None
        limit_s = request.settings.build_time_limit_s
        run = _Run(self, request, plan, toolchain, store, nvlink)
        own = _Part(str(plan.command.source), plan.command.target, built.cubin, frozenset(), ())
        try:
            return await asyncio.wait_for(run.link(own), limit_s)
        except asyncio.TimeoutError:
            return ProjectLink(None, reason=f"that took longer than {limit_s:g} s")
        except _NoLinkError as error:
            return ProjectLink(None, dependencies=error.files, reason=error.reason)


@dataclass(frozen=True, slots=True)
class _Run:
    """One link, with what it is made by."""

    linker: ProjectLinker
    request: PipelineRequest
    plan: Plan
    toolchain: Toolchain
    store: BuildStore
    nvlink: Path

    async def link(self, own: _Part) -> ProjectLink:
        """Link with ever more files until nothing is missing. Raises _NoLinkError."""
        parts = {own.source: own}
        while True:
            tried = await self._linked([part.cubin for part in parts.values()])
            others = [part for part in parts.values() if part is not own]
            files = tuple(dict.fromkeys(file for part in others for file in part.files))
            if tried.linked is not None:
                return ProjectLink(tried.linked, tuple(part.source for part in others), files)
            if not tried.undefined:
                raise _NoLinkError(f"nvlink says: {tried.reason}", files)
            n_parts = len(parts)
            for part in await self._definers(own, tried.undefined):
                parts.setdefault(part.source, part)
            if len(parts) == n_parts:  # the linker does not see what the table of symbols shows
                raise _NoLinkError(f"nvlink does not find {_shown(tried.undefined[0])}", files)
            if len(parts) > MOST_FILES:
                raise _NoLinkError(f"it needs more than {MOST_FILES} other files", files)

    async def _definers(self, own: _Part, undefined: Sequence[str]) -> list[_Part]:
        """Files that define all these names, one for each name. Raises _NoLinkError."""
        found: list[_Part] = []
        missing = []
        for mangled in undefined:
            known = self.linker.definers.get((own.source, mangled))
            part = await self._part(known) if known is not None else None
            if part is not None and mangled in part.defined:
                found.append(part)
            else:
                missing.append(mangled)
        if missing:
            likely = await self._likely(own, frozenset(_plain(mangled) for mangled in missing))
            for mangled in missing:
                if not any(mangled in part.defined for part in found):
                    found.append(await self._definer(own, mangled, likely.get(_plain(mangled), ())))
        return found

    async def _definer(self, own: _Part, mangled: str, candidates: Sequence[str]) -> _Part:
        if len(candidates) > _MOST_TRIED:
            raise _NoLinkError(f"{len(candidates)} files of the project seem to define {_shown(mangled)}")
        built = [await self._part(source) for source in candidates]
        definers = [part for part in built if part is not None and mangled in part.defined]
        if len(definers) > 1 and own.target:  # of several programs; the one that this file belongs to has its own
            definers = [part for part in definers if part.target == own.target] or definers
        if not definers:
            where = "no file that the compile database builds for linking"
            raise _NoLinkError(f"{where} was found to define {_shown(mangled)}", candidates)
        if len(definers) > 1:
            names = " and ".join(Path(part.source).name for part in definers[:2])
            raise _NoLinkError(f"{names} define {_shown(mangled)}, and which is meant is not known", candidates)
        self.linker.definers[own.source, mangled] = definers[0].source
        return definers[0]

    async def _likely(self, own: _Part, names: frozenset[str]) -> dict[str, tuple[str, ...]]:
        sources = FlagSources(
            self.linker.files,
            self._preferences(),
            self.plan.config,
            self.request.roots,
            self.request.trusted,
            self.linker.environment,
        )
        candidates = linked_sources(Path(own.source), sources)
        return await asyncio.to_thread(likely_definers, names, own.source, candidates)

    async def _part(self, source: str) -> _Part | None:
        """Another source's code for the same architecture, of the same target where it has several; None: none."""
        command = find_command(
            Path(source),
            files=self.linker.files,
            preferences=self._preferences(),
            toolkit=ToolkitFacts(supported_archs=self.toolchain.gpu_code or None),
            config=self.plan.config,
            workspace_roots=self.request.roots,
            trusted=self.request.trusted,
            environment=self.linker.environment,
        )
        if command.source != Path(source) or command.arch != self.plan.command.arch:
            return None
        if command.skip_reason is not None or not is_relocatable(command.flags):
            return None
        built = await build(
            command,
            self.toolchain,
            self.store,
            time_limit_s=self.request.settings.build_time_limit_s,
            environment=self.linker.environment,
            launcher=self.plan.launcher,
        )
        if built.cubin is None:
            return None
        try:
            defined = await asyncio.to_thread(defined_names, built.cubin)
        except CubinError:
            return None
        return _Part(source, command.target, built.cubin, defined, built.dependencies)

    def _preferences(self) -> CommandPreferences:
        request, settings, command = self.request, self.request.settings, self.plan.command
        return CommandPreferences(
            explicit_flags=request.explicit_flags,
            explicit_directory=Path.cwd() if request.explicit_flags is not None else None,
            compile_commands=Path(settings.compile_commands) if settings.compile_commands else None,
            arch=command.arch,
            arch_why="that of the file it is linked with",
            link_target=command.target,
        )

    async def _linked(self, cubins: Sequence[bytes]) -> DeviceLink:
        """A link of these cubins, or the same one as it was kept."""
        arch, stamp = self.plan.command.arch, program_stamp(self.nvlink)
        key = recipe_digest([f"format {FORMAT}", "device link", arch, stamp, *map(content_digest, cubins)])
        kept = await asyncio.to_thread(self.store.find_blob, key)
        if kept is not None:
            return DeviceLink(kept)
        try:
            with self.store.scratch.run_folder() as folder:
                paths = [folder / f"part{number}.cubin" for number in range(len(cubins))]
                for path, cubin in zip(paths, cubins, strict=True):
                    path.write_bytes(cubin)
                variables = {**self.linker.environment, "LC_ALL": "C", "TMPDIR": str(folder)}
                tried = await device_link(self.nvlink, arch, paths, folder, variables)
        except OSError as error:
            raise _NoLinkError(f"there is no temporary folder ({error.strerror or error})") from error
        if tried.linked is not None:
            await asyncio.to_thread(self.store.put_blob, key, tried.linked)
        return tried


def _has_bounds(cubin: bytes) -> bool:
    """Whether a kernel's numbers are lower bounds before linking."""
    try:
        return any(kernel.resources.relocatable for kernel in read_cubin(cubin).kernels)
    except CubinError:
        return False


def _plain(mangled: str) -> str:
    """The name that stands before the parameters in the source: `far_away` for `ns::far_away<2>(int)`."""
    return function_name(mangled).short.partition("<")[0].rpartition("::")[2]


def _shown(mangled: str) -> str:
    return function_name(mangled).short
