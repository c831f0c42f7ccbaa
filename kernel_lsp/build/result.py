"""Frozen values of a build: what the compiler said, and the cubin it made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernel_lsp.source.message import CompilerMessage as CompilerMessage
from kernel_lsp.source.message import MessageNote as MessageNote

BuildStatus = Literal["ok", "failed", "timeout", "cancelled", "tool missing", "skipped"]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The end of one build. `cubin` is None unless status is "ok". `recipe` is the digest of all inputs."""

    status: BuildStatus
    reason: str  # one sentence for people where status is not "ok", else ""
    argv: tuple[str, ...]
    cwd: Path
    arch: str
    seconds: float  # of the compiler's own run, also when `cached`
    cached: bool
    cubin: bytes | None
    messages: tuple[CompilerMessage, ...]
    dependencies: tuple[str, ...]  # absolute paths of every file the build read, the source first
    recipe: str
    linked: bytes | None = None  # the same code after the device link, where it was left to one and needs no other file
    launcher_trouble: str = ""  # why the user's launcher gave nothing and nvcc was run without it
