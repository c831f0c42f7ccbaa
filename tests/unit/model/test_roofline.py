"""Places under the roofs: hand computation, the published ridge points, and what holds for any input."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.cubin.opcodes import describe
from kernel_lsp.hardware.catalog import board, boards, representative
from kernel_lsp.hardware.profile_yaml import PRECISIONS
from kernel_lsp.model.roofline import Bound, Roofline, board_roof, bound, measured_roofline, precision_names, what_if
from kernel_lsp.model.usual_stalls import pipe_clocks
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.kernel_profile import RooflinePoint
from kernel_lsp.ncu.raw_report import Metric, RawAction
from kernel_lsp.ncu.reading import SolClass, issue_reading, reading_table, sol_reading

A100, H100, GA104 = "a100-sxm4-80gb", "h100-sxm5-80gb", "rtx-3070-ti"


def place(slug: str, precision: str, flop: float, dram_bytes: float, us: float | None = None) -> Roofline:
    return what_if(board_roof(board(slug), precision), flop, dram_bytes, None if us is None else us * 1e-6)


# --- The worked examples, each computed by hand ---


def test_an_elementwise_kernel_on_a_tensor_peak() -> None:
    """5 FLOP an element, 3 half values of 2 bytes each: 41,943,040 FLOP on 50,331,648 bytes in 32 us."""
    found = place(A100, "fp16", 2048 * 4096 * 5, 2048 * 4096 * 2 * 3, 32)
    assert found.intensity == pytest.approx(0.8333, abs=5e-5)  # 5 / 6
    assert found.balance == pytest.approx(153.02, abs=5e-3)  # 312 / 2.039
    assert found.flop_per_s == pytest.approx(1.31072e12)
    assert found.attainable_flop_per_s == pytest.approx(5 / 6 * 2.039e12)
    assert found.attained == pytest.approx(0.77139, abs=5e-6)  # 1.31072 / 1.69917
    assert bound(found) == Bound("memory", "duration", None)


def test_its_stalls_and_its_first_advice() -> None:
    stalls = {
        "long_scoreboard": 54.2,
        "mio_throttle": 15.1,
        "math_pipe_throttle": 2.5,
        "barrier": 8.2,
        "not_selected": 20.0,
    }
    metrics = {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 77.1,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 77.1,  # the share of the example above
        "smsp__issue_active.avg.per_cycle_active": 0.3,
        **{f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio": pct for name, pct in stalls.items()},
    }
    profile = read_kernel_profile(
        RawAction("k", "_Z1kv", MappingProxyType({name: Metric(value, "") for name, value in metrics.items()}))
    )
    reason, share = issue_reading(profile).top_stalls[0]
    assert reason == "long_scoreboard"
    assert share == pytest.approx(0.542)
    reading = sol_reading(profile)
    assert reading.kind == "dram"
    assert reading.next_step.startswith("fewer bytes: fusion")
    assert "coalesced and vector access" in reading.next_step


@pytest.mark.parametrize(
    ("slug", "precision", "ridge"),
    [
        (A100, "fp16", 153.0),  # 312 / 2.039
        (A100, "fp32", 9.56),  # 19.5 / 2.039
        (H100, "fp16", 295.3),  # 989.4 / 3.35
        (H100, "fp8", 590.7),  # 1,978.9 / 3.35, not the sparse 3,958
        (H100, "fp32", 20.0),  # 66.9 / 3.35 = 19.97
        (GA104, "fp32", 35.7),  # 21.7 / 0.608
        (GA104, "fp16", 71.5),  # 43.5: GeForce runs FP32 accumulation at half rate
        (GA104, "fp16_f32acc", 71.5),
        (GA104, "fp16_f16acc", 143.1),  # 87.0
        (GA104, "int8", 286.2),  # 174
    ],
)
def test_ridge_points_are_those_of_dense_peaks(slug: str, precision: str, ridge: float) -> None:
    assert place(slug, precision, 1, 1).balance == pytest.approx(ridge, rel=2e-3)


@pytest.mark.parametrize(
    ("m", "n", "k", "intensity", "side"),
    [
        (2048, 2048, 64, 30.1, "compute"),  # the short form MN / (2(M + N)), without C, would say 512
        (64, 64, 64, 10.7, "compute"),  # n / 6: above the balance of 9.56, so not held by memory
        (256, 256, 256, 42.7, "compute"),
        (4096, 4096, 4096, 682.7, "compute"),
        (32, 32, 32, 5.3, "memory"),
    ],
)
def test_matrix_products_with_every_operand_moved_once(m: int, n: int, k: int, intensity: float, side: str) -> None:
    found = place(A100, "fp32", 2 * m * n * k, 4 * (m * k + k * n + m * n))
    assert found.intensity == pytest.approx(intensity, abs=0.05)
    assert (found.side, bound(found)) == (side, Bound(found.side, "intensity", None))


def test_requested_traffic_of_untiled_and_tiled_products() -> None:
    """2 FLOP for 8 bytes each step; a tile of T asks for a T-th: on the compute side from T = 39 on (9.56 = T / 4)."""
    step = place(A100, "fp32", 2, 8)
    assert (step.intensity, step.side) == (0.25, "memory")
    assert [place(A100, "fp32", 2 * tile, 8).side for tile in (38, 39)] == ["memory", "compute"]


def test_a_small_product_is_held_by_latency() -> None:
    """64x64x64: 524,288 FLOP in 5 us are 0.105 TFLOPS, 0.5 % of what either roof allows."""
    found = place(A100, "fp32", 2 * 64**3, 4 * 3 * 64**2, 5)
    assert found.attained == pytest.approx(0.104858 / 19.5, rel=1e-5)
    assert bound(found) == Bound("latency", "duration", None)


def test_the_class_changes_with_the_problem_size() -> None:
    """Products of n x n on one H100 in FP16: n / 3 FLOP a byte, balance 295.3."""
    sides = [place(H100, "fp16", 2 * n**3, 2 * 3 * n**2).side for n in (128, 512, 884, 888, 4096)]
    assert sides == ["memory", "memory", "memory", "compute", "compute"]


def test_attention_forward() -> None:
    """4 B H S^2 D = 4 x 2 x 16 x 1024^2 x 64 FLOP; Q, K, V and O of 2 x 16 x 1024 x 64 halves: S / 2 FLOP a byte."""
    found = place(A100, "fp16", 4 * 2 * 16 * 1024**2 * 64, 4 * 2 * (2 * 16 * 1024 * 64))
    assert (found.intensity, found.side) == (512.0, "compute")


# --- Classes and edges ---


@pytest.mark.parametrize(
    ("us", "kind"),
    [
        (100.0, "memory"),  # 608 GB/s: all that DRAM gives
        (166.0, "memory"),  # 60.2 %
        (167.0, "latency"),  # 59.9 %
        (97.2, "memory"),  # 102.9 %: within what peaks are known to
        (97.0, None),  # 103.1 %
    ],
)
def test_thresholds_of_the_class(us: float, kind: str | None) -> None:
    assert bound(place(GA104, "fp32", 1e6, 60.8e6, us)).kind == kind


def test_more_than_the_roofs_allow_is_no_class() -> None:
    """2.7 TFLOPS at 0.25 FLOP a byte, where DRAM allows 0.51: the bytes were asked for, not moved."""
    found = place(A100, "fp32", 2.7e6, 10.8e6, 1)
    assert found.attainable_flop_per_s == pytest.approx(0.50975e12)
    assert found.attained == pytest.approx(5.297, rel=1e-3)
    held = bound(found)
    assert (held.kind, held.basis) == (None, None)
    assert held.why is not None
    assert held.why.startswith("530 %")


def test_a_copy_has_no_flop_to_attain_with() -> None:
    found = place(GA104, "fp32", 0, 60.8e6, 125)
    assert (found.intensity, found.side, found.attained) == (0.0, "memory", None)
    assert found.dram_share == pytest.approx(0.8)
    assert bound(found).kind == "memory"


def test_without_dram_traffic_there_is_one_roof() -> None:
    found = place(GA104, "fp32", 21.7e6, 0, 1.25)
    assert (found.intensity, found.side) == (None, "compute")
    assert found.attained == pytest.approx(0.8)
    assert bound(found).kind == "compute"


def test_without_work_and_traffic_there_is_no_side() -> None:
    nothing = place(GA104, "fp32", 0, 0, 5)
    assert (nothing.intensity, nothing.side, nothing.attainable_flop_per_s) == (None, None, None)
    assert bound(nothing) == Bound(None, None, "FLOP or DRAM bytes are not known")


def test_without_a_peak_nothing_is_claimed() -> None:
    found = place(GA104, "fp8", 1e9, 1e6, 10)
    assert (found.intensity, found.balance, found.side, found.attained) == (1000.0, None, None, None)
    assert bound(found) == Bound(None, None, "the peak is not known")
    roof = board_roof(board(GA104), "fp8")
    assert roof.peak is None
    assert roof.peak_why == (
        "RTX 3070 Ti has no fp8 peak on record; it has fp64, fp32, tf32, fp16, fp16_f16acc, fp16_core, bf16, int8, int4"
    )
    bare = board_roof(representative("sm_107"), "fp32")
    assert (bare.peak, bare.peak_why) == (None, "no board of sm_107 is in the catalogue")


@pytest.mark.parametrize(
    ("units", "kind"),
    [
        ("latency", "latency"),
        ("compute", "compute"),
        ("dram", "memory"),
        ("memory_path", "memory"),
        ("balanced", "memory"),
    ],
)
def test_units_without_a_roof_here_speak_where_neither_roof_is_approached(units: SolClass, kind: str) -> None:
    """A launch at 88 % of L1 is not called latency-bound because DRAM is idle; near a roof the roof decides."""
    assert bound(place(GA104, "fp32", 1e6, 60.8e6, 1000), units).kind == kind
    assert bound(place(GA104, "fp32", 1e6, 60.8e6, 110), units) == Bound("memory", "duration", None)
    beyond_balance = place(GA104, "fp32", 60.8e9, 60.8e6, 1e6)  # 1,000 FLOP a byte
    assert bound(beyond_balance, units).kind == ("compute" if units == "balanced" else kind)
    assert set(get_args(SolClass)) == {"latency", "compute", "dram", "memory_path", "balanced"}


def test_latency_starts_where_the_first_reading_says_so() -> None:
    """Both speak of latency below the 60 % of NVIDIA's rule."""
    least = reading_table()["thresholds"]["high_pct"] / 100
    base = place(GA104, "fp32", 1e6, 60.8e6, 100)
    assert base.peak_bytes_per_s is not None
    for share, kind in ((least, "memory"), (least - 1e-6, "latency")):
        assert bound(replace(base, bytes_per_s=share * base.peak_bytes_per_s, flop_per_s=1.0)).kind == kind


# --- Any input ---

counts = st.integers(min_value=1, max_value=10**15)  # whole in a double
times = st.floats(min_value=1e-3, max_value=1e9)
peaks = st.floats(min_value=1e9, max_value=1e17)


@given(flop=counts, dram_bytes=counts, us=times, scale=st.integers(min_value=2, max_value=10**6))
def test_more_of_the_same_work_stays_in_its_place(flop: int, dram_bytes: int, us: float, scale: int) -> None:
    one, many = (
        place(A100, "fp32", flop, dram_bytes, us),
        place(A100, "fp32", flop * scale, dram_bytes * scale, us * scale),
    )
    assert many.intensity == pytest.approx(one.intensity)
    assert many.attained == pytest.approx(one.attained)
    assert many.balance == one.balance


@given(flop=counts, dram_bytes=counts, us=times)
def test_attained_is_the_nearer_roof_and_the_least_time(flop: int, dram_bytes: int, us: float) -> None:
    found = place(GA104, "fp16", flop, dram_bytes, us)
    assert found.attained is not None
    assert found.peak_share is not None
    assert found.dram_share is not None
    assert found.least_seconds is not None
    assert found.attained == pytest.approx(max(found.peak_share, found.dram_share))
    assert found.attained == pytest.approx(found.least_seconds / (us * 1e-6))
    nearer = "compute" if found.peak_share > found.dram_share else "memory"
    assert found.side == nearer or found.peak_share == pytest.approx(found.dram_share)


@given(flop=counts, dram_bytes=counts, us=times, more=st.floats(min_value=1.0, max_value=1e3))
def test_what_is_allowed_never_falls_with_work_or_roofs(flop: int, dram_bytes: int, us: float, more: float) -> None:
    base = place(A100, "fp32", flop, dram_bytes, us)
    allowed, attained, peak, dram = (
        base.attainable_flop_per_s,
        base.attained,
        base.peak_flop_per_s,
        base.peak_bytes_per_s,
    )
    assert allowed is not None
    assert attained is not None
    assert peak is not None
    assert dram is not None

    def least(found: Roofline) -> float:
        assert found.attainable_flop_per_s is not None
        return found.attainable_flop_per_s * (1 + 1e-12)

    assert least(place(A100, "fp32", round(flop * more) + 1, dram_bytes, us)) >= allowed  # a higher intensity
    assert least(replace(base, peak_flop_per_s=peak * more)) >= allowed
    assert least(replace(base, peak_bytes_per_s=dram * more)) >= allowed
    assert allowed <= peak
    slower = place(A100, "fp32", flop, dram_bytes, us * more)
    assert slower.attained is not None
    assert slower.attained <= attained * (1 + 1e-12)


@given(flop=counts, dram_bytes=counts, us=times, peak=peaks, dram=peaks)
def test_measured_and_given_values_take_the_same_way(
    flop: int, dram_bytes: int, us: float, peak: float, dram: float
) -> None:
    seconds = us * 1e-6
    point = RooflinePoint("fp32", flop / seconds, peak, dram_bytes / seconds, dram, float(flop), float(dram_bytes))
    given_values = Roofline(flop, dram_bytes, flop / seconds, dram_bytes / seconds, peak, dram)
    measured = measured_roofline(point)
    assert measured == given_values
    assert bound(measured) == bound(given_values)
    # Rates alone (a report without totals) and totals alone (no time) agree on the intensity.
    rates = replace(measured, flop=None, dram_bytes=None)
    totals = replace(measured, flop_per_s=None, bytes_per_s=None)
    assert rates.intensity == pytest.approx(flop / dram_bytes)
    assert totals.intensity == pytest.approx(flop / dram_bytes)
    assert totals.attained is None


# --- Peaks by name ---


def test_every_peak_of_the_catalogue_has_a_name_and_a_clock() -> None:
    named = {board_roof(board(GA104), name).precision for name in precision_names()}
    assert named == set(PRECISIONS)
    for profile in boards():
        for name in precision_names():
            roof = board_roof(profile, name)
            assert (roof.peak is None) == (roof.peak_why is not None)
            assert roof.dram_gb_per_s == profile.dram_gb_per_s
            assert profile.dram_source


def test_the_clock_is_the_one_that_the_peak_is_quoted_at() -> None:
    """H100 SXM: tensor peaks at 1,830 MHz; others, and FP64 on tensor cores, at 1,980 (132 x 256 x 1.98 GHz = 66.9)."""
    clocks = {
        name: board_roof(board(H100), name).clock_mhz for name in ("fp32", "fp16_core", "fp64_tensor", "fp16", "int8")
    }
    assert clocks == {"fp32": 1980, "fp16_core": 1980, "fp64_tensor": 1980, "fp16": 1830, "int8": 1830}


def test_the_pipe_of_a_matrix_operation_in_fp64() -> None:
    """512 FLOP at 256 a clock and SM, a quarter of it for each sub-partition: 8 clocks, not the 7.4 of 1,830 MHz."""
    profile = board(H100)
    clock_mhz = profile.peak_clock_mhz("fp64_tensor")
    assert clock_mhz is not None
    assert profile.sm_count == 132
    per_clock = profile.peaks["fp64_tensor"].dense_tops * 1e6 / (132 * clock_mhz)
    assert pipe_clocks(describe("DMMA.8x8x4"), per_clock) == pytest.approx(8, rel=1e-3)


def test_a_bare_type_is_never_the_other_unit() -> None:
    """FP16 is the tensor cores with FP32 accumulation, on CUDA cores only where that was asked for."""
    a100 = board(A100)
    dense = {}
    for name in ("fp16", "fp16_core", "fp64", "fp64_tensor"):
        peak = board_roof(a100, name).peak
        assert peak is not None
        dense[name] = peak.dense_tops
    assert dense == {"fp16": 312, "fp16_core": 78, "fp64": 9.7, "fp64_tensor": 19.5}
