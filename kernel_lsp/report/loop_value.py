"""Mix, loops and register pressure of a kernel as plain JSON values, for `check --format json`."""

from __future__ import annotations

from typing import Any

from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.model.kernel_sass import SassLoop


def mix_loops_pressure(kernel: KernelAnalysis) -> dict[str, Any]:
    """`mix`, `loops` and `pressure` of `check --format json`."""
    sass = kernel.sass
    if sass is None or sass.mix is None:
        why = kernel.sass_why if sass is None else sass.text_why
        unknown = dict.fromkeys(("mix", "loops", "pressure"))
        return unknown | {f"{key}_why": why for key in unknown}
    value: dict[str, Any] = {"instructions": sass.instruction_count, "mix": dict(sass.mix)}
    value["loops"] = [_loop(loop) for loop in sorted(sass.loops or (), key=_loop_order)]
    if sass.text_why:
        value["mix_why"] = sass.text_why
    frames = sass.peak_frames
    if sass.live.peak is None:
        return value | {"pressure": None, "pressure_why": sass.live.why}
    pressure: dict[str, Any] = {"peak_registers": sass.live.peak, "file": None, "line": None}
    if frames:
        pressure |= {"file": frames[0].file, "line": frames[0].line}
        pressure["inlined_at"] = [{"file": frame.file, "line": frame.line} for frame in frames[1:]]
    else:
        pressure["line_why"] = sass.lines_why or "the compiler made this instruction itself"
    return value | {"pressure": pressure}


def _loop_order(loop: SassLoop) -> tuple[str, int, int, int]:
    work = loop.work
    return work.file or "", work.first_line or 0, work.depth, work.index


def _loop(loop: SassLoop) -> dict[str, Any]:
    work, ratio = loop.work, loop.ratio
    value: dict[str, Any] = {
        "file": work.file,
        "first_line": work.first_line,
        "last_line": work.last_line,
        "depth": work.depth,
        "innermost": work.innermost,
        "compute_ops": work.compute_ops,
        "compute_op": work.compute_op,
        "load_ops": work.load_ops,
        "load_bytes": work.load_bytes,
        "async_load_ops": work.async_load_ops,
        "shared_store_ops": work.shared_stores,
        "ratio": ratio.ratio,
        "class": ratio.kind,
        "cp_async": ratio.cp_async,
        "mix": dict(work.mix),
    }
    if ratio.ratio is None:
        value["ratio_why"] = ratio.why
    if ratio.cp_async is None:
        value["cp_async_why"] = ratio.cp_async_why
    if work.load_bytes is None:
        value["load_bytes_why"] = "a bulk copy's size is not in its instruction"
    if work.file is None:
        value["line_why"] = "no line of the loop is known"
    return value
