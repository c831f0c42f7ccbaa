"""Runs the cases about machine code through `kernel-lsp sass` and the hover: every `lines` entry, by key.

`lines[].has` are opcodes that the line must show, those of inlined functions included; `count` counts the instructions
under whose chain of calls the line stands.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernel_lsp.report.hints import line_hints
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings
from tests.cases.test_cases import HERE, Case, lay_out

IDS = ("20-", "22-", "23-", "25-", "26-", "27-", "48-")
PROSE = {"note", "via", "file", "line", "kernel", "samples", "main", "at"}
Instruction = dict[str, Any]


def _cases() -> list[Any]:
    paths = [path for path in sorted(HERE.glob("*/case.yaml")) if path.parent.name.startswith(IDS)]
    return [pytest.param(path.parent, yaml.safe_load(path.read_text("utf-8")), id=path.parent.name) for path in paths]


@dataclass
class Listed:
    """The instructions of all kernels of a case's files, as `sass --format json` has them."""

    case: Case
    kernels: list[dict[str, Any]]

    def at(self, wanted: dict[str, Any]) -> list[Instruction]:
        """The instructions with a line in their chain of calls, of the kernel that is named or of all."""
        place = (str(self.case.root / wanted["file"]), wanted["line"])
        return [
            each
            for kernel in self.kernels
            if wanted.get("kernel") in (None, kernel["short_name"])
            for each in kernel["instructions"]
            if place in chain(each)
        ]


def chain(instruction: Instruction) -> list[tuple[str, int]]:
    """(file, line) of every frame, innermost first."""
    frames = [instruction, *instruction["inlined_at"]]
    return [(frame["file"], frame["line"]) for frame in frames if frame["file"]]


def sass_json(case: Case, name: str) -> dict[str, Any]:
    argv = [sys.executable, "-m", "kernel_lsp", "sass", name, "--format", "json", "--", "-arch=sm_90"]
    ended = subprocess.run(argv, cwd=case.root, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    value: dict[str, Any] = json.loads(ended.stdout)
    return value


async def outcome_of(case: Case, name: str, pipeline: Pipeline) -> FileOutcome:
    request = PipelineRequest(
        document=case.root / name, settings=Settings(), roots=(case.root,), explicit_flags=("-arch=sm_90",)
    )
    return await pipeline.analyze(request)


@pytest.mark.parametrize(("folder", "case"), _cases())
def test_lines_hold_their_instructions(folder: Path, case: dict[str, Any], tmp_path: Path) -> None:
    laid = lay_out(folder, case, tmp_path / "case")
    listed = Listed(laid, [kernel for name in laid.opened for kernel in sass_json(laid, name)["kernels"]])
    assert laid.expect["lines"]
    for wanted in laid.expect["lines"]:
        found = listed.at(wanted)
        for key in wanted.keys() - PROSE:
            CHECKS[key](listed, found, wanted[key])


def check_has(listed: Listed, found: list[Instruction], value: list[str]) -> None:
    for opcode in set(value):
        shown = [
            each for each in found if f"{each['text']} ".startswith((f"{opcode} ", f"{opcode}.")) or _is(each, opcode)
        ]
        assert len(shown) >= value.count(opcode), (opcode, [each["text"] for each in found])


def _is(instruction: Instruction, opcode: str) -> bool:
    own = str(instruction["opcode"])
    return own == opcode or own.startswith(f"{opcode}.")


def check_callers(listed: Listed, found: list[Instruction], value: list[str]) -> None:
    outermost = {chain(each)[-1] for each in found}
    places = {(str(listed.case.root / file), int(line)) for file, line in (each.split(":") for each in value)}
    assert places <= outermost


def check_waits_for(listed: Listed, found: list[Instruction], value: dict[str, Any]) -> None:
    """The waiting instruction waits for the scoreboard that the named one sets."""
    pc = int(value["address"], 16)
    [producer] = [each for kernel in listed.kernels for each in kernel["instructions"] if each["pc"] == pc]
    assert producer["text"].startswith(value["instruction"])
    assert producer["line"] == value["line"]
    assert any(producer["write_barrier"] in each["wait"] for each in found)


def _family(family: str) -> Callable[[Listed, list[Instruction], int], None]:
    def check(_: Listed, found: list[Instruction], value: int) -> None:
        assert sum(each["opcode"].split(".")[0] in family.split() for each in found) == value

    return check


def check_count(_: Listed, found: list[Instruction], value: int) -> None:
    assert len(found) == value


def check_count_min(_: Listed, found: list[Instruction], value: int) -> None:
    assert len(found) >= value


def check_chain_depth(_: Listed, found: list[Instruction], value: int) -> None:
    assert max(len(chain(each)) for each in found) == value


CHECKS: dict[str, Callable[[Listed, list[Instruction], Any], None]] = {
    "has": check_has,
    "count": check_count,
    "count_min": check_count_min,
    "chain_depth": check_chain_depth,
    "stl": _family("STL"),
    "ldl": _family("LDL"),
    "local_ops": _family("LDL STL"),
    "callers": check_callers,
    "waits_for": check_waits_for,
}


def _laid(name: str, tmp_path: Path) -> Case:
    folder = next(HERE.glob(f"{name}*"))
    return lay_out(folder, yaml.safe_load((folder / "case.yaml").read_text("utf-8")), tmp_path / "case")


async def test_the_call_line_says_where_its_instructions_come_from(tmp_path: Path, pipeline: Pipeline) -> None:
    found = await outcome_of(_laid("20-", tmp_path), "rowsum.cu", pipeline)
    assert found.analysis is not None
    text = line_hover(found.analysis, 6)
    assert text is not None
    assert re.search(r"inlined  load\.cuh:4 \(load4\) .*LDG\.E\.128", text)
    assert line_hover(found.analysis, 4) is None or "LDG" not in str(line_hover(found.analysis, 4))


async def test_lines_of_a_template_are_the_templates_own(tmp_path: Path, pipeline: Pipeline) -> None:
    case = _laid("22-", tmp_path)
    found = await outcome_of(case, "blur_gen.cu", pipeline)
    assert found.analysis is not None
    n_lines = len(found.text.split("\n"))
    assert line_hover(found.analysis, 8) is None
    assert all(hint.line <= n_lines for hint in line_hints(found.analysis))
    assert all(f.line <= n_lines for f in found.findings if f.file == found.path)


async def test_two_instances_are_told_apart_and_the_worst_first(tmp_path: Path, pipeline: Pipeline) -> None:
    found = await outcome_of(_laid("23-", tmp_path), "axpy.cu", pipeline)
    assert found.analysis is not None
    text = line_hover(found.analysis, 6)
    assert text is not None
    assert text.startswith("**l.6** in `axpy<double, 4>`: 33 instructions")
    assert "- `axpy<float, 1>`: 13 instructions" in text
    assert "46" not in text


async def test_an_array_is_no_spill_and_stands_where_it_is_indexed(tmp_path: Path, pipeline: Pipeline) -> None:
    found = await outcome_of(_laid("26-", tmp_path), "pick.cu", pipeline)
    [local] = [f for f in found.findings if f.code == "KL204"]
    assert (local.line, [place.line for place in local.related]) == (10, [3, 7])
    assert "spill" not in local.message.replace("0 spills", "")
    assert "maxrregcount" not in local.advice
    assert found.analysis is not None
    text = str(line_hover(found.analysis, 10))
    assert "Local array: 116 B loaded per thread, up to loop depth 1." in text  # 29 LDL of 4 bytes
    assert not [hint for hint in line_hints(found.analysis) if "spill" in hint.text]


async def test_spills_are_one_finding_with_its_lines_in_order(tmp_path: Path, pipeline: Pipeline) -> None:
    found = await outcome_of(_laid("27-", tmp_path), "tight.cu", pipeline)
    [spill] = [f for f in found.findings if f.code == "KL201"]
    assert spill.line == 15
    assert [place.line for place in spill.related] == [5, 11, 8, 6]
    assert all("inlined at l.16" in place.message for place in spill.related)
    assert found.analysis is not None
    hints = {hint.line: hint for hint in line_hints(found.analysis) if "spill" in hint.text}
    assert sorted(hints) == [5, 6, 8, 11]
    assert all(hint.tooltip.startswith("tight: ") for hint in hints.values())
    # Each byte of the kernel's 800 and 828 stands on one line.
    stored = sum(int(n) for place in spill.related for n in re.findall(r"STL \((\d+) B\)", place.message))
    loaded = sum(int(n) for place in spill.related for n in re.findall(r"LDL \((\d+) B\)", place.message))
    assert (stored, loaded) == (800, 828)


async def test_a_wait_names_the_load_that_it_is_for(tmp_path: Path, pipeline: Pipeline) -> None:
    found = await outcome_of(_laid("48-", tmp_path), "hot.cu", pipeline)
    assert found.analysis is not None
    assert "Waits for LDG.E.CONSTANT of l.6." in str(line_hover(found.analysis, 7))
    assert "Waits for LDG.E.CONSTANT of l.5." in str(line_hover(found.analysis, 6))


def test_each_instruction_stands_once(tmp_path: Path) -> None:
    """Totals count an instruction once, though it is listed under every line of its chain."""
    case = _laid("25-", tmp_path)
    for kernel in sass_json(case, "shapes.cu")["kernels"]:
        pcs = [each["pc"] for each in kernel["instructions"]]
        assert pcs == list(range(0, 16 * len(pcs), 16))
