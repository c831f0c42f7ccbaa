"""First readings of a launch: class, tail, issue slots; and roofline points by hand computation."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.kernel_profile import KernelProfile
from kernel_lsp.ncu.raw_report import Metric, RawAction
from kernel_lsp.ncu.reading import issue_reading, sol_reading, tail_wave
from kernel_lsp.ncu.roofline import roofline_points
from kernel_lsp.ncu.units import in_base_unit

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
STATE = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
ISSUE = "smsp__issue_active.avg.per_cycle_active"
SAMPLES = "smsp__pcsamp_warps_issue_stalled_"


def profile(**values: float | str) -> KernelProfile:
    """A launch with these metrics ("X" for "__" and "." in names is spelled out by the caller)."""
    return read_kernel_profile(RawAction("k", "_Z1kv", MappingProxyType({k: Metric(v, "") for k, v in values.items()})))


@pytest.mark.parametrize(
    ("sm", "memory", "dram", "kind"),
    [
        (90, 20, 5, "compute"),
        (20, 90, 85, "dram"),
        (20, 90, 15, "memory_path"),
        (20, 30, 25, "latency"),
        (80, 85, 20, "balanced"),
        (59.9, 59.9, 59.9, "latency"),
    ],
)
def test_the_five_readings(sm: float, memory: float, dram: float, kind: str) -> None:
    reading = sol_reading(profile(**{SM: sm, MEMORY: memory, DRAM: dram}))
    assert reading.kind == kind
    assert reading.words
    assert reading.next_step


def test_the_breakdown_names_the_unit() -> None:
    listed: dict[str, float | str] = {
        f"breakdown:{MEMORY}": "dram__cycles_active.avg.pct,lts__t_sectors.avg.pct,l1tex__data_bank_reads.avg.pct",
        "dram__cycles_active.avg.pct": 31.0,
        "lts__t_sectors.avg.pct": 92.0,
        "l1tex__data_bank_reads.avg.pct": 40.0,
    }
    reading = sol_reading(profile(**{SM: 20.0, MEMORY: 92.0, DRAM: 31.0, **listed}))
    assert (reading.kind, reading.culprit) == ("memory_path", "L2")


def test_without_speed_of_light_nothing_is_read() -> None:
    assert sol_reading(profile()).kind is None


@pytest.mark.parametrize(
    ("waves", "fill", "costly"),
    [
        (13.84, 0.84, False),  # 4096 blocks on 148 SMs with 2 each: little waste
        (13.05, 0.05, True),
        (1.2, 0.2, True),
        (120.64, 0.64, False),
        (0.15, 0.15, False),  # less than one wave is a small grid, not a tail
    ],
)
def test_tail_waves(waves: float, fill: float, costly: bool) -> None:
    tail = tail_wave(profile(launch__waves_per_multiprocessor=waves))
    assert tail is not None
    assert tail.fill == pytest.approx(fill)
    assert tail.costly is costly


def test_whole_waves_have_no_tail() -> None:
    assert tail_wave(profile(launch__waves_per_multiprocessor=78.0)) is None
    assert tail_wave(profile()) is None


def test_stalls_are_read_only_where_schedulers_do_not_issue() -> None:
    states = {STATE.format("long_scoreboard"): 6.0, STATE.format("selected"): 1.0, STATE.format("not_selected"): 3.0}
    idle = issue_reading(profile(**{ISSUE: 0.3, **states}))
    assert idle.stalls_matter is True
    assert idle.top_stalls == (("long_scoreboard", 0.6),)
    busy = issue_reading(profile(**{ISSUE: 0.92, **states}))
    assert busy.stalls_matter is False
    assert busy.top_stalls == ()
    assert "92 %" in busy.healthy[0]


def test_healthy_states_are_said_to_be_healthy() -> None:
    math = {STATE.format("math_pipe_throttle"): 5.0, STATE.format("not_selected"): 5.0, STATE.format("selected"): 1.0}
    found = issue_reading(profile(**{ISSUE: 0.7, SM: 90.0, MEMORY: 20.0, **math}))
    assert any("Not selected" in each for each in found.healthy)
    assert any("Math pipe" in each for each in found.healthy)
    memory_bound = issue_reading(profile(**{ISSUE: 0.7, SM: 20.0, MEMORY: 90.0, **math}))
    assert not any("Math pipe" in each for each in memory_bound.healthy)


def test_few_samples_carry_no_shares() -> None:
    assert issue_reading(profile(**{ISSUE: 0.3, SAMPLES + "wait": 10})).top_stalls == ()
    assert issue_reading(profile(**{ISSUE: 0.3, SAMPLES + "wait": 100})).top_stalls == (("wait", 1.0),)


def test_roofline_from_totals() -> None:
    """1,048,576 FMUL and 1,073,741,824 FFMA in 10,776,576 ns, 32,746,880 bytes: as in a published live run."""
    prefix = "sm__sass_thread_inst_executed_op_"
    metrics = {
        f"{prefix}fadd_pred_on.sum": Metric(0, "inst"),
        f"{prefix}fmul_pred_on.sum": Metric(1_048_576, "inst"),
        f"{prefix}ffma_pred_on.sum": Metric(1_073_741_824, "inst"),
        "dram__bytes.sum": Metric(32_746_880, "byte"),
    }
    (point,) = roofline_points(metrics, 10_776_576.0)
    flop = 1_048_576 + 2 * 1_073_741_824
    assert point.flop == pytest.approx(flop)
    assert point.flop_per_s == pytest.approx(flop / 10_776_576e-9)
    assert point.bytes_per_s == pytest.approx(32_746_880 / 10_776_576e-9)
    assert (point.peak_flop_per_s, point.peak_bytes_per_s) == (None, None)


def test_a_precision_with_an_operation_missing_is_not_made_up() -> None:
    metrics = {"sm__sass_thread_inst_executed_op_ffma_pred_on.sum": Metric(5, "inst")}
    assert roofline_points(metrics, 1000.0) == ()


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (22.592, "us", 22.592e-6),
        (3, "usecond", 3e-6),
        (7, "nsecond", 7e-9),
        (2, "ms", 2e-3),
        (1.5, "s", 1.5),
        (3.99, "Ghz", 3.99e9),
        (585, "Mhz", 585e6),
        (196.46, "Gbyte/s", 196.46e9),
        (2, "Kbyte/block", 2000),
        (128, "byte/cycle", 128),
        (61.84, "%", 61.84),
        (36, "register/thread", 36),
        (5, "", 5),
        (4, "block", 4),
        (3, "%/Kbyte", None),
        (3, "1/us", None),
    ],
)
def test_units_of_every_age(value: float, unit: str, expected: float | None) -> None:
    found = in_base_unit(value, unit)
    assert found == (None if expected is None else pytest.approx(expected))
