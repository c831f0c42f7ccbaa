"""Times that a program prints: read exactly, never invented, and compared without a verdict that they do not give."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.model.benchmark_times import (
    BenchmarkOutputError,
    Spread,
    Timing,
    compared,
    compiled,
    spreads,
    times_in,
)

NAMED = r"(?P<name>[\w<>]+)(?: n=(?P<size>\d+))?: (?:(?P<ms>[\d.]+) ms|(?P<us>[\d.]+) us|(?P<ns>\d+) ns)"
positive = st.floats(1e-3, 1e9, allow_nan=False)
words = st.text(st.characters(categories=["Ll", "Nd"]), max_size=5)


def test_lines_of_json_among_the_programs_own() -> None:
    output = 'GPU: A100\n{"name": "gemm", "size": 1024, "ms": 0.12}\n{"us": 7.5}\n{"note": 1}\n{oops\n[1, 2]\n'
    assert times_in(output, "json", "64") == (Timing("gemm", "1024", 120_000.0), Timing("", "64", 7_500.0))


def test_a_pattern_with_units_of_its_own() -> None:
    output = "warming up 3 ms\ngemm n=1024: 0.25 ms, tile<16>: 12.5 us\nreduce: 900 ns\n"
    got = times_in(output, NAMED, "8")
    # 0.25 ms = 250,000 ns; 12.5 us = 12,500 ns
    assert [(t.size, t.ns) for t in got] == [("1024", 250_000.0), ("8", 12_500.0), ("8", 900.0)]
    assert [t.name for t in got] == ["gemm", "tile<16>", "reduce"]


@pytest.mark.parametrize("bad", ["0", "-1", "1e999", "nan", '"fast"', "null", "true", "[1]"])
def test_what_is_no_time_is_an_error(bad: str) -> None:
    with pytest.raises(BenchmarkOutputError, match=r"line 2 of its output: .* ms is not a time"):
        times_in(f'{{"ms": 1}}\n{{"ms": {bad}}}\n'.replace("nan", "NaN"), "json", "")


def test_a_match_that_is_no_number_is_an_error() -> None:
    with pytest.raises(BenchmarkOutputError, match=r"'1\.2\.3' ms is not a time"):
        times_in("t: 1.2.3 ms", r"t: (?P<ms>[\d.]+) ms", "")


@pytest.mark.parametrize(("pattern", "part"), [("json", '{"name": "gemm"'), (r"(?P<ms>\d+) ms", r"(?P<ms>\d+) ms")])
def test_no_time_says_what_was_looked_for(pattern: str, part: str) -> None:
    with pytest.raises(BenchmarkOutputError) as raised:
        times_in("took a while\n", pattern, "")
    assert part in str(raised.value)


@pytest.mark.parametrize("pattern", ["(", r"(?P<s>\d+)", r"\d+ ms", ""])
def test_a_pattern_that_gives_no_time(pattern: str) -> None:
    with pytest.raises(BenchmarkOutputError):
        compiled(pattern)


@given(st.lists(st.tuples(words, words, st.sampled_from(["ns", "us", "ms"]), positive), min_size=1, max_size=20))
def test_json_comes_back_as_it_was_printed(rows: list[tuple[str, str, str, float]]) -> None:
    output = "\n".join(json.dumps({"name": name, "size": size, unit: value}) for name, size, unit, value in rows)
    factor = {"ns": 1, "us": 1000, "ms": 1000000}
    got = times_in(output, "json", "default")
    assert [(t.name, t.size) for t in got] == [(name, size) for name, size, _, _ in rows]
    assert [t.ns for t in got] == pytest.approx([value * factor[unit] for _, _, unit, value in rows])


@given(st.text(max_size=200), st.sampled_from(["json", NAMED, r"(?P<us>\S+)us"]))
def test_any_output_gives_positive_times_or_one_error(output: str, pattern: str) -> None:
    with suppress(BenchmarkOutputError):
        got = times_in(output, pattern, "")
        assert got
        assert all(0 < timing.ns < float("inf") for timing in got)


def test_a_long_line_is_bounded() -> None:
    assert times_in("x" * 10_000_000 + "\n" + '{"ms": 1}', "json", "")[0].ns == 1e6


@given(st.lists(positive, min_size=1, max_size=9))
def test_a_spread_holds_its_times(ns: list[float]) -> None:
    [spread] = spreads(Timing("k", "1", each) for each in ns)
    # The median by its definition: as many times at or below it as at or above it.
    at_most = sum(each <= spread.median_ns for each in ns)
    at_least = sum(each >= spread.median_ns for each in ns)
    assert spread.n_times == len(ns)
    assert min(at_most, at_least) * 2 >= len(ns)
    assert spread.least_ns in ns
    assert spread.most_ns in ns
    assert all(spread.least_ns <= each <= spread.most_ns for each in ns)


def test_spreads_keep_names_and_sizes_apart_in_their_order() -> None:
    rows = [Timing("b", "2", 4.0), Timing("a", "2", 1.0), Timing("b", "4", 9.0), Timing("b", "2", 6.0)]
    assert spreads(rows) == (
        Spread("b", "2", 2, 5.0, 4.0, 6.0),
        Spread("a", "2", 1, 1.0, 1.0, 1.0),
        Spread("b", "4", 1, 9.0, 9.0, 9.0),
    )


def spread(n: int, median: float, least: float, most: float, size: str = "1") -> Spread:
    return Spread("k", size, n, median, least, most)


@pytest.mark.parametrize(
    ("now", "before", "change", "verdict"),
    [
        (spread(3, 90, 88, 95), spread(3, 100, 96, 104), -0.1, "faster"),
        (spread(3, 120, 110, 130), spread(3, 100, 96, 104), 0.2, "slower"),
        (spread(3, 90, 88, 97), spread(3, 100, 96, 104), -0.1, "within the spread"),
        (spread(2, 50, 49, 51), spread(3, 100, 96, 104), -0.5, "too few times"),
        (spread(3, 100, 100, 100), spread(3, 100, 100, 100), 0.0, "within the spread"),
    ],
)
def test_verdicts(now: Spread, before: Spread, change: float, verdict: str) -> None:
    [got] = compared([now], [before])
    assert got.change == pytest.approx(change)
    assert got.verdict == verdict


def test_another_size_is_not_compared() -> None:
    [got] = compared([spread(3, 1, 1, 1, size="2")], [spread(3, 1, 1, 1, size="1")])
    assert (got.before, got.change, got.verdict) == (None, None, "new")


def test_the_default_pattern_of_the_messages_works() -> None:
    """The expression that messages give as an example reads what they say."""
    with pytest.raises(BenchmarkOutputError) as raised:
        times_in("", "json", "")
    example = re.search(r"for example (\S+ \S+ \S+)$", str(raised.value))
    assert example is not None
    assert times_in("gemm: 0.5 ms", example[1], "") == (Timing("gemm", "", 500_000.0),)
