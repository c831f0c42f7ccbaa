"""A kernel's measurement as plain JSON values: `measured`, `stalls` and `roofline` of `check --format json`."""

from __future__ import annotations

from typing import Any

from kernel_lsp.model.roofline import bound, measured_roofline
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.kernel_profile import RooflinePoint
from kernel_lsp.report.measured_rows import cost_rows
from kernel_lsp.report.measured_sentences import tensor_words

Json = dict[str, Any]

_NO_FLOP = "the report does not count operations: ncu --section SpeedOfLight_RooflineChart"


def measured_value(found: KernelMeasurement) -> Json:
    """Which launch is shown, how well it fits, and its numbers."""
    profile, tail = found.profile, found.tail_wave
    launch, sol, occupancy = profile.launch, profile.sol, profile.occupancy
    return {
        "report": found.ref.report_path,
        "modified_at": found.modified_at.isoformat(),
        "launch": found.ref.index,
        "launches": len(found.launches),
        "ncu_version": found.collector,
        "device": profile.device.name,
        "arch": profile.device.arch,
        "fit": found.placed.fit,
        "fit_why": found.placed.why,
        "edited_lines": list(found.placed.edited_lines),
        "grid": list(launch.grid) if launch.grid else None,
        "block": list(launch.block) if launch.block else None,
        "duration_ns": profile.duration_ns,
        "sol": {"sm": sol.sm, "memory": sol.memory, "l1tex": sol.l1tex, "l2": sol.l2, "dram": sol.dram},
        "reading": {"class": found.sol.kind, "memory_unit": found.sol.culprit, "next": found.sol.next_step or None},
        "occupancy": {"theoretical": occupancy.theoretical, "achieved": occupancy.achieved},
        "waves_per_sm": launch.waves_per_sm,
        "tail": None if tail is None else {"fill": tail.fill, "wasted": tail.wasted, "costly": tail.costly},
        "issue_active": profile.scheduler.issue_active,
        "eligible_warps": profile.scheduler.eligible_warps,
        "stalls_matter": found.issue.stalls_matter,
        "missing_options": sorted({missing.option for missing in profile.missing if missing.option}),
    }


def stalls_value(found: KernelMeasurement) -> Json | None:
    """Samples by line, each sample once: on its innermost line in the user's file, else on that of its own file.

    None where the report has none. Shares are of all samples of the launch, null where these are few.
    """
    samples, measured, placed = found.profile.samples, found.measured, found.placed
    if samples is None or measured.sampled is None:
        return None
    lines = [
        {
            "file": row.file,
            "line": row.line,
            "samples": row.here.samples,
            "share": None if samples.few else row.here.samples / samples.total,
            "by_reason": dict(row.here.by_reason),
            "certain": row.certain,
        }
        for row in cost_rows(found, 1)
    ]
    return {
        "samples": samples.total,
        "few_samples": samples.few,
        "samples_outside": sum(measured.outside.values()),
        "samples_without_line": measured.nowhere.samples if measured.nowhere is not None else 0,
        "samples_on_lines_gone": placed.lost_samples,
        "lines": sorted(lines, key=lambda line: (line["file"], line["line"])),
    }


def roofline_value(found: KernelMeasurement) -> Json:
    """The place of the precision with the most FLOP; unknown values are null and say why."""
    profile = found.profile
    working = [point for point in profile.roofline if point.flop_per_s > 0]
    dram_bytes = next((point.dram_bytes for point in profile.roofline if point.dram_bytes is not None), None)
    tensor = tensor_words(profile)
    if tensor is None and working:
        return _point(working[0], found)
    why = _NO_FLOP
    if tensor is not None:
        why = f"{tensor} and tensor operations are not counted"
    elif profile.roofline:
        why = "no operation of the precisions that the report counts was executed"
    unknown: Json = {"precision": None, "precision_why": why, "flops": None, "flops_why": why, "dram_bytes": dram_bytes}
    if dram_bytes is None:
        unknown["dram_bytes_why"] = _NO_FLOP
    unknown |= {"intensity": None, "balance": None, "balance_why": why, "class": None, "attained": None}
    return unknown


def _point(point: RooflinePoint, found: KernelMeasurement) -> Json:
    place = measured_roofline(point)
    held = bound(place, found.sol.kind)
    value: Json = {
        "precision": point.precision,
        "flops": point.flop,
        "dram_bytes": point.dram_bytes,
        "intensity": place.intensity,
        "balance": place.balance,
        "class": None if held.kind is None else f"{held.kind}-bound",
        "class_from": held.basis,
        "attained": place.attained,
    }
    return value | ({"class_why": held.why} if held.kind is None else {})
