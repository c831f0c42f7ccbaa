"""Runs the cases of kinds flags, arch, paths and files: each `expect` key has a check, by key and not by case.

A case is copied to a temporary folder, `@ROOT@` is replaced, its files are opened. A key without a check fails, so
that a new case cannot pass by being ignored.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.compile_db import Database, parse_database
from kernel_lsp.project.entry_flags import EntryFlags, read_entry
from kernel_lsp.project.find_command import CommandPreferences, ProjectFiles, ToolkitFacts, find_command
from kernel_lsp.project.words import Platform

HERE = Path(__file__).parent
KINDS = ("flags", "arch", "paths", "files")
# `nvcc --list-gpu-code` of 13.0.88, the toolkit that the cases were written against.
SUPPORTED = tuple(f"sm_{number}" for number in (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121))
# Prose beside the checked keys.
PROSE = {"how", "why", "note", "rule"}
# Checked on the whole way through, with the running product (kernels, lines, diagnostics), not on the command.
WHOLE_WAY = {"compile", "kernels", "lines", "diagnostics", "published_to", "server", "files_unchanged", "launcher",
             "files_created_outside_own_cache", "occupancy"}  # fmt: skip


def _cases() -> list[Any]:
    found = []
    for path in sorted(HERE.glob("*/case.yaml")):
        case = yaml.safe_load(path.read_text("utf-8"))
        if case["kind"] in KINDS:
            found.append(pytest.param(path.parent, case, id=case["id"]))
    return found


@dataclass
class Case:
    """A case laid out in `root`, and the command found for each of its files."""

    root: Path
    input: dict[str, Any]
    expect: dict[str, Any]

    @property
    def opened(self) -> list[str]:
        named = self.input.get("open", [])
        return [named] if isinstance(named, str) else list(named)

    def command(self, name: str) -> BuildCommand:
        flags = self.input.get("flags")
        workspace = self.root / self.input.get("workspace", ".")
        return find_command(
            self.root / name,
            files=ProjectFiles(),
            preferences=CommandPreferences(explicit_flags=tuple(flags.split()) if flags else None),
            toolkit=ToolkitFacts(SUPPORTED, "13.0", None),
            workspace_roots=(workspace,),
            trusted=True,
            environment={name: self.rooted(value) for name, value in self.input.get("environment", {}).items()},
        )

    def rooted(self, text: str) -> str:
        return text.replace("@ROOT@", str(self.root))


def lay_out(folder: Path, case: dict[str, Any], root: Path) -> Case:
    """Copies the case; a file that holds only the name of a folder beside it stands for a symlink."""
    shutil.copytree(folder, root)
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        if path.suffix in {".json", ".rsp", ".ninja", ".yaml", ".txt"} or path.name == ".clangd":
            path.write_text(path.read_text("utf-8").replace("@ROOT@", str(root)), "utf-8")
        elif path.stat().st_size < 64 and (path.parent / path.read_text("utf-8", "replace")).is_dir():
            target = path.read_text("utf-8")
            path.unlink()
            path.symlink_to(target)
    return Case(root, case["input"], case["expect"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "case"


@pytest.mark.parametrize(("folder", "case"), _cases())
def test_case_command(folder: Path, case: dict[str, Any], root: Path) -> None:
    laid = lay_out(folder, case, root)
    unknown = laid.expect.keys() - WHOLE_WAY - {"flags"} - set(laid.opened)
    assert not unknown, f"no check for {sorted(unknown)}"
    flags = laid.expect.get("flags", {})
    if "query_uris" in laid.input:
        _check_database(laid, flags)
        return
    per_file = any(name in flags for name in laid.opened)
    for name in laid.opened:
        expected = flags.get(name, {}) if per_file else flags
        command = laid.command(name)
        for key, value in expected.items():
            if key in PROSE:
                continue
            CHECKS[key](laid, command, value)
    for key in flags if per_file else ():
        if key not in laid.opened and key not in PROSE:
            for name in laid.opened:
                CHECKS[key](laid, laid.command(name), flags[key])


def _words(text: str) -> list[str]:
    """The words of a `used` or `dropped` item without the remark in brackets behind them."""
    return re.sub(r"\s+\([^()]*\)$", "", text).split(" ")


def _position(words: list[str], flags: tuple[str, ...]) -> int | None:
    """Where the words stand in `flags`: one by one, or as one word with blanks in it."""
    if " ".join(words) in flags:
        return flags.index(" ".join(words))
    starts = range(len(flags) - len(words) + 1)
    return next((start for start in starts if list(flags[start : start + len(words)]) == words), None)


def _said(command: BuildCommand) -> list[str]:
    """Everything that is shown of how the command came about."""
    shown = [command.arch_why, command.origin_detail, command.skip_reason or ""]
    return [note.message for note in command.notes] + shown


def check_used(case: Case, command: BuildCommand, value: list[str]) -> None:
    last = -1
    for item in value:
        words = _words(case.rooted(item))
        position = _position(words, command.flags)
        assert position is not None, f"{words} is not in {command.flags}"
        if item.endswith("(after it)"):
            assert position > last
        last = position


def check_dropped(case: Case, command: BuildCommand, value: list[str] | str) -> None:
    if isinstance(value, str):  # "every -gencode/--generate-code/-arch/-code word of the build, ..."
        assert not [flag for flag in command.flags if flag.startswith(("-gencode", "--generate", "-arch", "-code"))]
        return
    for item in value:
        words = _words(case.rooted(item))
        assert _position(words, command.flags) is None, f"{words} is in {command.flags}"
        line = " ".join(words)
        assert any(line in said for said in _said(command)), f"{line}: not noted"


def check_arch(case: Case, command: BuildCommand, value: str) -> None:
    if value == "none":
        assert command.arch == ""
        assert command.skip_reason
        return
    named = re.search(r"sm_\d+[af]?", value)
    assert named
    assert command.arch == named.group()


def check_source(case: Case, command: BuildCommand, value: str) -> None:
    assert command.origin_path is not None
    expected = Path(case.rooted(value)) if value.startswith("@ROOT@") else case.root / value
    assert command.origin_path.resolve() == expected.resolve()


def check_cwd(case: Case, command: BuildCommand, value: str) -> None:
    assert command.cwd == Path(case.rooted(value))


def check_compiler(case: Case, command: BuildCommand, value: str) -> None:
    assert command.compiler == (value if "/" in value else None)


def check_entry(case: Case, command: BuildCommand, value: int) -> None:
    assert f"entry {value + 1} of" in command.origin_detail


def check_shown(case: Case, command: BuildCommand, value: str) -> None:
    quoted = re.search(r"'([^']+)'", value)
    assert quoted
    named = re.sub(r"src/(quad|warp)\.cu", r"src/(?:quad|warp)\\.cu", re.escape(quoted[1]).replace(r"\.cu", ".cu"))
    assert any(re.search(named, said) or quoted[1] in said for said in _said(command)), _said(command)


def check_note_shown(case: Case, command: BuildCommand, value: str) -> None:
    """One note (or reason) holds every name of the text: architectures, options, compilers."""
    names = re.findall(
        r"\b(?:sm|compute)_\d+\w?|gfx\w+|(?<![\w-])-{1,2}[A-Za-z][\w=-]*|clang\+\+|\bPTX\b|\bHIP\b", value
    )
    assert names
    notes = [note for note in command.notes if note.severity != "log"]
    assert any(all(name in note.message for name in names) for note in notes), (names, notes)
    if "one warning" in value:
        assert [note.severity for note in command.notes].count("warning") == 1


def check_used_file(case: Case, command: BuildCommand, value: str) -> None:
    assert command.source in {case.root / name for name in value.split(" or ")}


CHECKS: dict[str, Callable[[Case, BuildCommand, Any], None]] = {
    "used": check_used,
    "dropped": check_dropped,
    "arch": check_arch,
    "source": check_source,
    "cwd": check_cwd,
    "compiler": check_compiler,
    "entry": check_entry,
    "shown": check_shown,
    "note_shown": check_note_shown,
    "used_file": check_used_file,
}


def _check_database(case: Case, flags: dict[str, Any]) -> None:
    """A database of another system: looked up by URI and taken apart, with no file behind it."""
    platform: Platform = "windows" if "windows" in str(case.input.get("platform")) else "posix"
    path = case.root / case.input["database"]
    database: Database = parse_database(path.read_bytes(), path, platform)
    for uri in case.input["query_uris"]:
        name = unquote(urlsplit(uri).path)
        entries = database.entries_for(name.lstrip("/") if platform == "windows" else name)
        expected = flags[uri]
        assert [entry.index for entry in entries] == [expected["entry"]]
        read: EntryFlags = read_entry(entries[0])
        for key, value in expected.items():
            if key == "used":
                start = 0
                for word in value:
                    start = read.device.flags.index(word, start)
            elif key == "compiler":
                assert read.compiler == value
            elif key == "ccbin":
                assert read.device.host_compiler == value
                assert any(value in note.message for note in read.notes if note.kind == "refused")
            elif key == "arch":
                assert {target.real for target in read.device.targets if target.real} == {value}
            elif key == "source_word_dropped":
                assert value in read.device.sources
                assert value not in read.device.flags
            else:
                assert key in {"entry", *PROSE}, f"no check for {key}"
            assert not [flag for flag in read.device.flags if "C:proj" in flag]
