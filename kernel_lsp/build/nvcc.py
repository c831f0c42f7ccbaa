"""A build command becomes a cubin and the compiler's messages: device code only, outputs only in a run folder.

nvcc keeps its steps in the run folder (`--keep`; the cubin is the same and it costs nothing measurable, unlike
`-MD`, which preprocesses once more). The preprocessed text names every file read; the PTX maps ptxas's messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_lsp.build import process
from kernel_lsp.build.arguments import (
    base_argv,
    build_environment,
    deciding_variables,
    is_device_code,
    overlay_copy,
    quote_folder,
    refusal,
    shown_argv,
    tool_identity,
)
from kernel_lsp.build.device_link import device_link, is_relocatable, nvlink_of
from kernel_lsp.build.digests import FileDigests
from kernel_lsp.build.includes import ReadAhead, files_of_rule
from kernel_lsp.build.messages import compiler_messages, failure_reason
from kernel_lsp.build.result import BuildResult, BuildStatus
from kernel_lsp.build.store import FORMAT, BuildStore, StoredBuild
from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.shell_hazard import path_hazard
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.source.digest import content_digest, recipe_digest
from kernel_lsp.source.message import CompilerMessage

DEFAULT_TIME_LIMIT_S = 300.0
DEFAULT_OUTPUT_LIMIT_BYTES = 4 << 20


async def build(
    command: BuildCommand,
    toolchain: Toolchain,
    store: BuildStore,
    *,
    overlay_text: bytes | None = None,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    output_limit_bytes: int = DEFAULT_OUTPUT_LIMIT_BYTES,
    environment: Mapping[str, str] | None = None,
    launcher: tuple[str, ...] = (),
) -> BuildResult:
    """Build `command` (a probed `toolchain` gives the recipe the compiler's version).

    `overlay_text`: UTF-8 content to build instead of the file's; messages and line table name the file all the same.
    (The compiler's hash in the names of anonymous namespaces differs then.) `environment`: instead of the process's.
    `launcher`: the user's own (sccache), put in front of nvcc; it does not change the result, and so not the recipe.
    Never raises for what the compiler does; asyncio.CancelledError passes through, with no process left behind.
    """
    source = command.source.absolute()
    if command.skip_reason is not None:
        return _result(command, "skipped", command.skip_reason, (), source)
    if toolchain.nvcc is None:
        absent = next((tool.message for tool in toolchain.missing if tool.name == "nvcc"), "nvcc not found.")
        return _result(command, "tool missing", absent, (), source)
    try:
        text = source.read_bytes() if overlay_text is None else overlay_text
    except OSError as error:
        return _result(command, "failed", f"{source} cannot be read: {error.strerror}.", (), source)
    base = base_argv(command, toolchain.nvcc.path)
    plain = shown_argv(command, toolchain.nvcc.path)
    shown = (*launcher, *plain)
    variables = build_environment(command, os.environ if environment is None else environment)
    if refused := refusal(base[1:], source, command.cwd):
        return _result(command, "failed", refused, shown, source)
    if not command.cwd.is_dir():
        return _result(command, "failed", f"The working folder {command.cwd} does not exist.", shown, source)
    text_digest = content_digest(text)
    key = recipe_digest(
        [
            f"format {FORMAT}",
            *plain,
            "saved" if overlay_text is None else "overlay",
            str(command.cwd),
            *tool_identity(toolchain, variables),
            *deciding_variables(variables),
            text_digest,
        ]
    )
    known = store.find(key)
    if known is not None:
        return _from_store(command, known, shown)
    try:
        with store.scratch.run_folder() as folder:
            run = await _run(
                _Plan(base, launcher, source, overlay_text, folder, command.cwd, variables, store.digests),
                time_limit_s,
                output_limit_bytes,
            )
            if run.cubin is not None and is_relocatable(command.flags) and (nvlink := nvlink_of(toolchain)):
                relocatable = folder / "relocatable.cubin"
                relocatable.write_bytes(run.cubin)
                link = await device_link(nvlink, command.arch, (relocatable,), folder, variables)
                run = replace(run, linked=link.linked)
    except OSError as error:
        reason = f"There is no temporary folder for the compiler ({error.strerror or error})."
        return _result(command, "failed", reason, shown, source)
    return _finish(command, run, shown, source, store, key, text_digest, overlay_text is not None, time_limit_s)


@dataclass(frozen=True, slots=True)
class _Plan:
    base: tuple[str, ...]
    launcher: tuple[str, ...]
    source: Path
    overlay_text: bytes | None
    folder: Path
    cwd: Path
    variables: Mapping[str, str]
    digests: FileDigests


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run left, read before its folder goes."""

    finished: process.Finished
    started_ns: int
    cubin: bytes | None
    files: tuple[str, ...]
    messages: tuple[CompilerMessage, ...]
    linked: bytes | None = None
    launcher_trouble: str = ""


async def _launched(plan: _Plan, time_limit_s: float, output_limit_bytes: int) -> _Run | str:
    """A run with the user's launcher in front; else what it left to be desired, and nvcc itself has to tell the rest.

    Compiler caches pass over commands that keep intermediate files, so the files read come from `-MD`, which they
    keep with the result; and a message of ptxas cannot be placed without the PTX. ccache wants a `-c`, and sccache
    takes the last of `-c` and `-cubin`. The temporary folder is the user's: a server that the launcher starts lives
    on, ours goes.
    """
    output, rule = plan.folder / "launched.cubin", plan.folder / "launched.d"
    nvcc, *flags = plan.base
    words = (nvcc, "-c", *flags, "-MD", "-MF", str(rule), "-o", str(output), str(plan.source))
    started_ns = time.time_ns()
    finished = await process.run(
        (*plan.launcher, *words),
        cwd=plan.cwd,
        environment=plan.variables,
        time_limit_s=time_limit_s,
        output_limit_bytes=output_limit_bytes,
        keep_end=True,
    )
    if finished.ending == "timeout":
        return _Run(finished, started_ns, None, (), ())
    said = finished.stdout + finished.stderr
    text = said.decode("utf-8", "surrogateescape")
    if finished.code != 0:
        return finished.error or (text.strip().splitlines() or [f"exit status {finished.code}"])[-1].strip()
    if b"ptxas" in said:
        return "ptxas has something to say"
    try:
        cubin, files = output.read_bytes(), files_of_rule(rule.read_bytes(), plan.cwd)
    except OSError as error:
        return f"it left no {Path(error.filename).suffix} file"
    if not is_device_code(cubin):
        return "what it left is no cubin"
    return _Run(finished, started_ns, cubin, files, compiler_messages(text, cwd=str(plan.cwd), source=str(plan.source)))


async def _run(plan: _Plan, time_limit_s: float, output_limit_bytes: int) -> _Run:
    if hazard := path_hazard(str(plan.folder)):
        raise OSError(f"{plan.folder}: {hazard}")
    trouble = ""
    if plan.launcher and plan.overlay_text is None:
        launched = await _launched(plan, time_limit_s, output_limit_bytes)
        if isinstance(launched, _Run):
            return launched
        trouble = launched
    kept = plan.folder / "steps"
    kept.mkdir()
    output = plan.folder / "out.cubin"
    compiled = plan.source
    extra: tuple[str, ...] = ()
    if plan.overlay_text is not None:
        compiled = plan.folder / plan.source.name
        compiled.write_bytes(overlay_copy(plan.overlay_text, plan.source))
        extra = quote_folder(plan.source.parent)
    argv = (*plan.base, *extra, "--keep", "--keep-dir", str(kept), "-o", str(output), str(compiled))
    variables = {**plan.variables, "TMPDIR": str(plan.folder), "TMP": str(plan.folder), "TEMP": str(plan.folder)}
    started_ns = time.time_ns()
    ahead = ReadAhead(kept, plan.cwd, str(compiled) if extra else "", plan.digests)
    following = asyncio.ensure_future(ahead.follow())
    try:
        finished = await process.run(
            argv,
            cwd=plan.cwd,
            environment=variables,
            time_limit_s=time_limit_s,
            output_limit_bytes=output_limit_bytes,
            keep_end=True,  # warnings by the thousand may stand in front of the error
        )
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    files = ahead.files()
    said = finished.stdout + finished.stderr
    ptx = None
    if b"ptxas" in said:
        ptx = next((step.read_text("utf-8", "replace") for step in kept.glob("*.ptx")), None)
    messages = compiler_messages(
        said.decode("utf-8", "surrogateescape"),
        cwd=str(plan.cwd),
        source=str(plan.source),
        ptx=ptx,
        standins={str(compiled): str(plan.source)} if extra else {},
    )
    cubin = None
    if finished.ending == "exited" and finished.code == 0:
        with contextlib.suppress(OSError):
            cubin = output.read_bytes()
    if cubin is None or b"ptxas" in said:  # then it was not the launcher's fault
        trouble = ""
    return _Run(finished, started_ns, cubin, files, messages, launcher_trouble=trouble)


def _finish(
    command: BuildCommand,
    run: _Run,
    shown: tuple[str, ...],
    source: Path,
    store: BuildStore,
    key: str,
    text_digest: str,
    overlay: bool,
    time_limit_s: float,
) -> BuildResult:
    finished = run.finished
    status: BuildStatus = "ok" if run.cubin else "timeout" if finished.ending == "timeout" else "failed"
    reason = "" if run.cubin else failure_reason(finished, run.messages, shown[0], time_limit_s)
    named = (message.file for message in run.messages if message.file)
    files = tuple(dict.fromkeys((str(source), *run.files, *(() if run.files else named))))
    digests = {path: store.digests.digest(path) for path in files if not (overlay and path == str(source))}
    dependencies = tuple((path, digest) for path, digest in digests.items() if digest is not None)
    recipe = store.recipe(key, dependencies)
    built = StoredBuild(run.cubin, run.messages, reason, files, finished.seconds, recipe, run.linked)
    # Whoever changed a file since the start may have changed it before or after nvcc read it: such a result is
    # shown (a newer build follows) but not kept under either content. Without the list of files nothing is kept.
    settled = bool(run.files) and all(_older(path, run.started_ns) for path, _ in dependencies)
    settled = settled and digests.get(str(source), text_digest) == text_digest
    if settled and finished.ending == "exited" and finished.code is not None and finished.code >= 0:
        store.put(key, dependencies, built)
    return BuildResult(
        status,
        reason,
        shown,
        command.cwd,
        command.arch,
        finished.seconds,
        False,
        run.cubin,
        run.messages,
        files,
        recipe,
        run.linked,
        run.launcher_trouble,
    )


def _from_store(command: BuildCommand, known: StoredBuild, shown: tuple[str, ...]) -> BuildResult:
    return BuildResult(
        "failed" if known.cubin is None else "ok",
        known.reason,
        shown,
        command.cwd,
        command.arch,
        known.seconds,
        True,
        known.cubin,
        known.messages,
        known.dependencies,
        known.recipe,
        known.linked,
    )


def _result(
    command: BuildCommand, status: BuildStatus, reason: str, argv: tuple[str, ...], source: Path
) -> BuildResult:
    return BuildResult(status, reason, argv, command.cwd, command.arch, 0.0, False, None, (), (str(source),), "")


def _older(path: str, moment_ns: int) -> bool:
    try:
        return Path(path).stat().st_mtime_ns < moment_ns
    except OSError:
        return False
