"""A workspace that an editor test edits, and the command line's independent word on what the editor must show."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
EDITORS = Path(
    os.environ.get("KERNEL_LSP_TEST_EDITORS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernel-lsp-test-editors"
)
GPU = "RTX 3070 Ti"  # set, so that the GPU of the machine that runs the tests does not matter


@dataclass(frozen=True)
class Workspace:
    """A folder with a copy of an example, and the settings that make its numbers the same everywhere."""

    folder: Path
    file: Path
    settings: Mapping[str, Any]
    slow: Path  # while this file exists, each build takes over a second

    def line_of(self, text: str) -> int:
        """1-based line of the first line that holds `text`."""
        lines = self.file.read_text(encoding="utf-8").splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)


def server_python() -> str:
    """The interpreter that runs the tests, which has the server installed."""
    return sys.executable


def check(workspace: Workspace) -> dict[str, Any]:
    """`kernel-lsp check --format json` of the file: the independent word on what the editor must show."""
    command = [server_python(), "-m", "kernel_lsp", "check", str(workspace.file), "--format", "json"]
    done = subprocess.run(
        [*command, "--gpu", GPU, "--fail-on", "never"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)["files"]
    assert len(files) == 1
    return dict(files[0])


def nvcc_path() -> str:
    """The nvcc that the server would use by itself."""
    command = [server_python(), "-m", "kernel_lsp", "check", str(EXAMPLES / "reduction.cu"), "--format", "json"]
    done = subprocess.run([*command, "--fail-on", "never"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["tools"]["nvcc"]["path"])


def make_workspace(folder: Path, example: str, slow_nvcc: tuple[Path, Path]) -> Workspace:
    """Copy an example into a folder (with a space and non-ASCII in its name) of its own."""
    folder.mkdir(parents=True)
    file = folder / example
    shutil.copy(EXAMPLES / example, file)
    wrapper, slow = slow_nvcc
    return Workspace(folder, file, {"gpu": GPU, "tools": {"nvcc": str(wrapper)}}, slow)
