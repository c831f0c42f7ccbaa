"""Kernels and findings as plain JSON values: the `check --format json` contract, key by key.

Unknown values are None with a sibling `<key>_why`. Lines and columns are 1-based; units are in the key names.
"""

from __future__ import annotations

from typing import Any

from kernel_lsp.cubin.kernel import DeviceFunction
from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import rule_texts
from kernel_lsp.findings.finding import Finding
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis
from kernel_lsp.model.occupancy import Occupancy
from kernel_lsp.report.loop_value import mix_loops_pressure

SCHEMA_VERSION = 1
NO_PRECISION = "which of its pipes decides is not worked out"
NO_PROFILE = "no Nsight Compute report"

Json = dict[str, Any]


def gpu_value(choice: GpuChoice) -> Json:
    """`gpu` of the contract: which board the numbers are for, and why that one."""
    profile = choice.profile
    return {"name": profile.name, "arch": profile.arch, "why": choice.why, "detail": choice.detail}


def finding_value(finding: Finding) -> Json:
    """One entry of `findings`."""
    return {
        "code": finding.code,
        "slug": finding.slug,
        "severity": finding.severity,
        "category": rule_texts()[finding.code].category,
        "file": finding.file,
        "line": finding.line,
        "end_line": finding.end_line,
        "column": finding.column,
        "end_column": finding.end_column,
        "kernel": finding.kernel,
        "instances": list(finding.instances),
        "message": finding.message,
        "advice": finding.advice,
        "evidence": [
            {"name": e.name, "value": e.value, "unit": e.unit, "kind": e.kind, "source": e.source}
            for e in finding.evidence
        ],
        "related": [{"file": r.file, "line": r.line, "message": r.message} for r in finding.related],
        "docs": rule_texts()[finding.code].page,
    }


def kernel_value(kernel: KernelAnalysis) -> Json:
    """One entry of `kernels`: what needs instructions may still be unknown, what needs a profile is."""
    value: Json = {
        "mangled": kernel.binary.mangled,
        "name": kernel.binary.name,
        "short_name": kernel.binary.short_name,
        "file": kernel.file or None,
        "line": kernel.line or None,
        "arch": kernel.binary.arch,
        "resources": _resources(kernel),
        "launches": [_launch(kernel, analysis) for analysis in kernel.launches],
    }
    if not kernel.line:
        value["line_why"] = "the cubin holds no line for the kernel's definition"
    if not kernel.launches:
        value["launches_why"] = (
            "no launch with constants, launch bounds or comment was found"
            if kernel.has_limits
            else wording.no_limits(kernel.binary.arch)
        )
        value["block_sizes"] = [
            {"threads": row.threads, "occupancy": occupancy_value(row.occupancy)} for row in kernel.block_sizes
        ]
    value["max_launchable_threads"] = kernel.max_launchable_threads
    value |= mix_loops_pressure(kernel)
    return value | _measured(kernel)


def _measured(kernel: KernelAnalysis) -> Json:
    """What only a report tells."""
    if kernel.measured is not None:
        from kernel_lsp.report.measured_value import measured_value, roofline_value, stalls_value

        stalls = stalls_value(kernel.measured)
        value: Json = {"measured": measured_value(kernel.measured), "stalls": stalls}
        if stalls is None:
            value["stalls_why"] = "the report has no samples: ncu --section SourceCounters"
        return value | {"roofline": roofline_value(kernel.measured)}
    return {
        "measured": None,
        "measured_why": NO_PROFILE,
        "stalls": None,
        "stalls_why": NO_PROFILE,
        "roofline": {
            "precision": None,
            "precision_why": NO_PRECISION,
            "flops": None,
            "flops_why": NO_PROFILE,
            "dram_bytes": None,
            "dram_bytes_why": NO_PROFILE,
            "intensity": None,
            "balance": None,
            "balance_why": "depends on the precision of the kernel's instructions",
            "class": None,
            "attained": None,
        },
    }


def device_function_value(function: DeviceFunction) -> Json:
    """A device function with code of its own, to be linked into kernels later."""
    value: Json = {
        "mangled": function.mangled,
        "name": function.name,
        "short_name": function.short_name,
        "registers": function.registers,
        "frame_bytes": function.frame_bytes,
        "spill_store_bytes": function.spill_store_bytes,
        "spill_load_bytes": function.spill_load_bytes,
    }
    if function.registers is None:
        value["registers_why"] = "known after linking"
    return value


def occupancy_value(occupancy: Occupancy) -> Json:
    """`occupancy` of the contract, without the cliffs; a limit of None means that the resource sets none."""
    return {
        "blocks_per_sm": occupancy.blocks_per_sm,
        "active_warps": occupancy.active_warps,
        "max_warps": occupancy.max_warps,
        "theoretical": occupancy.theoretical,
        "limiters": list(occupancy.limiters),
        "limits": {
            "registers": occupancy.limit_registers,
            "shared": occupancy.limit_shared,
            "warps": occupancy.limit_warps,
            "blocks": occupancy.limit_blocks,
            "barriers": occupancy.limit_barriers,
        },
        "is_upper_bound": occupancy.is_upper_bound,
    }


def _resources(kernel: KernelAnalysis) -> Json:
    resources = kernel.binary.resources
    value: Json = {
        "registers": resources.registers,
        "static_shared_bytes": resources.static_shared_bytes,
        "local_bytes": resources.local_bytes,
        "frame_bytes": resources.frame_bytes,
        "stack_bytes": resources.stack_bytes,
        "spill_store_bytes": resources.spill_store_bytes,
        "spill_load_bytes": resources.spill_load_bytes,
        "barriers": resources.barriers,
        "constant_bytes": resources.constant_bytes,
        "max_threads": resources.max_threads,
        "max_block": None if resources.max_block is None else list(resources.max_block),
        "required_block": None if resources.required_block is None else list(resources.required_block),
        "min_blocks_per_sm": resources.min_blocks_per_sm,
        "uses_dynamic_shared": resources.uses_dynamic_shared,
        "is_lower_bound": resources.relocatable,
    }
    if resources.frame_bytes is None:
        value["frame_bytes_why"] = "called functions have frames of their own, and the cubin gives the stack with them"
    if resources.stack_bytes is None:
        value["stack_bytes_why"] = "the kernel calls functions recursively or through pointers"
    if resources.spill_store_bytes is None:
        value["spill_store_bytes_why"] = value["spill_load_bytes_why"] = resources.spill_why
    if resources.relocatable:
        value["is_lower_bound_why"] = (
            "calls through pointers: functions of other files may raise registers and stack"
            if resources.calls_through_pointers
            else "calls functions that are linked later: registers and stack may rise"
        )
    if resources.linked is not None:
        after = resources.linked.resources
        value["linked"] = {
            "with": list(resources.linked.with_files),
            "registers": after.registers,
            "stack_bytes": after.stack_bytes,
            "static_shared_bytes": after.static_shared_bytes,
            "barriers": after.barriers,
            "is_lower_bound": after.relocatable,
        }
    return value


def _launch(kernel: KernelAnalysis, analysis: LaunchAnalysis) -> Json:
    launch = analysis.launch
    value: Json = {
        "block": list(launch.block),
        "threads": launch.threads,
        "grid": None if launch.grid is None else list(launch.grid),
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "cluster": launch.cluster,
        "from": launch.origin,
        "where": launch.where,
    }
    occupancy = occupancy_value(analysis.occupancy)
    occupancy["cliffs"] = [
        {
            "resource": cliff.resource,
            "direction": cliff.direction,
            "change": cliff.change,
            "to_value": cliff.to_value,
            "blocks_per_sm": cliff.blocks_per_sm,
        }
        for cliff in analysis.cliffs
    ]
    if launch.dynamic_shared_bytes is None and kernel.binary.resources.uses_dynamic_shared is not False:
        value["dynamic_shared_bytes_why"] = "chosen at the launch, and no constant for it was found"
        occupancy["holds_to_dynamic_shared_bytes"] = analysis.holds_to_dynamic_shared_bytes
    value["occupancy"] = occupancy
    return value
