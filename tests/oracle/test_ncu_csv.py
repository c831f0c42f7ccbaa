"""Real CSV pages of ncu: the values are those printed, and what NVIDIA's rules say of them is recomputed from them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.csv_pages import read_csv_page
from kernel_lsp.ncu.kernel_profile import KernelProfile
from kernel_lsp.ncu.raw_report import NcuError, RawReport

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "ncu" / "csv"


def page(name: str) -> RawReport:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"left out: there are no measured pages at {DATA}")
    return read_csv_page(path.read_bytes(), name, "digest")


def printed(name: str) -> list[dict[str, str]]:
    """The page's metric rows by Python's csv module alone."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["Metric Name"]]


@pytest.mark.parametrize(
    "name", ["details_metrics.csv", "live_metrics.csv", "live_metrics_locale.csv", "details_units_base.csv"]
)
def test_every_printed_value_is_kept(name: str) -> None:
    report = page(name)
    kept = {
        (float(metric.value), metric.unit)
        for action in report.actions
        for key, metric in action.metrics.items()
        if isinstance(metric.value, int | float)
        and not key.startswith(("launch__block_dim", "launch__grid_dim", "device__attribute_compute"))
    }
    # en_US in these pages: a comma groups thousands.
    cells = [(row["Metric Value"].replace(",", ""), row["Metric Unit"]) for row in printed(name)]
    # A metric that stands in two sections is kept once.
    expected = {(float(cell), unit) for cell, unit in cells if re.fullmatch(r"[\d.]+", cell)}
    assert kept == expected
    assert len(kept) > 5
    assert report.notes == ()


def _profile(name: str) -> KernelProfile:
    return read_kernel_profile(page(name).actions[0])


def test_base_units_and_what_the_rules_say() -> None:
    profile = _profile("details_units_base.csv")
    assert profile.duration_ns == 21_058_944
    assert profile.sm_hz == 584_998_877.44
    assert (profile.sol.sm, profile.sol.memory, profile.sol.dram) == (1.30, 61.84, 61.84)
    assert profile.launch.waves_per_sm == 6.40
    launch, occupancy = profile.launch, profile.occupancy
    assert launch.grid_blocks is not None
    assert occupancy.blocks_per_sm == 4
    assert launch.grid_blocks / (40 * occupancy.blocks_per_sm) == pytest.approx(launch.waves_per_sm)  # "# SMs": 40
    assert occupancy.theoretical == 1.0
    stall = next(rule for rule in profile.rules if rule.rule == "CPIStall" and "491.9 cycles" in rule.message)
    found = re.search(r"about ([\d.]+)% of the total average of ([\d.]+) cycles", stall.message)
    assert found is not None
    assert profile.scheduler.cycles_per_instruction == pytest.approx(float(found[2]), abs=0.06)
    assert stall.speedup_pct == 38.16


def test_roofline_of_the_details_page() -> None:
    (fp32, fp64) = _profile("section_roofline_details_all.csv").roofline
    assert fp32.precision == "fp32"
    # printed: 158.12 FLOP per cycle from FFMA and 1.97 from FADD at 2.15 GHz; 43,520 per cycle at most
    assert fp32.flop_per_s == pytest.approx((158.12 + 1.97) * 2.15e9)
    assert fp32.peak_flop_per_s == pytest.approx(43_520 * 2.15e9)
    assert fp32.bytes_per_s == pytest.approx(345.14e9)
    assert fp32.peak_bytes_per_s == pytest.approx(128 * 13.72e9)
    assert fp64.flop_per_s == 0
    message = page("section_roofline_details_all.csv").actions[0].rules[0].message
    assert "close to 0% of this device's fp32 peak" in message
    assert fp32.peak_flop_per_s is not None
    assert 0 < fp32.flop_per_s / fp32.peak_flop_per_s < 0.01


def test_source_page_by_python_alone() -> None:
    report = page("source_sass_excerpt.csv")
    with (DATA / "source_sass_excerpt.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    header, body = rows[1], rows[2:]
    action = report.actions[0]
    for label, metric in (
        ("# Samples", "smsp__pcsamp_sample_count"),
        ("stall_imc", "smsp__pcsamp_warps_issue_stalled_imc_miss"),
    ):
        column = action.columns[metric]
        at = header.index(label)
        assert dict(zip(column.pcs.tolist(), column.values.tolist(), strict=True)) == {
            int(row[0], 16): float(row[at]) for row in body
        }
    profile = read_kernel_profile(action)
    assert profile.samples is not None
    assert profile.samples.total == sum(int(row[header.index("# Samples")]) for row in body)


def test_a_failed_export_says_why() -> None:
    with pytest.raises(NcuError, match="did not match any section"):
        page("error_only_raw.csv")
