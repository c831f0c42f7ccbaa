"""Names of GPUs and architectures become profiles: which board, by which rule, and why.

The data are the packaged `hw_profiles/`: one file per board and `sm/limits.yaml` for all compute capabilities. They are
read when they are asked for and kept: one board is one file, a name is looked up in the first paragraphs of all.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import MappingProxyType

from kernel_lsp.hardware.gpu_names import board_called, boards_meant, nearest_names
from kernel_lsp.hardware.profile import GpuChoice, HwProfile, SmLimits
from kernel_lsp.hardware.profile_yaml import BoardIdentity, parse_board, parse_identity, parse_limits
from kernel_lsp.hardware.yaml_fields import Fields, HardwareDataError, parse_fields

DEFAULT_SLUG = "rtx-3070-ti"

_ARCH = re.compile(r"(?:sm|compute|lto)_(\d{1,2})(\d)([af]?)")


class UnknownGpuError(ValueError):
    """No board of the catalogue answers to the name, or several do; the message lists the nearest."""


class UnknownArchError(ValueError):
    """No limits are known for the architecture; the message lists those that are."""


def limits_for_arch(arch: str) -> SmLimits:
    """Limits of "sm_86"; "sm_90a", "sm_100f" and "compute_86" are understood too.

    Raises:
        UnknownArchError: not an architecture, or one without limits.
    """
    return limits_for_cc(_compute_capability(arch))


@cache
def limits_for_cc(compute_capability: str) -> SmLimits:
    """Limits of a compute capability, "8.6".

    Raises:
        UnknownArchError: no limits are known for it.
    """
    table = _limits_table()
    if compute_capability not in table.child("compute_capabilities").values:
        known = ", ".join(compute_capabilities())
        raise UnknownArchError(f"no limits are known for compute capability {compute_capability}; known are {known}")
    return parse_limits(table, compute_capability)


def compute_capabilities() -> tuple[str, ...]:
    """Every compute capability with limits, oldest first."""
    return tuple(_limits_table().child("compute_capabilities").values)


def board_names() -> tuple[str, ...]:
    """The boards of the catalogue, sorted."""
    return tuple(sorted(board.name for board in _identities()))


@cache
def board(slug: str) -> HwProfile:
    """The board of one file, "rtx-3070-ti".

    Raises:
        UnknownGpuError: there is no such file.
        HardwareDataError: the file does not say what it must.
    """
    path = _root() / f"{slug}.yaml"
    if not path.is_file():
        raise UnknownGpuError(f"no profile {slug!r}; known are {', '.join(board_names())}")
    file = f"hw_profiles/{slug}.yaml"
    text = path.read_text(encoding="utf-8")
    identity = parse_identity(file, slug, text)
    return parse_board(file, identity, limits_for_arch(identity.arch), text)


def boards() -> tuple[HwProfile, ...]:
    """Every board, sorted by name (reads all files)."""
    return tuple(sorted((board(identity.slug) for identity in _identities()), key=lambda profile: profile.name))


def by_name(name: str) -> HwProfile:
    """The board a person means: "3070 ti", "rtx3070ti", "A100 SXM4 80GB", the driver's name; or the board of "sm_90".

    Raises:
        UnknownGpuError: no board has all these words, or more than one has.
        UnknownArchError: an architecture without limits.
    """
    if _ARCH.fullmatch(name.strip().lower()):
        return representative(name)
    exact = by_device_name(name)
    if exact is not None:
        return exact
    meant = boards_meant(name, _identities())
    if len(meant) == 1:
        return board(meant[0].slug)
    if meant:
        names = sorted(identity.name for identity in meant)
        raise UnknownGpuError(f"{name!r} may be {', '.join(names[:-1])} or {names[-1]}: say which")
    nearest = ", ".join(nearest_names(name, _identities()))
    hint = f"nearest: {nearest}" if nearest else "write it like RTX 3070 Ti, or an architecture like sm_86"
    raise UnknownGpuError(f"no GPU is called {name!r}; {hint}")


def by_device_name(name: str) -> HwProfile | None:
    """The board with just this name, as the driver, a report or the catalogue writes it; None: no such board."""
    identity = board_called(name, _identities())
    return None if identity is None else board(identity.slug)


@cache
def representative(arch: str) -> HwProfile:
    """The board that stands for an architecture; without one, a profile that has the architecture's limits alone.

    Raises:
        UnknownArchError: no limits are known for it.
    """
    limits = limits_for_arch(arch)
    for identity in _identities():
        if identity.representative and identity.arch == limits.arch:
            return board(identity.slug)
    return _boardless(
        limits.arch, limits, "no board of this architecture is in the catalogue: limits only, no peaks", limits.source
    )


def without_limits(arch: str) -> GpuChoice:
    """Stands in for an architecture that is not on record. Nothing may be computed from its limits: they are those of
    the default board; it has no peaks."""
    words = f"{arch}, of which no limits are on record"
    return GpuChoice(_boardless(arch, board(DEFAULT_SLUG).limits, words, "none"), "flags", words)


def _boardless(arch: str, limits: SmLimits, note: str, source: str) -> HwProfile:
    return HwProfile(
        name=arch,
        slug=arch,
        chip=None,
        arch=arch,
        limits=limits,
        sm_count=None,
        boost_clock_mhz=None,
        tensor_clock_mhz=None,
        dram_gb_per_s=None,
        dram_source=None,
        l2_mib=None,
        half_rate_f32_accumulate=False,
        warps_to_hide_latency=None,
        peaks=MappingProxyType({}),
        confidence="low",
        notes=(note,),
        source=source,
    )


def choose(
    setting: str | None = None,
    detected: str | None = None,
    arch: str | None = None,
    report: str | None = None,
) -> GpuChoice:
    """The machine that the numbers are for, with the reason.

    The setting's; else the report's device, else this machine's GPU, where the build's architecture runs on it; else
    the board that stands for the build's architecture; else the default.

    Args:
        setting: a name by the user's choice (a setting or `--gpu`), as `by_name` takes it.
        detected: this machine's GPU by the driver's name.
        arch: the architecture of the build flags ("sm_90a"), None where the flags leave it open.
        report: the device of a loaded report.

    Raises:
        UnknownGpuError: the setting names no board, or several.
        UnknownArchError: the choice falls on an architecture without limits.
    """
    if setting:
        profile = by_name(setting)
        return GpuChoice(profile, "setting", f"{profile.short_name} as chosen")
    unknown = ""
    if report:
        device = by_device_name(report)
        if device is None:
            unknown += f"; the report's device, {report}, has no profile"
        elif arch is None or _runs_on(arch, device.limits):
            return GpuChoice(device, "report", f"{device.short_name}, the device of the report")
    if detected:
        device = by_device_name(detected)
        if device is None:
            unknown += f"; the machine's GPU, {detected}, has no profile"
        elif arch is None or _runs_on(arch, device.limits):
            return GpuChoice(device, "detected", f"{device.short_name}, this machine's GPU")
    if arch:
        profile = representative(arch)
        words = f"{profile.short_name} for {profile.arch} of the build flags"
        if profile.chip is None:
            words = f"{profile.arch} of the build flags, no board"
        return GpuChoice(profile, "flags", words + unknown)
    profile = board(DEFAULT_SLUG)
    return GpuChoice(profile, "default", f"{profile.short_name} by default{unknown}")


def _runs_on(arch: str, device: SmLimits) -> bool:
    """Whether code built for `arch` runs on the device: the same generation, not older, and no Jetson among others."""
    matched = _ARCH.fullmatch(arch.strip().lower())
    if matched is None:
        return False
    built = limits_for_arch(arch)
    if built.arch == device.arch:
        return True
    if matched[3] == "a" or built.tegra or device.tegra:
        return False
    built_major, built_minor = built.compute_capability.split(".")
    device_major, device_minor = device.compute_capability.split(".")
    return built_major == device_major and int(built_minor) <= int(device_minor)


def _compute_capability(arch: str) -> str:
    matched = _ARCH.fullmatch(arch.strip().lower())
    if matched is None:
        raise UnknownArchError(f"{arch!r} is no architecture; write it like sm_86")
    return f"{matched[1]}.{matched[2]}"


@cache
def _identities() -> tuple[BoardIdentity, ...]:
    return tuple(
        parse_identity(f"hw_profiles/{path.name}", path.stem, path.read_text(encoding="utf-8"))
        for path in sorted(_root().glob("*.yaml"))
    )


@cache
def _limits_table() -> Fields:
    return parse_fields("hw_profiles/sm/limits.yaml", (_root() / "sm" / "limits.yaml").read_text(encoding="utf-8"))


@cache
def _root() -> Path:
    # In a wheel the folder lies inside the package, in an editable checkout beside it. Plain paths: importing
    # importlib.resources costs more than reading the files.
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "hw_profiles", package.parent / "hw_profiles"):
        if (folder / "sm" / "limits.yaml").is_file():
            return folder
    raise HardwareDataError(f"hw_profiles: not found beside {package}; reinstall kernel-lsp")
