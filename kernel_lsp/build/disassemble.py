"""A cubin becomes nvdisasm's text of it: one run for all kernels, and none where the same cubin was read before.

The text is kept compressed beside the builds, by the cubin's content and the identity of the program. A run that fails
half way gives what it printed, with the reason; only whole texts are kept.
"""

from __future__ import annotations

import asyncio
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_lsp.build import process
from kernel_lsp.build.arguments import program_stamp
from kernel_lsp.build.store import FORMAT, BuildStore
from kernel_lsp.project.toolchain import INSTALL_COMMAND, Tool, Toolchain
from kernel_lsp.source.digest import content_digest, recipe_digest

DEFAULT_TIME_LIMIT_S = 120.0
DEFAULT_OUTPUT_LIMIT_BYTES = 512 << 20  # four million instructions
_LEVEL = re.compile(r"^nvdisasm (?:error|fatal)\s*:\s*")
_COMPRESSION = 1  # text of code shrinks to a tenth already


@dataclass(frozen=True, slots=True)
class Disassembly:
    """`text` is "" or cut short where `reason`, a sentence for people, is not "". `tool_missing`: nothing could run.

    `complaints`: what a program that ended by itself without success said; "" otherwise.
    """

    text: str
    reason: str
    tool_missing: bool
    cached: bool
    seconds: float
    complaints: str = ""


def disassembly_key(cubin: bytes, nvdisasm: Tool, arguments: Sequence[str]) -> str:
    """The name under which the text of a cubin is kept."""
    stamp = [nvdisasm.version or "", program_stamp(nvdisasm.path)]
    return recipe_digest([f"format {FORMAT}", "nvdisasm", *arguments, *stamp, content_digest(cubin)])


async def disassemble(
    cubin: bytes,
    toolchain: Toolchain,
    store: BuildStore,
    arguments: Sequence[str],
    *,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    output_limit_bytes: int = DEFAULT_OUTPUT_LIMIT_BYTES,
    environment: Mapping[str, str] | None = None,
) -> Disassembly:
    """nvdisasm's text of a cubin. Never raises for what the program does; asyncio.CancelledError passes through."""
    tool = toolchain.nvdisasm
    if tool is None:
        absent = next((missing.message for missing in toolchain.missing if missing.name == "nvdisasm"), "")
        return Disassembly("", absent or f"nvdisasm not found. Install it with: {INSTALL_COMMAND}.", True, False, 0.0)
    key = disassembly_key(cubin, tool, arguments)
    known = await asyncio.to_thread(_kept, store, key)
    if known is not None:
        return Disassembly(known, "", False, True, 0.0)
    try:
        with store.scratch.run_folder() as folder:
            path = folder / "code.cubin"
            path.write_bytes(cubin)
            variables = {**(os.environ if environment is None else environment), "LC_ALL": "C", "TMPDIR": str(folder)}
            finished = await process.run(
                (str(tool.path), *arguments, str(path)),
                cwd=folder,
                environment=variables,
                time_limit_s=time_limit_s,
                output_limit_bytes=output_limit_bytes,
            )
            said = finished.stderr.decode("utf-8", "replace").replace(str(path), "the cubin")
    except OSError as error:
        reason = f"There is no temporary folder for nvdisasm ({error.strerror or error})."
        return Disassembly("", reason, False, False, 0.0)
    text = finished.stdout.decode("utf-8", "replace")
    reason = _failure(finished, said, tool, time_limit_s)
    if not reason:
        await asyncio.to_thread(_keep, store, key, finished.stdout)
    complaints = (said or reason) if reason and finished.ending == "exited" and not finished.truncated else ""
    return Disassembly(text, reason, False, False, finished.seconds, complaints)


def _kept(store: BuildStore, key: str) -> str | None:
    blob = store.find_blob(key)
    if blob is None:
        return None
    try:
        return zlib.decompress(blob).decode("utf-8", "replace")
    except zlib.error:
        return None


def _keep(store: BuildStore, key: str, text: bytes) -> None:
    store.put_blob(key, zlib.compress(text, _COMPRESSION))


def _failure(finished: process.Finished, said: str, tool: Tool, time_limit_s: float) -> str:
    """Why the text is not whole; "" where it is."""
    if finished.ending == "not started":
        return f"nvdisasm ({tool.path}) could not be started: {finished.error}. Install it with: {INSTALL_COMMAND}."
    if finished.ending == "timeout":
        return f"nvdisasm was stopped after {time_limit_s:g} s."
    if finished.ending == "runaway output" or finished.truncated:
        return "nvdisasm printed more than is read of it: the last kernels lack their instructions."
    if finished.code == 0:
        return ""
    first = next((line.strip() for line in said.splitlines() if line.strip()), f"exit status {finished.code}")
    first = _LEVEL.sub("", first).rstrip(".")
    return f"nvdisasm failed: {first} ({tool.path}). A newer one comes with: {INSTALL_COMMAND}."
