"""The editor's settings (section `kernelLsp`): declared once here, resolved from any JSON, field by field.

A bad value never costs the others: the field falls back to its default and a message names it. The VS Code
manifest and the docs page are checked against `DECLARED`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

Scope = Literal["machine", "machine-overridable", "resource", "window"]

_SEVERITIES = ("error", "warning", "information", "hint", "off")


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved settings; every field has a usable value. Tool paths and text fields are "" where not set."""

    gpu: str = ""
    arch: str = ""
    tools_nvcc: str = ""
    tools_ptxas: str = ""
    tools_nvdisasm: str = ""
    tools_cuobjdump: str = ""
    build_flags: tuple[str, ...] = ()
    build_on_type: bool = False
    build_time_limit_s: float = 300.0
    build_max_parallel: int = 1
    build_launcher: tuple[str, ...] = ()
    compile_commands: str = ""
    diagnostics_enable: bool = True
    hover_enable: bool = True
    code_lens_enable: bool = True
    inlay_hints_enable: bool = True
    reports_enable: bool = True
    reports_paths: tuple[str, ...] = ()
    profile_command: tuple[str, ...] = ("ncu",)
    profile_program: tuple[str, ...] = ()
    profile_fetch: tuple[str, ...] = ()
    profile_launch_skip: int = 0
    profile_launch_count: int = 1
    benchmark_command: tuple[str, ...] = ()
    benchmark_sizes: tuple[str, ...] = ()
    benchmark_pattern: str = "json"
    benchmark_warmup: int = 1
    benchmark_runs: int = 3
    severity: tuple[tuple[str, str], ...] = ()  # (code, severity) pairs, sorted


class _InvalidValueError(ValueError):
    """The message completes the sentence "kernelLsp.x: …"."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _InvalidValueError(f"expected a string, got {value!r}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _InvalidValueError(f"expected true or false, got {value!r}")
    return value


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _InvalidValueError(f"expected a list of strings, got {value!r}")
    return tuple(value)


def _between(low: float, high: float) -> Callable[[object], float]:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise _InvalidValueError(f"expected a number from {low:g} to {high:g}, got {value!r}")
        return float(value)

    return check


def _whole(low: int, high: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _InvalidValueError(f"expected a whole number from {low} to {high}, got {value!r}")
        return value

    return check


def _pattern(value: object) -> str:
    from kernel_lsp.model.benchmark_times import BenchmarkOutputError, compiled  # not with every start

    text = _text(value)
    try:
        compiled(text)
    except BenchmarkOutputError as error:
        raise _InvalidValueError(str(error)) from error
    return text


def _severities(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise _InvalidValueError(f'expected an object such as {{"KL101": "hint"}}, got {value!r}')
    for code, severity in value.items():
        if severity not in _SEVERITIES:
            raise _InvalidValueError(f"{code}: expected one of {', '.join(_SEVERITIES)}, got {severity!r}")
    return tuple(sorted((str(code), str(severity)) for code, severity in value.items()))


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting: its dotted name under `kernelLsp.`, field, JSON schema, scope and description."""

    name: str
    field: str
    check: Callable[[object], Any]
    schema: Mapping[str, object]
    scope: Scope
    doc: str


_TEXT: Mapping[str, object] = {"type": "string"}
_BOOL: Mapping[str, object] = {"type": "boolean"}
_WORDS: Mapping[str, object] = {"type": "array", "items": {"type": "string"}}


def _tool(name: str) -> Declared:
    return Declared(
        f"tools.{name}",
        f"tools_{name}",
        _text,
        _TEXT,
        "machine-overridable",
        f"Path of `{name}`. Empty: found through CUDA_HOME, PATH, the usual places, the server's environment.",
    )


def _program(name: str, doc: str) -> Declared:
    """Words of a program that is run: never taken from a workspace that is not trusted."""
    return Declared(name, _field(name), _words, _WORDS, "machine-overridable", doc)


def _number(name: str, low: int, high: int, doc: str) -> Declared:
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Declared(name, _field(name), _whole(low, high), schema, "resource", doc)


def _field(name: str) -> str:
    """`profile.launchSkip` -> `profile_launch_skip`."""
    return re.sub(r"\.|(?=[A-Z])", "_", name).lower()


DECLARED: tuple[Declared, ...] = (
    Declared(
        "gpu",
        "gpu",
        _text,
        _TEXT,
        "resource",
        "Board whose limits and peaks are shown, for example `RTX 3070 Ti` or `A100 SXM4 80GB`. "
        "Empty: this machine's GPU, else the build flags' architecture, else RTX 3070 Ti.",
    ),
    Declared(
        "arch",
        "arch",
        _text,
        _TEXT,
        "resource",
        "Architecture that is built, for example `sm_90a`. Empty: chosen from the build flags.",
    ),
    _tool("nvcc"),
    _tool("ptxas"),
    _tool("nvdisasm"),
    _tool("cuobjdump"),
    Declared(
        "build.flags",
        "build_flags",
        _words,
        _WORDS,
        "resource",
        "nvcc flags for files with no entry in a compile database. Empty: `-std=c++17 -O3`.",
    ),
    Declared(
        "build.onType",
        "build_on_type",
        _flag,
        _BOOL,
        "resource",
        "Also build the unsaved text a moment after typing stops, not only on save.",
    ),
    Declared(
        "build.timeLimit",
        "build_time_limit_s",
        _between(1, 86400),
        {"type": "number", "minimum": 1, "maximum": 86400},
        "resource",
        "Seconds after which a build is stopped.",
    ),
    Declared(
        "build.maxParallel",
        "build_max_parallel",
        _whole(1, 64),
        {"type": "integer", "minimum": 1, "maximum": 64},
        "window",
        "Builds that may run at the same time.",
    ),
    Declared(
        "build.launcher",
        "build_launcher",
        _words,
        _WORDS,
        "machine",
        'Program put in front of nvcc, for example `["sccache"]`: builds go through your compiler cache. Only your own '
        "settings count, never a workspace's.",
    ),
    Declared(
        "compileCommands",
        "compile_commands",
        _text,
        _TEXT,
        "resource",
        "Path of the `compile_commands.json` to use. Empty: the nearest one above the file, in `build/` or `out/`.",
    ),
    Declared("diagnostics.enable", "diagnostics_enable", _flag, _BOOL, "resource", "Show findings as diagnostics."),
    Declared("hover.enable", "hover_enable", _flag, _BOOL, "resource", "Show a summary when hovering a kernel."),
    Declared("codeLens.enable", "code_lens_enable", _flag, _BOOL, "resource", "Show one line above each kernel."),
    Declared(
        "inlayHints.enable",
        "inlay_hints_enable",
        _flag,
        _BOOL,
        "resource",
        "Show hints at the end of costly lines.",
    ),
    Declared(
        "reports.enable",
        "reports_enable",
        _flag,
        _BOOL,
        "resource",
        "Look for reports of Nsight Compute (`.ncu-rep`, `.ncu-repz`) in the workspace, and show what the newest says "
        "of each kernel.",
    ),
    Declared(
        "reports.paths",
        "reports_paths",
        _words,
        _WORDS,
        "resource",
        "Reports, CSV pages of ncu, or folders of reports to read besides those of the workspace. Relative paths count "
        "from a workspace folder.",
    ),
    _program(
        "profile.command",
        "Command that runs ncu; the options for the kernel and then `profile.program` are put after it. For a GPU "
        'elsewhere: `["ssh", "-tt", "gpuhost", "ncu"]`, `["srun", "--gres=gpu:1", "ncu"]`.',
    ),
    _program(
        "profile.program",
        'Program that launches the kernel, with its arguments, for example `["./build/app", "1024"]`. It runs in the '
        "workspace folder. Build it with `-lineinfo`, so that what is measured finds its lines.",
    ),
    _program(
        "profile.fetch",
        "Command that copies the report here where ncu does not write to this machine's files, for example "
        '`["scp", "gpuhost:{remote}", "{local}"]`.',
    ),
    _number("profile.launchSkip", 0, 1_000_000, "Launches of the kernel that are passed over before it is profiled."),
    _number("profile.launchCount", 1, 1_000, "Launches of the kernel that are profiled."),
    _program(
        "benchmark.command",
        "Program, with its arguments, that prints times of CUDA events. `{size}` in them stands for each of "
        "`benchmark.sizes`.",
    ),
    _program("benchmark.sizes", 'Problem sizes that the benchmark is run with, for example `["1024", "4096"]`.'),
    Declared(
        "benchmark.pattern",
        "benchmark_pattern",
        _pattern,
        _TEXT,
        "machine-overridable",
        'How times stand in the output: `json` for lines such as `{"name": "gemm", "size": 1024, "ms": 0.12}` '
        "(or `us`, `ns`), or a regular expression with a group named `ms`, `us` or `ns` (and `name`, `size`).",
    ),
    _number("benchmark.warmup", 0, 100, "Runs of each size that are not counted, before those that are."),
    _number("benchmark.runs", 1, 1_000, "Runs of each size that are counted; their median is shown."),
    Declared(
        "severity",
        "severity",
        _severities,
        {"type": "object", "additionalProperties": {"type": "string", "enum": list(_SEVERITIES)}},
        "resource",
        'Severity per code, for example `{"KL101": "hint", "KL204": "off"}`.',
    ),
)

_DEFAULTS = Settings()


def default_of(declared: Declared) -> object:
    """The default of a setting as JSON."""
    value = getattr(_DEFAULTS, declared.field)
    if declared.field == "severity":
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _lookup(section: Mapping[str, object], dotted: str) -> object:
    """The value at a dotted name, nested ({"build": {"flags": …}}) or flat ({"build.flags": …}); None: not given."""
    if dotted in section:
        return section[dotted]
    here: object = section
    for part in dotted.split("."):
        if not isinstance(here, Mapping) or part not in here:
            return None
        here = here[part]
    return here


def resolve(section: object) -> tuple[Settings, tuple[str, ...]]:
    """Settings from the client's JSON for section `kernelLsp`, and one message per bad field. Never raises."""
    if section is None:
        return _DEFAULTS, ()
    if not isinstance(section, Mapping):
        return _DEFAULTS, (f"kernelLsp: expected an object, got {section!r}; defaults are used",)
    values: dict[str, Any] = {}
    problems: list[str] = []
    for declared in DECLARED:
        given = _lookup(section, declared.name)
        if given is None:
            continue
        try:
            values[declared.field] = declared.check(given)
        except _InvalidValueError as error:
            problems.append(f"kernelLsp.{declared.name}: {error}; using {default_of(declared)!r}")
    assert {f.name for f in fields(Settings)} >= values.keys()
    return Settings(**values), tuple(problems)


def json_schema() -> dict[str, object]:
    """The `contributes.configuration.properties` block of the VS Code manifest for these settings."""
    return {
        f"kernelLsp.{d.name}": {
            **d.schema,
            "default": default_of(d),
            "scope": d.scope,
            "markdownDescription": d.doc,
        }
        for d in DECLARED
    }
