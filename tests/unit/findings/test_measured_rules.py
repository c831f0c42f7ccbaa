"""Rules about what a report measured. Expected numbers are worked out beside each case."""

from __future__ import annotations

import pytest

from kernel_lsp.model.launch import Launch
from tests.unit.findings.measured_values import (
    ACHIEVED,
    DRAM,
    ELIGIBLE,
    ISSUE,
    LOCAL,
    MEMORY,
    SAMPLES,
    SECTORS,
    SM,
    STATE,
    TEXT,
    THEORETICAL,
    WAVEFRONTS,
    WAVES,
    judged,
    measurement,
    of_code,
)
from tests.unit.kernel_values import gpu, kernel
from tests.unit.kernel_values import launch as source_launch

LOW = {ISSUE: 0.3, ELIGIBLE: 0.4}
PROFILED = Launch((256, 1, 1), (960, 1, 1), 0, None, "profile", "gemm.ncu-rep")


def hot(**reasons: dict[int, float]) -> dict[str, dict[int, float]]:
    """Samples by reason and line."""
    return {SAMPLES + reason: lines for reason, lines in reasons.items()}


# KL601


def test_a_hot_line_with_its_reason_and_first_action() -> None:
    # 310 of 1,000 samples on line 8: 250 of them (81 %) long scoreboard.
    columns = hot(long_scoreboard={8: 250, 3: 40}, wait={8: 60, 6: 650})
    (found,) = [f for f in of_code(judged(measurement(columns, LOW)), "KL601") if f.line == 8]
    assert found.message == "31 % of stall samples on this line: long scoreboard (measured)"
    assert found.severity == "information"
    assert found.advice.startswith("Long scoreboard: waits for data")
    assert "First: load earlier" in found.advice
    told = {e.name: (e.value, e.kind, e.source) for e in found.evidence}
    assert told["stall_samples"] == (310, "measured", "ncu:gemm.ncu-rep")
    assert told["kernel_samples"] == (1000, "measured", "ncu:gemm.ncu-rep")


def test_stalls_are_no_finding_where_the_schedulers_issue() -> None:
    columns = hot(long_scoreboard={8: 900}, selected={6: 100})
    assert of_code(judged(measurement(columns, {ISSUE: 0.85})), "KL601") == []
    assert [f.severity for f in of_code(judged(measurement(columns, {ISSUE: 0.79})), "KL601")] == ["information"]


def test_unknown_issue_slots_only_hint() -> None:
    (found,) = of_code(judged(measurement(hot(barrier={8: 900}, selected={6: 100}))), "KL601")
    assert found.severity == "hint"
    assert "--section SchedulerStats" in found.advice


def test_few_samples_make_no_hot_line() -> None:
    assert of_code(judged(measurement(hot(barrier={8: 49}), LOW)), "KL601") == []
    assert len(of_code(judged(measurement(hot(barrier={8: 50}), LOW)), "KL601")) == 1


def test_a_line_that_issues_is_work() -> None:
    # 40 % of the samples, but of them 350 are healthy: 50 of 1,000 wait.
    columns = hot(selected={8: 200}, not_selected={8: 150}, wait={8: 50, 9: 600})
    assert [f.line for f in of_code(judged(measurement(columns, LOW)), "KL601")] == [9]


def test_a_busy_arithmetic_pipe_is_healthy_only_at_its_roof() -> None:
    columns = hot(math_pipe_throttle={8: 700}, wait={9: 90}, selected={6: 210})
    compute = measurement(columns, LOW | {SM: 70, MEMORY: 20})
    assert of_code(judged(compute), "KL601") == []
    latency = measurement(columns, LOW | {SM: 40, MEMORY: 20})
    (found,) = of_code(judged(latency), "KL601")
    assert "70 % of stall samples on this line: math pipe throttle" in found.message


def test_at_a_roof_a_hot_line_is_a_hint_about_the_unit() -> None:
    (found,) = of_code(judged(measurement(hot(wait={8: 900}), LOW | {SM: 18, MEMORY: 91, DRAM: 91})), "KL601")
    assert found.severity == "hint"
    assert found.advice.startswith("DRAM runs at 91 % of its peak")
    assert "fewer bytes" in found.advice


def test_at_most_the_three_hottest_lines() -> None:
    columns = hot(wait={6: 250, 7: 240, 8: 230, 9: 220})
    assert sorted(f.line for f in of_code(judged(measurement(columns, LOW)), "KL601")) == [6, 7, 8]


def test_a_line_with_several_reasons_names_them() -> None:
    columns = hot(wait={8: 30}, barrier={8: 28}, membar={8: 27}, sleeping={8: 15})
    (found,) = of_code(judged(measurement(columns, LOW)), "KL601")
    assert found.message == "100 % of stall samples on this line, no single reason: wait 30 %, barrier 28 % (measured)"
    assert found.severity == "hint"


def test_a_line_outside_the_kernel_is_named_after_it() -> None:
    (found,) = of_code(judged(measurement(hot(wait={3: 100}), LOW)), "KL601")
    assert (found.line, found.message[:13]) == (3, "gemm: 100 % o")


def test_actions_against_what_the_launch_does_not_have_are_left_out() -> None:
    stalls = hot(short_scoreboard={8: 100})
    free = {WAVEFRONTS: {8: 64.0}, WAVEFRONTS + "_ideal": {8: 64.0}}
    (clean,) = of_code(judged(measurement(stalls | free, LOW)), "KL601")
    assert "bank conflicts" not in clean.advice
    (unknown,) = of_code(judged(measurement(stalls, LOW)), "KL601")
    assert "bank conflicts" in unknown.advice


def test_a_report_of_other_text_says_nothing_of_lines() -> None:
    columns = hot(wait={8: 900}) | {LOCAL: {8: 900.0}, SECTORS: {8: 100.0}}
    file = judged(measurement(columns, LOW, carries_source=False))
    assert {(f.code, f.line, f.severity) for f in file.findings} == {("KL605", 5, "hint"), ("KL607", 5, "hint")}
    assert all("(measured, maybe other code)" in f.message for f in file.findings)


def test_lines_follow_the_edits_since() -> None:
    edited = TEXT.replace("// line 1", "// line 1\n// one more")
    found = measurement(hot(wait={8: 900, 9: 20}), LOW, text=edited, profiled=TEXT)
    file = judged(found, kernels=[kernel(line=6)], text=edited)
    (finding,) = of_code(file, "KL601")
    assert finding.line == 9
    assert finding.message.endswith("(measured, before edits)")


# KL602, KL603


def global_columns(
    sectors: dict[int, float], ideal: dict[int, float], executed: float = 10
) -> dict[str, dict[int, float]]:
    return {SECTORS: sectors, SECTORS + "_ideal": ideal, "inst_executed": dict.fromkeys(sectors, executed)}


@pytest.mark.parametrize(
    ("sectors", "ideal", "message", "cause", "severity"),
    [
        # 10 requests: 32 sectors each instead of 4. Excess 280 of 320 + 280: 47 %.
        (
            320,
            40,
            "uncoalesced: 32 sectors per request where 4 would do; excess 47 % of the kernel's",
            "own",
            "warning",
        ),
        # 8 instead of 4: excess 40 of 360: 11 %.
        (
            80,
            40,
            "uncoalesced: 8 sectors per request where 4 would do; excess 11 % of the kernel's",
            "step",
            "information",
        ),
        # 5 instead of 4: 10 of 330 is 3 % of the kernel's: too little.
        (50, 40, None, "", ""),
    ],
)
def test_uncoalesced_lines(sectors: float, ideal: float, message: str | None, cause: str, severity: str) -> None:
    columns = global_columns({8: sectors, 9: 280}, {8: ideal, 9: 280})
    found = of_code(judged(measurement(columns, LOW)), "KL602")
    if message is None:
        assert found == []
        return
    assert [(f.line, f.message, f.severity) for f in found] == [(8, f"{message} (measured)", severity)]
    assert cause in found[0].advice


def test_rows_that_start_inside_a_sector() -> None:
    # 10 requests of 5 sectors instead of 4: 10 of 50, a fifth of the line's and of the kernel's.
    (found,) = of_code(judged(measurement(global_columns({8: 50}, {8: 40}), LOW)), "KL602")
    assert (
        found.message == "uncoalesced: 5 sectors per request where 4 would do; excess 20 % of the kernel's (measured)"
    )
    assert "align their pitch to 32 bytes" in found.advice


def test_without_executed_instructions_there_is_no_number_per_request() -> None:
    columns = {SECTORS: {8: 320.0}, SECTORS + "_ideal": {8: 40.0}}
    (found,) = of_code(judged(measurement(columns, LOW)), "KL602")
    # 280 of 320: 87.5 %, halves up.
    assert found.message == "uncoalesced: 88 % of the sectors of this line are excess, 88 % of the kernel's (measured)"


def test_costs_of_memory_are_hints_where_memory_is_not_what_holds_the_launch() -> None:
    columns = global_columns({8: 320}, {8: 40})
    (busy,) = of_code(judged(measurement(columns, {ISSUE: 0.9, SM: 85, MEMORY: 30})), "KL602")
    assert (busy.severity, "costs little now" in busy.advice) == ("hint", True)
    (memory,) = of_code(judged(measurement(columns, {ISSUE: 0.2, SM: 20, MEMORY: 90})), "KL602")
    assert (memory.severity, "costs little now" in memory.advice) == ("warning", False)


def test_bank_conflicts() -> None:
    # 1,024 wavefronts where 32 would do: 992 of 1,024 + 976 + ... = 2,000: 50 % (49.6).
    columns = {WAVEFRONTS: {8: 1024.0, 9: 976.0}, WAVEFRONTS + "_ideal": {8: 32.0, 9: 976.0}}
    (found,) = of_code(judged(measurement(columns, LOW)), "KL603")
    assert (found.line, found.severity) == (8, "warning")
    assert found.message == "bank conflicts: 32x the wavefronts this line needs; excess 50 % of the kernel's (measured)"
    assert {e.name: e.value for e in found.evidence}["excess_of_kernel"] == 0.496


def test_wide_accesses_without_conflicts_are_silent() -> None:
    columns = {WAVEFRONTS: {8: 1024.0}, WAVEFRONTS + "_ideal": {8: 1024.0}}
    assert of_code(judged(measurement(columns, LOW)), "KL603") == []


# KL604


@pytest.mark.parametrize(
    ("waves", "grid", "message", "whole", "severity"),
    [
        # 82 SMs of 10 blocks: 820 a wave. 1,024 / 820 = 1.2488; the second is 24.88 % full: 75.12 / 2 = 37.56 % empty.
        (1024 / 820, 1024, "1.25 waves, the last 25 % full: 38 % of block slots", "820 or 1,640", "information"),
        # 96 a wave: 6.25 waves; 75 % of a wave in 7: 10.7 %.
        (6.25, 600, "6.25 waves, the last 25 % full: 11 % of block slots", "576 or 672", "hint"),
    ],
)
def test_a_tail(waves: float, grid: int, message: str, whole: str, severity: str) -> None:
    found = measurement({}, {WAVES: waves, "launch__grid_dim_x": grid})
    (tail,) = of_code(judged(found), "KL604")
    assert (tail.message, tail.severity) == (f"tail wave: {message} stay empty (measured, maybe other code)", "hint")
    assert f": {whole} would be whole waves" in tail.advice
    placed = measurement(hot(wait={8: 1}), {WAVES: waves, "launch__grid_dim_x": grid})
    assert [f.severity for f in of_code(judged(placed), "KL604")] == [severity]


def test_little_waste_and_less_than_a_wave_are_no_tail() -> None:
    # 13.84 waves: 16 % of one in 14 is 1.1 %.
    for waves in (13.84, 0.4, 10.0):
        assert of_code(judged(measurement({}, {WAVES: waves})), "KL604") == []


# KL605, KL606


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        # 24 blocks on 48 SMs of 2: a quarter of a wave.
        (
            {WAVES: 0.25, "launch__grid_dim_x": 24},
            "schedulers issue in 30 % of cycles: a grid of 24 blocks is 0.25 of a wave",
        ),
        # 10 waves, 16 of 48 warps by registers.
        ({}, "schedulers issue in 30 % of cycles: 33 % theoretical occupancy, limited by registers"),
        # 90 blocks on 48 SMs of 2 are 0.94 of a wave, but the busy SMs hold their two: registers are the matter.
        (
            {WAVES: 90 / 96, "launch__grid_dim_x": 90},
            "schedulers issue in 30 % of cycles: 33 % theoretical occupancy, limited by registers",
        ),
        (
            {THEORETICAL: 100, ACHIEVED: 38},
            "schedulers issue in 30 % of cycles: 38 % of the warps are resident, 100 % could be",
        ),
        # barrier 6 of 10 cycles.
        (
            {
                THEORETICAL: 100,
                ACHIEVED: 95,
                STATE.format("barrier"): 6,
                STATE.format("selected"): 1,
                STATE.format("wait"): 3,
            },
            "schedulers issue in 30 % of cycles: 60 % of a warp's time is barrier",
        ),
        (
            {
                THEORETICAL: 100,
                ACHIEVED: 95,
                STATE.format("barrier"): 3,
                STATE.format("wait"): 2.9,
                STATE.format("selected"): 4.1,
            },
            "schedulers issue in 30 % of cycles, no single reason: most is barrier, 30 %",
        ),
        ({THEORETICAL: 100, ACHIEVED: 95}, "schedulers issue in 30 % of cycles"),
        # Enough warps are ready: neither the grid nor occupancy is the matter.
        (
            {ELIGIBLE: 1.4, STATE.format("barrier"): 6, STATE.format("wait"): 4},
            "schedulers issue in 30 % of cycles: 60 % of a warp's time is barrier",
        ),
    ],
)
def test_low_issue_and_its_cause(facts: dict[str, float], message: str) -> None:
    found = measurement(hot(wait={8: 1}), LOW | facts)
    (low,) = of_code(judged(found), "KL605")
    assert (low.message, low.severity, low.line) == (f"{message} (measured)", "information", 5)


@pytest.mark.parametrize("facts", [{ISSUE: 0.6}, {ISSUE: 0.3, MEMORY: 80, SM: 10}, {}])
def test_issue_is_no_finding_where_it_is_fair_at_a_roof_or_unknown(facts: dict[str, float]) -> None:
    assert of_code(judged(measurement({}, facts)), "KL605") == []


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({WAVES: 0.25, "launch__grid_dim_x": 24}, ": a grid of 24 blocks is 0.25 of a wave"),
        # 1.25 waves leave 37.5 % of the slots empty; 40 % of the warps are missing.
        ({WAVES: 1.25}, ", likely by the tail of 1.25 waves"),
        # 4.8 waves leave 4 % empty, which is no tail; a wave takes 208 us.
        ({WAVES: 4.8}, ", likely by unequal work"),
        # 10 us / 10 waves = 1 us a wave.
        ({"gpu__time_duration.sum": 10_000}, ", likely as blocks are very short"),
    ],
)
def test_achieved_far_under_theoretical(facts: dict[str, float], cause: str) -> None:
    found = measurement(hot(wait={8: 1}), {THEORETICAL: 100.0, ACHIEVED: 60.0} | facts)
    (finding,) = of_code(judged(found), "KL606")
    assert finding.message == f"60 % achieved of 100 % theoretical occupancy{cause} (measured)"


def test_ten_points_are_no_gap_and_low_issue_says_it_once() -> None:
    assert of_code(judged(measurement({}, {THEORETICAL: 70, ACHIEVED: 60})), "KL606") == []
    both = judged(measurement({}, LOW | {THEORETICAL: 100, ACHIEVED: 38}))
    assert [f.code for f in both.findings] == ["KL605"]
    assert of_code(judged(measurement({}, {THEORETICAL: 100, ACHIEVED: 60, MEMORY: 85, SM: 1})), "KL606") == []


# KL607, KL608


def test_local_memory_stands_on_the_line_with_most_of_it() -> None:
    # 60 + 20 local of 80 + 120 global: 40 %; 75 % of it on line 8.
    columns = {LOCAL: {8: 60.0, 9: 20.0}, SECTORS: {10: 120.0}}
    (found,) = of_code(
        judged(measurement(columns, LOW), [kernel(line=5, spill_store_bytes=8, spill_load_bytes=8)]), "KL607"
    )
    assert found.message == (
        "local memory: 75 % of its traffic on this line; it is 40 % of all sectors of the kernel (measured)"
    )
    assert (found.line, found.severity) == (8, "warning")
    assert [(r.line, r.message) for r in found.related] == [(9, "25 % of the traffic")]
    assert "KL201" in found.advice
    (array,) = of_code(judged(measurement(columns, LOW)), "KL607")
    assert "KL204" in array.advice


def test_a_little_local_memory_is_silent() -> None:
    assert of_code(judged(measurement({LOCAL: {8: 4.0}, SECTORS: {9: 96.0}}, LOW)), "KL607") == []


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({ISSUE: 0.92}, "healthy: the schedulers issue in 92 % of cycles, so stalls are hidden (measured)"),
        ({SM: 18, MEMORY: 91, DRAM: 90}, "at its roof: DRAM at 91 % of peak, SM at 18 % (measured)"),
        ({SM: 18, MEMORY: 91, DRAM: 15}, "at its roof: memory at 91 % of peak, SM at 18 % (measured)"),
        ({SM: 88, MEMORY: 20}, "at its roof: SM at 88 % of peak, memory at 20 % (measured)"),
    ],
)
def test_a_healthy_launch_is_said_to_be_once_and_quietly(facts: dict[str, float], message: str) -> None:
    file = judged(measurement(hot(selected={8: 1}), facts))
    assert [(f.code, f.severity, f.message) for f in file.findings] == [("KL608", "hint", message)]


def test_a_peak_that_is_mostly_waste_is_no_roof() -> None:
    # 100 sectors where 20 would do: 80 of 100 are in excess.
    columns = hot(long_scoreboard={8: 90}, selected={9: 10}) | {SECTORS: {8: 100.0}, f"{SECTORS}_ideal": {8: 20.0}}
    by_l2: dict[str, float | str] = {f"breakdown:{MEMORY}": "lts__t_sectors.avg.pct", "lts__t_sectors.avg.pct": 92}
    file = judged(measurement(columns, {MEMORY: 92, SM: 10, ISSUE: 0.2, **by_l2}))
    (found,) = of_code(file, "KL608")
    assert found.message == "L2 at 92 % of peak, but 80 % of the global sectors are in excess (measured)"
    (line,) = of_code(file, "KL601")
    assert line.severity == "information"
    assert "of its peak" not in line.advice
    # What of it L2 serves, and DRAM never sees, is not told: DRAM at its peak stays a roof.
    (found,) = of_code(judged(measurement(columns, {MEMORY: 92, DRAM: 91, SM: 10, ISSUE: 0.2})), "KL608")
    assert found.message == "at its roof: DRAM at 92 % of peak, SM at 10 % (measured)"


# What is measured to be fine is no fault


@pytest.mark.parametrize("facts", [{ISSUE: 0.9}, {MEMORY: 92, SM: 10}, {SM: 85, MEMORY: 10}, {WAVES: 0.4}])
def test_low_occupancy_is_no_fault_where_the_launch_runs_well(facts: dict[str, float]) -> None:
    # 96 registers: 2 blocks of 256 threads, 16 of 48 warps; measured with 2 blocks as well.
    kernels = [kernel(line=5, registers=96)]
    fine = judged(measurement(hot(selected={8: 1}), facts), kernels, PROFILED)
    assert of_code(fine, "KL101") == []
    slow = judged(measurement(hot(selected={8: 1}), {ISSUE: 0.3, ELIGIBLE: 0.3}), kernels, PROFILED)
    assert len(of_code(slow, "KL101")) == 1


def test_the_measurement_speaks_only_of_the_occupancy_that_it_had() -> None:
    # 72 registers let 3 blocks in; the kernel that is built now has 2: whether that is still fine is not known.
    found = measurement(hot(selected={8: 1}), {ISSUE: 0.9, "launch__occupancy_limit_registers": 3})
    assert len(of_code(judged(found, [kernel(line=5, registers=96)], PROFILED), "KL101")) == 1
    # Nor does it speak of a launch that is not the measured one, of other code, or of another architecture.
    fine = measurement(hot(selected={8: 1}), {ISSUE: 0.9})
    assert len(of_code(judged(fine, [kernel(line=5, registers=96)], source_launch(256)), "KL101")) == 1
    other = measurement(hot(selected={8: 1}), {ISSUE: 0.9}, carries_source=False)
    assert len(of_code(judged(other, [kernel(line=5, registers=96)], PROFILED), "KL101")) == 1
    ampere = measurement(hot(selected={8: 1}), {ISSUE: 0.9, "device__attribute_compute_capability_minor": 0})
    assert len(of_code(judged(ampere, [kernel(line=5, registers=96)], PROFILED), "KL101")) == 1


def test_register_and_shared_memory_steps_are_quieter_where_occupancy_is_fine() -> None:
    fine = measurement(hot(selected={8: 1}), {ISSUE: 0.9, "launch__occupancy_limit_registers": 1})
    assert of_code(judged(fine, [kernel(line=5, registers=72)], PROFILED), "KL120") == []
    slow = measurement(hot(selected={8: 1}), {ISSUE: 0.3, "launch__occupancy_limit_registers": 1})
    assert len(of_code(judged(slow, [kernel(line=5, registers=72)], PROFILED), "KL120")) == 1
    shared = Launch((128, 1, 1), (960, 1, 1), 52_224, None, "profile", "gemm.ncu-rep")
    kernels = [kernel(line=5, uses_dynamic_shared=True)]
    assert [f.severity for f in of_code(judged(fine, kernels, shared), "KL110")] == ["hint"]
    assert [f.severity for f in of_code(judged(slow, kernels, shared), "KL110")] == ["warning"]


# Shared with all rules


def test_another_gpu_is_named() -> None:
    found = measurement(hot(wait={8: 1}), LOW | {"device__attribute_compute_capability_minor": 0})
    assert "(measured on sm_80)" in of_code(judged(found), "KL605")[0].message


@pytest.mark.parametrize("key", ["KL601", "hot-line"])
def test_severities_apply(key: str) -> None:
    found = measurement(hot(wait={8: 900}), LOW)
    assert of_code(judged(found, severities={key: "off"}), "KL601") == []
    assert [f.severity for f in of_code(judged(found, severities={key: "warning"}), "KL601")] == ["warning"]


@pytest.mark.parametrize(
    ("place", "comment", "is_silent"),
    [
        ("    out[8] = helper(8);", " // kernel-lsp: ignore KL601", True),
        ("    out[8] = helper(8);", " // kernel-lsp: ignore hot-line", True),
        ("    out[8] = helper(8);", " // kernel-lsp: ignore KL602", False),
        ("__global__ void gemm(float* out) {", " // kernel-lsp: ignore KL601", True),
    ],
)
def test_comments_silence_on_the_line_and_on_the_kernel(place: str, comment: str, is_silent: bool) -> None:
    text = TEXT.replace(place, place + comment)
    found = measurement(hot(wait={8: 900}), LOW, text=text)
    codes = {f.code for f in judged(found, text=text).findings}
    assert ("KL601" not in codes) is is_silent
    assert "KL605" in codes


def test_without_a_report_nothing_is_said_of_one() -> None:
    from tests.unit.kernel_values import analysed

    assert analysed([kernel(line=5)], text=TEXT, choice=gpu()).findings == ()
