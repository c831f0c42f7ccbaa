"""Kernels' instructions as plain JSON values: the `sass --format json` contract, key by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernel_lsp import __version__
from kernel_lsp.cubin.control import NO_BARRIER, barriers
from kernel_lsp.cubin.linemap import Frame
from kernel_lsp.cubin.names import function_name
from kernel_lsp.cubin.sass import guard_text
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.model.kernel_sass import KernelSass
from kernel_lsp.model.line_calls import mangled_name
from kernel_lsp.report.instruction_samples import instruction_samples
from kernel_lsp.report.values import NO_PROFILE, SCHEMA_VERSION, Json

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement


def sass_document(kernels: Sequence[KernelAnalysis]) -> Json:
    """`sass --format json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kernel_lsp_version": __version__,
        "kernels": [_kernel(kernel) for kernel in in_order(kernels)],
    }


def in_order(kernels: Sequence[KernelAnalysis]) -> list[KernelAnalysis]:
    """By (file, line, name)."""
    return sorted(kernels, key=lambda kernel: (kernel.file, kernel.line, kernel.binary.name))


def _kernel(kernel: KernelAnalysis) -> Json:
    value: Json = {
        "mangled": kernel.binary.mangled,
        "name": kernel.binary.name,
        "short_name": kernel.binary.short_name,
        "arch": kernel.binary.arch,
        "file": kernel.file or None,
        "line": kernel.line or None,
        "instructions": None,
    }
    sass = kernel.sass
    if sass is None:
        return value | {"instructions_why": kernel.sass_why}
    value["instructions"] = instruction_values(sass, kernel.measured)
    if kernel.measured is None or kernel.measured.placed.fit != "exact":
        value["samples_why"] = NO_PROFILE if kernel.measured is None else "the profiled code is another one"
    if sass.text_why:
        value["text_why"] = sass.text_why
    if sass.lines_why:
        value["line_why"] = sass.lines_why
    if sass.loops_why:
        value["loop_depth_why"] = sass.loops_why
    if sass.live.why:
        value["live_registers_why"] = sass.live.why
    if sass.sass.control_why:
        value["stall_why"] = sass.sass.control_why
    return value


def instruction_values(kernel: KernelSass, measured: KernelMeasurement | None = None) -> list[Json]:
    """Every instruction of a section once, in its order; what is not known is None.

    `target` is the pc that a branch or call names in the section; `function` that of code which was not inlined and
    stands behind the kernel.
    Samples are those of a measurement of exactly this code, on the instructions that held the warps.
    """
    samples = instruction_samples(measured)
    sass, start, stop = kernel.sass, kernel.code.start, kernel.code.padding
    pcs = sass.pc[start:stop].astype(np.int64)
    table_rows = kernel.lines.rows_at(pcs).tolist() if kernel.lines is not None else [-1] * len(pcs)
    frames_of: dict[int, tuple[Frame, ...]] = {-1: ()}
    control = sass.control
    targets = sass.target[start:stop].tolist()
    functions = {function.start: function for function in kernel.code.functions}
    function: str | None = None
    found: list[Json] = []
    for row, pc, table_row in zip(range(start, stop), pcs.tolist(), table_rows, strict=True):
        if table_row not in frames_of:
            frames_of[table_row] = kernel.frames(row)
        frames = frames_of[table_row]
        if row in functions and row != start:
            function = function_name(mangled_name(functions[row])).full
        target = targets[row - start]
        opcode = sass.opcode(row)
        is_known = bool(opcode.text)
        found.append(
            {
                "pc": pc,
                "text": sass.text(row) or None,
                "opcode": opcode.text or None,
                "class": opcode.kind if is_known else None,
                "bytes": opcode.width_bytes if is_known else None,
                "predicate": guard_text(int(sass.guard[row])) or None,
                "stall": None if control is None else int(control.stall[row]),
                "yield": None if control is None else bool(control.yields[row]),
                "wait": None if control is None else list(barriers(int(control.wait_mask[row]))),
                "read_barrier": None if control is None else _barrier(int(control.read_barrier[row])),
                "write_barrier": None if control is None else _barrier(int(control.write_barrier[row])),
                "live_registers": kernel.live_at(row),
                "file": frames[0].file if frames else None,
                "line": frames[0].line if frames else None,
                "inlined_at": [{"file": frame.file, "line": frame.line} for frame in frames[1:]],
                "loop_depth": kernel.loop_depth(row) if kernel.mix is not None else None,
                "samples": None if samples is None else sum(samples.get(pc, {}).values()),
                "by_reason": {} if samples is None else dict(samples.get(pc, {})),
                "target": int(sass.pc[target]) if start <= target < stop else None,
                "function": function,
            }
        )
    return found


def _barrier(number: int) -> int | None:
    return None if number == NO_BARRIER else number
