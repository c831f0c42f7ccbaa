"""Measurements in words, shared by hovers, lens, hints, report and `kernel-lsp profile`.

Every number is of one launch under Nsight Compute. What a report lacks gives no words ("" or no line), never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kernel_lsp.findings import wording
from kernel_lsp.ncu.stall_reasons import stall_reason

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
    from kernel_lsp.ncu.kernel_profile import KernelProfile

BAR_CELLS = 20  # of 100 %


def reason_words(reason: str) -> str:
    """`long scoreboard`, `MIO throttle`, `no instruction`: as Nsight Compute spells them."""
    return stall_reason(reason).words


def share_words(share: float) -> str:
    """`31 %`; `< 1 %` for what is there but rounds to nothing."""
    return "< 1 %" if 0 < share < 0.005 else wording.percent(share)


def pct_words(pct: float) -> str:
    """A value in percent, as `share_words`."""
    return share_words(pct / 100)


def duration_words(duration_ns: float) -> str:
    """`1.60 us`, `70.5 us`, `1.92 ms`, `8.26 s`: three digits."""
    for unit, scale in (("us", 1e3), ("ms", 1e6)):
        if duration_ns < 999.5 * scale:
            return f"{_three_digits(duration_ns / scale)} {unit}"
    return f"{_three_digits(duration_ns / 1e9)} s"


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def rate_words(per_s: float, unit: str) -> str:
    """`21.7 TFLOPS`, `1.44 GFLOPS`; `608 GB/s`."""
    for prefix, scale in (("T", 1e12), ("G", 1e9)):
        if per_s >= scale and (prefix == "G" or not unit.startswith("B")):
            return f"{_three_digits(per_s / scale)} {prefix}{unit}"
    return f"{_three_digits(per_s / 1e6)} M{unit}"


def amount_words(count: float, unit: str) -> str:
    """`4.29 GB`, `17.2 GFLOP`: factor 1,000."""
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{_three_digits(count / scale)} {prefix}{unit}"
    return f"{count:.0f} {unit}"


def number_words(value: float) -> str:
    """Three digits at most: `35.7`, `0.53`, `0.0031`."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def age_words(modified_at: datetime, now: datetime) -> str:
    """`2 h`, `5 min`, `3 days`; "" for less than a minute, or a clock that runs behind."""
    minutes = int((now - modified_at).total_seconds() // 60)
    if minutes < 1:
        return ""
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h"
    return f"{minutes // (24 * 60):,} days"


def of_age(modified_at: datetime, now: datetime | None) -> str:
    """`of 2 h ago`, `of just now`; `of 2025-11-29 14:02` where `now` is None: in a page that lasts."""
    if now is None:
        return f"of {modified_at:%Y-%m-%d %H:%M}"
    age = age_words(modified_at, now)
    return f"of {age} ago" if age else "of just now"


def old(modified_at: datetime, now: datetime | None) -> str:
    """`2 h old`, `just made`, or the day."""
    if now is None:
        return of_age(modified_at, None)
    age = age_words(modified_at, now)
    return f"{age} old" if age else "just made"


def ncu_words(collector: str | None) -> str:
    """`ncu 2024.1.1`; "" where the report does not tell."""
    return f"ncu {'.'.join(collector.split('.')[:3])}" if collector else ""


def device_words(profile: KernelProfile) -> str:
    """`A100 80GB PCIe`; "" where the report does not tell."""
    return (profile.device.name or "").removeprefix("NVIDIA ").removeprefix("GeForce ")


def provenance(found: KernelMeasurement, now: datetime | None) -> str:
    """`report.ncu-rep of 2 h ago, launch 2 of 3, ncu 2024.1.1, A100 80GB PCIe`."""
    said = [f"{found.report_name} {of_age(found.modified_at, now)}"]
    if len(found.launches) > 1:
        said.append(f"launch {found.number} of {len(found.launches)}")
    said += [ncu_words(found.collector), device_words(found.profile)]
    return ", ".join(part for part in said if part)


def fit_mark(found: KernelMeasurement) -> str:
    """`by line`, `stale`; "" where it fits, or has nothing that could be on a wrong line."""
    return "" if found.placed.fit == "exact" or found.profile.instructions is None else found.placed.fit


def fit_sentence(found: KernelMeasurement) -> str:
    """Why the report does not fit exactly; "" where it does."""
    placed, samples = found.placed, found.profile.samples
    if placed.fit == "exact":
        return ""
    if found.profile.instructions is None:
        return "It has no counters by line, so whether the code is still the profiled one is not told."
    said = f"{placed.fit[0].upper()}{placed.fit[1:]}: {placed.why.rstrip('.')}."
    if placed.lost_samples and samples is not None:
        few = f"{placed.lost_samples:,} samples"
        lost = few if samples.few else f"{share_words(placed.lost_samples / samples.total)} of the samples"
        said += f" {lost} were on lines that are gone."
    return said


def bar_lines(rows: Sequence[tuple[str, float]], values: Sequence[str]) -> list[str]:
    """Aligned names, values and bars; `rows` hold shares 0..1."""
    wide = max((len(name) for name, _ in rows), default=0)
    most = max((len(value) for value in values), default=0)
    return [
        f"{name:<{wide}}  {value:>{most}}  {'#' * int(share * BAR_CELLS + 0.5)}".rstrip()
        for (name, share), value in zip(rows, values, strict=True)
    ]
