"""kernel-lsp.yaml -> `ProjectConfig`: a project's own flags, GPU, launches and severities, checked field by field.

A field that cannot be used is left out and named in `problems` with its line; reading never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from kernel_lsp.model.launch import Launch
from kernel_lsp.project.arch import real_arch
from kernel_lsp.project.compile_db import folders_upwards
from kernel_lsp.project.yaml_limits import BoundedLoader
from kernel_lsp.source.kernel_match import kernel_name

NAMES = ("kernel-lsp.yaml", "kernel-lsp.yml", ".kernel-lsp.yaml")
MAX_CONFIG_BYTES = 64 << 10
SEVERITIES = ("error", "warning", "information", "hint", "off")
_UNITS = {"": 1, "b": 1, "kb": 1024, "kib": 1024, "mb": 1 << 20, "mib": 1 << 20}
_CODE = re.compile(r"KL\d{3}|[a-z][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class ConfiguredLaunch:
    """A launch for the kernels whose name matches `pattern` (a name or a glob such as `gemm*`)."""

    pattern: str
    launch: Launch


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """What one kernel-lsp.yaml says; empty fields say nothing. `problems` are sentences for the user."""

    path: Path
    flags: tuple[str, ...] | None = None
    arch: str | None = None
    gpu: str | None = None
    compile_commands: Path | None = None
    database_entry: int | str | None = None  # 1-based number as shown, or a name such as "Debug"
    headers: tuple[tuple[str, Path], ...] = ()  # (glob of a header, the source through which it is analysed)
    launches: tuple[ConfiguredLaunch, ...] = ()
    severity: tuple[tuple[str, str], ...] = ()
    ignore: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def launches_for(self, kernel: str) -> tuple[Launch, ...]:
        """The launches configured for a kernel: by its name, with or without scopes and template arguments."""
        name = kernel_name(kernel)
        arguments = f"<{','.join(name.template_args)}>" if name.template_args else ""
        scopes = [part for part in name.scope_and_name if part != "(anonymous namespace)"]
        plain = {name.qualified, "::".join(scopes), name.scope_and_name[-1]} if name.scope_and_name else {kernel}
        forms = {form.replace(" ", "") for form in plain}
        forms |= {form + arguments.replace(" ", "") for form in forms}
        return tuple(
            configured.launch
            for configured in self.launches
            if any(fnmatchcase(form, configured.pattern.replace(" ", "")) for form in forms)
        )


def find_config(document: Path, roots: tuple[Path, ...]) -> Path | None:
    """The nearest kernel-lsp.yaml from the document's folder up to its workspace folder."""
    for folder in folders_upwards(document, roots):
        for name in NAMES:
            if (folder / name).is_file():
                return folder / name
    return None


def load_config(path: Path) -> ProjectConfig:
    """Reads and checks the file; one that cannot be read is a config with a problem that says why."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            return ProjectConfig(
                path, problems=(f"{path}: larger than {MAX_CONFIG_BYTES >> 10} KB; the file is not used",)
            )
        text = path.read_bytes()
    except OSError as error:
        return ProjectConfig(path, problems=(f"{path}: cannot be read ({error.strerror})",))
    return parse_config(text, path)


def parse_config(text: bytes | str, path: Path) -> ProjectConfig:
    """Any bytes in, a `ProjectConfig` out."""
    try:
        node = _compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        return ProjectConfig(path, problems=(f"{place}: not YAML ({error.problem}); the file is not used",))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        return ProjectConfig(path, problems=(f"{path}: not used ({_reason(error)})",))
    if node is None:
        return ProjectConfig(path)
    if not isinstance(node, yaml.MappingNode):
        problem = f"{path}:{_line(node)}: expected fields such as `flags:`, got {_kind(node)}; the file is not used"
        return ProjectConfig(path, problems=(problem,))
    return _Checker(path).check(node)


def _compose(text: bytes | str) -> yaml.Node | None:
    decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    return yaml.compose(decoded, Loader=BoundedLoader)


class _BadFieldError(ValueError):
    """The message completes "PATH:LINE: field: ..."."""


class _Checker:
    """Checks one document; each field has a method `_NAME` that takes its node and returns its value."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._problems: list[str] = []

    def check(self, node: yaml.MappingNode) -> ProjectConfig:
        fields: dict[str, Callable[[yaml.Node], Any]] = {
            "flags": self._flags,
            "arch": self._arch,
            "gpu": _text,
            "compile_commands": self._file,
            "database_entry": self._database_entry,
            "headers": self._headers,
            "launches": self._launches,
            "severity": self._severity,
            "ignore": self._ignore,
        }
        config = ProjectConfig(self._path)
        for key, value in self._items(node, ""):
            if key not in fields:
                self._problem(value, key, f"unknown field; known are {', '.join(fields)}")
                continue
            try:
                config = replace(config, **{key: fields[key](value)})
            except _BadFieldError as error:
                self._problem(value, key, f"{error}; the field is not used")
        return replace(config, problems=tuple(self._problems))

    def _problem(self, node: yaml.Node, field: str, message: str) -> None:
        if len(self._problems) < 20:
            self._problems.append(f"{self._path}:{_line(node)}: {field[:80]}: {message}")

    def _items(self, node: yaml.Node, field: str) -> list[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise _BadFieldError(f"expected names with values, got {_kind(node)}")
        items = []
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                items.append((key.value, value))
            else:
                self._problem(key, field or "file", "a name must be a text; it is not used")
        return items

    def _flags(self, node: yaml.Node) -> tuple[str, ...]:
        if isinstance(node, yaml.SequenceNode):
            return tuple(_text(item) for item in node.value)
        raise _BadFieldError(f'expected a list such as ["-O3", "-std=c++17"], got {_kind(node)}')

    def _arch(self, node: yaml.Node) -> str:
        arch = real_arch(_text(node))
        if arch is None:
            raise _BadFieldError(f"expected an architecture such as sm_90a, got {_short(_text(node))}")
        return arch

    def _file(self, node: yaml.Node) -> Path:
        return self._path.parent / _text(node)

    def _database_entry(self, node: yaml.Node) -> int | str:
        text = _text(node)
        if text.isdigit():
            if not 0 < int(text) < 1_000_000:
                raise _BadFieldError(f"expected a number from 1, as shown, got {_short(text)}")
            return int(text)
        return text

    def _headers(self, node: yaml.Node) -> tuple[tuple[str, Path], ...]:
        return tuple((pattern, self._file(value)) for pattern, value in self._items(node, "headers"))

    def _severity(self, node: yaml.Node) -> tuple[tuple[str, str], ...]:
        found = []
        for code, value in self._items(node, "severity"):
            severity = value.value if isinstance(value, yaml.ScalarNode) else ""
            # YAML 1.1 reads a bare `off` as false; the node keeps the text.
            if not _CODE.fullmatch(code) or severity not in SEVERITIES:
                self._problem(value, f"severity.{code[:60]}", f"expected KLnnn: one of {', '.join(SEVERITIES)}")
            else:
                found.append((code, severity))
        return tuple(sorted(found))

    def _ignore(self, node: yaml.Node) -> tuple[str, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise _BadFieldError(f"expected a list of codes such as [KL110], got {_kind(node)}")
        codes = []
        for item in node.value:
            code = item.value if isinstance(item, yaml.ScalarNode) else ""
            if _CODE.fullmatch(code):
                codes.append(code)
            else:
                self._problem(item, "ignore", f"expected a code such as KL110, got {_short(code)}")
        return tuple(codes)

    def _launches(self, node: yaml.Node) -> tuple[ConfiguredLaunch, ...]:
        found = []
        for pattern, value in self._items(node, "launches"):
            # One launch, or a list of them where a kernel is launched in several ways.
            for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                try:
                    found.append(ConfiguredLaunch(pattern, self._launch(one)))
                except _BadFieldError as error:
                    self._problem(one, f"launches.{pattern[:60]}", f"{error}; this launch is not used")
        return tuple(found)

    def _launch(self, node: yaml.Node) -> Launch:
        fields = dict(self._items(node, "launches"))
        unknown = sorted(fields.keys() - {"block", "grid", "dynamic_shared", "cluster"})
        if unknown:
            raise _BadFieldError(f"unknown field {_short(unknown[0])}; known are block, grid, dynamic_shared, cluster")
        if "block" not in fields:
            raise _BadFieldError("block is missing")
        block = _extent(fields["block"], "block", 1024)
        if block[0] * block[1] * block[2] > 1024:
            raise _BadFieldError(f"block {'x'.join(map(str, block))} has more than 1,024 threads")
        return Launch(
            block=block,
            grid=_extent(fields["grid"], "grid", 2**31 - 1) if "grid" in fields else None,
            dynamic_shared_bytes=_bytes(fields["dynamic_shared"]) if "dynamic_shared" in fields else None,
            cluster=_whole(fields["cluster"], "cluster", 1, 16) if "cluster" in fields else None,
            origin="config",
            where=f"{self._path.name}:{_line(node)}",
        )


def _extent(node: yaml.Node, field: str, most: int) -> tuple[int, int, int]:
    parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not 1 <= len(parts) <= 3:
        raise _BadFieldError(f"{field}: expected one to three numbers, got {len(parts)}")
    numbers = [_whole(part, field, 1, most) for part in parts]
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _whole(node: yaml.Node, field: str, least: int, most: int) -> int:
    text = _text(node).replace("_", "").replace(",", "")
    if not re.fullmatch(r"\d{1,10}", text) or not least <= int(text) <= most:
        raise _BadFieldError(f"{field}: expected a whole number from {least} to {most:,}, got {_short(_text(node))}")
    return int(text)


def _bytes(node: yaml.Node) -> int:
    text = _text(node)
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*([A-Za-z]*)", text.strip().replace(",", ""))
    factor = _UNITS.get(match[2].lower()) if match else None
    size = float(match[1]) * factor if match and factor else -1.0
    if size < 0 or size > 1 << 20 or size != int(size):
        raise _BadFieldError(f'dynamic_shared: expected bytes or a text such as "48 KB", got {_short(text)}')
    return int(size)


def _text(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        raise _BadFieldError(f"expected a text, got {_kind(node)}")
    return str(node.value)


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if isinstance(error, ValueError) and str(error) else type(error).__name__


def _short(text: str) -> str:
    return repr(text) if len(text) <= 60 else repr(text[:60]) + "..."


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "names with values"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if node.tag == "tag:yaml.org,2002:null" else _short(node.value)
