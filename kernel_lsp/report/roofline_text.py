"""A what-if under the roofs as the lines that `kernel-lsp roofline` prints."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.model.roofline import BoardRoof, Roofline, bound
from kernel_lsp.ncu.reading import reading_table
from kernel_lsp.report.machine_words import machine_words
from kernel_lsp.report.measured_words import amount_words, duration_words, number_words, rate_words, share_words

_MEASURE = "ncu --metrics dram__bytes.sum,gpu__time_duration.sum"
_READINGS = {"compute": "compute", "memory": "dram", "latency": "latency"}
_ROOFS = {"compute": "the peak", "memory": "DRAM"}


def roofline_lines(gpu: GpuChoice, roof: BoardRoof, place: Roofline, duration_us: float | None) -> Iterator[str]:
    """The place in one sentence, both roofs in a table, where they come from, and the next step."""
    unit = "OP" if roof.precision.startswith("int") else "FLOP"
    words = wording.precision(roof.precision)
    yield f"{machine_words(gpu)} · {words}{' on CUDA cores' if roof.precision in ('fp16', 'bf16') else ''}"
    yield ""
    yield _sentence(roof, place, unit)
    yield ""
    yield from _table(place, unit, duration_us)
    yield ""
    yield from _sources(gpu, roof)
    yield from _next(gpu, roof, place)


def _sentence(roof: BoardRoof, place: Roofline, unit: str) -> str:
    """`Memory-bound: 0.833 FLOP/byte against a balance of 153, 77 % of what DRAM allows.`"""
    where = "no byte from DRAM" if place.intensity is None else f"{number_words(place.intensity)} {unit}/byte"
    if place.side is None or place.balance is None:
        return f"Place not known: {where}, and {roof.peak_why or roof.dram_why}."
    where += "" if place.intensity is None else f" against a balance of {number_words(place.balance)}"
    reached = place.dram_share if place.side == "memory" else place.peak_share
    if reached is None:
        return f"{place.side.capitalize()} side: {where}. How near to it is not known without a duration."
    allowed = f"{share_words(reached)} of what {_ROOFS[place.side]} allows"
    held = bound(place)
    if held.kind is None:
        return f"These numbers contradict each other: {where}, {allowed}."
    if held.kind == "latency":
        return f"Latency-bound: {where}, but only {allowed}."
    return f"{held.kind.capitalize()}-bound: {where}, {allowed}."


def _table(place: Roofline, unit: str, duration_us: float | None) -> Iterator[str]:
    """What was given, what each roof is, and what was reached of it."""

    def rate(per_s: float | None, of: str) -> str:
        return "" if per_s is None else rate_words(per_s, of) if per_s else "none"

    def share(reached: float | None) -> str:
        return share_words(reached) if reached else ""

    least = "" if place.least_seconds is None else duration_words(place.least_seconds * 1e9)
    took = "" if duration_us is None else duration_words(duration_us * 1e3)
    flop, traffic = amount_words(place.flop or 0.0, unit), amount_words(place.dram_bytes or 0.0, "B")
    peak, reached = rate(place.peak_flop_per_s, f"{unit}S"), rate(place.flop_per_s, f"{unit}S")
    peak_dram, reached_dram = rate(place.peak_bytes_per_s, "B/s"), rate(place.bytes_per_s, "B/s")
    rows: list[tuple[str, ...]] = [
        ("", "given", "roof", "reached" if took else "", "", ""),
        ("compute", flop, peak, reached, share(place.peak_share), _lower(place, "compute")),
        ("DRAM", traffic, peak_dram, reached_dram, share(place.dram_share), _lower(place, "memory")),
    ]
    if least or took:
        rows.append(("time", "", least, took, "", ""))
    wide = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:5], wide[1:5], strict=True) if width]
        yield "  ".join([f"{row[0]:<{wide[0]}}", *cells, row[5]]).rstrip()


def _lower(place: Roofline, side: str) -> str:
    return "<- lower roof" if place.side == side else ""


def _sources(gpu: GpuChoice, roof: BoardRoof) -> Iterator[str]:
    """Where both roofs are from, and at which clock."""
    if roof.peak is not None:
        clock = "" if roof.clock_mhz is None else f", at {roof.clock_mhz:,.0f} MHz"
        yield f"Peak: dense{clock}; {wording.peak_provenance(roof.peak)}: {roof.peak.source}."
        if roof.peak.note:
            yield f"  {roof.peak.note[0].upper()}{roof.peak.note[1:]}."
    if gpu.profile.dram_source is not None:
        yield f"DRAM: {gpu.profile.dram_source}."
    if gpu.why == "flags" and gpu.profile.chip is not None:
        yield f"{gpu.profile.short_name} stands for {gpu.profile.arch}; --gpu names another board."


def _next(gpu: GpuChoice, roof: BoardRoof, place: Roofline) -> Iterator[str]:
    held = bound(place)
    if place.side is None:
        named = gpu.profile.chip is not None and roof.peak is None
        yield f"Next: {'one of these precisions, or another board' if named else 'name a board'} with --gpu."
    elif held.basis == "intensity":
        yield f"Next: give --duration-us, from {_MEASURE} or from CUDA events, not from wall clock."
    elif held.kind is None:
        yield (
            "Next: count again. Caches may serve what was counted as DRAM bytes, fewer FLOP may run than the formula "
            f"says, or the clock was above the peak's. {_MEASURE} measures bytes and time."
        )
    else:
        yield f"Next: {reading_table()['readings'][_READINGS[held.kind]]['next']}."
        yield f"The bytes are as given; {_MEASURE} measures those that really come from DRAM."
