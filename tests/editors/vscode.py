"""Real VS Code for the tests: code-server on 127.0.0.1, its windows in Chromium through Playwright, and the extension.

A window is a browser page with an extension host of its own; several windows share one code-server.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from .workspace import EDITORS, ROOT, server_python

CODE_SERVER = EDITORS / "code-server-4.139.1"
NODE = CODE_SERVER / "node" / "node"
ENTRY = CODE_SERVER / "node_modules" / "code-server" / "out" / "node" / "entry.js"
EXTENSION = ROOT / "vscode-extension"
INSTALL = "run tests/editors/install.sh vscode"

USER_SETTINGS = {
    "files.autoSave": "off",  # as on the desktop; the web's default hides what only a save brings
    "workbench.startupEditor": "none",
    "chat.disableAIFeatures": True,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.tips.enabled": False,
    "workbench.enableExperiments": False,
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "extensions.ignoreRecommendations": True,
    "telemetry.telemetryLevel": "off",
    "window.autoDetectColorScheme": True,
    "editor.minimap.enabled": False,
    "security.workspace.trust.startupPrompt": "never",
}

_NO_GALLERY = {"EXTENSIONS_GALLERY": '{"serviceUrl":"http://127.0.0.1:9/"}'}  # it would ask the network for extensions

T = TypeVar("T")


def until(condition: Callable[[], T], what: str, timeout_s: float = 60.0) -> T:
    """The condition's first true value, asked for every 50 ms."""
    end = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.05)
    return value


def chromium() -> str:
    """A Chromium of the system."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    raise AssertionError(f"no Chromium: {INSTALL}")


def package_extension() -> Path:
    """The extension as a .vsix, made anew when a source is newer than it; vsce must have nothing to warn of."""
    assert NODE.exists(), f"no VS Code: {INSTALL}"
    vsix = EXTENSION / "kernel-lsp.vsix"
    sources = [
        *EXTENSION.glob("src/*"),
        *EXTENSION.glob("walkthrough/*"),
        *EXTENSION.glob("syntaxes/*"),
        *EXTENSION.glob("*.json"),
        *EXTENSION.glob("*.md"),
    ]
    if vsix.exists() and vsix.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return vsix
    env = {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}", "PYTHON": server_python()}
    if not (EXTENSION / "node_modules").exists():
        _run(["npm", "ci", "--no-audit", "--no-fund"], env)
    output = _run(["npm", "run", "package"], env)
    assert "WARNING" not in output, output
    return vsix


def _run(command: list[str], env: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=EXTENSION, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def install_extension(folder: Path, vsix: Path) -> Path:
    """Install the package into a new folder of extensions, which is returned."""
    extensions = folder / "extensions"
    command = [str(NODE), str(ENTRY), "--config", str(_config(folder)), "--user-data-dir", str(folder / "data")]
    command += ["--extensions-dir", str(extensions), "--install-extension", str(vsix), "--force"]
    _run(command, {**os.environ, **_NO_GALLERY})
    return extensions


def _config(folder: Path) -> Path:
    config = folder / "config.yaml"
    config.write_text("auth: none\ncert: false\n")
    return config


class CodeServer:
    """One code-server with a folder of extensions; `trust`: whether every workspace is trusted."""

    def __init__(
        self,
        folder: Path,
        extensions: Path,
        machine_settings: Mapping[str, Any],
        env: Mapping[str, str],
        *,
        trust: bool,
    ) -> None:
        self.data = folder / "data"
        for name, settings in (
            ("User", {**USER_SETTINGS, "security.workspace.trust.enabled": not trust}),
            ("Machine", machine_settings),  # where machine-scoped settings of a remote window are read from
        ):
            (self.data / name).mkdir(parents=True)
            (self.data / name / "settings.json").write_text(json.dumps(settings))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [str(NODE), str(ENTRY), "--config", str(_config(folder)), "--user-data-dir", str(self.data)]
        command += ["--extensions-dir", str(extensions), "--bind-addr", f"127.0.0.1:{self.port}"]
        self._log = (folder / "code-server.log").open("w")
        self.process = subprocess.Popen(
            [*command, "--disable-telemetry", "--disable-update-check"],
            env={**os.environ, **_NO_GALLERY, **env},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def wait(self) -> None:
        """Until it answers."""

        def answers() -> bool:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=1).close()
            except OSError:
                return False
            return True

        until(answers, "code-server answers")

    def stop(self) -> None:
        """End it with its extension hosts."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()

    def url(self, folder: Path, *files: Path) -> str:
        """The address of a window on a folder, with files open."""
        remote = f"vscode-remote://127.0.0.1:{self.port}"
        payload = [["openFile", remote + urllib.parse.quote(str(file))] for file in files]
        query = {"folder": str(folder), "payload": json.dumps(payload)}
        return f"http://127.0.0.1:{self.port}/?{urllib.parse.urlencode(query)}"


class Window:
    """One window: what a user does in it, and what is seen."""

    def __init__(self, page: Any, name: str) -> None:
        self.page = page
        self.name = name
        self.shots = os.environ.get("KERNEL_LSP_SCREENSHOTS")

    def command(self, title: str) -> None:
        """Run a command of the palette."""
        self.page.keyboard.press("F1")
        box = self.page.locator(".quick-input-widget input:visible").first
        box.fill(f">{title}")
        row = self.page.locator(f'.quick-input-list .monaco-list-row[aria-label^="{title}"]').first
        row.click()
        # Not the widget's end: a command that asks something opens it again at once.
        row.wait_for(state="hidden")

    def open(self, name: str) -> None:
        """Open a file of the workspace by its name."""
        self.page.keyboard.press("Control+P")
        self.page.locator(".quick-input-widget input:visible").first.fill(name)
        self.page.locator(f'.quick-input-list .monaco-list-row[aria-label^="{name}"]').first.click()
        self.editor(name).locator(".view-line").first.wait_for()

    def menu(self, action: Any) -> bool:
        """Open the menu of code actions anew; whether it holds this one. Diagnostics that arrive close it."""
        if self.page.locator(".action-widget").is_visible():
            self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+.")
        self.page.wait_for_timeout(500)
        return bool(action.is_visible())

    def position(self) -> tuple[int, int]:
        """Line and column of the cursor, from 1."""
        found = re.search(r"Ln (\d+), Col (\d+)", self.page.locator("#status\\.editor\\.selection").inner_text())
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def editor(self, title: str) -> Any:
        """The text area of the editor whose file has this name."""
        return self.page.locator(f'.editor-instance[aria-label*="{title}"]').first

    def failed(self, folder: Path) -> None:
        """What is seen when a test has failed, as a picture in the folder for screenshots, else in `folder`."""
        path = Path(self.shots or folder) / f"{self.name}-failed-{int(time.time())}.png"
        self.page.screenshot(path=str(path))
        sys.stderr.write(f"what was seen: {path}\n")

    def shot(self, name: str) -> None:
        """A screenshot, light and dark, where the environment asks for them."""
        if self.shots is None:
            return
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme)
            theme = ".monaco-workbench.vs" if scheme == "light" else ".monaco-workbench.vs-dark"
            self.page.wait_for_selector(f"{theme}")
            self.page.wait_for_timeout(400)
            self.page.screenshot(path=str(Path(self.shots) / f"{self.name}-{name}-{scheme}.png"))


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium that can reach nothing but 127.0.0.1."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise AssertionError(f"no playwright: {INSTALL}") from error
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
        )
        yield chrome
        chrome.close()


@contextmanager
def open_window(chrome: Any, server: CodeServer, folder: Path, file: Path, name: str) -> Iterator[Window]:
    """A window on a folder with one file open, its text shown; a failure inside is pictured."""
    context = chrome.new_context(
        viewport={"width": 1360, "height": 900},
        device_scale_factor=2 if os.environ.get("KERNEL_LSP_SCREENSHOTS") else 1,
        color_scheme="dark",
        locale="en-US",
    )
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(server.url(folder, file))
    window = Window(page, name)
    try:
        page.wait_for_selector(".editor-instance .view-lines .view-line")
        yield window
    except Exception:
        window.failed(server.data.parent)
        raise
    finally:
        context.close()
