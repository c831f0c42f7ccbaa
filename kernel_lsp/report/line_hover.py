"""The hover on a source line: what the compiler made of it, in one kernel in full and in others by a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.cubin.local_memory import LocalAccess
from kernel_lsp.cubin.sass import NEVER_GUARD
from kernel_lsp.findings import wording
from kernel_lsp.hardware.profile import HwProfile
from kernel_lsp.model.kernel_sass import KernelSass, Rows
from kernel_lsp.model.line_sass import Awaited, Inlined, LineSass, awaited, line_sass
from kernel_lsp.report.call_words import call_sentences, caller_lines
from kernel_lsp.report.markdown_text import escaped, fenced, name
from kernel_lsp.report.sass_words import Places, counts_text, function_words, ranks_and_names
from kernel_lsp.report.stall_words import barrier_sentences, stall_sentences

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement

MOST_INLINED = 6
MOST_EXCERPT = 10
MOST_KERNELS = 5
MOST_WAITS = 3
_WIDEST_TEXT = 58
_INSTRUCTION = "instruction"  # the head of its column


@dataclass(frozen=True, slots=True)
class LineUnit:
    """One kernel (or a device function that waits for the linker) with what it does on the line."""

    short_name: str
    sass: KernelSass
    line: LineSass
    measured: KernelMeasurement | None = None

    @property
    def spilled_bytes(self) -> int:
        """Of the registers that the kernel spills and refills on the line."""
        return sum(each.width_bytes for each in self.local("spill"))

    def local(self, purpose: str | None) -> list[LocalAccess]:
        """Accesses of local memory on the line."""
        rows = set(self.line.rows.tolist())
        return [each for each in self.sass.local or () if each.row in rows and each.purpose == purpose]


def line_units(analysis: FileAnalysis, line: int) -> list[LineUnit]:
    """The kernels and functions with instructions on a line of the analysed file: measured ones first, then those that
    spill there, then those with the most registers."""
    known = [
        (kernel.binary.short_name, kernel.binary.resources.registers, kernel.sass, kernel.measured)
        for kernel in analysis.kernels
        if kernel.sass is not None
    ]
    known += [
        (function.short_name, function.registers or 0, sass, None)
        for function, sass in zip(analysis.device_functions, analysis.function_sass, strict=True)
        if sass is not None
    ]
    found = []
    for short_name, _, sass, measured in sorted(known, key=lambda item: -item[1]):
        here = line_sass(sass, analysis.path, line)
        if here is not None:
            found.append(LineUnit(short_name, sass, here, measured))
    return sorted(found, key=lambda unit: (unit.measured is None, not unit.spilled_bytes))


def busiest_line(analysis: FileAnalysis, lines: Iterable[int]) -> int | None:
    """The line with the most instructions of all kernels; None where none has any."""
    counts = {line: sum(len(unit.line) for unit in line_units(analysis, line)) for line in lines}
    return max((line for line, count in counts.items() if count), key=lambda line: counts[line], default=None)


def line_hover(
    analysis: FileAnalysis,
    line: int,
    freshness: str | None = None,
    moved: Callable[[int], int | None] | None = None,
    now: datetime | None = None,
    statement: tuple[int, int] | None = None,
) -> str | None:
    """Markdown for a line of the text that was built; None: it has no instructions, and nothing was measured there.

    `moved` gives where a line is in the text as it stands now; `now` tells the age of a report. `statement`: the line
    stands for a statement on these lines, of which another one was asked for.
    """
    places = Places(analysis.path, moved) if moved else Places(analysis.path)
    units = line_units(analysis, line)
    if not units:
        return _measured_alone(analysis, line, freshness, places, now)
    first = units[0]
    parts = [_head(first, places)]
    if statement:
        parts.append(f"*The statement on l.{statement[0]}-{statement[1]} has its instructions there.*")
    if freshness:
        parts.append(f"*{escaped(freshness)}*")
    measured = _measured(first, line, places, now)
    if first.sass.mix is None:
        parts += [*measured, f"Opcodes are not known: {escaped(first.sass.text_why)}"]
    else:
        parts += [fenced(_groups(first, places)), *measured]
        parts += [escaped(said) for said in (*call_sentences(first.sass, first.line.rows), *_local(first))]
        if not any("Waits for " in said for said in measured):  # the samples say it with their numbers
            parts += [escaped(said) for said in _waits(awaited(first.sass, first.line), first, places)]
        parts += [escaped(said) for said in _stalls(first, analysis.gpu.profile)]
        parts += [escaped(said) for said in barrier_sentences(first.sass, first.line.rows)]
        parts.append(fenced(_excerpt(first)))
        if first.sass.text_why:
            parts.append(escaped(f"Some instructions are not known: {first.sass.text_why}"))
    chains = [*_chain_lines(first.line, places), *caller_lines(first.sass, first.line.own, places)]
    if chains:
        parts.append("\n".join(chains))
    if len(units) > 1:
        parts.append(_others(units[1:], line))
    return "\n\n".join(parts)


def _measured(unit: LineUnit, line: int, places: Places, now: datetime | None) -> list[str]:
    if unit.measured is None:
        return []
    from kernel_lsp.report.measured_hover import line_blocks  # with the first report: a start needs none of it

    return line_blocks(unit.measured, line, places, now)


def _measured_alone(
    analysis: FileAnalysis, line: int, freshness: str | None, places: Places, now: datetime | None
) -> str | None:
    """A line that only a report knows: instructions are not read yet, or were compiled away since."""
    here = [
        (kernel.binary.short_name, kernel.measured)
        for kernel in analysis.kernels
        if kernel.measured is not None and kernel.measured.placed.line(line) is not None
    ]
    if not here:
        return None
    from kernel_lsp.report.measured_hover import line_blocks

    parts = []
    for short_name, measured in here[:MOST_KERNELS]:
        parts.append(f"**{places.of(analysis.path, line)}** in {name(short_name)}")
        if freshness and len(parts) == 1:
            parts.append(f"*{escaped(freshness)}*")
        parts += line_blocks(measured, line, places, now)
    return "\n\n".join(parts)


def _head(unit: LineUnit, places: Places) -> str:
    here = unit.line
    said = [wording.counted(len(here), "instruction")]
    if here.loop_depth:
        said.append(f"loop depth {here.loop_depth}")
    if here.live_registers is not None:
        live = wording.counted(here.live_registers, "live register")
        said.append(f"{live}, the peak of the kernel" if here.has_peak else live)
    return f"**{places.of(here.file, here.line)}** in {name(unit.short_name)}: {' · '.join(said)}"


def _groups(unit: LineUnit, places: Places) -> list[str]:
    """`own` and `inlined` with their opcodes, aligned; where much was inlined, the whole first."""
    here, sass = unit.line, unit.sass.sass
    ranks = ranks_and_names(sass, here.rows)

    def telling(each: Inlined) -> tuple[float, int]:
        return min(ranks[form][0] for form in sass.form[each.rows].tolist()), -len(each.rows)

    # Instances of one template are one place to the reader.
    merged: dict[str, Rows] = {}
    for each in sorted(here.inlined, key=telling):
        where = places.of(each.file, each.line) + function_words(each.function)
        merged[where] = np.concatenate([merged[where], each.rows]) if where in merged else each.rows
    ranked = list(merged.items())
    rows = [("in all", "", counts_text(sass, here.rows))] if len(ranked) > MOST_INLINED else []
    rows += [("own", "", counts_text(sass, here.own))] if len(here.own) else []
    rows += [("inlined", where, counts_text(sass, inlined, 4)) for where, inlined in ranked[:MOST_INLINED]]
    if rest := ranked[MOST_INLINED:]:
        count = sum(len(inlined) for _, inlined in rest)
        rows.append(("inlined", wording.counted(len(rest), "more line"), wording.counted(count, "instruction")))
    turn = _in_loop(unit)
    if len(turn) and len(turn) < len(here):
        rows.append(("in loop", "", counts_text(sass, turn)))
    wide = max((len(where) for _, where, _ in rows), default=0)
    return [f"{label:<7}  " + (f"{where:<{wide}}  " if where else "") + counts for label, where, counts in rows]


def _in_loop(unit: LineUnit) -> Rows:
    """The line's rows in the innermost loop that holds the most of them: unrolled loops leave others behind them."""
    every, flow = unit.line.rows, unit.sass.flow
    loops = np.array([-1 if (loop := flow.innermost_loop(row)) is None else loop for row in every.tolist()])
    counts = np.bincount(loops[loops >= 0], minlength=1)
    return every[loops == int(counts.argmax())] if counts.any() else every[:0]


def _local(unit: LineUnit) -> list[str]:
    """Local memory on the line, told apart."""
    said = []
    for purpose, words in (("spill", "Spilled registers"), ("array", "Local array"), (None, "Local memory")):
        accesses = unit.local(purpose)
        if not accesses:
            continue
        stored = sum(each.width_bytes for each in accesses if each.is_store)
        loaded = sum(each.width_bytes for each in accesses if not each.is_store)
        depth = max(each.loop_depth for each in accesses)
        parts = [f"{wording.exact_bytes(stored)} stored"] if stored else []
        parts += [f"{wording.exact_bytes(loaded)} loaded"] if loaded else []
        inside = f", up to loop depth {depth}" if depth else ", outside of loops"
        why = ": whether these are spills, this ptxas does not tell" if purpose is None else ""
        said.append(f"{words}: {' and '.join(parts)} per thread{inside}{why}.")
    return said


def _waits(found: Sequence[Awaited], unit: LineUnit, places: Places) -> list[str]:
    """What the line's instructions wait for: results that take their time."""
    named = []
    for each in found[:MOST_WAITS]:
        file = unit.line.file
        inner = "" if each.file is None or each.line is None else places.of(each.file, each.line)
        if each.own_line is None:
            where = inner and f" of {inner}"
        else:
            where = " of this line" if each.own_line == unit.line.line else f" of {places.of(file, each.own_line)}"
            where += "" if each.file == file else f" ({inner})"
        named.append(each.opcode + where)
    if not named:
        return []
    more = f" and {len(found) - MOST_WAITS} more" if len(found) > MOST_WAITS else ""
    return [f"Waits for {wording.joined(named) if not more else ', '.join(named) + more}."]


def _stalls(unit: LineUnit, profile: HwProfile) -> list[str]:
    return stall_sentences(unit.sass, unit.line.rows, profile)


def _excerpt(unit: LineUnit) -> list[str]:
    """The most telling instructions of the line, some of each kind, in their order, with address and live registers."""
    kernel, sass = unit.sass, unit.sass.sass
    every = unit.line.rows
    can_run = every[sass.guard[every] != NEVER_GUARD]
    rows, ranks = can_run if len(can_run) else every, ranks_and_names(sass, every)
    by_kind: dict[tuple[float, str], list[int]] = {}
    for row, form in zip(rows.tolist(), sass.form[rows].tolist(), strict=True):
        by_kind.setdefault(ranks[form], []).append(row)
    kinds = [by_kind[kind] for kind in sorted(by_kind)]
    # One of each in turn, so that many of one kind do not hide the others.
    in_turn = sorted((turn, number, row) for number, kind in enumerate(kinds) for turn, row in enumerate(kind))
    shown = sorted(row for _, _, row in in_turn[:MOST_EXCERPT])
    texts = [sass.text(row) or "?" for row in shown]
    wide = min(max(len(_INSTRUCTION), *map(len, texts)), _WIDEST_TEXT)
    lines = [f"pc    {_INSTRUCTION:<{wide}}  live"]
    for row, text in zip(shown, texts, strict=True):
        live = kernel.live_at(row)
        lines.append(f"{int(sass.pc[row]):04x}  {text:<{wide}}  {'' if live is None else live:>4}".rstrip())
    if len(every) > len(shown):
        lines.append(f"      and {len(every) - len(shown):,} more")
    return lines


def _chain_lines(here: LineSass, places: Places) -> list[str]:
    """Through which calls the line's own instructions came into the kernel."""
    found = [
        f"- {wording.counted(chain.count, 'instruction')} inlined into {escaped(places.chain(chain.frames))}"
        for chain in here.chains[:3]
    ]
    if len(here.chains) > len(found):
        rest = here.chains[len(found) :]
        found.append(
            f"- {sum(chain.count for chain in rest):,} through {wording.counted(len(rest), 'other chain')} of calls"
        )
    return found


def _others(units: Sequence[LineUnit], line: int) -> str:
    lines = []
    for unit in units[:MOST_KERNELS]:
        count, live = wording.counted(len(unit.line), "instruction"), unit.line.live_registers
        registers = "" if live is None else ", " + wording.counted(live, "live register")
        spilled = f", {wording.exact_bytes(unit.spilled_bytes)} of spills" if unit.spilled_bytes else ""
        lines.append(f"- {name(unit.short_name)}: {count}{registers}{spilled}{_share(unit, line)}")
    if len(units) > MOST_KERNELS:
        lines.append(f"- {len(units) - MOST_KERNELS} more")
    return "Also in:\n" + "\n".join(lines)


def _share(unit: LineUnit, line: int) -> str:
    if unit.measured is None:
        return ""
    from kernel_lsp.report.measured_hover import other_line_words

    words = other_line_words(unit.measured, line)
    return f", {words}" if words else ""
