"""Turns measured operations and DRAM traffic into roofline points, as NVIDIA's own roofline charts compute them.

Per precision: FLOP per cycle = operations per elapsed cycle, an FMA counted twice (FP16 instructions work on two
values); times the SM's clock of the run. Peak: two per FMA of the unit's rate. DRAM: bytes per second against bytes
per cycle times its clock. Source: ncu's SpeedOfLight_RooflineChart section and rule; equal to the rule's percentages
(tests). Where only totals were collected (`--metrics`), the rate is the total over the launch's duration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernel_lsp.ncu.kernel_profile import RooflinePoint
from kernel_lsp.ncu.metric_names import Precision, metric_names
from kernel_lsp.ncu.raw_report import Metric
from kernel_lsp.ncu.units import in_base_unit


def roofline_points(metrics: Mapping[str, Metric], duration_ns: float | None) -> tuple[RooflinePoint, ...]:
    """A point for each precision whose operations were counted, the most FLOP first.

    Tensor operations are not in them: these metrics count the instructions of the FP32, FP64 and FP16 pipes.
    """
    facts = metric_names().facts

    def fact(key: str) -> float | None:
        return _first(metrics, facts[key].names)

    seconds = duration_ns * 1e-9 if duration_ns else None
    bytes_per_s = fact("dram_bytes_per_s")
    dram_bytes = fact("dram_bytes")
    if dram_bytes is None:
        read, written = fact("dram_read_bytes"), fact("dram_write_bytes")
        dram_bytes = read + written if read is not None and written is not None else None
    if bytes_per_s is None and dram_bytes is not None and seconds:
        bytes_per_s = dram_bytes / seconds
    if dram_bytes is None and bytes_per_s is not None and seconds:
        dram_bytes = bytes_per_s * seconds
    peak_per_cycle, dram_hz = fact("dram_peak_bytes_per_cycle"), fact("dram_hz")
    peak_bytes = peak_per_cycle * dram_hz if peak_per_cycle and dram_hz else None
    points = []
    for precision in metric_names().precisions:
        rate = _flop_rate(metrics, precision, fact("smsp_hz"), seconds)
        if rate is None:
            continue
        peak = _first(metrics, metric_names().operation("peak", precision.peak))
        peak_hz = fact("sm_elapsed_hz")
        points.append(
            RooflinePoint(
                precision=precision.key,
                flop_per_s=rate,
                peak_flop_per_s=precision.peak_flop * peak * peak_hz if peak and peak_hz else None,
                bytes_per_s=bytes_per_s,
                peak_bytes_per_s=peak_bytes,
                flop=rate * seconds if seconds else None,
                dram_bytes=dram_bytes,
            )
        )
    return tuple(sorted(points, key=lambda point: -point.flop_per_s))


def _flop_rate(
    metrics: Mapping[str, Metric], precision: Precision, cycles_per_s: float | None, seconds: float | None
) -> float | None:
    """FLOP per second; None where one of the operations was not counted."""
    per_cycle = _weighted(metrics, precision, "per_cycle")
    if per_cycle is not None and cycles_per_s is not None:
        return per_cycle * cycles_per_s
    total = _weighted(metrics, precision, "total")
    return total / seconds if total is not None and seconds else None


def _weighted(metrics: Mapping[str, Metric], precision: Precision, kind: str) -> float | None:
    total = 0.0
    for operation, flop in precision.flop.items():
        value = _first(metrics, metric_names().operation(kind, operation))
        if value is None:
            return None
        total += flop * value
    return total


def _first(metrics: Mapping[str, Metric], names: Iterable[str]) -> float | None:
    for name in names:
        metric = metrics.get(name)
        if metric is not None and isinstance(metric.value, int | float):
            return in_base_unit(float(metric.value), metric.unit)
    return None
