"""A what-if under the roofs as JSON: the names of `check`'s and `profile`'s rooflines, and where each peak is from."""

from __future__ import annotations

from kernel_lsp import __version__
from kernel_lsp.findings import wording
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.model.roofline import BoardRoof, Roofline, bound
from kernel_lsp.report.values import SCHEMA_VERSION, Json, gpu_value

_NO_TIME = "no duration was given"
_NO_FLOP = "there are no FLOP to reach a peak with"
_NO_BYTES = "no byte comes from DRAM"


def roofline_document(gpu: GpuChoice, name: str, roof: BoardRoof, place: Roofline, duration_us: float | None) -> Json:
    """`roofline --format json`. Unknown values are null, with the reason beside them."""
    held = bound(place)
    roofs_why = roof.peak_why or roof.dram_why
    value: Json = {"precision": name, "flops": place.flop, "dram_bytes": place.dram_bytes}
    value |= _known("duration_us", duration_us, _NO_TIME)
    value |= _known("intensity", place.intensity, _NO_BYTES)
    value |= _known("balance", place.balance, roofs_why)
    value |= _known("class", None if held.kind is None else f"{held.kind}-bound", roofs_why or held.why)
    value |= {"class_from": held.basis, "side": place.side}
    value |= _known("attained", place.attained, roofs_why or (_NO_FLOP if place.flop == 0 else _NO_TIME))
    value |= _known("flops_per_s", place.flop_per_s, _NO_TIME)
    value |= _known("dram_bytes_per_s", place.bytes_per_s, _NO_TIME)
    value |= _known("peak_flops_per_s", place.peak_flop_per_s, roof.peak_why)
    value |= _known("peak_dram_bytes_per_s", place.peak_bytes_per_s, roof.dram_why)
    value |= _known("attainable_flops_per_s", place.attainable_flop_per_s, roofs_why)
    least = place.least_seconds
    value |= _known("least_duration_us", None if least is None else least * 1e6, roofs_why)
    value |= _known("peak", _peak(roof), roof.peak_why)
    value["dram_source"] = gpu.profile.dram_source
    return {
        "schema_version": SCHEMA_VERSION,
        "kernel_lsp_version": __version__,
        "gpu": gpu_value(gpu),
        "roofline": value,
    }


def _peak(roof: BoardRoof) -> Json | None:
    """Which peak it is and who says so; its value is `peak_flops_per_s`."""
    peak = roof.peak
    if peak is None:
        return None
    return {
        "precision": peak.precision,
        "words": wording.precision(peak.precision),
        "sparse": False,
        "clock_mhz": roof.clock_mhz,
        "provenance": peak.provenance,
        "source": peak.source,
        "note": peak.note,
    }


def _known(name: str, value: object, why: str | None) -> Json:
    return {name: value} if value is not None else {name: None, f"{name}_why": why}
