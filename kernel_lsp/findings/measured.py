"""Turns a kernel's measurement into what rules say with it: evidence, how far it holds, what it shows to be fine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Evidence, Severity
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis

if TYPE_CHECKING:  # a start without a report needs none of it
    from kernel_lsp.ncu.attach import Counters
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
    from kernel_lsp.ncu.kernel_profile import IntColumn
    from kernel_lsp.ncu.placement import PlacedLine


def measurements_of(facts: Facts) -> Iterator[tuple[KernelAnalysis, KernelMeasurement]]:
    """The kernels of the file that a report shows."""
    for kernel in facts.kernels:
        if kernel.measured is not None:
            yield kernel, kernel.measured


def measured(measurement: KernelMeasurement, name: str, value: float | int | str, unit: str) -> Evidence:
    """A number of the report, or a ratio of its numbers."""
    shown = round(value, 4) if isinstance(value, float) else value
    return Evidence(name, shown, unit, "measured", f"ncu:{measurement.report_name}")


def certain_lines(measurement: KernelMeasurement) -> tuple[PlacedLine, ...]:
    """The lines of the file that the report speaks of; none where it is not known which text was profiled."""
    return () if measurement.placed.fit == "stale" else measurement.placed.lines


def kind_words(kernel: KernelAnalysis, measurement: KernelMeasurement) -> str:
    """`measured`, and what stands between the measurement and the code shown: `measured on H200, before edits`."""
    placed, device = measurement.placed, measurement.profile.device
    words = ["measured"]
    if device.arch and device.arch != kernel.binary.arch:
        words = [f"measured on {(device.name or device.arch).removeprefix('NVIDIA ').removeprefix('GeForce ')}"]
    if placed.fit == "stale":
        words.append("other code" if placed.measured.code else "maybe other code")
    elif placed.fit == "by line" and placed.moved is not None and not placed.moved.is_identity:
        words.append("before edits")
    return ", ".join(words)


def severity(measurement: KernelMeasurement, wanted: Severity) -> Severity:
    """That of a finding on the kernel: a report of other code only hints."""
    return "hint" if measurement.placed.fit == "stale" else wanted


def line_severity(text: RuleText, measurement: KernelMeasurement, share: float) -> Severity:
    """By the share of the kernel's traffic that is lost; a hint where memory does not hold the launch up."""
    if memory_costs_nothing(measurement):
        return "hint"
    return "warning" if share >= text.thresholds["warning_from_share"] else text.severity


def of_kernel(facts: Facts, kernel: KernelAnalysis, line: int, message: str) -> str:
    """The message of a finding on a line; with the kernel's name where the line is not of its own text."""
    for found in facts.scan.kernels if facts.scan else ():
        if kernel.file == facts.path and found.span.line == kernel.line and found.first_line <= line <= found.last_line:
            return message
    name = kernel.binary.short_name.partition("<")[0].rpartition("::")[2]
    return f"{name}: {message}"


def total(column: IntColumn | None) -> int:
    """The sum over all instructions; 0 where the report lacks the metric."""
    return 0 if column is None else int(column.sum())


def lines_in_excess(
    measurement: KernelMeasurement,
    text: RuleText,
    whole: int,
    excess: Callable[[Counters], int | None],
    share: Callable[[Counters], float | None],
) -> list[PlacedLine]:
    """The lines with most accesses beyond the ideal, by the thresholds of a rule; `whole` is the kernel's total."""
    found = [
        line
        for line in certain_lines(measurement)
        if (share(line.here) or 0.0) >= text.thresholds["line_share_from"]
        and (excess(line.here) or 0) >= text.thresholds["kernel_share_from"] * whole
    ]
    found.sort(key=lambda line: (-(excess(line.here) or 0), line.line))
    return found[: int(text.thresholds["most_lines"])]


def memory_costs_nothing(measurement: KernelMeasurement) -> bool:
    """Whether memory accesses are not what holds the launch: it issues or computes at its peak, memory far from it."""
    return measurement.runs_well and measurement.sol.kind in ("compute", "latency")


def tells_of_this_code(kernel: KernelAnalysis) -> KernelMeasurement | None:
    """The kernel's measurement, where it is of this code or its text, on this architecture."""
    found = kernel.measured
    if found is None or found.placed.fit == "stale" or found.profile.device.arch != kernel.binary.arch:
        return None
    return found


def occupancy_is_fine(kernel: KernelAnalysis, analysis: LaunchAnalysis) -> bool:
    """Whether a report shows that this launch loses nothing by its occupancy.

    Measured with no more resident blocks than it has now, it ran well; or all its blocks were resident at once, so that
    no limit was reached.
    """
    found = tells_of_this_code(kernel)
    if found is None or analysis.launch.origin != "profile":
        return False
    blocks, waves = found.profile.occupancy.blocks_per_sm, found.profile.launch.waves_per_sm
    if blocks is None or blocks > analysis.occupancy.blocks_per_sm:
        return False
    return found.runs_well or (waves is not None and waves < 1)


def loads_are_hidden(kernel: KernelAnalysis) -> bool:
    """Whether a report shows that the kernel does not wait for its loads, or that memory cannot bring them faster."""
    found = tells_of_this_code(kernel)
    return found is not None and found.runs_well


def leaves_local_memory_alone(kernel: KernelAnalysis) -> bool:
    """Whether this very code was measured and did not touch local memory."""
    found = kernel.measured
    return found is not None and found.placed.fit == "exact" and "local_memory" in found.absent
