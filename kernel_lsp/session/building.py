"""A plan becomes a build; where that shows that the plan was not the right one, the next best is built.

A source through which a header is analysed may leave its #include out by an #if: the compiler's own list of files
tells, and the next source is tried. Where no project file names the flags, a header that is not found is looked for,
and a flag that the compiler asks for is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kernel_lsp.build.nvcc import build
from kernel_lsp.build.result import BuildResult
from kernel_lsp.build.store import BuildStore
from kernel_lsp.project.command import BuildCommand, CommandNote
from kernel_lsp.project.missing_headers import WorkspaceHeaders, missing_header, package_folder
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.project.wanted_flags import wanted_flags
from kernel_lsp.session.outcome import PipelineRequest
from kernel_lsp.session.planning import Plan
from kernel_lsp.session.uris import real_path

MOST_SOURCES = 4  # through which a header is tried
_MOST_WORDS = 16  # that are added to a source's flags: two for a folder
_MOST_REMEMBERED = 1_000
_GUESSED = ("default", "settings")  # origins of flags that no project file states

Replan = Callable[[tuple[Path, ...]], Awaitable[Plan]]


class DocumentBuilder:
    """Builds documents; remembers what a source's flags lacked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._headers = WorkspaceHeaders()
        self._added: dict[Path, tuple[tuple[tuple[str, ...], str], ...]] = {}  # (words, why) by source

    async def build(
        self, request: PipelineRequest, plan: Plan, replan: Replan, toolchain: Toolchain, store: BuildStore
    ) -> tuple[Plan, BuildResult]:
        """The build that holds the document, with its plan; else the first that failed, or that there is none.

        `replan` makes a plan for other sources of a header. Never raises for what the compiler does.
        """
        made: list[tuple[Plan, BuildResult]] = []
        while True:
            made.append(await self._build(request, plan, toolchain, store))
            plan, built = made[-1]
            if _holds_document(request, plan.command, built):
                return made[-1]
            others = plan.command.alternatives
            if not others or len(made) == MOST_SOURCES:
                break
            plan = await replan(others)
        if any(built.status != "ok" for _, built in made):  # an error may have come before the header's turn
            return next(entry for entry in made if entry[1].status != "ok")
        return _without_reader(made, len(plan.command.alternatives))

    async def _build(
        self, request: PipelineRequest, plan: Plan, toolchain: Toolchain, store: BuildStore
    ) -> tuple[Plan, BuildResult]:
        """The build of a plan, with what its flags lack as far as that leaves no choice."""
        command = plan.command
        for words, why in self._added.get(command.source, ()) if command.origin in _GUESSED else ():
            command = _with_words(command, words, why)
        while True:
            built = await build(
                command,
                toolchain,
                store,
                overlay_text=plan.overlay,
                time_limit_s=request.settings.build_time_limit_s,
                environment=self._environment,
                launcher=plan.launcher,
            )
            found = await self._what_it_lacks(request, command, built, toolchain) if built.status == "failed" else None
            if isinstance(found, CommandNote):
                command = replace(command, notes=(*command.notes, found))
            if found is None or isinstance(found, CommandNote):
                break
            if set(found[0]) <= set(command.flags) or len(command.flags) > len(plan.command.flags) + _MOST_WORDS:
                break
            command = _with_words(command, *found)
            self._remember(command.source, found)
        return replace(plan, command=command), built

    async def _what_it_lacks(
        self, request: PipelineRequest, command: BuildCommand, built: BuildResult, toolchain: Toolchain
    ) -> tuple[tuple[str, ...], str] | CommandNote | None:
        """Flags with which it may be built, and why they are taken; else a note that says what could be done."""
        if name := missing_header(built.messages):
            return await asyncio.to_thread(self._folder_of, name, command, request, toolchain)
        flags = wanted_flags(built.messages) if command.origin in _GUESSED else ()
        missing = tuple(flag for flag in flags if flag not in command.flags)
        return (missing, "the compiler asks for it") if missing else None

    def _folder_of(
        self, name: str, command: BuildCommand, request: PipelineRequest, toolchain: Toolchain
    ) -> tuple[tuple[str, ...], str] | CommandNote | None:
        """The one folder that has a header; else where there are some."""
        if package := package_folder(name, toolchain):
            return ("-I", package), f"NVIDIA's package with {name}"
        found = self._headers.folders(name, command.source, request.roots)
        is_guessed = command.origin in _GUESSED
        if len(found) == 1 and is_guessed:
            return ("-I", found[0]), f"the only folder of the workspace with {name}"
        if not found:
            return None
        shown = [_shown(folder, request.roots) for folder in found]
        places = ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")
        cure = f'; `flags: ["-O3", "-I{shown[0]}"]` in kernel-lsp.yaml names one' if is_guessed else ""
        what = "several folders have it" if is_guessed else "the build's flags do not name its folder"
        return CommandNote("warning", f"{name}: {what} ({places}){cure}", "information")

    def _remember(self, source: Path, found: tuple[tuple[str, ...], str]) -> None:
        self._added[source] = (*self._added.get(source, ()), found)
        while len(self._added) > _MOST_REMEMBERED:
            self._added.pop(next(iter(self._added)))


def _with_words(command: BuildCommand, words: tuple[str, ...], why: str) -> BuildCommand:
    note = CommandNote("chosen", f"{' '.join(words)}: {why}")
    return replace(command, flags=(*command.flags, *words), notes=(*command.notes, note))


def _holds_document(request: PipelineRequest, command: BuildCommand, built: BuildResult) -> bool:
    """Whether the build read the document, or says nothing of it; `readers` are known to hold it."""
    document = command.document
    if command.source == document or command.source in request.readers or built.status not in ("ok", "failed"):
        return True
    wanted = real_path(document)
    return any(real_path(file) == wanted for file in built.dependencies if file.endswith(document.name))


def _without_reader(made: Sequence[tuple[Plan, BuildResult]], n_left: int) -> tuple[Plan, BuildResult]:
    """The first of these builds as none at all, with the reason; what any of them read can change that."""
    plan, built = made[0]
    names = ", ".join(entry[0].command.source.name for entry in made) + (
        f" ({n_left} more not tried)" if n_left else ""
    )
    reason = (
        f"{plan.command.document.name} is not read by {names}: an #if leaves its #include out; "
        "name another source under `headers:` in kernel-lsp.yaml"
    )
    files = tuple(dict.fromkeys(file for _, each in made for file in each.dependencies))
    return (
        replace(plan, command=replace(plan.command, skip_reason=reason)),
        replace(built, status="skipped", reason=reason, cubin=None, linked=None, messages=(), dependencies=files),
    )


def _shown(folder: str, roots: Sequence[Path]) -> str:
    """A folder from its workspace folder."""
    for root in roots:
        if Path(folder).is_relative_to(root):
            return Path(folder).relative_to(root).as_posix()
    return folder
