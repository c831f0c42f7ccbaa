"""Turns metrics by name into the typed values of a profiled launch, and says which of them the report lacks.

Names differ by version and architecture (`metrics.yaml`); every fact is optional. Units are read from each value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from kernel_lsp.ncu.kernel_profile import (
    Breakdown,
    Device,
    InstructionTable,
    IntColumn,
    KernelProfile,
    Missing,
    NcuReport,
    ProfiledLaunch,
    ProfiledOccupancy,
    Samples,
    Scheduler,
    SpeedOfLight,
)
from kernel_lsp.ncu.metric_names import Fact, metric_names
from kernel_lsp.ncu.raw_report import Column, Metric, RawAction, RawReport
from kernel_lsp.ncu.roofline import roofline_points
from kernel_lsp.ncu.units import in_base_unit, seconds_to_ns


def read_report_values(raw: RawReport) -> NcuReport:
    """Every launch of a raw report, typed."""
    kernels = tuple(read_kernel_profile(action, index) for index, action in enumerate(raw.actions))
    return NcuReport(raw.path, raw.digest, raw.collector, kernels, raw.cubins, raw.notes)


def read_kernel_profile(action: RawAction, index: int = 0) -> KernelProfile:
    """One launch, typed; what is not there is None and listed in `missing`."""
    facts = _Facts(action.metrics)
    number, whole = facts.number, facts.whole
    launch = ProfiledLaunch(
        grid=facts.triple("grid"),
        block=facts.triple("block"),
        cluster_blocks=whole("cluster_size") or None,
        registers=whole("registers"),
        static_shared_bytes=whole("static_shared_bytes"),
        dynamic_shared_bytes=whole("dynamic_shared_bytes"),
        driver_shared_bytes=whole("driver_shared_bytes"),
        shared_config_bytes=whole("shared_config_bytes"),
        barriers=whole("barriers"),
        waves_per_sm=number("waves_per_sm"),
    )
    theoretical, achieved = number("theoretical_pct"), number("achieved_pct")
    duration_ns = seconds_to_ns(number("duration_ns"))
    return KernelProfile(
        index=index,
        name=action.name,
        mangled=action.mangled,
        device=_device(facts),
        launch=launch,
        duration_ns=duration_ns,
        sm_hz=number("sm_hz"),
        dram_hz=number("dram_hz"),
        sol=_speed_of_light(facts),
        occupancy=ProfiledOccupancy(
            theoretical=None if theoretical is None else theoretical / 100,
            achieved=None if achieved is None else achieved / 100,
            achieved_warps=number("achieved_warps"),
            limit_registers=whole("limit_registers"),
            limit_shared=whole("limit_shared"),
            limit_warps=whole("limit_warps"),
            limit_blocks=whole("limit_blocks"),
            limit_barriers=whole("limit_barriers"),
        ),
        scheduler=Scheduler(
            issue_active=number("issue_active"),
            eligible_warps=number("eligible_warps"),
            active_warps=number("active_warps"),
            cycles_per_instruction=number("cycles_per_instruction"),
            states=_states(action.metrics),
        ),
        samples=_samples(action, facts),
        instructions=_instructions(action),
        functions=tuple(start - action.functions[0] for start in action.functions),
        roofline=roofline_points(action.metrics, duration_ns),
        pipes_pct=_pipes(action.metrics),
        by_opcode=action.by_opcode,
        rules=action.rules,
        markers=action.markers,
        missing=_missing(action, facts),
        sources=action.sources,
    )


class _Facts:
    """Looks facts up by their names, the newest first."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics
        self._facts = metric_names().facts

    def metric(self, key: str) -> Metric | None:
        return next((self._metrics[name] for name in self._facts[key].names if name in self._metrics), None)

    def number(self, key: str) -> float | None:
        metric = self.metric(key)
        if metric is None or isinstance(metric.value, str) or metric.value is None:
            return None
        value = float(metric.value)
        return in_base_unit(value, metric.unit) if np.isfinite(value) else None

    def whole(self, key: str) -> int | None:
        value = self.number(key)
        return None if value is None or value != value // 1 else int(value)

    def text(self, key: str) -> str | None:
        metric = self.metric(key)
        return str(metric.value) if metric is not None and metric.value else None

    def triple(self, key: str) -> tuple[int, int, int] | None:
        x, y, z = (self.whole(f"{key}_{axis}") for axis in "xyz")
        if x is None or y is None or z is None or min(x, y, z) < 1:
            return None
        return x, y, z

    def lacking(self) -> Iterable[Fact]:
        return (f for key, f in self._facts.items() if f.section and not f.optional and self.metric(key) is None)


def _device(facts: _Facts) -> Device:
    major, minor = facts.whole("cc_major"), facts.whole("cc_minor")
    return Device(
        name=facts.text("device"),
        arch=None if major is None or minor is None else f"sm_{major}{minor}",
        sm_count=facts.whole("sm_count"),
        max_warps=facts.whole("max_warps"),
        max_blocks=facts.whole("max_blocks"),
        max_shared_bytes=facts.whole("max_shared_bytes"),
    )


def _speed_of_light(facts: _Facts) -> SpeedOfLight:
    return SpeedOfLight(
        sm=facts.number("sol_sm"),
        memory=facts.number("sol_memory"),
        l1tex=facts.number("sol_l1tex"),
        l2=facts.number("sol_l2"),
        dram=facts.number("sol_dram"),
        sm_parts=_parts(facts, "sm"),
        memory_parts=_parts(facts, "memory"),
    )


def _parts(facts: _Facts, which: str) -> tuple[Breakdown, ...]:
    """The metrics that a speed-of-light value is the largest of, largest first."""
    listed = facts._metrics.get(metric_names().breakdowns[which])
    if listed is None or not isinstance(listed.value, str):
        return ()
    found = []
    for name in listed.value.split(","):
        metric = facts._metrics.get(name)
        if metric is not None and isinstance(metric.value, int | float):
            found.append(Breakdown(name, float(metric.value)))
    return tuple(sorted(found, key=lambda part: -part.pct))


def _states(metrics: Mapping[str, Metric]) -> Mapping[str, float]:
    """Cycles that a warp spends in each state between two of its instructions."""
    names = metric_names()
    prefix, suffix = names.raw["states"]["prefix"], names.raw["states"]["suffix"]
    found = {}
    for name, metric in metrics.items():
        if name.startswith(prefix) and name.endswith(suffix) and isinstance(metric.value, int | float):
            state = name[len(prefix) : -len(suffix)]
            found[names.raw["state_names"].get(state, state)] = float(metric.value)
    return MappingProxyType(dict(sorted(found.items(), key=lambda item: -item[1])))


def _pipes(metrics: Mapping[str, Metric]) -> Mapping[str, float]:
    names = metric_names()
    suffix = names.raw["pipes"]["suffix"]
    found: dict[str, float] = {}
    for prefix in names.raw["pipes"]["prefixes"]:
        for name, metric in metrics.items():
            if name.startswith(prefix) and name.endswith(suffix) and isinstance(metric.value, int | float):
                pipe = name[len(prefix) : -len(suffix)].removesuffix("_cycles_active")
                found[pipe] = max(found.get(pipe, 0.0), float(metric.value))
    return MappingProxyType(dict(sorted(found.items(), key=lambda item: -item[1])))


def _samples(action: RawAction, facts: _Facts) -> Samples | None:
    names = metric_names()
    by_reason: dict[str, int] = {}
    not_issued: dict[str, int] = {}
    for reason in names.reasons:
        name = names.sample_name(reason)
        if name in action.columns:
            by_reason[reason] = int(action.columns[name].values.sum())
        elif (metric := action.metrics.get(name)) is not None and isinstance(metric.value, int | float):
            by_reason[reason] = int(metric.value)
        idle = action.metrics.get(name + names.raw["samples"]["not_issued_suffix"])
        if idle is not None and isinstance(idle.value, int | float):
            not_issued[reason] = int(idle.value)
    if not by_reason:
        return None
    return Samples(
        total=sum(by_reason.values()),
        by_reason=MappingProxyType(by_reason),
        not_issued=MappingProxyType(not_issued),
        interval_cycles=facts.whole("sample_interval_cycles"),
        dropped_bytes=facts.whole("dropped_sample_bytes"),
    )


def _instructions(action: RawAction) -> InstructionTable | None:
    """All columns on one list of addresses: their own lists differ in length and are joined by address."""
    if not action.columns:
        return None
    names = metric_names()
    pcs = np.unique(np.concatenate([column.pcs for column in action.columns.values()]))
    if not len(pcs):
        return None
    base = action.functions[0] if action.functions else int(pcs[0])
    reasons = tuple(reason for reason in names.reasons if names.sample_name(reason) in action.columns)
    samples = np.zeros((len(pcs), len(reasons)), np.int64)
    for position, reason in enumerate(reasons):
        samples[:, position] = _on(pcs, action.columns[names.sample_name(reason)])
    samples.setflags(write=False)

    def column(key: str) -> IntColumn | None:
        for name in names.columns[key].names:
            if name in action.columns:
                return _on(pcs, action.columns[name])
            if name in action.metrics:  # collected, and no instruction has any
                return _frozen(np.zeros(len(pcs), np.int64))
        return None

    return InstructionTable(
        base=base,
        pc=_frozen(pcs.astype(np.int64) - base),
        reasons=reasons,
        samples=samples,
        **{key: column(key) for key in names.columns},
        lines=action.lines,
    )


def _on(pcs: np.ndarray[tuple[int], np.dtype[np.uint64]], column: Column) -> IntColumn:
    values = np.zeros(len(pcs), np.int64)
    values[np.searchsorted(pcs, column.pcs)] = np.rint(np.nan_to_num(column.values)).astype(np.int64)
    return _frozen(values)


def _frozen(values: IntColumn) -> IntColumn:
    values.setflags(write=False)
    return values


def _missing(action: RawAction, facts: _Facts) -> tuple[Missing, ...]:
    names = metric_names()
    found = [(fact.key, fact.names[0], fact.section) for fact in facts.lacking()]
    if not any(names.sample_name(reason) in action.metrics for reason in names.reasons):
        found.append(("samples", names.sample_name("*"), names.raw["samples"]["section"]))
    if not any(name.startswith(names.raw["states"]["prefix"]) for name in action.metrics):
        pattern = f"{names.raw['states']['prefix']}*{names.raw['states']['suffix']}"
        found.append(("states", pattern, names.raw["states"]["section"]))
    for fact in names.columns.values():
        if not any(name in action.metrics or name in action.columns for name in fact.names):
            found.append((fact.key, fact.names[0], fact.section))
    for precision in names.precisions:
        operation = next(iter(precision.flop))
        measured = (*names.operation("per_cycle", operation), *names.operation("total", operation))
        if not any(name in action.metrics for name in measured):
            found.append((f"{precision.key}_flop", measured[0], precision.section))
    collected = {
        fact.section
        for fact in (*names.facts.values(), *names.columns.values())
        if any(name in action.metrics for name in fact.names) and not fact.optional
    }
    return tuple(
        Missing(key, metric, "" if section in collected and key in names.columns else f"--section {section}")
        for key, metric, section in found
    )
