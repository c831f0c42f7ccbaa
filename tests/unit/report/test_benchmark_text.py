"""The benchmark's page: medians, spreads, before and after; names of the program are data, not markup."""

from __future__ import annotations

from datetime import datetime, timezone

from kernel_lsp.model.benchmark_times import Spread, compared
from kernel_lsp.report.benchmark_text import BenchmarkPage, benchmark_line, benchmark_markdown

AT = datetime(2025, 11, 30, 14, 2, tzinfo=timezone.utc)


def page(before: bool, **changes: int) -> BenchmarkPage:
    return BenchmarkPage("gemm.cu", ("./bench", "{size}"), AT, AT if before else None, 3, changes.get("n_warmup", 1))


def test_first_result() -> None:
    rows = compared([Spread("gemm", "1024", 3, 120_000.0, 118_000.0, 131_000.0)], ())
    text = benchmark_markdown(page(before=False), rows)
    assert benchmark_line(rows) == "gemm 1024: 120 us"
    assert "| kernel | size | measured | least to most | times |" in text
    assert "| gemm | 1024 | 120 us | 118 us to 131 us | 3 |" in text
    assert "before" not in text
    assert "in 3 runs of each size, after 1 to warm up that is not counted" in text
    assert "`./bench '{size}'`" in text


def test_before_and_after() -> None:
    now = [Spread("", "1", 3, 1.00e6, 0.99e6, 1.01e6), Spread("", "2", 3, 1.92e6, 1.90e6, 1.95e6)]
    before = [Spread("", "1", 3, 1.01e6, 1.00e6, 1.02e6), Spread("", "2", 3, 2.15e6, 2.10e6, 2.20e6)]
    rows = compared(now, before)
    assert benchmark_line(rows) == "2: 1.92 ms, 10.7 % less time (2.15 ms before)"
    text = benchmark_markdown(page(before=True), rows)
    assert "| size | measured | least to most | times | before | change |" in text
    assert "| 2 | 1.92 ms | 1.90 ms to 1.95 ms | 3 | 2.15 ms | 10.7 % less time |" in text
    assert "-1.0 %, no difference beyond the spread of the runs" in text


def test_names_are_no_markup() -> None:
    rows = compared([Spread("a|b](command:x)<img>", "", 1, 1.0e6, 1.0e6, 1.0e6)], ())
    text = benchmark_markdown(page(before=False), rows)
    assert "a\\|b](command:x)\\<img>" in text
    assert "| kernel | measured |" in text
