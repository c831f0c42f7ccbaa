"""Turns measured launches into the JSON value of `kernel-lsp profile --format json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel_lsp.cubin.names import function_name
from kernel_lsp.model.roofline import measured_roofline
from kernel_lsp.ncu.attach import Counters, LineCost, MeasuredKernel
from kernel_lsp.ncu.kernel_profile import KernelProfile, NcuReport, RooflinePoint
from kernel_lsp.ncu.producers import WaitFor
from kernel_lsp.ncu.reading import issue_reading, sol_reading, tail_wave


def report_entry(report: NcuReport, kernels: Sequence[MeasuredKernel], files: Mapping[str, str]) -> dict[str, Any]:
    """One report. `files` maps paths of the report to files here."""
    device = report.kernels[0].device if report.kernels else None
    return {
        "path": report.path,
        "ncu_version": report.collector,
        "device": device.name if device else None,
        "arch": device.arch if device else None,
        "notes": list(report.notes),
        "actions": [_action(measured, files) for measured in kernels],
    }


def _action(measured: MeasuredKernel, files: Mapping[str, str]) -> dict[str, Any]:
    profile = measured.profile
    launch, sol, occupancy = profile.launch, profile.sol, profile.occupancy
    reading, tail, issue = sol_reading(profile), tail_wave(profile), issue_reading(profile)
    return {
        "name": profile.name,
        "mangled": profile.mangled,
        "short_name": function_name(profile.mangled).short if profile.mangled else None,
        "launch": profile.index,
        "grid": list(launch.grid) if launch.grid else None,
        "block": list(launch.block) if launch.block else None,
        "cluster_blocks": launch.cluster_blocks,
        "registers": launch.registers,
        "static_shared_bytes": launch.static_shared_bytes,
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "duration_ns": profile.duration_ns,
        "sm_hz": profile.sm_hz,
        "sol": {"sm": sol.sm, "memory": sol.memory, "l1tex": sol.l1tex, "l2": sol.l2, "dram": sol.dram},
        "sol_breakdown": {
            "sm": [{"metric": part.metric, "pct": part.pct} for part in sol.sm_parts],
            "memory": [{"metric": part.metric, "pct": part.pct} for part in sol.memory_parts],
        },
        "reading": {"class": reading.kind, "memory_unit": reading.culprit, "next": reading.next_step or None},
        "occupancy": {
            "theoretical": occupancy.theoretical,
            "achieved": occupancy.achieved,
            "blocks_per_sm": occupancy.blocks_per_sm,
            "limiters": list(occupancy.limiters),
            "limits": {
                "registers": occupancy.limit_registers,
                "shared": occupancy.limit_shared,
                "warps": occupancy.limit_warps,
                "blocks": occupancy.limit_blocks,
                "barriers": occupancy.limit_barriers,
            },
        },
        "waves_per_sm": launch.waves_per_sm,
        "tail": None if tail is None else {"fill": tail.fill, "wasted": tail.wasted, "costly": tail.costly},
        "issue_active": profile.scheduler.issue_active,
        "eligible_warps": profile.scheduler.eligible_warps,
        "stalls_matter": issue.stalls_matter,
        "healthy": list(issue.healthy),
        "stalls": dict(profile.samples.by_reason) if profile.samples else None,
        "states": dict(profile.scheduler.states) or None,
        "samples": measured.sample_count if profile.samples else None,
        "few_samples": profile.samples.few if profile.samples else None,
        "samples_outside": dict(measured.outside),
        "samples_without_line": measured.nowhere.samples if measured.nowhere else 0,
        "roofline": _roofline(profile),
        "lines": [_line(cost, measured, files) for cost in _in_order(measured.lines)],
        "rules": [
            {
                "rule": rule.rule,
                "kind": rule.kind,
                "title": rule.title,
                "message": rule.message,
                "speedup_pct": rule.speedup_pct,
                "speedup_scope": rule.speedup_scope,
            }
            for rule in profile.rules
            if rule.message
        ],
        "markers": [
            {"rule": marker.rule, "message": marker.message, "pc": marker.pc, "file": marker.file, "line": marker.line}
            for marker in profile.markers
        ],
        "missing": [missing.metric for missing in profile.missing],
        "missing_options": sorted({missing.option for missing in profile.missing if missing.option}),
    }


def _roofline(profile: KernelProfile) -> dict[str, Any] | None:
    """The precision with the most FLOP, and all that were counted."""
    if not profile.roofline:
        return None
    return {**_point(profile.roofline[0]), "points": [_point(point) for point in profile.roofline]}


def _point(point: RooflinePoint) -> dict[str, Any]:
    place = measured_roofline(point)
    return {
        "precision": point.precision,
        "flops": point.flop,
        "flops_per_s": point.flop_per_s,
        "peak_flops_per_s": point.peak_flop_per_s,
        "dram_bytes": point.dram_bytes,
        "dram_bytes_per_s": point.bytes_per_s,
        "peak_dram_bytes_per_s": point.peak_bytes_per_s,
        "intensity": place.intensity,
        "balance": place.balance,
        "attained": place.attained,
    }


def _in_order(lines: Sequence[LineCost]) -> list[LineCost]:
    return sorted(lines, key=lambda cost: (cost.file, cost.line))


def _line(cost: LineCost, measured: MeasuredKernel, files: Mapping[str, str]) -> dict[str, Any]:
    samples = measured.profile.samples
    share = cost.own.samples / measured.sample_count if samples and not samples.few and measured.sample_count else None
    return {
        "file": files.get(cost.file, cost.file),
        "profiled_file": cost.file,
        "line": cost.line,
        "samples": cost.own.samples,
        "share": share,
        "by_reason": dict(cost.own.by_reason),
        "samples_with_inlined": cost.within.samples,
        **_counters(cost.own),
        "waits_for": [_wait(wait, files) for wait in cost.waits_for],
    }


def _counters(counters: Counters) -> dict[str, Any]:
    return {
        "executed": counters.executed,
        "threads_per_instruction": counters.threads_per_instruction,
        "divergent_branches": counters.divergent_branches,
        "global_sectors": counters.global_sectors,
        "global_sectors_ideal": counters.global_sectors_ideal,
        "sectors_per_request": counters.sectors_per_request,
        "local_sectors": counters.local_sectors,
        "shared_wavefronts": counters.shared_wavefronts,
        "shared_wavefronts_ideal": counters.shared_wavefronts_ideal,
    }


def _wait(wait: WaitFor, files: Mapping[str, str]) -> dict[str, Any]:
    file, line = wait.chain[0] if wait.chain else (None, None)
    return {
        "reason": wait.reason,
        "samples": wait.samples,
        "pc": wait.pc,
        "instruction": wait.instruction,
        "producer_pc": wait.producer_pc,
        "producer": wait.producer,
        "file": files.get(file, file) if file else None,
        "line": line,
        "certain": wait.certain,
    }
