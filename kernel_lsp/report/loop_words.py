"""A kernel's loops and peak in words, shared by its hover and its report."""

from __future__ import annotations

from kernel_lsp.cubin.mix import LoopWork
from kernel_lsp.cubin.names import function_name
from kernel_lsp.findings import wording
from kernel_lsp.model.kernel_sass import KernelSass, SassLoop
from kernel_lsp.model.line_calls import mangled_name, own_function
from kernel_lsp.model.line_sass import frame_in
from kernel_lsp.model.ratio import LoadRatio
from kernel_lsp.report.sass_words import Places, last_name

_CP_ASYNC = {
    "try": "cp.async: try it and measure both (estimated)",
    "pays": "cp.async would pay (estimated)",
    "does not pay": "cp.async would not pay, the loop has work to hide its loads (estimated)",
    "already": "it copies asynchronously already",
}


def main_loops(kernel: KernelSass) -> list[SassLoop]:
    """The innermost loops that load, those with the most work first; without any, those that compute."""
    innermost = [loop for loop in kernel.loops or () if loop.work.innermost]
    found = [loop for loop in innermost if _loads(loop.work) or loop.ratio.ratio]
    found = found or [loop for loop in innermost if loop.work.compute_ops]
    return sorted(found, key=lambda loop: (-loop.work.compute_ops - _loads(loop.work), loop.work.index))


def loop_place(work: LoopWork, places: Places) -> str:
    """`l.11-16`, `mma.h:40-44`; "a loop of unknown lines"."""
    if work.file is None or work.first_line is None or work.last_line is None:
        return "a loop of unknown lines"
    first = places.of(work.file, work.first_line)
    return first if work.first_line == work.last_line else f"{first}-{work.last_line}"


def loop_sentence(loop: SassLoop, places: Places) -> str:
    """`Inner loop l.11-16: 16 FFMA per 2 global loads (8 B a thread) = 8 : 1, medium; cp.async: try it ...`"""
    work = loop.work
    said = f"Inner loop {loop_place(work, places)}: {work_words(work)}"
    if loop.ratio.ratio is not None:
        said += f" = {loop.ratio.ratio:.3g} : 1, {loop.ratio.kind}"
    cp_async = cp_async_words(loop.ratio)
    return f"{said}; {cp_async}." if cp_async else f"{said}."


def work_words(work: LoopWork) -> str:
    """`16 FFMA per 2 loads (8 B)`."""
    loads = wording.counted(_loads(work), "global load")
    size = f" ({wording.exact_bytes(work.load_bytes)} a thread)" if work.load_bytes else ""
    if not work.compute_op:
        return f"{loads}{size}, no arithmetic"
    compute = f"{work.compute_ops:,} {work.compute_op}"
    return f"{compute} per {loads}{size}" if _loads(work) else f"{compute}, no global load"


def cp_async_words(ratio: LoadRatio) -> str:
    """What is said of asynchronous copies; "" where nothing is to be said."""
    return _CP_ASYNC.get(ratio.cp_async or "", "")


def peak_sentence(kernel: KernelSass, places: Places) -> str:
    """`At most 38 registers live, on l.15.`; "" where not known."""
    if kernel.live.peak is None:
        return ""
    frames = kernel.peak_frames
    frame = frame_in(frames, places.path) or next(iter(frames), None)
    where = "" if frame is None else f", on {places.of(frame.file, frame.line)}"
    if frame is None and kernel.live.peak_row is not None:
        function = own_function(kernel, kernel.live.peak_row)
        where = "" if function is None else f", in {last_name(function_name(mangled_name(function)).short)}"
    return f"At most {wording.counted(kernel.live.peak, 'register')} live{where}."


def _loads(work: LoopWork) -> int:
    return work.load_ops + work.async_load_ops
