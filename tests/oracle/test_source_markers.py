"""The places that NVIDIA's own rules mark in a report, worked out again from our table of instructions.

Reports of ncu 2023.2 on carry markers; older ones name the instructions in the rules' messages. Both ways are held:
each marker has our number, and each instruction that a rule would mark has a marker. One difference is NVIDIA's: its
sums by source line are keyed by the line's number alone and take the file of the last instruction, so that in a kernel
of several files a line may be marked in the wrong file.

KERNEL_LSP_NCU_REPORTS may name a folder of further reports.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_lsp.build.ncu_reader import ReportReader
from kernel_lsp.build.store import BuildStore
from kernel_lsp.ncu.counters import read_report_values
from kernel_lsp.ncu.kernel_profile import IntColumn, KernelProfile
from kernel_lsp.ncu.raw_report import RawAction, RuleMarker

SHARED_DATA = Path(__file__).parents[2].parent / "shared" / "data" / "ncu"
FURTHER = os.environ.get("KERNEL_LSP_NCU_REPORTS")
EXCESS = re.compile(r"^([\d.]+)% of this line's (global accesses|shared wavefronts) are excessive\.$")
STALL = re.compile(
    r"^This line is responsible for ([\d.]+)% of all warp stalls\. "
    r"([\d.]+)% of the stalls for this line are of type (\w+)\.$"
)
STALL_LINE = "This line is responsible for a high number of warp stalls."
OLD_EXCESS = re.compile(r"expected (\d+) sectors, got (\d+) .* at PC @source:([0-9a-f]+):")
OLD_MOST = 10  # messages of one rule, the largest excess first
SAMPLE_COUNT = "smsp__pcsamp_sample_count"
STALLED = "smsp__pcsamp_warps_issue_stalled_"
REASONS = {"no_instruction": "no_instructions", "gmma": "warpgroup_arrive"}  # names of the rule -> of the samples


def reports() -> list[Any]:
    folders = [SHARED_DATA, *([Path(FURTHER)] if FURTHER else [])]
    found = sorted(path for folder in folders for path in folder.glob("*.ncu-rep"))
    return [pytest.param(path, id=path.stem) for path in found] or [
        pytest.param(
            SHARED_DATA,
            id="no data",
            marks=pytest.mark.skip(reason=f"left out: there are no measured reports at {SHARED_DATA}"),
        )
    ]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[ReportReader]:
    store = BuildStore(tmp_path / "cache")
    yield ReportReader(store, dict(os.environ))
    store.close()


def excess_by_pc(kernel: KernelProfile, global_memory: bool) -> dict[int, tuple[int, int]]:
    """(excess, all) of the instructions that take more than the ideal, by absolute address."""
    table = kernel.instructions
    if table is None:
        return {}
    taken, ideal = (
        (table.global_sectors, table.global_sectors_ideal)
        if global_memory
        else (table.shared_wavefronts, table.shared_wavefronts_ideal)
    )
    if taken is None or ideal is None:
        return {}
    return {
        int(table.pc[row]) + table.base: (int(taken[row] - ideal[row]), int(taken[row]))
        for row in np.flatnonzero(taken > ideal).tolist()
    }


def places(kernel: KernelProfile) -> dict[int, tuple[str, int]]:
    """File and line by absolute address, as ncu attributes them."""
    table = kernel.instructions
    return {} if table is None else {pc + table.base: place for pc, place in table.said_lines().items()}


def check_excess(kernel: KernelProfile, markers: list[RuleMarker], global_memory: bool) -> Counter[str]:
    checked: Counter[str] = Counter()
    ours, lines = excess_by_pc(kernel, global_memory), places(kernel)
    by_line: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    by_number: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for pc, (excess, everything) in ours.items():
        if pc in lines:
            for sums in (by_line[lines[pc]], by_number[lines[pc][1]]):
                sums[0] += excess
                sums[1] += everything
    marked_pcs, marked_lines = set(), set()
    for marker in markers:
        found = EXCESS.match(marker.message)
        assert found is not None, marker.message
        if marker.pc is not None:
            excess, everything = ours[marker.pc]
            assert f"{100 * excess / everything:.2f}" == found[1]
            marked_pcs.add(marker.pc)
            checked["instructions"] += 1
            continue
        assert marker.file is not None
        assert marker.line is not None
        marked_lines.add(marker.line)
        excess, everything = by_line.get((marker.file, marker.line), (0, 1))
        if f"{100 * excess / everything:.2f}" == found[1]:
            checked["lines"] += 1
            continue
        # NVIDIA's sums by number alone: the numbers still stand, the file need not be the line's.
        assert len({file for file, _ in by_line}) > 1, f"{marker.file}:{marker.line} {found[1]} %"
        excess, everything = by_number[marker.line]
        assert f"{100 * excess / everything:.2f}" == found[1]
        checked["lines with NVIDIA's wrong file"] += 1
    assert marked_pcs == set(ours)
    assert marked_lines == set(by_number)
    return checked


def check_stalls(kernel: KernelProfile, action: RawAction, markers: list[RuleMarker]) -> Counter[str]:
    checked: Counter[str] = Counter()
    table, samples = kernel.instructions, kernel.samples
    assert table is not None
    assert samples is not None
    row_of = {int(pc) + table.base: row for row, pc in enumerate(table.pc.tolist())}
    column_of = {reason: column for column, reason in enumerate(table.reasons)}
    of_line = table.samples.sum(axis=1)
    lines = places(kernel)
    marked: set[tuple[int, str]] = set()
    for marker in markers:
        if marker.pc is None:
            assert marker.message.startswith(STALL_LINE)
            continue
        found = STALL.match(marker.message)
        assert found is not None, marker.message
        reason, row = REASONS.get(found[3], found[3]), row_of[marker.pc]
        assert f"{100 * of_line[row] / samples.total:.1f}" == found[1]
        assert f"{100 * table.samples[row, column_of[reason]] / of_line[row]:.1f}" == found[2]
        marked.add((marker.pc, reason))
        checked["stalled instructions"] += 1
    # A tenth of all samples, and more than 30 % of the instruction's. The rule passes over reasons whose list of
    # instructions differs in length from that of the counts.
    count = len(action.columns[SAMPLE_COUNT].pcs)
    expected = {
        (pc, reason)
        for pc, row in row_of.items()
        for reason, column in column_of.items()
        if reason not in ("selected",)
        and of_line[row] / samples.total > 0.1
        and table.samples[row, column] / of_line[row] > 0.3
        and len(action.columns[STALLED + reason].pcs) == count
    }
    assert marked == expected
    said = {(marker.file, marker.line) for marker in markers if marker.pc is None}
    assert said == {lines[pc] for pc, _ in marked if pc in lines}
    checked["stalled lines"] += len(said)
    return checked


def check_old_messages(kernel: KernelProfile) -> int:
    """Rules before 2023 name instructions in their messages: those with the largest excess."""
    named: list[tuple[int, int, int]] = []
    for rule in kernel.rules:
        found = OLD_EXCESS.search(rule.message)
        if rule.rule == "UncoalescedGlobalAccess" and found:
            named.append((int(found[3], 16), int(found[1]), int(found[2])))
    ours = excess_by_pc(kernel, True)
    for pc, expected, got in named:
        assert ours[pc] == (got - expected, got)
    if named:
        largest = sorted(ours, key=lambda pc: -ours[pc][0])[:OLD_MOST]
        assert {pc for pc, _, _ in named} == set(largest)
    return len(named)


@pytest.mark.parametrize("path", reports())
async def test_markers_are_worked_out_again(reader: ReportReader, path: Path) -> None:
    raw = await reader.read(path)
    report = read_report_values(raw)
    checked: Counter[str] = Counter()
    for action, kernel in zip(raw.actions, report.kernels, strict=True):
        by_rule: dict[str, list[RuleMarker]] = defaultdict(list)
        for marker in kernel.markers:
            by_rule[marker.rule].append(marker)
        assert set(by_rule) <= {"UncoalescedGlobalAccess", "UncoalescedSharedAccess", "CPIStall"}
        for rule, is_global in (("UncoalescedGlobalAccess", True), ("UncoalescedSharedAccess", False)):
            if by_rule[rule]:
                checked += check_excess(kernel, by_rule[rule], is_global)
        if by_rule["CPIStall"]:
            checked += check_stalls(kernel, action, by_rule["CPIStall"])
        checked["instructions in messages"] += check_old_messages(kernel)
        # Where the newer rules ran and marked nothing, there is nothing to mark.
        if kernel.markers and not by_rule["UncoalescedGlobalAccess"]:
            assert not excess_by_pc(kernel, True)
        if kernel.markers and not by_rule["UncoalescedSharedAccess"]:
            assert not excess_by_pc(kernel, False)
        checked["totals"] += check_totals(kernel)
    if not checked.total():
        assert not any(kernel.markers for kernel in report.kernels)
        assert not any(rule.rule.startswith("Uncoalesced") for kernel in report.kernels for rule in kernel.rules)
    known = {"a100_join_samples": 10, "rtx3070_scan_samples": 1, "a40_julia_lines": 1}
    assert checked.total() == known.get(path.stem, checked.total())


def check_totals(kernel: KernelProfile) -> int:
    """`a total of N excessive sectors (P% of the total M sectors)`."""
    count = 0
    for rule in kernel.rules:
        found = re.search(r"a total of (\d+) excessive (sectors|wavefronts) \((\d+)% of the total (\d+)", rule.message)
        if found is None:
            continue
        table = kernel.instructions
        assert table is not None
        taken, ideal = columns(kernel, found[2])
        assert int(np.abs(taken - ideal).sum()) == int(found[1])
        assert int(taken.sum()) == int(found[4])
        assert f"{100 * np.abs(taken - ideal).sum() / taken.sum():.0f}" == found[3]
        count += 1
    return count


def columns(kernel: KernelProfile, unit: str) -> tuple[IntColumn, IntColumn]:
    table = kernel.instructions
    assert table is not None
    pairs: Mapping[str, tuple[IntColumn | None, IntColumn | None]] = {
        "sectors": (table.global_sectors, table.global_sectors_ideal),
        "wavefronts": (table.shared_wavefronts, table.shared_wavefronts_ideal),
    }
    taken, ideal = pairs[unit]
    assert taken is not None
    assert ideal is not None
    return taken, ideal
