"""Frozen values of a build: what the compiler said, and the cubin it made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

BuildStatus = Literal["ok", "failed", "timeout", "cancelled", "tool missing", "skipped"]


@dataclass(frozen=True, slots=True)
class MessageNote:
    """A further place of a compiler message (template back trace); `line` is 1-based."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class CompilerMessage:
    """One error or warning of nvcc's chain. `file` is absolute; `line` 1-based, 0 where the tool gave none."""

    tool: str  # "nvcc" | "cudafe" | "cicc" | "ptxas" | "nvlink" | "gcc"
    severity: Literal["error", "warning", "information"]
    file: str
    line: int
    column: int | None  # 1-based code point, where it is trustworthy
    code: str | None  # "177-D", "C7510"
    text: str
    kernel: str | None = None  # mangled, where the message names one
    notes: tuple[MessageNote, ...] = ()


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
