"""The CMake project of tests/data, configured in several ways by the real CMake: once, for all test processes.

A configured project knows its own place, so it stays where it was made, in the temporary folder; `copy_of` gives a copy
whose databases speak of the new place.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent / "data" / "cmake_project"
# What is configured for a name: build folder -> CMake's words.
BUILDS: dict[str, dict[str, tuple[str, ...]]] = {
    "multi": {"build": ("-G", "Ninja Multi-Config")},
    "folders": {
        f"build/{kind.lower()}": ("-G", "Unix Makefiles", f"-DCMAKE_BUILD_TYPE={kind}") for kind in ("Debug", "Release")
    },
    "ninja": {"build": ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")},
}
_TEXTS = (".json", ".rsp", ".ninja", ".make", ".txt", ".cmake")


def configured(name: str, toolkit: Path) -> Path:
    """The project with its build folders, made at the first use. Nothing in it may be changed but by `built`."""
    root = _place(name, toolkit)
    with _locked(root):
        if not (root / "done").exists():
            shutil.rmtree(root / "project", ignore_errors=True)
            shutil.copytree(PROJECT, root / "project")
            for folder, words in BUILDS[name].items():
                compiler = f"-DCMAKE_CUDA_COMPILER={toolkit / 'bin' / 'nvcc'}"
                source, build = root / "project", root / "project" / folder
                cmake("-S", source, "-B", build, compiler, "-DCMAKE_CUDA_ARCHITECTURES=80;90", *words)
                generated = f"-DOUTPUT={build / 'generated_scale.cu'}"
                cmake(generated, "-P", source / "cmake" / "write_scale.cmake")
            (root / "done").touch()
    return root / "project"


def built(project: Path, target: str) -> Path:
    """A target (a path of an object file) of the Ninja Multi-Config project's Release build."""
    with _locked(project.parent):
        cmake("--build", project / "build", "--config", "Release", "--target", target)
    return project / "build" / target


def copy_of(name: str, toolkit: Path, root: Path) -> Path:
    """A copy at `root`, for tests that write in it. (It cannot be configured or built again.)"""
    made = configured(name, toolkit)
    shutil.copytree(made, root)
    for path in (root / "build").rglob("*"):
        if path.is_file() and path.suffix in _TEXTS:
            text = path.read_text("utf-8", "surrogateescape")
            path.write_text(text.replace(str(made), str(root)), "utf-8", "surrogateescape")
    return root


def cmake(*words: object) -> None:
    program = shutil.which("cmake")
    if program is None or shutil.which("ninja") is None:
        pytest.fail("cmake and ninja are needed; apt install cmake ninja-build, or pip install cmake ninja")
    run = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def _place(name: str, toolkit: Path) -> Path:
    nvcc = toolkit / "bin" / "nvcc"
    recipe = hashlib.sha256(f"2 {name} {shutil.which('cmake')} {nvcc} {nvcc.stat().st_mtime_ns}".encode())
    for path in sorted(PROJECT.rglob("*")):
        if path.is_file():
            recipe.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes())
    folder = Path(tempfile.gettempdir()) / "kernel-lsp-test-projects" / f"{name}.{recipe.hexdigest()[:20]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
