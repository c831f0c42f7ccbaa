"""What a benchmark program prints becomes times by kernel and size, and two results a comparison.

Only times that the program itself reports count (it takes them from CUDA events): how long its process ran is never
used, as that holds the start of CUDA, copies and the program's own work.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

JSON_LINES = "json"
UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6}
_MOST_LINE = 2_000  # letters of a line that are looked at
_MOST_TIMES = 100_000
_LEAST_TIMES = 3  # on each side, for a verdict

Verdict = Literal["faster", "slower", "within the spread", "too few times", "new"]


class BenchmarkOutputError(ValueError):
    """A pattern or an output that gives no times; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One time of one kernel (or whatever the program names; "") at one problem size ("" where there is none)."""

    name: str
    size: str
    ns: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The times of one name and size."""

    name: str
    size: str
    n_times: int
    median_ns: float
    least_ns: float
    most_ns: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """A spread beside that of the result before. `change`: -0.1 is a tenth less time; None without one before."""

    now: Spread
    before: Spread | None
    change: float | None
    verdict: Verdict


def compiled(pattern: str) -> re.Pattern[str] | None:
    """The regular expression of a `benchmark.pattern`; None where it asks for JSON lines.

    Raises:
        BenchmarkOutputError: it is no regular expression, or has no group for the time.
    """
    if pattern == JSON_LINES:
        return None
    try:
        made = re.compile(pattern)
    except re.error as error:
        raise BenchmarkOutputError(f"no regular expression ({error})") from error
    if not UNITS_NS.keys() & made.groupindex.keys():
        raise BenchmarkOutputError("it needs a group named ms, us or ns, for example (?P<ms>[0-9.]+) ms")
    return made


def times_in(output: str, pattern: str, size: str) -> tuple[Timing, ...]:
    """The times in one run's output, in its order. `size` stands in where the output does not name one.

    A match whose number cannot be read, or is not a time (zero, negative, not finite), is an error: it must not be
    passed over in silence.

    Raises:
        BenchmarkOutputError: there is no time, or one that cannot be one.
    """
    regex = compiled(pattern)
    found: list[Timing] = []
    for number, line in enumerate(output.splitlines(), 1):
        text = line[:_MOST_LINE]
        found += _of_json(text, size, number) if regex is None else _of_matches(regex, text, size, number)
        if len(found) > _MOST_TIMES:
            raise BenchmarkOutputError(f"it printed more than {_MOST_TIMES:,} times; print fewer")
    if not found:
        wanted = (
            'lines such as {"name": "gemm", "size": 1024, "ms": 0.12}, or a regular expression in '
            "kernelLsp.benchmark.pattern, for example (?P<name>\\w+): (?P<ms>[0-9.]+) ms"
            if regex is None
            else f"kernelLsp.benchmark.pattern is {pattern}"
        )
        raise BenchmarkOutputError(f"no time in its output; it is read for {wanted}")
    return tuple(found)


def spreads(timings: Iterable[Timing]) -> tuple[Spread, ...]:
    """One spread for each name and size, in the order in which they first came."""
    by_key: dict[tuple[str, str], list[float]] = {}
    for timing in timings:
        by_key.setdefault((timing.name, timing.size), []).append(timing.ns)
    return tuple(
        Spread(name, size, len(ns), statistics.median(ns), min(ns), max(ns)) for (name, size), ns in by_key.items()
    )


def compared(now: Sequence[Spread], before: Sequence[Spread]) -> tuple[Comparison, ...]:
    """Each spread beside the one of the same name and size before.

    A verdict takes three times on each side that do not overlap: neither is a difference that the runs themselves
    show among each other.
    """
    known = {(each.name, each.size): each for each in before}
    return tuple(_comparison(each, known.get((each.name, each.size))) for each in now)


def _comparison(now: Spread, before: Spread | None) -> Comparison:
    if before is None:
        return Comparison(now, None, None, "new")
    change = now.median_ns / before.median_ns - 1
    verdict: Verdict
    if min(now.n_times, before.n_times) < _LEAST_TIMES:
        verdict = "too few times"
    elif now.most_ns < before.least_ns:
        verdict = "faster"
    elif now.least_ns > before.most_ns:
        verdict = "slower"
    else:
        verdict = "within the spread"
    return Comparison(now, before, change, verdict)


def _of_matches(regex: re.Pattern[str], line: str, size: str, number: int) -> Iterable[Timing]:
    for match in regex.finditer(line):
        groups = match.groupdict()
        unit = next((unit for unit in UNITS_NS if groups.get(unit) is not None), None)
        if unit is not None:
            named = groups.get("size")
            yield Timing(
                (groups.get("name") or "").strip(),
                size if named is None else named.strip(),
                _nanoseconds(groups[unit], unit, number),
            )


def _of_json(line: str, size: str, number: int) -> Iterable[Timing]:
    if not line.lstrip().startswith("{"):
        return
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # the program's own words
        return
    unit = next((unit for unit in UNITS_NS if isinstance(value, dict) and unit in value), None)
    if unit is not None:
        yield Timing(
            _word(value.get("name"), ""), _word(value.get("size"), size), _nanoseconds(value[unit], unit, number)
        )


def _word(value: object, default: str) -> str:
    return default if value is None else str(value).strip()


def _nanoseconds(value: object, unit: str, number: int) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError
        ns = float(value) * UNITS_NS[unit]
    except (ValueError, OverflowError):
        ns = math.nan
    if not 0 < ns < math.inf:
        raise BenchmarkOutputError(f"line {number} of its output: {str(value)[:40]!r} {unit} is not a time")
    return ns
