"""Inlay hints at the end of a line: its measured stalls, the registers it spills, where the most registers are live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.findings import wording
from kernel_lsp.hardware.profile import SmLimits
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.model.kernel_sass import KernelSass
from kernel_lsp.model.line_sass import LocalLine, frame_in, local_lines
from kernel_lsp.report.sass_words import Places

_SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class LineHint:
    """One hint at the end of a 1-based line of the analysed text; the tooltip says it in full."""

    line: int
    text: str
    tooltip: str


def line_hints(
    analysis: FileAnalysis, moved: Callable[[int], int | None] | None = None, now: datetime | None = None
) -> tuple[LineHint, ...]:
    """All hints of the analysed file by line. Where several kernels share a line, the worst is shown and named.

    `moved` gives where a line is in the text as it stands now; `now` tells the age of a report.
    """
    spills: dict[int, list[tuple[LocalLine, KernelAnalysis]]] = {}
    peaks: dict[int, list[KernelAnalysis]] = {}
    for kernel in analysis.kernels:
        if kernel.sass is None:
            continue
        for found in local_lines(kernel.sass, "spill", analysis.path):
            spills.setdefault(found.frames[0].line, []).append((found, kernel))
        if (peak := _peak_line(kernel, kernel.sass, analysis)) is not None:
            peaks.setdefault(peak, []).append(kernel)
    measured = _measured(analysis, moved, now)
    hints = []
    for line in sorted({*spills, *peaks, *measured}):
        parts: list[str] = []
        tips: list[str] = []
        spilling: KernelAnalysis | None = None
        if line in measured:
            parts.append(measured[line].text)
            tips.append(measured[line].tooltip)
        if line in spills:
            worst, spilling = max(spills[line], key=lambda item: item[0].store_bytes + item[0].load_bytes)
            parts.append(_spill_text(worst))
            tips.append(_spill_tip(worst, spilling, len(spills[line])))
        if line in peaks:
            most = max(peaks[line], key=lambda each: _peak(each))
            is_other = spilling is not None and most is not spilling
            parts.append(f"{_peak(most)} regs live" + (f" in {most.binary.short_name}" if is_other else ""))
            tips.append(
                f"The most registers that {most.binary.short_name} has live at once: {_peak(most)} on this line, "
                f"{most.binary.resources.registers} allocated."
            )
        hints.append(LineHint(line, _SEPARATOR.join(parts), "\n".join(tips)))
    return tuple(hints)


def _measured(
    analysis: FileAnalysis, moved: Callable[[int], int | None] | None, now: datetime | None
) -> dict[int, LineHint]:
    if all(kernel.measured is None for kernel in analysis.kernels):
        return {}
    from kernel_lsp.report.measured_hints import measured_hints  # with the first report: a start needs none of it

    places = Places(analysis.path, moved) if moved else Places(analysis.path)
    return {hint.line: hint for hint in measured_hints(analysis, places, now)}


def _peak(kernel: KernelAnalysis) -> int:
    return (kernel.sass.live.peak or 0) if kernel.sass else 0


def _peak_line(kernel: KernelAnalysis, sass: KernelSass, analysis: FileAnalysis) -> int | None:
    """The line of the peak in the analysed file; None where it stands elsewhere or registers cost nothing."""
    if kernel.binary.resources.registers <= free_registers(analysis.gpu.profile.limits):
        return None
    frame = frame_in(sass.peak_frames, analysis.path)
    return None if frame is None else frame.line


def free_registers(limits: SmLimits) -> int:
    """Registers a thread that no launch pays for: with so many, every warp that the SM can hold fits."""
    return limits.registers // limits.max_threads


def _spill_text(found: LocalLine) -> str:
    """`40 B spill stores`, `56 B spill loads`, `40 B spill stores, 56 B loads`."""
    if not found.load_bytes:
        return f"{wording.exact_bytes(found.store_bytes)} spill stores"
    if not found.store_bytes:
        return f"{wording.exact_bytes(found.load_bytes)} spill loads"
    return f"{wording.exact_bytes(found.store_bytes)} spill stores, {wording.exact_bytes(found.load_bytes)} loads"


def _spill_tip(found: LocalLine, kernel: KernelAnalysis, kernels: int) -> str:
    resources = kernel.binary.resources
    whole = wording.spills(resources.spill_store_bytes, resources.spill_load_bytes)
    depth = f", up to loop depth {found.loop_depth}" if found.loop_depth else ", outside of loops"
    others = f" The worst of {kernels} kernels here." if kernels > 1 else ""
    return (
        f"{kernel.binary.short_name}: {found.stores} STL and {found.loads} LDL of spilled registers on this line"
        f"{depth}. The kernel has {whole}, per thread, each instruction counted once.{others}"
    )
