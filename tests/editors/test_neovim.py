"""One session in a real Neovim 0.11, headless, with the configuration that the project ships."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.source_page import source_page

from .workspace import ROOT, check, make_workspace, server_python

SCRIPT = Path(__file__).parent / "nvim" / "e2e.lua"
BELOW = 5  # lines from the kernel's name to the one with the samples
STEPS = [line.split("'")[1] for line in SCRIPT.read_text().splitlines() if line.startswith("step('")]


def nvim() -> str:
    """The Neovim of the test environment, else one on PATH."""
    beside = Path(sys.executable).with_name("nvim")
    found = str(beside) if beside.exists() else shutil.which("nvim")
    assert found, "no Neovim: run tests/editors/install.sh nvim"
    return found


@pytest.fixture(scope="module")
def session(
    tmp_path_factory: pytest.TempPathFactory, slow_nvcc: tuple[Path, Path], cache_folder: Path
) -> dict[str, tuple[bool, str]]:
    """All steps of the session by name: whether each was right, and what was seen."""
    folder = tmp_path_factory.mktemp("nvim")
    workspace = make_workspace(folder / "a b 核", "shared_cliff.cu", slow_nvcc)
    (workspace.folder / "kernel-lsp.yaml").write_text("")  # marks the root
    result = check(workspace)
    kernel = result["kernels"][0]
    line = workspace.file.read_text().splitlines()[kernel["line"] - 1]
    plan = folder / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "file": str(workspace.file),
                "settings": workspace.settings,
                "findings": [{key: f[key] for key in ("code", "line", "message")} for f in result["findings"]],
                "kernel": {"name": "smooth", "line": kernel["line"], "column": line.index("smooth")},
                "slow": str(workspace.slow),
                "reports": {
                    **_pages(folder, workspace.file, kernel["line"]),
                    "kernel": kernel["mangled"],
                    "below": BELOW,
                },
                "server": [server_python(), "-m", "kernel_lsp"],
            }
        )
    )
    assert result["findings"], "the example shows nothing: this test would assert nothing"
    done = subprocess.run(
        [nvim(), "--headless", "--clean", "-n", "--cmd", f"set rtp^={ROOT / 'editors' / 'nvim'}", "-l", SCRIPT, plan],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(cache_folder), "XDG_STATE_HOME": str(folder / "state")},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    steps = {step["step"]: (step["ok"], step["detail"]) for step in lines}
    assert done.returncode == 0, f"{done.stderr}\n{steps}"
    assert list(steps) == STEPS, f"the script ended early: {done.stderr}"
    return steps


def _pages(folder: Path, source: Path, line: int) -> dict[str, str]:
    """Two pages of ncu with samples in the kernel `smooth` at `line`: of one hour and of two hours ago."""
    found = {}
    for name, age_s in (("new", 3700), ("old", 7300)):
        page = folder / f"{name}.csv"
        text = source_page("smooth", f"/build/{source.name}", source.read_text(), {line + BELOW: (80, 10, 10)})
        page.write_text(text)
        os.utime(page, (time.time() - age_s, time.time() - age_s))
        found[name] = str(page)
    return found


@pytest.mark.parametrize("step", STEPS)
def test_step(session: dict[str, tuple[bool, str]], step: str) -> None:
    ok, detail = session[step]
    assert ok, detail
