"""Turns a measured launch into its hot lines: the share of samples, the reason, and what the line waits for.

A line is hot from a tenth of the launch's samples on (ncu's own rules mark an instruction at that share, and a reason
that takes more than 30 % of its samples). Few samples make no hot lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_lsp.ncu.attach import Counters, LineCost, MeasuredKernel
from kernel_lsp.ncu.producers import WaitFor
from kernel_lsp.ncu.reading import NO_STALL, reading_table


@dataclass(frozen=True, slots=True)
class HotLine:
    """`share` of the launch's samples (0..1); `reason` None: no reason takes enough of them to be called the one."""

    cost: LineCost
    share: float
    reason: str | None
    reason_share: float  # of the line's samples
    waits_for: WaitFor | None  # the producer with most samples of that reason


def hot_lines(measured: MeasuredKernel) -> tuple[HotLine, ...]:
    """The hot lines, hottest first; none where the report has few samples or none."""
    samples = measured.profile.samples
    if samples is None or samples.few or not samples.total:
        return ()
    least = reading_table()["thresholds"]["hot_share"] * samples.total
    return tuple(_hot(cost, samples.total) for cost in measured.lines if cost.own.samples >= least)


def main_stall(counters: Counters) -> str | None:
    """The reason that most samples have, states that hold nothing up left out."""
    return next((reason for reason in counters.by_reason if reason not in NO_STALL), None)


def main_reason(counters: Counters) -> tuple[str | None, float]:
    """The reason that takes enough of the samples to be called the one, and its share of them; else None and 0."""
    reason = main_stall(counters)
    share = counters.by_reason[reason] / counters.samples if reason else 0.0
    return (reason, share) if share > reading_table()["thresholds"]["stall_share"] else (None, 0.0)


def wait_of(waits: Sequence[WaitFor], reason: str | None) -> WaitFor | None:
    """What most samples of a reason wait for."""
    return next((wait for wait in waits if wait.reason == reason), None)


def _hot(cost: LineCost, total: int) -> HotLine:
    reason, share = main_reason(cost.own)
    return HotLine(cost, cost.own.samples / total, reason, share, wait_of(cost.waits_for, reason))
