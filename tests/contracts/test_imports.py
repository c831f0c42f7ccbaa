"""The direction of imports, the purity of the core, and other rules of the code that a reader relies on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "kernel_lsp"

CORE = {"source", "hardware", "cubin", "ncu", "model", "findings", "report", "analysis"}

# package (or top-level module) -> what of kernel_lsp it may import besides itself
MAY_IMPORT: dict[str, set[str]] = {
    "source": set(),
    "hardware": set(),
    "cubin": {"source"},
    "model": {"ncu", "cubin", "hardware", "source"},
    "findings": {"model", "ncu", "cubin", "hardware", "source"},
    "analysis": {"findings", "model", "ncu", "cubin", "hardware", "source"},
    "report": {"analysis", "findings", "model", "ncu", "cubin", "hardware", "source"},
    "project": {"model", "source"},
    "ncu": {"cubin", "source"},
    "build": {"project", "ncu", "source"},
    "session": {"analysis", "build", "ncu", "project", "report", "findings", "model", "cubin", "hardware", "source"},
    "lsp": {"session", "analysis", "report", "findings", "model", "ncu", "hardware", "source"},
    "cli": {
        "lsp",
        "session",
        "analysis",
        "build",
        "ncu",
        "project",
        "report",
        "findings",
        "model",
        "cubin",
        "hardware",
        "source",
    },
    "__main__": {"cli"},
    "__init__": set(),
}

# third-party or standard modules that only some packages may use
ONLY_IN: dict[str, set[str]] = {
    "pygls": {"lsp"},
    "lsprotocol": {"lsp"},
    "subprocess": {"build"},
    "rich": {"cli"},
    "elftools": set(),  # the tests' oracle
    "platformdirs": {"build"},
    "ncu_report": {"ncu"},
}

FORBIDDEN_IN_CORE = {"asyncio", "subprocess", "socket", "threading", "multiprocessing"}


def _unit(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            found.add(node.module)
            if node.module == "kernel_lsp":
                found.update(f"kernel_lsp.{alias.name}" for alias in node.names)
    return found


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    unit = _unit(path)
    allowed = MAY_IMPORT[unit] | {unit}
    for name in _imports(path):
        top, _, rest = name.partition(".")
        if top == "kernel_lsp" and rest:
            target = rest.split(".")[0]
            if target == "__version__":
                continue
            assert target in allowed, f"{path.name}: {unit} must not import {target}"
        if top in ONLY_IN:
            assert unit in ONLY_IN[top], f"{path.name}: only {ONLY_IN[top]} may import {top}"
        if unit in CORE:
            assert top not in FORBIDDEN_IN_CORE, f"{path.name}: the core must not import {top}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_every_module_opens_with_a_paragraph(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{path}: no module docstring"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_stay_readable(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400, f"{path}: over 400 lines, split it"
