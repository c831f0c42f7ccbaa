"""Turns a measured launch into its hot lines: the share of samples, the reason, and what the line waits for.

A line is hot from a tenth of the launch's samples on (ncu's own rules mark an instruction at that share, and a reason
that takes more than 30 % of its samples). Few samples make no hot lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.ncu.attach import LineCost, MeasuredKernel
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
    limits = reading_table()["thresholds"]
    return tuple(
        _hot(cost, samples.total, limits["stall_share"])
        for cost in measured.lines
        if cost.own.samples >= limits["hot_share"] * samples.total
    )


def main_stall(cost: LineCost) -> str | None:
    """The reason that most of a line's samples have, states that hold nothing up left out."""
    return next((reason for reason in cost.own.by_reason if reason not in NO_STALL), None)


def main_wait(cost: LineCost, reason: str | None) -> WaitFor | None:
    """What most of a line's samples of a reason wait for."""
    return next((wait for wait in cost.waits_for if wait.reason == reason), None)


def _hot(cost: LineCost, total: int, stall_share: float) -> HotLine:
    reason = main_stall(cost)
    share = cost.own.by_reason[reason] / cost.own.samples if reason else 0.0
    if share <= stall_share:
        reason, share = None, 0.0
    return HotLine(cost, cost.own.samples / total, reason, share, main_wait(cost, reason))
