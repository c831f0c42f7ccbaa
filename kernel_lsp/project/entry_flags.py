"""One recorded command (an entry, a ninja rule, a list of flags) -> `EntryFlags`: compiler, device flags, notes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.project.clang_flags import translate_clang_words, translate_nvhpc_words
from kernel_lsp.project.command import CommandNote
from kernel_lsp.project.compile_db import Entry
from kernel_lsp.project.invocation import (
    ENTRY_VARIABLES,
    FLAG_VARIABLES,
    Invocation,
    invocation_of_line,
    invocation_of_words,
)
from kernel_lsp.project.nvcc_flags import DeviceFlags, read_nvcc_words
from kernel_lsp.project.response_file import response_reader
from kernel_lsp.project.shell_hazard import path_hazard
from kernel_lsp.project.words import Platform, response_words

_CONFIGURATION = re.compile(r'-DCMAKE_INTDIR=\\?"?([\w.+-]+)\\?"?')
_TARGET = re.compile(r"CMakeFiles[\\/]([^\\/]+)\.dir[\\/]")
_GFX = re.compile(r"(?:--offload-arch|--cuda-gpu-arch|--amdgpu-target)[= ](gfx\w+)")


@dataclass(frozen=True, slots=True)
class EntryFlags:
    """`unusable` says why nothing can be taken from the entry (a HIP target, a host compiler)."""

    device: DeviceFlags
    directory: str
    dialect: str
    compiler: str | None
    label: str  # "Release", "target app", "" where the entry does not tell
    environment: tuple[tuple[str, str], ...]
    notes: tuple[CommandNote, ...]
    unusable: str | None
    target: str = ""  # what CMake builds it for, "app"; "" where the entry does not tell

    @property
    def rank(self) -> int:
        """0 optimised, 1 host debug only, 2 device debug, 3 not for this analysis; lower is preferred."""
        if self.unusable:
            return 3
        if self.device.debug == "device":
            return 2
        return 1 if self.device.debug == "host" and not self.device.optimised else 0


def read_entry(entry: Entry, *, roots: Sequence[Path] = (), environment: Mapping[str, str] | None = None) -> EntryFlags:
    """`environment` is the user's: its NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS count where the entry has none."""
    if entry.arguments is not None:
        invocation = invocation_of_words(entry.arguments, entry.directory, entry.platform)
    else:
        invocation = invocation_of_line(entry.command or "", entry.directory, entry.platform)
    if invocation is None:
        device = DeviceFlags((), (), (), None, "none", False, False, ())
        return EntryFlags(device, entry.directory, "", None, "", (), (), "its command names no compiler")
    text = " ".join(invocation.words) + " " + entry.output
    found = _TARGET.search(text)
    return read_invocation(
        invocation,
        platform=entry.platform,
        roots=roots,
        environment=environment,
        label=entry_label(text),
        target=found[1] if found else "",
    )


def entry_label(text: str) -> str:
    """What tells an entry from others of its file: the configuration, else the CMake target."""
    configuration = _CONFIGURATION.search(text)
    if configuration:
        return configuration[1]
    target = _TARGET.search(text)
    if target is None:
        return ""
    folder = re.search(r"\.dir[\\/](Debug|Release|RelWithDebInfo|MinSizeRel)[\\/]", text)
    return folder[1] if folder else f"target {target[1]}"


def read_invocation(
    invocation: Invocation,
    *,
    platform: Platform = "posix",
    roots: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    label: str = "",
    target: str = "",
    from_user: bool = False,
) -> EntryFlags:
    """The device flags of a taken-apart command, whatever its compiler."""
    words, notes = invocation.words, list(invocation.notes)
    unusable: str | None = None
    if invocation.dialect == "hip":
        targets = dict.fromkeys(_GFX.findall(" ".join(words)))
        built_for = f"{', '.join(targets)} (HIP)" if targets else "HIP"
        unusable = f"built for {built_for}, nothing to analyse"
        words = ()
    elif invocation.dialect == "host":
        unusable = f"built with {invocation.program}, not a CUDA compiler"
        words = ()
    elif invocation.dialect in {"clang", "nvc++"}:
        translate = translate_clang_words if invocation.dialect == "clang" else translate_nvhpc_words
        translated = translate(words)
        words = translated.words
        name = re.split(r"[\\/]", invocation.program)[-1]
        notes.append(
            CommandNote("translated", f"built with {name}, analysed with nvcc: numbers can differ", "information")
        )
        notes += translated.notes
    read_response = response_reader(Path(invocation.directory), roots, platform, gnu=invocation.dialect != "nvcc")
    variables = dict(invocation.variables)
    if invocation.dialect == "nvcc":
        words = _with_flag_variables(words, variables, environment or {}, platform, notes)
    device = read_nvcc_words(words, platform=platform, read_response=read_response, from_user=from_user)
    kept = []
    for name in ENTRY_VARIABLES:
        if name in variables:
            hazard = path_hazard(variables[name], platform)
            if hazard:
                notes.append(CommandNote("refused", f"{name}: refused, {hazard}", "information"))
            else:
                kept.append((name, variables[name]))
    return EntryFlags(
        device,
        invocation.directory,
        invocation.dialect,
        invocation.compiler,
        label,
        tuple(kept),
        (*notes, *device.notes),
        unusable,
        target,
    )


def _with_flag_variables(
    words: tuple[str, ...],
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    platform: Platform,
    notes: list[CommandNote],
) -> tuple[str, ...]:
    """nvcc itself puts these in front of and behind its words; the analysis does it here, by the same list."""
    around: list[tuple[str, ...]] = []
    for name in FLAG_VARIABLES:
        value = variables.get(name, environment.get(name, ""))
        if value.strip():
            whose = "of the entry" if name in variables else "of the environment"
            notes.append(CommandNote("chosen", f"{name} {whose}: {value.strip()}"))
        around.append(response_words(value, platform))
    return (*around[0], *words, *around[1])
