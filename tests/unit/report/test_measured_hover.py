"""Hover, lens and hints of a measured kernel; every number is worked out beside the stand-in's metrics."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.raw_report import Metric, RuleResult
from kernel_lsp.report.hints import line_hints
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.lens import measured_lenses
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.report.measured_words import (
    age_words,
    amount_words,
    duration_words,
    of_age,
    old,
    rate_words,
    reason_words,
    share_words,
)
from tests.unit.kernel_values import PATH, analysed, kernel
from tests.unit.report.measured_kernel import (
    ALL,
    LAUNCH,
    MADE_AT,
    NOW,
    ROOFLINE,
    SAMPLED,
    TEXT,
    measured_file,
    measurement,
)

SPEED_ONLY = {name: metric for name, metric in ALL.items() if not name.startswith("smsp__")}
TAIL = RuleResult("LaunchConfiguration", "LaunchStats", "optimization", "Tail Effect", "A wave", 50.0, "global")
LOCAL = RuleResult("TheoreticalOccupancy", "Occupancy", "optimization", "", "Warps", 66.7, "local")


def hover_of(found: KernelMeasurement) -> str:
    file = measured_file(found)
    return kernel_hover(file.kernels[0], file, now=NOW)


def hint_texts(found: KernelMeasurement) -> dict[int, str]:
    return {hint.line: hint.text for hint in line_hints(measured_file(found), None, NOW)}


def lens_of(found: KernelMeasurement) -> str:
    (lens,) = measured_lenses(measured_file(found).kernels, PATH, NOW)
    return lens.text


# --- words ---


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (0.5, ""),
        (-300, ""),
        (1, "1 min"),
        (59.9, "59 min"),
        (60, "1 h"),
        (130, "2 h"),
        (47 * 60, "47 h"),
        (2880, "2 days"),
    ],
)
def test_ages(minutes: float, said: str) -> None:
    assert age_words(MADE_AT, MADE_AT + timedelta(minutes=minutes)) == said


def test_an_age_without_a_now_is_a_date() -> None:
    assert (old(MADE_AT, NOW), of_age(MADE_AT, NOW)) == ("2 h old", "of 2 h ago")
    assert (old(MADE_AT, MADE_AT), of_age(MADE_AT, MADE_AT)) == ("just made", "of just now")
    assert of_age(MADE_AT, None) == "of 2025-11-29 12:02"


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (1600, "1.60 us"),
        (70_464, "70.5 us"),
        (458_000, "458 us"),
        (999_499, "999 us"),
        (999_500, "1.00 ms"),
        (1_920_000, "1.92 ms"),
        (8_261_906_816, "8.26 s"),
    ],
)
def test_durations_have_three_digits(ns: float, said: str) -> None:
    assert duration_words(ns) == said


def test_numbers_with_their_units() -> None:
    assert (rate_words(21.7e12, "FLOPS"), rate_words(1.94e11, "FLOPS")) == ("21.7 TFLOPS", "194 GFLOPS")
    assert (rate_words(1.521e12, "B/s"), amount_words(751_104, "B")) == ("1,521 GB/s", "751 kB")
    assert (share_words(0.004), share_words(0.0), share_words(0.315)) == ("< 1 %", "0 %", "32 %")
    assert [reason_words(r) for r in ("mio_throttle", "no_instructions", "imc_miss")] == [
        "MIO throttle",
        "no instruction",
        "IMC miss",
    ]


# --- lens ---


def test_lens() -> None:
    assert lens_of(measurement()) == "1.92 ms measured · SM 31 % · memory 88 % (DRAM 84 %) · 2 h old"
    assert lens_of(measurement(LAUNCH)) == "measured · 2 h old"


def test_lens_marks_what_does_not_fit() -> None:
    assert lens_of(measurement(built="other", profiled_text=TEXT)).endswith(" · 2 h old · by line")
    assert lens_of(measurement(built="other")).endswith(" · 2 h old · stale")
    # Without counters by line there is nothing that could stand on a wrong line.
    assert lens_of(measurement(sampled=None)).endswith(" · 2 h old")


def test_lenses_of_instances_are_named_the_longest_first() -> None:
    short = measurement({**ALL, "gpu__time_duration.sum": Metric(1000.0, "ns")}, name="t<1>")
    both = {"_Z_t<1>": short, "_Z_t<2>": measurement(name="t<2>")}
    file = analysed([kernel("t<1>", line=1), kernel("t<2>", line=1), kernel("t<3>", line=1)], text=TEXT, measured=both)
    assert [lens.text.partition(" measured")[0] for lens in measured_lenses(file.kernels, PATH, NOW)] == [
        "t<2>: 1.92 ms",
        "t<1>: 1.00 us",
    ]


# --- hints ---


def test_hints_stand_on_hot_lines() -> None:
    # 1,000 samples: 120, 500 and 380.
    assert hint_texts(measurement()) == {
        3: "12 % stalls: long scoreboard",
        4: "50 % stalls: long scoreboard",
        5: "38 % stalls: short scoreboard",
    }
    cold = {**SAMPLED, 3: {"long_scoreboard": 97}}  # 97 of 977 is less than a tenth
    assert set(hint_texts(measurement(sampled=cold))) == {4, 5}


def test_hint_tooltip_has_the_counts() -> None:
    tips = {hint.line: hint.tooltip for hint in line_hints(measured_file(measurement(others=2)), None, NOW)}
    assert tips[4] == (
        "gemm: 500 of 1,000 samples are on this line (measured).\n"
        "Most of them: long scoreboard 400 (80 %), MIO throttle 60 (12 %), wait 20 (4 %).\n"
        "gemm.ncu-rep of 2 h ago, launch 1 of 3, ncu 2024.1.1, RTX 3070 Ti."
    )


def test_few_samples_have_counts_and_no_percentages() -> None:
    few = measurement(sampled={4: {"long_scoreboard": 30}, 5: {"wait": 4}})
    assert hint_texts(few) == {4: "30 of 34 samples: long scoreboard"}
    text = hover_of(few)
    assert "Only 34 samples: too few for hot lines." in text
    line = line_hover(measured_file(few), 4, now=NOW)
    assert line is not None
    assert "30 of 34 samples (measured, too few for percentages, report of 2 h ago)" in line
    assert "%" not in line.partition("executed")[0]


def test_where_schedulers_issue_no_stall_is_named() -> None:
    busy = measurement({**ALL, "smsp__issue_active.avg.per_cycle_active": Metric(0.92, "")})
    assert hint_texts(busy)[4] == "50 % of samples"
    assert "hidden" in line_hints(measured_file(busy), None, NOW)[1].tooltip
    text = hover_of(busy)
    assert "The schedulers issue in 92 % of cycles: stalls are hidden, none of them is a bottleneck." in text
    assert "#" not in text.partition("Block 256")[0]  # no bars
    line = line_hover(measured_file(busy), 4, now=NOW)
    assert line is not None
    assert "Try first" not in line


def test_hints_of_a_stale_report_say_so() -> None:
    stale = measurement(built="other")
    assert hint_texts(stale)[4] == "50 % stalls: long scoreboard (stale)"
    assert "Stale: " in line_hints(measured_file(stale), None, NOW)[0].tooltip


def test_of_two_kernels_on_a_line_the_larger_share_is_shown() -> None:
    other = measurement(sampled={4: {"wait": 60}, 5: {"wait": 40}}, name="other")
    kernels = [kernel("gemm", line=1), kernel("other", line=1)]
    file = analysed(kernels, text=TEXT, measured={"_Z_gemm": measurement(), "_Z_other": other})
    hints = {hint.line: hint for hint in line_hints(file, None, NOW)}
    assert hints[4].text == "60 % stalls: wait"
    assert hints[4].tooltip.startswith("other: 60 of 100 samples")
    assert hints[3].tooltip.startswith("gemm: ")


# --- the line ---


def test_line_hover_without_instructions() -> None:
    # The shared store: 20 of 32 threads; 65,536 wavefronts where 8,192 would do: 57,344 of them, 7/8, in excess.
    assert line_hover(measured_file(measurement()), 4, now=NOW) == (
        "**l.4** in gemm\n\n"
        "50 % of the kernel's stall samples (measured, 500 of 1,000, report of 2 h ago)\n"
        "```text\n"
        "long scoreboard  80 %  ################\n"
        "MIO throttle     12 %  ##\n"
        "wait              4 %  #\n"
        "```\n\n"
        "4 % of them issued or were ready to (not selected): no stall.  \n"
        "Long scoreboard: waits for data of global, local, texture or surface memory. "
        "DRAM is at 88 % of its peak, so warps wait somewhere.\n\n"
        "```text\n"
        "executed  8,192 warp instructions, 20.0 of 32 threads active\n"
        "shared    65,536 wavefronts, 8,192 without bank conflicts: 88 % in excess\n"
        "```"
    )


def test_line_hover_says_what_accesses_cost() -> None:
    load, store = (line_hover(measured_file(measurement()), line, now=NOW) for line in (3, 5))
    assert load is not None
    assert store is not None
    assert "global    16.0 sectors per request, 4.0 if coalesced: 75 % in excess" in load
    assert "executed  8,192 warp instructions, all 32 threads active" in load
    assert "global    4.0 sectors per request, no more than needed" in store
    assert "local     4,096 sectors of local memory" in store


def test_a_line_without_samples_keeps_its_counters() -> None:
    text = line_hover(measured_file(measurement(sampled={4: {"wait": 100}})), 3, now=NOW)
    assert text is not None
    assert "No stall samples here (measured, of 100 in the kernel, report of 2 h ago)" in text
    assert "16.0 sectors per request" in text
    assert line_hover(measured_file(measurement()), 2, now=NOW) is None


def test_lines_follow_the_profiled_text_and_edited_ones_are_unmeasured() -> None:
    now = TEXT.replace("    t[threadIdx.x] = a;\n", "    // one more\n    t[threadIdx.x] = a + 1;\n")
    found = measurement(built="other", text=now, profiled_text=TEXT)
    assert hint_texts(found) == {3: "12 % stalls: long scoreboard", 6: "38 % stalls: short scoreboard"}
    file = measured_file(found, text=now)
    assert line_hover(file, 5, now=NOW) is None  # the changed store: nothing is known of it here
    text = hover_of(found)
    assert "By line: by the source in the report; the source was changed since." in text
    assert "50 % of the samples were on lines that are gone." in text
    moved = line_hover(file, 6, now=NOW)
    assert moved is not None
    assert "report of 2 h ago, by line)" in moved


def test_a_stale_line_says_why() -> None:
    text = line_hover(measured_file(measurement(built="other")), 4, now=NOW)
    assert text is not None
    assert "report of 2 h ago, stale)" in text
    assert "Stale: the code built now differs from the profiled code" in text


def test_bars_never_pass_their_share() -> None:
    many = {"long_scoreboard": 31, "wait": 21, "barrier": 18, "drain": 12, "membar": 9, "misc": 6, "selected": 3}
    text = line_hover(measured_file(measurement(sampled={4: many})), 4, now=NOW)
    assert text is not None
    rows = re.findall(r"^(.+?)  +(\d+) %  ?(#*)$", text, re.MULTILINE)
    assert [row[0].strip() for row in rows] == ["long scoreboard", "wait", "barrier", "drain", "membar", "1 other"]
    assert sum(int(row[1]) for row in rows) == 97
    assert "3 % of them issued or were ready to (selected): no stall." in text
    assert [len(row[2]) for row in rows] == [6, 4, 4, 2, 2, 1]  # 20 cells are 100 %, halves up


# --- the kernel ---


def test_kernel_hover() -> None:
    metrics = {**ALL, **ROOFLINE, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": Metric(30.0, "%")}
    metrics["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"] = Metric(70.0, "%")
    text = hover_of(measurement(metrics, rules=(LOCAL, TAIL)))
    assert text.partition("\n\nBlock 256")[0] == (
        "**gemm**  RTX 3070 Ti, sm_86\n\n"
        "1.92 ms measured: SM 31 %, memory 70 % (DRAM 30 %).  \n"
        "Held by the memory path, not by DRAM. Next: sectors per request, bank conflicts, vector width, layout.\n\n"
        "The schedulers issue in 35 % of cycles; 0.71 warps are eligible on average, of 10.00 active.\n\n"
        "```text\n"
        "long scoreboard   50 %  ##########\n"
        "short scoreboard  38 %  ########\n"
        "MIO throttle       6 %  #\n"
        "wait               2 %\n"
        "```\n\n"
        "81 % achieved occupancy of 100 % theoretical. "
        "Tail: 13.05 waves, the last one 5 % full; 7 % of the block slots stay empty.  \n"
        "DRAM: 40.0 GB/s of 320 GB/s at that run's clocks.  \n"
        "Roofline fp32: 20.0 GFLOPS, 0.5 FLOP per DRAM byte against a balance of 6.25: memory side, "
        "13 % of what it allows. Tensor operations, if there were any, are not counted.\n\n"
        "Hot lines:\n"
        "- l.4: 50 %, long scoreboard\n"
        "- l.5: 38 %, short scoreboard\n"
        "- l.3: 12 %, long scoreboard\n\n"
        "NVIDIA's own estimates of a speed-up: Tail Effect 50 %; "
        "only in their own metric: TheoreticalOccupancy 67 %.\n\n"
        "From gemm.ncu-rep of 2 h ago, ncu 2024.1.1, RTX 3070 Ti.  \n"
        "Not in the report: parts of duration and speed of light, parts of the launch, parts of occupancy, "
        "stalls of the kernel, parts of FLOP and DRAM traffic (ncu --set full)."
    )


def test_tensor_operations_are_not_placed() -> None:
    pipe = {"sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active": Metric(33.3, "%")}
    text = hover_of(measurement({**ALL, **ROOFLINE, **pipe}))
    assert (
        "Roofline: the tensor pipe is in use 33 % of the time and tensor operations are not counted, so the place is "
        "not known; fp32 alone: 20.0 GFLOPS." in text
    )
    assert "side" not in text


def test_a_report_of_another_architecture_is_told_apart() -> None:
    other = measurement({**ALL, "device__attribute_compute_capability_minor": Metric(0, "")})
    assert "Measured on sm_80, and this build is for sm_86: its code is another one." in hover_of(other)


def test_a_basic_report_says_what_it_lacks() -> None:
    text = hover_of(measurement({**SPEED_ONLY}, sampled=None))
    assert "1.92 ms measured: SM 31 %, memory 88 % (DRAM 84 %)." in text
    assert "It has no counters by line, so whether the code is still the profiled one is not told." in text
    assert "samples and counters by line" in text
    assert "(ncu --set full)" in text
    assert "Stale" not in text


def test_without_issue_slots_stalls_are_not_judged() -> None:
    text = hover_of(measurement(SPEED_ONLY))
    assert "Stalls by samples; whether they matter is not known without the issue slots:" in text


def test_at_a_roof_stalls_follow() -> None:
    assert "DRAM is at 88 % of its peak: the stalls follow from it." in hover_of(measurement())


def test_samples_outside_the_kernel_are_told() -> None:
    far = {**SAMPLED, 4000: {"wait": 1000}}  # no line, far behind the code
    found = measurement(sampled=far)
    assert "- outside the kernel's own code: 50 %" in hover_of(found)
