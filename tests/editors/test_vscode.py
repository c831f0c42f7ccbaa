"""The extension in real VS Code, driven as a user drives it. The tests of a window share it and run in their order.

KERNEL_LSP_SCREENSHOTS names a folder that then gets a picture, light and dark, of each state worth looking at.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import fake_ncu
from tests.fakes.fake_report import LIBRARY
from tests.fakes.measured_transpose import CONFLICTS, PADDED, TransposeRuns

from .vscode import CodeServer, Window, browser, install_extension, open_window, package_extension, until
from .workspace import EXAMPLES, GPU, Workspace, check, make_workspace, server_python

MARKED = ".view-overlays div[class*='TextEditorDecorationType']"  # whole lines that the extension marks
ERROR_LINE = "__global__ void broken() { no_such_name = 1; }"

# Other tests run beside these: each single wait has its own limit, of a minute.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser() as chromium:
        yield chromium


@dataclass
class Trap:
    """What a hostile workspace names: programs that leave a mark when they are run."""

    folder: Path
    marks: list[Path] = field(default_factory=list)

    def program(self, name: str, then: str) -> str:
        """A program that leaves its mark, then does what it should."""
        mark = self.folder / f"{name}-was-run"
        path = self.folder / name
        path.write_text(f'#!/bin/sh\n: > "{mark}"\nexec {then} "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        self.marks.append(mark)
        return str(path)

    def sprung(self) -> list[str]:
        return [mark.name for mark in self.marks if mark.exists()]


def set_workspace(workspace: Workspace, **more: Any) -> None:
    """Write the workspace's settings, dotted names below kernelLsp."""
    values = {"kernelLsp.gpu": GPU, "kernelLsp.tools.nvcc": workspace.settings["tools"]["nvcc"], **more}
    folder = workspace.folder / ".vscode"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(values))


@pytest.fixture(scope="module")
def vsix() -> Path:
    return package_extension()


@pytest.fixture(scope="module")
def trusting(
    tmp_path_factory: pytest.TempPathFactory, cache_folder: Path, vsix: Path
) -> Iterator[tuple[CodeServer, CodeServer]]:
    """Two code-servers: one that trusts every workspace, one that trusts none."""
    extensions = install_extension(tmp_path_factory.mktemp("extension"), vsix)
    machine = {"kernelLsp.interpreter": [server_python()]}
    env = {"XDG_CACHE_HOME": str(cache_folder), "PYTHONPATH": str(LIBRARY)}
    servers = (
        CodeServer(tmp_path_factory.mktemp("trusting"), extensions, machine, env, trust=True),
        CodeServer(tmp_path_factory.mktemp("wary"), extensions, machine, env, trust=False),
    )
    for server in servers:
        server.wait()
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, slow_nvcc: tuple[Path, Path]) -> Workspace:
    made = make_workspace(tmp_path_factory.mktemp("vscode") / "kernels", "shared_cliff.cu", slow_nvcc)
    set_workspace(made)
    return made


@pytest.fixture(scope="module")
def facts(workspace: Workspace) -> dict[str, Any]:
    """What the command line says of the file before it is edited."""
    return check(workspace)


@pytest.fixture(scope="module")
def window(chrome: Any, trusting: tuple[CodeServer, CodeServer], workspace: Workspace) -> Iterator[Window]:
    with open_window(chrome, trusting[0], workspace.folder, workspace.file, "main") as opened:
        yield opened


@pytest.fixture(autouse=True)
def picture_of_failure(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """A failed test of the shared window leaves a picture."""
    n_failed = request.session.testsfailed
    yield
    if request.session.testsfailed > n_failed and "window" in request.fixturenames:
        request.getfixturevalue("window").failed(tmp_path)


def servers_of(folder: Path) -> list[int]:
    """Process ids of the servers whose settings folder is below `folder`... those that run now."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    found = []
    for line in listed.splitlines():
        pid, _, command = line.strip().partition(" ")
        if "-m kernel_lsp serve" in command and not command.startswith(("/bin/sh", "sh ")):
            try:
                cwd = str(Path(f"/proc/{pid}/cwd").readlink())
            except OSError:
                continue
            if cwd.startswith(str(folder)):
                found.append(int(pid))
    return found


def lens(window: Window) -> Any:
    return window.page.locator(".codelens-decoration a").first


def close_tab(window: Window, title: str) -> None:
    """Close what was opened beside the source; the source keeps its place."""
    tab = window.page.locator(".tab", has_text=title)
    tab.click(button="middle")
    tab.wait_for(state="detached")


def focus_text(window: Window) -> None:
    window.command("View: Focus Active Editor Group")


def type_at_top(window: Window, text: str) -> None:
    """Add text before the first line: what it brings stays in sight."""
    focus_text(window)
    window.page.keyboard.press("Control+Home")
    window.page.keyboard.insert_text(text)


def problems(window: Window) -> list[str]:
    """The rows of the Problems panel."""
    if not window.page.locator(".markers-panel").is_visible():
        window.command("Problems: Focus on Problems View")
    return [
        row.replace("\n", " ")
        for row in window.page.locator(".markers-panel-container .monaco-list-row").all_inner_texts()
    ]


@pytest.mark.timeout(1200)  # in a new checkout npm installs its packages first
def test_package(vsix: Path) -> None:
    """Packaged without a warning, and with all that it names."""
    with zipfile.ZipFile(vsix) as package:
        files = set(package.namelist())
        manifest = json.loads(package.read("extension/package.json"))
    named = [manifest["main"], manifest["icon"], *(each["path"] for each in manifest["contributes"]["grammars"])]
    named += [step["media"]["markdown"] for step in manifest["contributes"]["walkthroughs"][0]["steps"]]
    assert {f"extension/{path.removeprefix('./')}" for path in named} <= files
    assert len([name for name in files if name.endswith(".whl")]) == 1


def test_code_lens(window: Window, facts: dict[str, Any]) -> None:
    """Above the kernel stand its registers and its blocks per SM, the ones of the command line."""
    kernel = facts["kernels"][0]
    lens(window).wait_for()
    text = lens(window).inner_text()
    occupancy = kernel["launches"][0]["occupancy"]
    assert f"{kernel['resources']['registers']} regs" in text
    assert re.search(rf"\b{occupancy['blocks_per_sm']} blocks?/SM", text)
    assert f"{occupancy['active_warps']}/{occupancy['max_warps']} warps" in text
    window.shot("lens")


def test_problems_are_the_findings(window: Window, facts: dict[str, Any]) -> None:
    """One row for each finding, with its message, code and line; a squiggle in the text."""
    window.page.locator(".squiggly-warning").first.wait_for(state="attached")
    expected = facts["findings"]
    assert expected
    until(lambda: len(problems(window)) == len(expected) + 1, "a row for the file and one per finding")
    rows = " ".join(problems(window))
    for finding in expected:
        assert finding["message"] in rows
        assert finding["code"] in rows
        assert f"[Ln {finding['line']}," in rows
    window.shot("problems")


def test_hover(window: Window, facts: dict[str, Any]) -> None:
    """On the kernel's name: what limits it, as a table."""
    line = window.page.locator(".editor-instance .view-line", has_text="__global__").first
    line.get_by_text("smooth", exact=False).last.hover()
    hover = window.page.locator(".monaco-hover:visible", has_text="registers")
    hover.wait_for()
    text = hover.inner_text()
    assert "smooth" in text
    assert f"{facts['kernels'][0]['resources']['registers']} per thread" in text
    window.shot("hover")
    window.page.keyboard.press("Escape")


def test_status(window: Window) -> None:
    """The language status says which GPU, and when the file was built."""
    window.page.locator("#status\\.languageStatus").hover()
    status = window.page.locator(".hover-language-status")
    status.first.wait_for()
    text = " ".join(status.all_inner_texts())
    assert f"{GPU} · sm_86" in text
    assert "Built at" in text
    window.shot("status")
    window.page.keyboard.press("Escape")
    window.page.mouse.move(600, 300)


def test_build_error_shows_and_clears(window: Window, workspace: Workspace, facts: dict[str, Any]) -> None:
    """The compiler's error is on its line; the numbers of before stay and say so; the fix clears both."""
    before = workspace.file.read_text()
    type_at_top(window, f"{ERROR_LINE}\n")
    window.page.keyboard.press("Control+S")
    window.page.locator(".squiggly-error").first.wait_for(state="attached")
    number = workspace.line_of("no_such_name")
    until(lambda: any(f"[Ln {number}," in row and "no_such_name" in row for row in problems(window)), "the error's row")
    until(lambda: "before the failed build" in lens(window).inner_text(), "the mark of old numbers")
    window.shot("error")
    focus_text(window)
    window.page.keyboard.press("Control+Home")
    window.page.keyboard.press("Control+Shift+K")
    window.page.keyboard.press("Control+S")
    until(lambda: workspace.file.read_text() == before, "the file as it was")
    window.page.locator(".squiggly-error").first.wait_for(state="detached")
    until(lambda: len(problems(window)) == len(facts["findings"]) + 1, "the findings of before")
    until(lambda: "before the failed build" not in lens(window).inner_text(), "the fresh lens")


def test_progress(window: Window, workspace: Workspace) -> None:
    """A build of over a second shows in the status bar until it ends."""
    workspace.slow.touch()
    try:
        type_at_top(window, "\n")
        window.page.keyboard.press("Control+S")
        bar = window.page.locator("#workbench\\.parts\\.statusbar", has_text="Building device code")
        bar.wait_for()
        bar.wait_for(state="hidden")
    finally:
        workspace.slow.unlink()


def test_report_code_action(window: Window, workspace: Workspace) -> None:
    """The light bulb on the kernel writes the report beside the source and shows it as a page."""
    report = Path(f"{workspace.file}.bottleneck.md")
    window.page.locator(".editor-instance .view-line", has_text="__global__").first.click()
    action = window.page.locator(".action-widget .monaco-list-row", has_text="Write bottleneck report of smooth")

    until(lambda: window.menu(action), "the menu of code actions")
    window.shot("actions")
    action.click()
    until(lambda: report.exists() and "smooth" in report.read_text(), "the report")
    window.page.locator(".tab", has_text=f"Preview {report.name}").wait_for()
    frame = window.page.frame_locator("iframe.webview").frame_locator("iframe#active-frame")
    frame.get_by_text("Occupancy").first.wait_for()
    window.shot("report")
    close_tab(window, "Preview")


def test_report_from_the_palette(window: Window, workspace: Workspace) -> None:
    report = Path(f"{workspace.file}.bottleneck.md")
    report.unlink()
    focus_text(window)
    window.command("Kernel LSP: Write Bottleneck Report")
    until(report.exists, "the report")
    close_tab(window, "Preview")


def test_gpu_is_switched(window: Window, workspace: Workspace) -> None:
    """All numbers follow the GPU that is picked; it is written where it was set."""
    focus_text(window)
    before = lens(window).inner_text()
    window.command("Kernel LSP: Select GPU")
    window.page.locator(".quick-input-list .monaco-list-row", has_text="A100").first.wait_for()
    window.shot("gpus")
    window.page.locator(".quick-input-widget input:visible").first.fill("A100 SXM4 80GB")
    window.page.locator(".quick-input-list .monaco-list-row", has_text="A100").first.click()
    until(lambda: lens(window).inner_text() != before, "other numbers")
    settings = json.loads((workspace.folder / ".vscode" / "settings.json").read_text())
    assert settings["kernelLsp.gpu"].startswith("A100")
    set_workspace(workspace)
    until(lambda: lens(window).inner_text() == before, "the numbers of before")


@dataclass(frozen=True)
class Measured:
    """A second source in the window's workspace with reports of it, outside of the workspace."""

    source: Path
    runs: TransposeRuns
    folder: Path

    def report(self, name: str, **how: float) -> str:
        return str(self.runs.write(self.folder / f"{name}.ncu-rep", **how))


@pytest.fixture(scope="module")
def measured(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    source = workspace.folder / "transpose.cu"
    shutil.copy(EXAMPLES / source.name, source)
    nvcc = workspace.settings["tools"]["nvcc"]
    return Measured(source, TransposeRuns(source, nvcc), tmp_path_factory.mktemp("reports"))


def measured_lenses(window: Window, words: str = "measured") -> Any:
    return window.page.locator(".codelens-decoration a", has_text=re.compile(rf"measured.*{words}|{words}"))


def at_line(window: Window, words: str) -> Any:
    """The first line of the text that holds these words."""
    return window.page.locator(".editor-instance .view-line", has_text=words).first


def test_report_on_its_lines(window: Window, workspace: Workspace, measured: Measured) -> None:
    """A named report: time and speed of light above the kernel, the hot line's share at its end, bars in its hover."""
    reports = [measured.report("before", speed=0.8, age_s=90_000), measured.report("now", age_s=7_300)]
    set_workspace(workspace, **{"kernelLsp.reports.paths": reports})
    window.open(measured.source.name)
    measured_lenses(window, "1.24 ms").wait_for()
    assert measured_lenses(window).all_inner_texts() == [
        "1.24 ms measured · SM 10 % · memory 82 % (DRAM 71 %) · 2 h old",
        "1.02 ms measured · SM 9 % · memory 87 % (DRAM 87 %) · 2 h old",
    ]
    hot = at_line(window, "out[(ty + j)")
    hot.filter(has_text="67 % stalls: short scoreboard").wait_for()
    window.page.locator(".squiggly-warning").first.wait_for(state="attached")
    window.shot("measured")
    hot.get_by_text("tile", exact=False).last.hover()
    hover = window.page.locator(".monaco-hover:visible", has_text="stall samples (measured")
    hover.wait_for()
    text = hover.inner_text()
    assert "67 % of the kernel's stall samples (measured, 5,856 of 8,750, report of 2 h ago)" in text
    assert re.search(r"short scoreboard +71 % +#{14}", text.replace("\xa0", " "))
    assert "67,108,864 wavefronts, 2,097,152 without bank conflicts" in text
    window.shot("measured-hover")
    window.page.keyboard.press("Escape")


def test_sass_beside(window: Window, measured: Measured) -> None:
    """The instructions of the kernel at the cursor with their samples; what belongs together is marked both ways."""
    at_line(window, "out[(ty + j)").click()
    window.command("Kernel LSP: Open SASS Beside")
    window.page.locator(".tab", has_text="transpose_conflicts (SASS)").wait_for()
    view = window.page.locator(".editor-group-container", has=window.page.locator(".tab", has_text="(SASS)"))
    load = view.locator(".view-line", has_text="LDS R15")
    load.wait_for()
    assert re.match(r" *1104  0200  LDS R15, \[R16", load.inner_text().replace("\xa0", " "))
    until(lambda: view.locator(MARKED).count() >= 4, "the line's instructions marked")
    window.shot("sass")
    view.locator(".view-line", has_text="STS [R23.X4], R2").click()
    source = window.page.locator(".editor-group-container").first
    until(lambda: source.locator(MARKED).count() == 1, "the instruction's source line marked")
    close_tab(window, "(SASS)")


def test_measurements_are_chosen_and_compared(window: Window, workspace: Workspace, measured: Measured) -> None:
    """A click on the measured lens lists them; one that is chosen stays; two are compared on a page."""
    measured_lenses(window, "1.24 ms").click()
    rows = window.page.locator(".quick-input-list .monaco-list-row")
    rows.filter(has_text="before.ncu-rep").wait_for()
    assert rows.count() == 3
    window.shot("choose")
    rows.filter(has_text="before.ncu-rep").click()
    measured_lenses(window, "1.55 ms").wait_for()
    at_line(window, "out[(ty + j)").click()
    window.command("Kernel LSP: Compare Measurements")
    page = Path(f"{measured.source}.compare.md")
    window.page.locator(".tab", has_text=f"Preview {page.name}").wait_for()
    assert "1.55 ms -> 1.24 ms: 20.0 % less time." in page.read_text()
    window.shot("compare")
    close_tab(window, "Preview")


def test_profile(window: Window, workspace: Workspace, measured: Measured) -> None:
    """Without a program: what to set, and a way there. With one: progress, then its numbers."""
    folder = measured.folder
    plan = {"launches": [CONFLICTS, PADDED], "report": measured.report("profiled", speed=2), "run": True}
    go, program = folder / "go", folder / "app"
    program.write_text(f'#!/bin/sh\nwhile [ ! -e "{go}" ]; do sleep 0.05; done\n')
    program.chmod(0o755)
    ncu = {"kernelLsp.profile.command": [str(fake_ncu.install(folder / "bin", **plan))]}
    set_workspace(workspace, **ncu)
    until(lambda: measured_lenses(window).count() == 0, "no report named any more")
    at_line(window, "out[(ty + j)").click()
    window.command("Kernel LSP: Profile Kernel")
    toast = window.page.locator(".notification-toast", has_text="kernelLsp.profile.program is empty")
    toast.get_by_role("button", name="Open settings").wait_for()
    window.shot("no-program")
    window.command("Notifications: Clear All Notifications")
    set_workspace(workspace, **ncu, **{"kernelLsp.profile.program": [str(program)]})
    bar = window.page.locator("#workbench\\.parts\\.statusbar", has_text="Profiling: transpose_conflicts")

    def profiling() -> bool:
        """The settings reach the server a moment after they are written."""
        window.command("Notifications: Clear All Notifications")
        window.command("Kernel LSP: Profile Kernel")
        with contextlib.suppress(Exception):
            bar.or_(toast).first.wait_for()
        return bool(bar.is_visible())

    until(profiling, "the profile's progress")
    window.shot("profiling")
    go.touch()
    measured_lenses(window, "620 us").wait_for()
    bar.wait_for(state="hidden")
    window.command("View: Close Editor")


def test_restart(window: Window, trusting: tuple[CodeServer, CodeServer]) -> None:
    """Another process serves, the old one is gone, however often it is asked."""
    [old] = servers_of(trusting[0].data)
    window.command("Kernel LSP: Restart Server")
    window.command("Kernel LSP: Restart Server")
    until(lambda: old not in servers_of(trusting[0].data), "the end of the old server")
    lens(window).wait_for()
    window.page.locator(".squiggly-warning").first.wait_for(state="attached")
    assert len(servers_of(trusting[0].data)) == 1


def test_a_killed_server_comes_back(window: Window, trusting: tuple[CodeServer, CodeServer]) -> None:
    [old] = servers_of(trusting[0].data)
    os.kill(old, signal.SIGKILL)
    until(lambda: (now := servers_of(trusting[0].data)) and old not in now, "another server")
    lens(window).wait_for()


def test_debug_information(window: Window) -> None:
    """The log gets what a bug report needs, the doctor's word included."""
    window.command("Kernel LSP: Print Debug Information")
    output = window.page.locator("#workbench\\.panel\\.output")
    until(lambda: "cuobjdump" in output.inner_text(), "the doctor's word on the tools")
    window.shot("log")


def test_untitled_buffer(window: Window) -> None:
    """A buffer without a file is no error: the status says what is missing."""
    window.command("File: New Untitled Text File")
    window.page.keyboard.insert_text("__global__ void k(float* x) { x[threadIdx.x] = 0; }\n")
    window.page.locator("#status\\.editor\\.mode").click()
    window.page.locator(".quick-input-widget input:visible").first.fill("CUDA C++")
    window.page.locator(".quick-input-list .monaco-list-row", has_text="CUDA C++").first.click()
    window.page.locator("#status\\.languageStatus").hover()
    window.page.locator(".hover-language-status", has_text="Not built").first.wait_for()
    until(lambda: any("save it as a .cu file" in row for row in problems(window)), "what is missing")
    assert window.page.locator(".notifications-toasts .notification-toast").count() == 0
    window.shot("untitled")


def test_interpreter_is_missing(
    chrome: Any,
    trusting: tuple[CodeServer, CodeServer],
    tmp_path_factory: pytest.TempPathFactory,
    slow_nvcc: tuple[Path, Path],
) -> None:
    """One message with what is wrong and both ways out; after the setting is mended the server starts by itself."""
    workspace = make_workspace(tmp_path_factory.mktemp("missing") / "kernels", "reduction.cu", slow_nvcc)
    set_workspace(workspace, **{"kernelLsp.interpreter": ["/nonexistent/python3"]})
    with open_window(chrome, trusting[0], workspace.folder, workspace.file, "interpreter") as window:
        toast = window.page.locator(".notification-toast", has_text="/nonexistent/python3")
        toast.wait_for()
        assert toast.get_by_text("Select interpreter").count() == 1
        assert toast.get_by_text("Install the server").count() == 1
        assert window.page.locator(".notification-toast").count() == 1
        window.shot("missing")
        set_workspace(workspace, **{"kernelLsp.interpreter": [sys.executable]})
        lens(window).wait_for()


def test_restricted_mode(
    chrome: Any,
    trusting: tuple[CodeServer, CodeServer],
    tmp_path_factory: pytest.TempPathFactory,
    slow_nvcc: tuple[Path, Path],
    facts: dict[str, Any],
) -> None:
    """An untrusted workspace gets its numbers; no program that it names is run, its configuration is not read."""
    workspace = make_workspace(tmp_path_factory.mktemp("wary") / "kernels", "shared_cliff.cu", slow_nvcc)
    trap = Trap(workspace.folder)
    set_workspace(
        workspace,
        **{
            "kernelLsp.interpreter": [trap.program("python3", server_python())],
            "kernelLsp.tools.nvcc": trap.program("nvcc", str(slow_nvcc[0])),
            "kernelLsp.profile.command": [ncu := trap.program("ncu", "true")],
            "kernelLsp.profile.program": [ncu],
        },
    )
    (workspace.folder / "kernel-lsp.yaml").write_text('flags: ["-DTHREADS=+"]\n')  # with these it does not compile

    with open_window(chrome, trusting[1], workspace.folder, workspace.file, "restricted") as window:
        lens(window).wait_for()
        assert f"{facts['kernels'][0]['resources']['registers']} regs" in lens(window).inner_text()
        assert window.page.locator(".squiggly-error").count() == 0
        at_line(window, "__global__").click()
        menu = window.page.locator(".action-widget .monaco-list-row")
        until(lambda: window.menu(menu.filter(has_text="Open SASS of smooth")), "the menu of code actions")
        assert menu.filter(has_text="Profile").count() == 0
        window.page.keyboard.press("Escape")
        assert trap.sprung() == []
        window.page.locator("#status\\.languageStatus").hover()
        window.page.locator(".hover-language-status", has_text="Restricted Mode").first.wait_for()
        window.shot("mode")
        window.page.keyboard.press("Escape")

        window.command("Workspaces: Manage Workspace Trust")
        trust = window.page.locator(".workspace-trust-editor")
        trust.locator("a.monaco-button", has_text="Trust").first.click()
        window.page.get_by_text("You trust this folder").wait_for()
        window.page.locator(".monaco-modal-editor-block .codicon-close").first.click()
        until(lambda: len(trap.sprung()) == 2, "the interpreter and the compiler of the workspace")
        window.page.locator(".squiggly-error").first.wait_for(state="attached")


def test_nothing_is_left(trusting: tuple[CodeServer, CodeServer]) -> None:
    """The end of the editor is the end of every server."""

    def end(server: CodeServer) -> None:
        server.stop()
        until(lambda: servers_of(server.data) == [], "the end of all servers")

    for server in trusting:
        end(server)
