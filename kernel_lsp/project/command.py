"""The command that builds one file for analysis, and everything that was decided on the way to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class CommandNote:
    """Something the user should know about the flags: what was dropped, refused, translated, chosen."""

    kind: Literal["dropped", "refused", "translated", "chosen", "debug", "arch", "warning"]
    message: str
    severity: Literal["error", "warning", "information", "log"] = "log"  # "log": doctor and report only


@dataclass(frozen=True, slots=True)
class BuildCommand:
    """Device-only build of `source`. `flags` are in the build's order, without architecture, input or outputs."""

    source: Path  # what the compiler is given (for a header: a file that includes it)
    document: Path  # what the user has open
    flags: tuple[str, ...]
    arch: str  # "sm_86", "sm_90a"
    arch_why: str
    cwd: Path
    origin: str  # "compile_commands.json" | "kernel-lsp.yaml" | "build.ninja" | "default" | "command line"
    origin_path: Path | None
    origin_detail: str  # "entry 2 of 3", "" where there is nothing to say
    compiler: str | None  # the entry's own compiler, where it is an absolute path; a candidate, subject to trust
    environment: tuple[tuple[str, str], ...]  # allow-listed variables of the entry
    notes: tuple[CommandNote, ...]
    skip_reason: str | None  # set: nothing to build, and why (HIP target, no supported architecture)
    # What the device code is compiled for: "compute_80" with arch "sm_86" for -gencode arch=compute_80,code=sm_86.
    virtual_arch: str = ""
    # Other files through which a header could be analysed, nearest first.
    alternatives: tuple[Path, ...] = ()
    # What CMake builds it for ("app"); "" where that is not known.
    target: str = ""
