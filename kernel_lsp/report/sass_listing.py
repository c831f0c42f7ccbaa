"""A kernel's instructions as a text to read beside the source, with the line that each row of the text belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernel_lsp.cubin.control import NO_BARRIER, barriers
from kernel_lsp.cubin.names import function_name
from kernel_lsp.findings import wording
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.model.kernel_sass import KernelSass
from kernel_lsp.model.line_calls import mangled_name
from kernel_lsp.report.instruction_samples import instruction_samples
from kernel_lsp.report.sass_words import Places, signature

_LABEL = re.compile(r"`\((\.L_[^)]+)\)")
_DETAILS = "live  loop  st  control"  # behind the instruction: a view beside the source is narrow
_SAMPLES = " samples  "  # in front, where a report measured exactly this code
_INSTRUCTION = "instruction"  # the head of its column
_WIDEST_TEXT = 72  # longer ones push their place to the right


@dataclass(frozen=True, slots=True)
class ListingLink:
    """Row `row` (1-based) of the text is an instruction of these lines, innermost first."""

    row: int
    lines: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class SassListing:
    """The text, and its links to source lines by rising row."""

    text: str
    links: tuple[ListingLink, ...]


def sass_listing(kernel: KernelAnalysis, path: str, moved: Callable[[int], int | None] | None = None) -> SassListing:
    """The instructions of a kernel, or why there are none; places are told as seen from the file at `path`.

    `moved` gives where a line of that file is after edits. Links name lines as they were built.
    """
    sass = kernel.sass
    if sass is None:
        return SassListing(f"// {signature(kernel.binary.name)}\n// No instructions: {kernel.sass_why}\n", ())
    where = Places(path, moved) if moved else Places(path)
    rows: list[str] = [f"// {signature(kernel.binary.name)}", f"// {_facts(kernel, sass)}"]
    if sass.text_why:
        rows.append(f"// Not all instructions are known: {sass.text_why}")
    if sass.loops_why:
        rows.append(f"// {sass.loops_why[0].upper()}{sass.loops_why[1:]}")
    if sass.lines_why:
        rows.append(f"// No source lines: {sass.lines_why}")
    samples = instruction_samples(kernel.measured)
    if samples is not None:
        rows.append(f"// {_measured(kernel)}")
    links: list[ListingLink] = []
    labels = _labels(sass)
    functions = {function.start: mangled_name(function) for function in sass.code.functions[1:]}
    places: dict[int, tuple[str, tuple[tuple[str, int], ...]]] = {-1: ("", ())}
    pcs = sass.sass.pc[sass.code.start : sass.code.padding].astype(np.int64)
    table_rows = sass.lines.rows_at(pcs).tolist() if sass.lines is not None else [-1] * len(pcs)
    texts = [sass.sass.text(row) or "?" for row in range(sass.code.start, sass.code.padding)]
    wide = min(max(len(_INSTRUCTION), *map(len, texts)), _WIDEST_TEXT)
    rows += ["", f"{'' if samples is None else _SAMPLES}  pc  {_INSTRUCTION:<{wide}}  {_DETAILS}"]
    last = ""
    for row, table_row in zip(range(sass.code.start, sass.code.padding), table_rows, strict=True):
        if row in functions:
            rows += ["", f"// {signature(function_name(functions[row]).full)}"]
            last = ""
        rows += [f"{label}:" for label in labels.get(row, ())]
        if table_row not in places:
            frames = sass.frames(row)
            places[table_row] = (where.chain(frames, 6), tuple((f.file, f.line) for f in frames if f.line))
        place, lines = places[table_row]
        shown = place if place != last else '"' if place else ""
        pc = int(sass.sass.pc[row])
        text = texts[row - sass.code.start]
        rows.append(f"{_count(samples, pc)}{pc:04x}  {text:<{wide}}  {_details(sass, row)}  {shown}".rstrip())
        last = place
        if lines:
            links.append(ListingLink(len(rows), lines))
    return SassListing("\n".join(rows) + "\n", tuple(links))


def _facts(kernel: KernelAnalysis, sass: KernelSass) -> str:
    said = [kernel.binary.arch, wording.registers(kernel.binary.resources)]
    said.append(wording.counted(sass.instruction_count, "instruction"))
    if sass.live.peak is not None:
        said.append(f"at most {wording.counted(sass.live.peak, 'live register')}")
    else:
        said.append(f"live registers not known: {sass.live.why}")
    return ", ".join(said)


def _measured(kernel: KernelAnalysis) -> str:
    found = kernel.measured
    assert found is not None
    total = 0 if found.profile.samples is None else found.profile.samples.total
    return f"{wording.counted(total, 'sample')} in all, measured: {found.report_name}"


def _count(samples: Mapping[int, Mapping[str, int]] | None, pc: int) -> str:
    """The column of samples; blank for an instruction without any, "" where nothing was measured."""
    if samples is None:
        return ""
    count = sum(samples.get(pc, {}).values())
    return f"{count or '':>{len(_SAMPLES) - 2}}  "


def _details(sass: KernelSass, row: int) -> str:
    live, depth, control = sass.live_at(row), sass.loop_depth(row), sass.sass.control
    stall = "" if control is None else f"{int(control.stall[row])}{'Y' if control.yields[row] else ' '}"
    return f"{'' if live is None else live:>4}  {depth or '':>4}  {stall:>3} {control_words(sass, row):<13}"


def control_words(sass: KernelSass, row: int) -> str:
    """`wait 02 R1 W3`: scoreboards waited for, and those set until sources are read and until the result is written."""
    control = sass.sass.control
    if control is None:
        return ""
    waited = "".join(map(str, barriers(int(control.wait_mask[row]))))
    said = [f"wait {waited}"] if waited else []
    said += [
        f"{letter}{number}"
        for letter, number in (("R", int(control.read_barrier[row])), ("W", int(control.write_barrier[row])))
        if number != NO_BARRIER
    ]
    return " ".join(said)


def _labels(sass: KernelSass) -> dict[int, tuple[str, ...]]:
    """Names of the rows that branches of the section name, as their operands print them."""
    found: dict[int, dict[str, None]] = {}
    start, stop = sass.code.start, sass.code.padding
    targets = sass.sass.target[start:stop]
    for at in np.flatnonzero((targets >= start) & (targets < stop)).tolist():
        operands = sass.sass.forms[int(sass.sass.form[start + at])].operands
        if name := _LABEL.search(operands):
            found.setdefault(int(targets[at]), {})[name[1]] = None
    return {row: tuple(names) for row, names in found.items()}
