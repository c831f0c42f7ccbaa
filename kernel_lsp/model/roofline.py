"""Turns work, traffic and time into a place under a board's two roofs: intensity, balance, what is allowed, the class.

Source: Williams, Waterman, Patterson, "Roofline" (CACM 52-4, 2009). Measured launches and what-ifs take the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import yaml

if TYPE_CHECKING:
    from kernel_lsp.hardware.profile import HwProfile, Peak
    from kernel_lsp.ncu.kernel_profile import RooflinePoint
    from kernel_lsp.ncu.reading import SolClass

Side = Literal["compute", "memory"]
BoundKind = Literal["compute", "memory", "latency"]


@dataclass(frozen=True, slots=True)
class Roofline:
    """A kernel's work and its DRAM traffic, and the roofs. Rates are None without a time, peaks where none is known.

    FLOP are operations of one precision, an FMA two of them; for integers they are integer operations.
    """

    flop: float | None
    dram_bytes: float | None
    flop_per_s: float | None
    bytes_per_s: float | None
    peak_flop_per_s: float | None
    peak_bytes_per_s: float | None

    @property
    def intensity(self) -> float | None:
        """FLOP per byte of DRAM traffic; None without one of them, and where no byte is moved."""
        if self.flop_per_s is not None and self.bytes_per_s:
            return self.flop_per_s / self.bytes_per_s
        return self.flop / self.dram_bytes if self.flop is not None and self.dram_bytes else None

    @property
    def balance(self) -> float | None:
        """The ridge: FLOP per byte where both roofs meet."""
        return balance(self.peak_flop_per_s, self.peak_bytes_per_s)

    @property
    def side(self) -> Side | None:
        """Which roof is the lower one; no traffic at all is on the compute side."""
        if self.balance is None:
            return None
        if self.intensity is None:
            return "compute" if self.flop and self.dram_bytes == 0 else None
        return "memory" if self.intensity < self.balance else "compute"

    @property
    def attainable_flop_per_s(self) -> float | None:
        """The lower roof: min(peak, intensity x bandwidth)."""
        if self.side is None or self.peak_flop_per_s is None or self.peak_bytes_per_s is None:
            return None
        if self.intensity is None:
            return self.peak_flop_per_s
        return min(self.peak_flop_per_s, self.intensity * self.peak_bytes_per_s)

    @property
    def attained(self) -> float | None:
        """Achieved over attainable FLOP/s; None without a time or without FLOP."""
        attainable = self.attainable_flop_per_s
        return self.flop_per_s / attainable if attainable and self.flop_per_s is not None else None

    @property
    def peak_share(self) -> float | None:
        """Achieved FLOP/s over the peak."""
        return _share(self.flop_per_s, self.peak_flop_per_s)

    @property
    def dram_share(self) -> float | None:
        """Achieved DRAM bytes/s over the bandwidth."""
        return _share(self.bytes_per_s, self.peak_bytes_per_s)

    @property
    def least_seconds(self) -> float | None:
        """The time that the lower roof allows."""
        if self.flop is None or self.dram_bytes is None or not self.peak_flop_per_s or not self.peak_bytes_per_s:
            return None
        return max(self.flop / self.peak_flop_per_s, self.dram_bytes / self.peak_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Bound:
    """What holds a kernel. `kind` None: `why` says why it cannot be told.

    `basis`: "intensity" alone says which roof is the lower one and not whether it is approached; with "duration" that
    is known too; "units": neither roof is approached, but another unit of the SM or of the memory is.
    """

    kind: BoundKind | None
    basis: Literal["intensity", "duration", "units"] | None
    why: str | None


@dataclass(frozen=True, slots=True)
class BoardRoof:
    """The roofs that a board has for a precision. `peak` None: `peak_why` says why; so with the bandwidth.

    `precision` is the profile's name of the peak ("fp16_f32acc"); the peak is the dense one.
    """

    precision: str
    peak: Peak | None
    peak_why: str | None
    clock_mhz: float | None
    dram_gb_per_s: float | None
    dram_why: str | None


@dataclass(frozen=True, slots=True)
class _Table:
    approached: float
    beyond: float
    precisions: Mapping[str, str]


def balance(peak_flop_per_s: float | None, peak_bytes_per_s: float | None) -> float | None:
    """FLOP per byte where the two roofs meet; None without one of them."""
    return peak_flop_per_s / peak_bytes_per_s if peak_flop_per_s and peak_bytes_per_s else None


def measured_roofline(point: RooflinePoint) -> Roofline:
    """The place of one measured precision, under the roofs at that run's clocks."""
    return Roofline(
        flop=point.flop,
        dram_bytes=point.dram_bytes,
        flop_per_s=point.flop_per_s,
        bytes_per_s=point.bytes_per_s,
        peak_flop_per_s=point.peak_flop_per_s,
        peak_bytes_per_s=point.peak_bytes_per_s,
    )


def what_if(roof: BoardRoof, flop: float, dram_bytes: float, seconds: float | None) -> Roofline:
    """The place of given work, traffic and time (> 0; None: not given) under a board's roofs."""
    return Roofline(
        flop=flop,
        dram_bytes=dram_bytes,
        flop_per_s=None if seconds is None else flop / seconds,
        bytes_per_s=None if seconds is None else dram_bytes / seconds,
        peak_flop_per_s=None if roof.peak is None else roof.peak.dense_tops * 1e12,
        peak_bytes_per_s=None if roof.dram_gb_per_s is None else roof.dram_gb_per_s * 1e9,
    )


def bound(place: Roofline, units: SolClass | None = None) -> Bound:
    """The class: the lower roof where it is approached, latency where neither is.

    `units` is the reading of the launch's speed of light, where it was measured: a kernel far from both roofs may still
    be held by a unit that has none here (integer arithmetic, L1/TEX, L2). Thresholds in `roofline.yaml`.
    """
    side = place.side
    if side is None:
        return Bound(None, None, _no_side(place))
    shares = [share for share in (place.peak_share, place.dram_share) if share is not None]
    if not shares:
        return Bound(side, "intensity", None)
    reached = max(shares)  # = attained: the lower roof is the one that is nearer
    if reached > _table().beyond:
        return Bound(None, None, f"{100 * reached:.0f} % of what the roofs allow: an input contradicts them")
    if reached >= _table().approached:
        return Bound(side, "duration", None)
    if units is None or units == "latency":
        return Bound("latency", "duration", None)
    kinds: Mapping[str, BoundKind] = {"compute": "compute", "dram": "memory", "memory_path": "memory"}
    return Bound(kinds.get(units, side), "units", None)


def precision_names() -> tuple[str, ...]:
    """What a precision may be called, the widest first."""
    return tuple(_table().precisions)


def board_roof(profile: HwProfile, name: str) -> BoardRoof:
    """The roofs of a board for one of `precision_names`.

    Raises:
        KeyError: not one of them.
    """
    key = _table().precisions[name]
    peak, why = profile.peaks.get(key), None
    if peak is None:
        known = [each for each, of in _table().precisions.items() if of in profile.peaks and each not in _aliases()]
        why = f"no board of {profile.arch} is in the catalogue" if profile.chip is None else ""
        why = why or f"{profile.short_name} has no {name} peak on record; it has {', '.join(known)}"
    return BoardRoof(
        precision=key,
        peak=peak,
        peak_why=why,
        clock_mhz=None if peak is None else profile.peak_clock_mhz(key),
        dram_gb_per_s=profile.dram_gb_per_s,
        dram_why=None if profile.dram_gb_per_s else f"the DRAM bandwidth of {profile.short_name} is not on record",
    )


def _no_side(place: Roofline) -> str:
    if not place.peak_flop_per_s:
        return "the peak is not known"
    if not place.peak_bytes_per_s:
        return "the DRAM bandwidth is not known"
    return "FLOP or DRAM bytes are not known"


def _aliases() -> frozenset[str]:
    """Longer names of peaks that have a shorter one."""
    first: dict[str, str] = {}
    return frozenset(name for name, key in _table().precisions.items() if first.setdefault(key, name) != name)


def _share(rate: float | None, peak: float | None) -> float | None:
    return rate / peak if rate is not None and peak else None


@lru_cache(maxsize=1)
def _table() -> _Table:
    data = yaml.safe_load(resources.files("kernel_lsp.model").joinpath("roofline.yaml").read_text(encoding="utf-8"))
    return _Table(float(data["approached"]), float(data["beyond"]), MappingProxyType(data["precisions"]))
