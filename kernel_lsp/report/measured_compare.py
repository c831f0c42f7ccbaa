"""Two measured launches of a kernel side by side as Markdown: time, speed of light, occupancy, stalls, hot lines."""

from __future__ import annotations

from collections.abc import Iterable

from kernel_lsp.ncu.attach import MeasuredKernel
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.kernel_profile import KernelProfile
from kernel_lsp.ncu.reading import issue_reading, sol_reading
from kernel_lsp.report.markdown import table_lines
from kernel_lsp.report.markdown_text import escaped, name
from kernel_lsp.report.measured_lines import file_line
from kernel_lsp.report.measured_rows import cost_rows
from kernel_lsp.report.measured_sentences import reading_sentence
from kernel_lsp.report.measured_words import duration_words, provenance, reason_words, share_words
from kernel_lsp.report.profile_text import compared_values, short_name
from kernel_lsp.report.section import Table

Measured = KernelMeasurement | MeasuredKernel

MOST_STALLS = 6
MOST_LINES = 10
_LEAST_SHARE = 0.01
_NEW_CLOCKS = (2026, 1)  # from this ncu on the clocks are boosted by default, before it was the base clock


def compare_markdown(before: Measured, after: Measured) -> str:
    """The page. Lines are those of the user's text where both are placed on it, else those of each report's own."""
    old, new = before.profile, after.profile
    parts = [f"# {name(short_name(new))}: before and after", _sources(before, after), _verdict(old, new)]
    parts.append("\n".join(f"- {escaped(note)}" for note in _notes(before, after)))
    parts.append(table_lines(Table(("", "before", "after", "change"), tuple(_values(old, new)))))
    readings = (reading_sentence(sol_reading(old)), reading_sentence(sol_reading(new)))
    if all(readings):
        parts.append(f"Before: {escaped(readings[0])}  \nAfter: {escaped(readings[1])}")
    stalls = _shares("stall, share of a warp's time", _stalls(old), _stalls(new), MOST_STALLS)
    lines = _shares("line, share of the samples", _lines(before), _lines(after), MOST_LINES)
    parts += [part for part in (stalls, lines) if part]
    return "\n\n".join(part for part in parts if part) + "\n"


def _sources(before: Measured, after: Measured) -> str:
    said = [
        f"{label}: {escaped(provenance(each, None))}."
        for label, each in (("Before", before), ("After", after))
        if isinstance(each, KernelMeasurement)
    ]
    return "  \n".join(said)


def _verdict(old: KernelProfile, new: KernelProfile) -> str:
    """`2.15 ms -> 1.92 ms: 10.7 % less time.`"""
    if not old.duration_ns or new.duration_ns is None:
        return ""
    change = new.duration_ns / old.duration_ns - 1
    words = f"{100 * abs(change):.1f} % {'less' if change < 0 else 'more'} time"
    said = words if abs(change) >= 0.0005 else "the same time"
    return f"{duration_words(old.duration_ns)} -> {duration_words(new.duration_ns)}: {said}."


def _notes(before: Measured, after: Measured) -> Iterable[str]:
    """What makes the two hard to compare."""
    old, new = before.profile, after.profile
    if old.device.name != new.device.name:
        yield f"Different devices: {old.device.name or 'not told'} and {new.device.name or 'not told'}."
    if (old.launch.grid, old.launch.block) != (new.launch.grid, new.launch.block):
        yield f"Launched differently: {_shape(old)} and {_shape(new)}."
    if isinstance(before, KernelMeasurement) and isinstance(after, KernelMeasurement):
        clocks = [_version(each.collector) for each in (before, after)]
        if None not in clocks and len({version >= _NEW_CLOCKS for version in clocks if version}) == 2:
            yield "ncu of 2026.1 and later measures at other clocks than earlier ones: the durations do not compare."


def _version(collector: str | None) -> tuple[int, ...] | None:
    parts = (collector or "").split(".")[:2]
    return tuple(map(int, parts)) if len(parts) == 2 and all(part.isdigit() for part in parts) else None


def _shape(profile: KernelProfile) -> str:
    launch = profile.launch
    if launch.grid is None or launch.block is None:
        return "not told"
    return f"grid {'x'.join(map(str, launch.grid))}, block {'x'.join(map(str, launch.block))}"


def _values(old: KernelProfile, new: KernelProfile) -> Iterable[tuple[str, ...]]:
    for label, one, other, unit in compared_values(old, new):
        if one is None and other is None:
            continue
        yield label, _number(one, unit), _number(other, unit), _change(one, other, unit)


def _change(one: float | None, other: float | None, unit: str) -> str:
    """Relative; of a percentage in points."""
    if one is None or other is None or one == other:
        return ""
    if unit == "%":
        return f"{other - one:+.1f} points"
    return f"{100 * (other - one) / one:+.1f} %" if one else ""


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "not told"
    if unit == "us":
        return duration_words(1000 * value)
    if unit == "%":
        return f"{value:.3g} %"
    return f"{value:,.4g} {unit}".strip() if abs(value) < 1000 else f"{value:,.0f} {unit}".strip()


def _stalls(profile: KernelProfile) -> dict[str, float]:
    """Share by reason in words; {} where stalls do not matter."""
    return {reason_words(reason): share for reason, share in issue_reading(profile).top_stalls}


def _lines(measured: Measured) -> dict[str, float]:
    """Share of the samples by line; {} where they are few or none."""
    samples = measured.profile.samples
    if samples is None or samples.few:
        return {}
    if isinstance(measured, MeasuredKernel):
        return {
            file_line(cost.file, cost.line): cost.own.samples / samples.total
            for cost in measured.lines
            if cost.own.samples
        }
    return {
        (f"l.{row.line}" if row.in_file else file_line(row.file, row.line)): row.here.samples / samples.total
        for row in cost_rows(measured, 1)
    }


def _shares(title: str, old: dict[str, float], new: dict[str, float], most: int) -> str:
    """The largest shares of either side, those from 1 % on; "" unless both have some."""
    if not old or not new:
        return ""
    told = {key for side in (old, new) for key, share in side.items() if share >= _LEAST_SHARE}
    keys = sorted(told, key=lambda key: (-max(old.get(key, 0.0), new.get(key, 0.0)), key))[:most]
    rows = [(key, *(share_words(side[key]) if key in side else "" for side in (old, new))) for key in keys]
    return table_lines(Table((title, "before", "after"), tuple(rows)))
