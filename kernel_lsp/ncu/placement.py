"""Turns costs on the profiled text into costs on the text the user looks at now, and says how well they fit.

- exact: the kernel built now has the same code as the profiled one, so every counter belongs to the line that this
  build's own table gives it; edits since the build move it as they move the build's other facts.
- by line: the code differs, but the profiled text is known, from the report or from an earlier build with that code:
  counters follow their lines through a line diff, changed lines are unmeasured.
- stale: the code differs and nothing tells which text was profiled: counters are kept, and no line is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kernel_lsp.ncu.attach import (
    Chain,
    CounterAdder,
    Counters,
    LineCost,
    MeasuredKernel,
    measure,
    most_waited,
)
from kernel_lsp.ncu.kernel_code import KernelCode
from kernel_lsp.ncu.kernel_profile import KernelProfile
from kernel_lsp.ncu.producers import WaitFor
from kernel_lsp.ncu.source_paths import built_path_of, source_text
from kernel_lsp.source.remap import LineMap

Fit = Literal["exact", "by line", "stale"]


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """The kernel as a build of this file made it, and the text it was made from."""

    code: KernelCode
    text: str


@dataclass(frozen=True, slots=True)
class PlacedLine:
    """A line's cost in the current text. `profiled_line` is where it stood in the profiled text.

    `here` counts each instruction on its innermost line in this file: what a header's function cost when it was
    inlined into the line is in it, what a function of this file cost is at that function's own line.
    """

    line: int
    profiled_line: int
    cost: LineCost
    here: Counters
    waits_for: tuple[WaitFor, ...]  # of the instructions in `here`, most samples first
    certain: bool  # false in a stale report: the line may be another one


@dataclass(frozen=True, slots=True, eq=False)
class PlacedProfile:
    """A profiled launch on one file of the user's.

    `why` is a sentence for people. `edited_lines` are lines of the current text that the profile says nothing about
    because they were changed or added since; `lost_samples` are those of profiled lines that are gone.
    """

    path: str
    built_path: str | None
    fit: Fit
    why: str
    measured: MeasuredKernel
    lines: tuple[PlacedLine, ...]  # by line
    edited_lines: tuple[int, ...]
    lost_samples: int
    moved: LineMap | None = None  # from the profiled text to the current one; None in a stale report

    def line(self, line: int) -> PlacedLine | None:
        """What a line of the current text cost."""
        return next((placed for placed in self.lines if placed.line == line), None)

    def line_now(self, chain: Chain) -> int | None:
        """The line of the current text that an instruction with this chain of lines stands on; None: elsewhere."""
        profiled = next((line for file, line in chain if file == self.built_path), None)
        return self.moved.to_new(profiled) if profiled is not None and self.moved is not None else profiled


def place(
    profile: KernelProfile,
    report_code: KernelCode | None,
    path: str,
    text: str,
    builds: Iterable[BuiltKernel] = (),
) -> PlacedProfile:
    """Costs of one launch on the file `path` whose text is now `text`.

    `report_code` is the kernel in the report's own cubin; `builds` are this file's builds, the newest first: no more
    of them are asked for than it takes.
    """
    position = -1
    for position, built in enumerate(builds if report_code is not None else ()):
        if report_code is not None and same_code(report_code, built.code):
            # The report's instructions, the build's lines: comments and blank lines moved nothing.
            measured = measure(profile, replace(report_code, lines=built.code.lines))
            if position == 0:
                return _follow(path, text, built.text, "exact", "the profiled code is the code built now", measured)
            why = "by the text of an earlier build, whose code was profiled; the source was changed since"
            return _follow(path, text, built.text, "by line", why, measured)
    measured = measure(profile, report_code)
    built_path = _built_path(measured, path, text, profile.sources)
    if built_path is None:
        return _nothing(path, measured, "the report has no lines of this file")
    profiled_text = source_text(built_path, profile.sources)
    if profiled_text:
        since = "" if profiled_text == text else "; the source was changed since"
        return _follow(
            path, text, profiled_text, "by line", f"by the source in the report{since}", measured, built_path
        )
    reason = (
        "the code built now differs from the profiled code, and the report does not carry its source "
        "(ncu --import-source yes): lines may have moved"
        if position >= 0
        else "nothing tells which text was profiled (ncu --import-source yes keeps it in the report)"
    )
    found = ((cost, *each) for cost, each in _in_file(measured, built_path))
    lines = (PlacedLine(cost.line, cost.line, cost, here, waits, certain=False) for cost, here, waits in found)
    return PlacedProfile(
        path, built_path, "stale", reason, measured, tuple(sorted(lines, key=lambda line: line.line)), (), 0
    )


def same_code(one: KernelCode, other: KernelCode) -> bool:
    """Whether two builds of a kernel have the same instructions for the same architecture."""
    return one.arch == other.arch and one.content == other.content


def _follow(
    path: str,
    text: str,
    old_text: str,
    fit: Fit,
    why: str,
    measured: MeasuredKernel,
    built_path: str | None = None,
) -> PlacedProfile:
    """Costs of the old text's lines on the new text's."""
    if built_path is None:
        built_path = _built_path(measured, path, text, measured.profile.sources)
    moved = LineMap(old_text, text)
    lines: list[PlacedLine] = []
    lost = 0
    for cost, (here, waits) in _in_file(measured, built_path):
        now = moved.to_new(cost.line)
        if now is None:
            lost += here.samples
        else:
            lines.append(PlacedLine(now, cost.line, cost, here, waits, certain=True))
    edited: tuple[int, ...] = ()
    if not moved.is_identity:
        count = text.count("\n") + text.count("\r") + 1 - text.count("\r\n")
        edited = tuple(line for line in range(1, count + 1) if moved.to_old(line) is None)
    return PlacedProfile(
        path, built_path, fit, why, measured, tuple(sorted(lines, key=lambda line: line.line)), edited, lost, moved
    )


def _in_file(
    measured: MeasuredKernel, built_path: str | None
) -> Iterator[tuple[LineCost, tuple[Counters, tuple[WaitFor, ...]]]]:
    """The costs of one file's lines, with all instructions whose innermost line in this file they are."""
    table, found = measured.profile.instructions, measured.sampled
    if table is None or found is None:
        return
    rows: dict[int, list[int]] = {}
    for row, chain in enumerate(measured.chains):
        line = next((line for file, line in chain if file == built_path), None)
        if line is not None:
            rows.setdefault(line, []).append(row)
    adder = CounterAdder(table, found)
    for cost in measured.lines:
        if cost.file == built_path:
            of_line = rows.get(cost.line, [])
            pcs = [int(measured.pc[row]) for row in of_line]
            yield cost, (adder.counters(of_line), most_waited(measured.waits, pcs))


def _built_path(measured: MeasuredKernel, path: str, text: str, sources: Mapping[str, str]) -> str | None:
    return built_path_of(path, text, [cost.file for cost in measured.lines], sources)


def _nothing(path: str, measured: MeasuredKernel, why: str) -> PlacedProfile:
    return PlacedProfile(path, None, "stale", why, measured, (), (), 0)
