"""The VS Code manifest and the settings pages say what the server declares."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from kernel_lsp import __version__
from kernel_lsp.session.settings import DECLARED

EXTENSION = Path(__file__).parents[2] / "vscode-extension"
MANIFEST = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))


def test_settings_are_the_declared_ones() -> None:
    done = subprocess.run(
        [sys.executable, EXTENSION / "scripts" / "settings.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_version_is_the_servers() -> None:
    lock = json.loads((EXTENSION / "package-lock.json").read_text(encoding="utf-8"))
    assert MANIFEST["version"] == lock["version"] == __version__
    assert f"## {__version__}" in (EXTENSION / "CHANGELOG.md").read_text(encoding="utf-8")


def test_what_can_run_a_program_is_restricted() -> None:
    """A workspace that is not trusted must not name a program, its flags or a file to read."""
    restricted = set(MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    programs = {f"kernelLsp.{d.name}" for d in DECLARED if d.scope == "machine-overridable"}
    files = {"kernelLsp.compileCommands", "kernelLsp.reports.paths"}
    assert restricted == programs | files | {"kernelLsp.interpreter", "kernelLsp.build.flags"}


def test_every_command_is_registered() -> None:
    source = (EXTENSION / "src" / "extension.ts").read_text(encoding="utf-8")
    registered = {f"kernelLsp.{name}" for name in re.findall(r"\bcommand\('(\w+)'", source)}
    assert registered == {command["command"] for command in MANIFEST["contributes"]["commands"]}


def test_the_lock_names_no_other_registry() -> None:
    text = (EXTENSION / "package-lock.json").read_text(encoding="utf-8")
    hosts = set(re.findall(r'"resolved": "(https?://[^/"]+)', text))
    assert hosts <= {"https://registry.npmjs.org"}
