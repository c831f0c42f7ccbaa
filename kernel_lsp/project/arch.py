"""One architecture out of those that the build names: `Target` lists in, one `ArchChoice` with its reason out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_lsp.project.command import CommandNote

_NAME = re.compile(r"^(?:sm|compute|lto)_(\d+)([af]?)$")
_SPECIAL = ("all", "all-major", "native")
_SUFFIX_ORDER = {"": 0, "f": 1, "a": 2}


@dataclass(frozen=True, slots=True)
class Target:
    """One `code` of the build: `real` is "sm_90a", None for PTX only, or "all" | "all-major" | "native"."""

    virtual: str  # "compute_90"; "" for all, all-major, native
    real: str | None
    spelled: str  # the build's own word, for messages


@dataclass(frozen=True, slots=True)
class ArchChoice:
    """`arch` is "" where `skip_reason` says why nothing can be built."""

    arch: str
    virtual: str  # what the device code is compiled for: "compute_80" for arch=compute_80,code=sm_86
    why: str
    notes: tuple[CommandNote, ...]
    skip_reason: str | None


def arch_number(name: str) -> tuple[int, str] | None:
    """(90, "a") for "sm_90a", "compute_90a" or "lto_90a"; None for anything else."""
    match = _NAME.match(name)
    return (int(match[1]), match[2]) if match else None


def real_arch(name: str) -> str | None:
    """ "sm_90a" for any spelling of an architecture: "sm_90a", "compute_90a", "90a", "9.0a"."""
    text = name.strip().lower()
    if re.fullmatch(r"\d+\.\d[af]?", text):
        text = text.replace(".", "")
    if re.fullmatch(r"\d{2,3}[af]?", text):
        text = f"sm_{text}"
    number = arch_number(text)
    return f"sm_{number[0]}{number[1]}" if number else None


def choose_arch(
    targets: Sequence[Target],
    *,
    setting: str | None = None,
    setting_why: str = "setting",
    machine_arch: str | None = None,
    machine_why: str = "this machine's GPU",
    supported: Sequence[str] | None = None,
    toolkit: str = "",
    default_arch: str = "sm_86",
    default_why: str = "default",
) -> ArchChoice:
    """Setting before the GPU that runs the code where the build names it before the newest that the build names.

    At one number, `a` goes before `f` before the plain name, because code that needs the suffix does not
    assemble without it. `supported` is `nvcc --list-gpu-code` (plain names; None: not known, all pass);
    `toolkit` ("13.0") is for messages. `machine_why` says which GPU `machine_arch` is that of.
    """
    nvcc = f"nvcc {toolkit}".rstrip()
    named = _named(targets, supported, machine_arch)
    # A virtual architecture that this nvcc has dropped (compute_50 for sm_80) cannot be asked for any more.
    named = [(real, virtual if is_supported(virtual, supported) else "") for real, virtual in named]
    notes: list[CommandNote] = [
        CommandNote("arch", f"'{target.spelled}' in the build", "information")
        for target in targets
        if target.real in _SPECIAL
    ]
    unsupported = [real for real, _ in named if not is_supported(real, supported)]
    usable = [(real, virtual) for real, virtual in named if is_supported(real, supported)]
    if unsupported and usable:
        notes.append(
            CommandNote("arch", f"not supported by {nvcc}: {', '.join(dict.fromkeys(unsupported))}", "information")
        )
    if setting is not None:
        return _by_setting(setting, setting_why, usable, supported, nvcc, notes)
    if unsupported and not usable:
        return _none_left(unsupported, supported, nvcc, notes)
    if machine_arch is not None:
        wanted = arch_number(machine_arch)
        same = [pair for pair in usable if wanted and _number(pair[0])[0] == wanted[0]]
        if same:
            real, virtual = max(same, key=_rank)
            return _choice(real, virtual, f"{machine_why}, named by the build", targets, notes)
    if not usable:
        arch = machine_arch or default_arch
        why = machine_why if machine_arch else default_why
        why += "; the build names no architecture" if not targets else "; 'native' without a GPU"
        if not is_supported(arch, supported):
            reason = f"{arch} ({why}) is not supported by {nvcc} ({_known([arch], supported)}); set another"
            return ArchChoice("", "", why, (*notes, CommandNote("arch", reason, "warning")), reason)
        return _choice(arch, "", why, targets, notes)
    real, virtual = max(usable, key=_rank)
    why = _newest_why(
        real, [pair[0] for pair in usable], f"the only one named that {nvcc} supports" if unsupported else ""
    )
    return _choice(real, virtual, why, targets, notes)


def is_supported(arch: str, supported: Sequence[str] | None) -> bool:
    """Whether a toolkit that lists these plain names can assemble for `arch` (suffixes: as their number)."""
    number = arch_number(arch)
    if supported is None or number is None:
        return supported is None
    plain, suffix = number
    if f"sm_{plain}" not in supported:
        return False
    # The `a` targets begin with sm_90, the `f` (family) targets with sm_100.
    return suffix == "" or (suffix == "a" and plain >= 90) or (suffix == "f" and plain >= 100)


def _named(
    targets: Sequence[Target], supported: Sequence[str] | None, machine_arch: str | None
) -> list[tuple[str, str]]:
    """(real, virtual) pairs; PTX counts only where the build holds nothing else."""
    named: list[tuple[str, str]] = []
    for target in targets:
        if target.real == "native":
            named += [(machine_arch, "")] if machine_arch else []
        elif target.real in _SPECIAL:
            known = sorted((arch for arch in supported or () if arch_number(arch)), key=_number)
            if target.real == "all-major":
                known = [arch for arch in known if _number(arch)[0] % 10 == 0 or arch in (known[0], known[-1])]
            named += [(arch, "") for arch in known]
        elif target.real is not None:
            named.append((target.real, target.virtual))
    if not named:
        for target in targets:
            number = arch_number(target.virtual)
            if target.real is None and number:
                named.append((f"sm_{number[0]}{number[1]}", target.virtual))
    return named


def _by_setting(
    setting: str,
    setting_why: str,
    usable: Sequence[tuple[str, str]],
    supported: Sequence[str] | None,
    nvcc: str,
    notes: list[CommandNote],
) -> ArchChoice:
    if not is_supported(setting, supported):
        reason = f"{setting} ({setting_why}) is not supported by {nvcc} ({_known([setting], supported)}); set another"
        warning = CommandNote("arch", reason, "warning")
        return ArchChoice("", "", setting_why, (*notes, warning), reason)
    number, suffix = _number(setting)
    same = [pair for pair in usable if _number(pair[0])[0] == number]
    if same and not suffix:
        real, virtual = max(same, key=_rank)
        if real != setting:
            why = f"{setting_why} {setting}; the build names {real}"
            return ArchChoice(real, virtual or _virtual_of(real), why, tuple(notes), None)
        return ArchChoice(real, virtual or _virtual_of(real), setting_why, tuple(notes), None)
    return ArchChoice(setting, _virtual_of(setting), setting_why, tuple(notes), None)


def _choice(real: str, virtual: str, why: str, targets: Sequence[Target], notes: Sequence[CommandNote]) -> ArchChoice:
    notes = list(notes)
    if targets and all(target.real is None for target in targets):
        held = ", ".join(dict.fromkeys(target.virtual for target in targets))
        notes.append(CommandNote("arch", f"the build holds PTX only ({held}); analysed as {real}", "information"))
        why = f"the build holds PTX only ({held})"
    return ArchChoice(real, virtual or _virtual_of(real), why, tuple(notes), None)


def _none_left(
    unsupported: Sequence[str], supported: Sequence[str] | None, nvcc: str, notes: Sequence[CommandNote]
) -> ArchChoice:
    names = list(dict.fromkeys(unsupported))
    subject = f"the build's only architecture {names[0]} is" if len(names) == 1 else f"{', '.join(names)} are"
    reason = f"{subject} not supported by {nvcc} ({_known(names, supported)}); set another nvcc or architecture"
    return ArchChoice("", "", "", (*notes, CommandNote("arch", reason, "warning")), reason)


def _newest_why(real: str, usable: Sequence[str], only_why: str) -> str:
    names = list(dict.fromkeys(usable))
    if len(names) == 1:
        return only_why or "the only architecture that the build names"
    if len(names) > 8:
        return f"newest of {len(names)} architectures of the build"
    why = f"newest of {' '.join(names)}"
    if any(name != real and _number(name)[0] == _number(real)[0] for name in names):
        why += "; same number: 'a' before 'f' before plain"
    return why


def _known(refused: Sequence[str], supported: Sequence[str] | None) -> str:
    known = sorted((arch for arch in supported or () if arch_number(arch)), key=_number)
    if not known:
        return "its architectures are not known"
    if all(_number(name) < _number(known[0]) for name in refused):
        return f"it knows {known[0]} and up"
    return f"it knows {known[0]} to {known[-1]}"


def _number(name: str) -> tuple[int, str]:
    return arch_number(name) or (0, "")


def _rank(pair: tuple[str, str]) -> tuple[int, int]:
    number, suffix = _number(pair[0])
    return number, _SUFFIX_ORDER[suffix]


def _virtual_of(real: str) -> str:
    return real.replace("sm_", "compute_", 1)
