"""Turns a loop's counts into its compute/load ratio, its class, and whether asynchronous copies may pay there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import yaml

from kernel_lsp.cubin.mix import LoopWork


@dataclass(frozen=True, slots=True)
class LoadRatio:
    """Compute operations per global load operation of one loop iteration.

    `kind`: "low", "medium" or "high"; `cp_async`: "pays", "try", "does not pay", "already". Each is None, with its
    reason, where it cannot be told or does not apply.
    """

    ratio: float | None
    kind: str | None
    why: str | None
    cp_async: str | None
    cp_async_why: str | None


@dataclass(frozen=True, slots=True)
class _Thresholds:
    low_below: float
    high_above: float
    first_arch_with_cp_async: int


def load_ratio(work: LoopWork, arch: str) -> LoadRatio:
    """The ratio of one loop on an architecture ("sm_86"); thresholds and their source in `ratio.yaml`."""
    limits = _thresholds()
    loads = work.load_ops + work.async_load_ops
    already = "already" if work.async_load_ops else None
    if work.inner_work:
        return _none("an inner loop computes or loads, and how often it runs is not known", already)
    if work.calls:
        return _none("the loop calls a function, and what that does is not counted", already)
    if work.texture_loads:
        return _none("the loop loads through textures or surfaces, whose bytes are not known", already)
    if not loads:
        return _none("the loop loads nothing from global memory", already)
    if not work.compute_ops:
        return _none("the loop does no arithmetic", already)
    ratio = work.compute_ops / loads
    kind = "low" if ratio < limits.low_below else "high" if ratio > limits.high_above else "medium"
    if already:
        return LoadRatio(ratio, kind, None, already, None)
    digits = re.match(r"sm_(\d+)", arch)
    if digits and int(digits[1]) < limits.first_arch_with_cp_async:
        return LoadRatio(ratio, kind, None, None, f"{arch} has no asynchronous copy")
    if not work.shared_stores:
        return LoadRatio(ratio, kind, None, None, "the loop stores nothing to shared memory")
    advice = {"low": "pays", "medium": "try", "high": "does not pay"}[kind]
    return LoadRatio(ratio, kind, None, advice, None)


def _none(why: str, cp_async: str | None) -> LoadRatio:
    return LoadRatio(None, None, why, cp_async, None if cp_async else why)


@lru_cache(maxsize=1)
def _thresholds() -> _Thresholds:
    data = yaml.safe_load(resources.files("kernel_lsp.model").joinpath("ratio.yaml").read_text(encoding="utf-8"))
    return _Thresholds(float(data["low_below"]), float(data["high_above"]), int(data["first_arch_with_cp_async"]))
