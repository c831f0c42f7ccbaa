"""The cases of kind ncu: a profile older than its source, and stalls that name their producer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.hot_lines import hot_lines
from kernel_lsp.ncu.kernel_code import KernelCode, kernel_code
from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.placement import BuiltKernel, place, same_code
from kernel_lsp.report.profile_value import report_entry
from tests.unit.ncu.conftest import Build, action

CASES = Path(__file__).parents[2] / "cases"
SAMPLES = "smsp__pcsamp_warps_issue_stalled_"


def _case(name: str) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    folder = CASES / name
    return (
        folder,
        yaml.safe_load((folder / "case.yaml").read_text("utf-8")),
        json.loads((folder / "report.json").read_text("utf-8")),
    )


def test_a_profile_older_than_the_source(build: Build) -> None:
    folder, case, report = _case("46-profile-older-than-the-source")
    (built_path,) = report["source_files"]
    raw = action(
        report["kernel_mangled"],
        int(report["base_pc"], 16),
        {
            "inst_executed": {int(pc, 16): n for pc, n in report["inst_executed"].items()},
            "memory_l2_theoretical_sectors_global": {int(pc, 16): n for pc, n in report["global_sectors"].items()},
        },
        lines={int(pc, 16): (built_path, line) for pc, line in report["lines"].items()},
        sources=report["source_files"],
    )
    profile = read_kernel_profile(raw)
    text = (folder / "hot.cu").read_text("utf-8")
    local = kernel_code(build(folder / "hot.cu", "sm_90"), report["kernel_mangled"])
    profiled = kernel_code(build(folder / "profiled" / "hot.cu", "sm_90"), report["kernel_mangled"])
    assert local is not None
    assert profiled is not None
    assert not same_code(local, profiled)  # one FMUL more

    placed = place(profile, profiled, str(folder / "hot.cu"), text, [BuiltKernel(local, text)])

    assert placed.fit == "by line"
    assert placed.built_path is not None
    assert placed.built_path.endswith("hot.cu")
    assert "changed since" in placed.why
    by_line = {each.line: each for each in placed.lines}
    for expected in case["expect"]["lines"]:
        if expected["certain"]:
            found = by_line[expected["line"]]
            assert (found.profiled_line, found.cost.own.global_sectors) == (
                expected["from"],
                expected["global_sectors"],
            )
            assert found.certain
        else:
            assert expected["line"] not in by_line, "an edited line is unmeasured"
            assert expected["line"] in placed.edited_lines
    assert by_line[7].cost.own.sectors_per_request == 4
    assert {1, 2} <= set(placed.edited_lines), "comment lines that were added carry nothing"
    assert not {1, 2, 6} & set(by_line)
    assert 0xF0 in placed.measured.pc.tolist(), "addresses count from the kernel's base"


def test_without_the_profiled_text_a_changed_kernel_is_stale(build: Build) -> None:
    folder, _, report = _case("46-profile-older-than-the-source")
    text = (folder / "hot.cu").read_text("utf-8")
    mangled = report["kernel_mangled"]
    base = int(report["base_pc"], 16)
    profile = read_kernel_profile(action(mangled, base, {"inst_executed": {base + 0xD0: 32768}}))
    local = kernel_code(build(folder / "hot.cu", "sm_90"), mangled)
    profiled = kernel_code(build(folder / "profiled" / "hot.cu", "sm_90"), mangled)
    assert local is not None

    placed = place(profile, profiled, str(folder / "hot.cu"), text, [BuiltKernel(local, text)])

    assert placed.fit == "stale"
    assert "import-source" in placed.why
    assert [(line.line, line.certain) for line in placed.lines] == [(5, False)]


def test_the_same_code_is_exact_and_follows_comments(build: Build, tmp_path: Path) -> None:
    folder, _, report = _case("46-profile-older-than-the-source")
    profiled_text = (folder / "profiled" / "hot.cu").read_text("utf-8")
    moved = tmp_path / "hot.cu"
    moved.write_text("// one\n// two\n" + profiled_text, "utf-8")
    mangled, base = report["kernel_mangled"], 0x7F5A3C00
    profile = read_kernel_profile(action(mangled, base, {"inst_executed": {base + 0xD0: 32768}}))
    profiled = kernel_code(build(folder / "profiled" / "hot.cu", "sm_90"), mangled)
    local = kernel_code(build(moved, "sm_90"), mangled)
    assert local is not None
    assert profiled is not None
    assert same_code(local, profiled)
    text = moved.read_text("utf-8")

    placed = place(profile, profiled, str(moved), text.replace("// two\n", "// two\n\n"), [BuiltKernel(local, text)])

    assert placed.fit == "exact"
    # line 5 of the profiled text is line 7 of the build, and line 8 of the text with a blank line more
    assert [(line.line, line.profiled_line, line.certain) for line in placed.lines] == [(8, 7, True)]


def test_stall_samples_name_the_producer(build: Build, code_of: Callable[[bytes, str], KernelCode]) -> None:
    folder, case, report = _case("48-stall-samples-name-the-producer")
    base = 0x7F0000000000
    columns: dict[str, dict[int, float]] = {}
    for pc, reasons in report["samples"].items():
        for reason, count in reasons.items():
            columns.setdefault(SAMPLES + reason, {})[base + int(pc, 16)] = count
    code = code_of(build(folder / "hot.cu", "sm_90"), report["kernel_mangled"])
    profile = read_kernel_profile(action(report["kernel_mangled"], base, columns))

    measured = measure(profile, code)

    by_line = {cost.line: cost for cost in measured.lines if cost.own.samples}
    for expected in case["expect"]["lines"]:
        cost = by_line[expected["line"]]
        assert cost.own.samples == expected["samples"]
        assert next(iter(cost.own.by_reason)) == expected["main"]
        wait = cost.waits_for[0]
        opcode, address = expected["at"].split()
        assert (wait.instruction.split()[0].startswith(opcode), wait.pc) == (True, int(address, 16))
        assert wait.producer_pc == int(expected["waits_for"]["address"], 16)
        assert wait.producer.startswith(expected["waits_for"]["instruction"])
        assert wait.chain[0][1] == expected["waits_for"]["line"]
        assert wait.certain
    assert by_line[8].own.by_reason == {"drain": 25}
    gather, index = hot_lines(measured)
    assert (gather.cost.line, gather.reason, round(gather.share, 3)) == (7, "long_scoreboard", round(2160 / 3125, 3))
    assert gather.waits_for is not None
    assert gather.waits_for.chain[0][1] == 6
    assert (index.cost.line, index.reason_share) == (6, 1.0)
    assert measured.lines[0].line == 7

    value = report_entry(NcuReport("r", "", None, (profile,), (), ()), (measured,), {})
    line = next(each for each in value["actions"][0]["lines"] if each["line"] == 7)
    assert (line["samples"], line["waits_for"][0]["line"]) == (2160, 6)


def test_an_earlier_build_knows_the_profiled_text(build: Build) -> None:
    folder, _, report = _case("46-profile-older-than-the-source")
    text = (folder / "hot.cu").read_text("utf-8")
    old_text = (folder / "profiled" / "hot.cu").read_text("utf-8")
    mangled, base = report["kernel_mangled"], 0x7F5A3C00
    counted = {"inst_executed": {base + pc: 32768 for pc in (0xD0, 0xF0, 0x110)}}
    profile = read_kernel_profile(action(mangled, base, counted))
    local = kernel_code(build(folder / "hot.cu", "sm_90"), mangled)
    profiled = kernel_code(build(folder / "profiled" / "hot.cu", "sm_90"), mangled)
    assert local is not None
    assert profiled is not None

    builds = [BuiltKernel(local, text), BuiltKernel(profiled, old_text)]
    placed = place(profile, profiled, str(folder / "hot.cu"), text, builds)

    assert placed.fit == "by line"
    assert [(line.line, line.profiled_line) for line in placed.lines] == [(7, 5), (9, 7)]
    assert placed.edited_lines == (1, 2, 8)
