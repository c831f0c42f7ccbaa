"""Runs the cases through the command line: `check --format json` in a copied folder, and what it says of each file.

As in `test_cases.py` there is a check for each key of `expect`, by key and not by case. The cases of kind lsp are
sequences of an editor; they are in `test_sequences.py`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.test_cases import HERE, Case, lay_out

KINDS = ("flags", "arch", "paths", "files", "ptxas", "resources", "linemap", "occupancy")
# Checked elsewhere: on the command (test_cases.py), on the instructions (test_sass_cases.py), by the model's own tests.
ELSEWHERE = {"flags", "lines", "how", "server", "published_to", "table_for_unit_test", "positions", "stale",
             "serialised_in_sass", "order", "totals", "hover", "code_lens", "next_step",
             "report"}  # fmt: skip
DATABASES = ("compile_commands.json", "build.ninja")


def _cases() -> list[Any]:
    found = []
    for path in sorted(HERE.glob("*/case.yaml")):
        case = yaml.safe_load(path.read_text("utf-8"))
        # What is no sequence and opens files; a database of another system is only read.
        if case["kind"] in KINDS and "open" in case["input"]:
            found.append(pytest.param(path.parent, case, id=case["id"]))
    return found


@dataclass
class Checked:
    """A case after `check`: the JSON, and what the folder held before."""

    case: Case
    value: dict[str, Any]
    before: dict[Path, bytes]

    def file(self, name: str) -> dict[str, Any]:
        wanted = self.case.root / name
        [found] = [file for file in self.value["files"] if Path(file["path"]) == wanted]
        return dict(found)

    @property
    def kernels(self) -> list[dict[str, Any]]:
        return [kernel for file in self.value["files"] for kernel in file["kernels"]]

    @property
    def findings(self) -> list[dict[str, Any]]:
        return [finding for file in self.value["files"] for finding in file["findings"]]


def check_folder(case: Case, flags: list[str]) -> Checked:
    """The command line as a person types it, in the case's folder."""
    before = _content(case.root)
    given = {name: case.rooted(value) for name, value in case.input.get("environment", {}).items()}
    ended = subprocess.run(
        [sys.executable, "-m", "kernel_lsp", "check", "--format", "json", "--fail-on", "never", *case.opened, *flags],
        cwd=case.root,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    return Checked(case, json.loads(ended.stdout), before)


def _content(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("folder", "case"), _cases())
def test_case(folder: Path, case: dict[str, Any], tmp_path: Path) -> None:
    laid = lay_out(folder, case, tmp_path / "case")
    flags = re.match(r"-\S+", str(laid.input.get("flags", "")))
    checked = check_folder(laid, ["--", flags.group()] if flags else [])
    # Every file is built from where the case says, and one build never leaves anything behind.
    assert _content(laid.root) == checked.before
    for key, value in laid.expect.items():
        if key in laid.opened:
            check_file(checked, key, value)
        elif key not in ELSEWHERE:
            CHECKS[key](checked, value)
    check_never(checked, case.get("never", []))


def check_compile(checked: Checked, value: Any) -> None:
    for name in checked.case.opened:
        wanted = value if isinstance(value, str) else value[name]
        status = {"ok": "ok", "fail": "failed"}.get(wanted, "skipped")
        build = checked.file(name)["build"]
        assert build["status"] == status, build
        # The contract's sum of it: one architecture, the tool, and why there is nothing.
        assert build["arch"] or status == "skipped"
        assert build.get("reason") or status == "ok"


def check_kernels(checked: Checked, value: list[dict[str, Any]]) -> None:
    for wanted in value:
        via = wanted.get("via")
        if via and not any(argv.endswith(via) for argv in checked.value["files"][0]["build"]["argv"]):
            continue  # seen through another of the files that include it
        found = [kernel for kernel in checked.kernels if kernel["mangled"] == wanted["symbol"]]
        if not found:
            # Only where the build failed; the case says that it "may be shown".
            assert "may be shown" in wanted.get("note", ""), wanted
            continue
        for kernel in found:
            for key, expected in wanted.items():
                if key not in {"symbol", "via", "demangled"} and not key.endswith("note"):
                    assert KERNEL[key](kernel) == expected or _is_words(key, expected), (key, kernel)
            if "file" in wanted:
                assert kernel["file"].endswith(wanted["file"])
        if "demangled" in wanted:
            # NVIDIA's spelling has `const` behind the type.
            assert re.sub(r"const (\w+)", r"\1 const", wanted["demangled"]).replace(" *", "*") == found[0]["name"]


def _is_words(key: str, expected: Any) -> bool:
    return key == "file" or (key == "registers" and isinstance(expected, str))


KERNEL: dict[str, Callable[[dict[str, Any]], Any]] = {
    "line": lambda k: k["line"],
    "file": lambda k: k["file"],
    "registers": lambda k: k["resources"]["registers"],
    "stack": lambda k: k["resources"]["stack_bytes"],
    "spill_stores": lambda k: k["resources"]["spill_store_bytes"],
    "spill_loads": lambda k: k["resources"]["spill_load_bytes"],
    "smem_static": lambda k: k["resources"]["static_shared_bytes"],
    "smem_dynamic": lambda k: k["resources"]["uses_dynamic_shared"],
    "barriers": lambda k: k["resources"]["barriers"],
    "instructions": lambda k: k["instructions"],
    "shared_loads": lambda k: k["mix"].get("LDS", 0),
    "local_stores": lambda k: k["mix"].get("STL", 0),
    "lower_bound": lambda k: k["resources"]["is_lower_bound"],
    "launch_bounds": lambda k: (
        [n for n in (k["resources"]["max_threads"], k["resources"]["min_blocks_per_sm"]) if n] or None
    ),
}


def check_diagnostics(checked: Checked, value: Any) -> None:
    if isinstance(value, list):
        for wanted in value:
            check_finding(checked, wanted)
        return
    for name, counts in value.items():
        if name in {"errors", "warnings"}:
            _count(checked.findings, name, counts)
        else:
            _count(checked.file(name)["findings"], *next(iter(counts.items())))


def _count(findings: list[dict[str, Any]], what: str, number: int) -> None:
    severity = what.removesuffix("s")
    told = [finding["message"] for finding in findings if finding["severity"] == severity]
    assert len(told) == number, told


def check_finding(checked: Checked, wanted: dict[str, Any]) -> None:
    """One diagnostic: `code` is our own name for a rule, or the compiler's, told in the message."""
    found = [
        finding
        for finding in checked.findings
        if finding["severity"] == wanted["severity"]
        and (finding["file"], finding["line"]) == (str(checked.case.root / wanted["file"]), wanted["line"])
        and all(word in finding["message"] for word in wanted.get("message_has", ()))
        and ("code" not in wanted or finding["slug"] == wanted["code"] or f"[{wanted['code']}]" in finding["message"])
    ]
    assert len(found) == wanted.get("count", 1), checked.findings
    related = {place["line"] for place in found[0].get("related", ())}
    assert set(wanted.get("related_lines", ())) <= related


def check_files_unchanged(checked: Checked, value: list[str]) -> None:
    for name in value:
        assert checked.before[checked.case.root / name] == (checked.case.root / name).read_bytes()


def check_nothing_created(checked: Checked, value: int) -> None:
    assert value == 0
    assert _content(checked.case.root).keys() == checked.before.keys()


def check_launcher(checked: Checked, value: str) -> None:
    assert "not run" in value
    assert not list(checked.case.root.rglob("calls"))
    for file in checked.value["files"]:
        assert Path(file["build"]["argv"][0]).name == "nvcc"


def check_other_architecture(checked: Checked, value: str) -> None:
    flag = re.search(r"-arch=\S+", value)
    told = re.search(r"(\S+) has smem_static (\d+)", value)
    assert flag
    assert told
    other = check_folder(checked.case, ["--", flag.group()])
    assert [file["build"]["status"] for file in other.value["files"]] == ["ok"]
    [kernel] = [k for k in other.kernels if told[1] in k["name"]]
    assert kernel["resources"]["static_shared_bytes"] == int(told[2])
    _count(other.findings, "errors", 0)


def check_device_only_file(checked: Checked, value: str) -> None:
    told = re.search(r"(\S+) has no kernel: (\w+) \(line (\d+)\) is listed with a (\d+)-byte stack", value)
    assert told
    file = checked.file(told[1])
    [function] = [f for f in file["device_functions"] if told[2] in f["name"]]
    assert function["frame_bytes"] == int(told[4])
    assert not [f for f in file["findings"] if "no kernel" in f["message"]]


def check_occupancy(checked: Checked, value: Any) -> None:
    """Rows of a table; or, in words, that there is never a bare number where it hangs on something unknown."""
    if isinstance(value, list):
        launches = [launch for kernel in checked.kernels for launch in kernel["launches"]]
        for row in value:
            [found] = [la["occupancy"] for la in launches if la["threads"] == row["block"]]
            assert (found["blocks_per_sm"], found["active_warps"]) == (row["blocks_per_sm"], row["warps"])
            assert row["limiter"] in found["limiters"]
        return
    for kernel in checked.kernels:
        for launch in kernel["launches"]:
            is_bound = launch["occupancy"]["is_upper_bound"]
            conditional = launch["occupancy"].get("holds_to_dynamic_shared_bytes") is not None
            assert is_bound or conditional
        assert kernel["launches"] or kernel["block_sizes"]


def check_file(checked: Checked, name: str, value: Any) -> None:
    """What is said of one file: prose, or lines with what stands there."""
    file = checked.file(name)
    for item in value if isinstance(value, list) else ():
        if "code_lens_or_hint" in item:
            told = {f["message"]: f for f in file["findings"] if f["line"] == item["line"]}
            assert told[item["code_lens_or_hint"]]["severity"] == "hint"
        elif "kernel" in item:
            [kernel] = [k for k in file["kernels"] if k["mangled"] == item["kernel"]]
            assert (kernel["line"], kernel["resources"]["registers"]) == (item["line"], item["registers"])
    if isinstance(value, str) and (said := re.search(r"the report says: (.*)", value)):
        ended = subprocess.run(
            [sys.executable, "-m", "kernel_lsp", "report", name, "--", "-arch=sm_90"],
            cwd=checked.case.root,
            capture_output=True,
            text=True,
        )
        assert said[1].lower() in (ended.stdout + ended.stderr).lower()


CHECKS: dict[str, Callable[[Checked, Any], None]] = {
    "compile": check_compile,
    "kernels": check_kernels,
    "diagnostics": check_diagnostics,
    "files_unchanged": check_files_unchanged,
    "files_created_outside_own_cache": check_nothing_created,
    "launcher": check_launcher,
    "other_architecture": check_other_architecture,
    "device_only_file": check_device_only_file,
    "occupancy": check_occupancy,
}


def check_never(checked: Checked, value: list[str]) -> None:
    """Words in quotes are said by no finding; a place is no finding's."""
    said = [f"{finding['message']} {finding['advice']}" for finding in checked.findings]
    for sentence in value:
        banned, _, allowed = sentence.partition(" other than ")
        for quoted in re.findall(r"(?<!\w)'([^']+)'", banned):
            texts = (text.replace(allowed.strip("'") or "\0", "") for text in said)
            assert not [text for text in texts if quoted in text], quoted
        if place := re.search(r"(?:at|on) line (\d+)", sentence):
            assert int(place[1]) not in {f["line"] for f in checked.findings}, sentence
