"""Turns measured launches into the lines that `kernel-lsp profile` prints, and two of them into a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernel_lsp.cubin.names import function_name
from kernel_lsp.ncu.attach import LineCost, MeasuredKernel
from kernel_lsp.ncu.hot_lines import main_stall, wait_of
from kernel_lsp.ncu.kernel_match import name_key, spelled_key
from kernel_lsp.ncu.kernel_profile import KernelProfile, NcuReport
from kernel_lsp.ncu.reading import issue_reading, sol_reading, tail_wave
from kernel_lsp.report.measured_lines import opcode_of
from kernel_lsp.report.measured_sentences import (
    issue_sentences,
    missing_by_option,
    reading_sentence,
    roofline_sentences,
    rules_sentence,
    sol_words,
    told_rules,
    waves_sentence,
)
from kernel_lsp.report.measured_words import BAR_CELLS, duration_words, reason_words, share_words

_N_LINES = 10
_N_STALLS = 4


def report_lines(report: NcuReport, kernels: Sequence[MeasuredKernel], files: Mapping[str, str]) -> Iterator[str]:
    """The whole report. `files` maps paths of the report to files here."""
    device = report.kernels[0].device if report.kernels else None
    told = [device.name if device else None, device.arch if device else None]
    told.append(f"ncu {report.collector}" if report.collector else None)
    told.append(f"{len(kernels)} launch{'es' if len(kernels) != 1 else ''}")
    yield f"{report.path}: {', '.join(part for part in told if part)}"
    yield from report.notes
    for measured in kernels:
        yield ""
        yield from launch_lines(measured, files)


def launch_lines(measured: MeasuredKernel, files: Mapping[str, str]) -> Iterator[str]:
    """One launch: what it took, the first reading, stalls, hot lines, what is missing."""
    profile = measured.profile
    yield f"#{profile.index} {short_name(profile)}{_shape(profile)}"
    duration = "" if profile.duration_ns is None else duration_words(profile.duration_ns)
    facts = [duration, sol_words(profile.sol, parts=True), _occupancy(profile), reading_sentence(sol_reading(profile))]
    tail = tail_wave(profile)
    if tail is not None and (tail.waves < 1 or tail.costly):
        facts.append(waves_sentence(profile, tail))
    yield from (f"  {fact}" for fact in facts if fact)
    yield from _stalls(measured)
    yield from (f"  {line}" for line in roofline_sentences(profile))
    yield from _hot_lines(measured, files)
    if rules := told_rules(profile):
        yield f"  {rules_sentence(rules)}"
    if profile.missing:
        yield f"  {_missing(profile)}"


def compare_lines(before: Sequence[MeasuredKernel], after: Sequence[MeasuredKernel]) -> Iterator[str]:
    """Launches of the same kernel side by side, in the order of the second report."""
    left = list(before)
    for new in after:
        old = next((each for each in left if _same_kernel(each.profile, new.profile)), None)
        if old is None:
            yield f"{short_name(new.profile)}{_shape(new.profile)}: only in the second"
            continue
        left.remove(old)
        yield f"{short_name(new.profile)}{_shape(new.profile)}"
        for name, one, other, unit in compared_values(old.profile, new.profile):
            if one is not None and other is not None:
                change = f"{(other - one) / one:+.1%}" if one else ""
                yield f"  {name:<22}{one:>14,.6g} -> {other:<14,.6g}{unit:<4}{change}"
        if old.profile.launch.grid != new.profile.launch.grid or old.profile.launch.block != new.profile.launch.block:
            yield f"  launched differently:{_shape(old.profile)} ->{_shape(new.profile)}"
        if old.profile.device.name != new.profile.device.name:
            yield f"  on different devices: {old.profile.device.name} and {new.profile.device.name}"
    for old in left:
        yield f"{short_name(old.profile)}{_shape(old.profile)}: only in the first"


def _missing(profile: KernelProfile) -> str:
    lacking = missing_by_option(profile.missing)
    options = " ".join(sorted(option for option in lacking if option))
    text = f"Not in the report: {', '.join(lacking.values())}."
    return f"{text} To collect it: ncu {options}" if options else f"{text} This ncu or device does not measure it."


def short_name(profile: KernelProfile) -> str:
    """What a person says: the name without types."""
    return function_name(profile.mangled).short if profile.mangled else spelled_key(profile.name) or profile.name


def _same_kernel(one: KernelProfile, other: KernelProfile) -> bool:
    if one.mangled and other.mangled:
        return name_key(one.mangled) == name_key(other.mangled)
    return spelled_key(one.name) == spelled_key(other.name)


def compared_values(old: KernelProfile, new: KernelProfile) -> Iterator[tuple[str, float | None, float | None, str]]:
    """Name, value before and after, unit; None where a report lacks it."""

    def micro(ns: float | None) -> float | None:
        return None if ns is None else ns / 1000

    yield "duration", micro(old.duration_ns), micro(new.duration_ns), "us"
    yield "SM", old.sol.sm, new.sol.sm, "%"
    yield "memory", old.sol.memory, new.sol.memory, "%"
    yield "DRAM", old.sol.dram, new.sol.dram, "%"
    yield "theoretical occupancy", _pct(old.occupancy.theoretical), _pct(new.occupancy.theoretical), "%"
    yield "achieved occupancy", _pct(old.occupancy.achieved), _pct(new.occupancy.achieved), "%"
    yield "registers", old.launch.registers, new.launch.registers, ""
    yield "waves per SM", old.launch.waves_per_sm, new.launch.waves_per_sm, ""
    yield "issued per cycle", old.scheduler.issue_active, new.scheduler.issue_active, ""
    yield "eligible warps", old.scheduler.eligible_warps, new.scheduler.eligible_warps, ""


def _pct(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _shape(profile: KernelProfile) -> str:
    launch = profile.launch
    if launch.grid is None or launch.block is None:
        return ""
    return f" <<<{'x'.join(map(str, launch.grid))}, {'x'.join(map(str, launch.block))}>>>"


def _occupancy(profile: KernelProfile) -> str:
    occupancy, launch = profile.occupancy, profile.launch
    if occupancy.theoretical is None:
        return ""
    text = f"occupancy {share_words(occupancy.theoretical)} theoretical"
    if occupancy.achieved is not None:
        text += f", {share_words(occupancy.achieved)} achieved"
    if occupancy.blocks_per_sm is not None:
        blocks = occupancy.blocks_per_sm
        text += f"; {blocks} block{'s' if blocks != 1 else ''}/SM by {', '.join(occupancy.limiters)}"
    if launch.waves_per_sm is not None:
        text += f"; {launch.waves_per_sm:.2f} waves"
    return text


def _stalls(measured: MeasuredKernel) -> Iterator[str]:
    issue = issue_reading(measured.profile)
    yield from (f"  {sentence}" for sentence in issue_sentences(measured.profile, issue))
    for reason, share in issue.top_stalls[:_N_STALLS]:
        bar = "#" * round(share * BAR_CELLS)
        yield f"    {reason_words(reason):<22}{share_words(share):>5}  {bar}".rstrip()


def _hot_lines(measured: MeasuredKernel, files: Mapping[str, str]) -> Iterator[str]:
    samples = measured.profile.samples
    hot = [cost for cost in measured.lines if cost.own.samples][:_N_LINES]
    if samples is None or not hot:
        if measured.nowhere is not None and measured.nowhere.samples:
            yield "  No lines: the program was built without -lineinfo."
        return
    few = ", too few for percentages" if samples.few else ""
    yield f"  Samples: {samples.total:,}{few}"
    for cost in hot:
        count = f"{cost.own.samples:>7,}" if samples.few else f"{share_words(cost.own.samples / samples.total):>7}"
        reason = main_stall(cost.own)
        words = reason_words(reason) + _waits(cost, files) if reason else ""
        yield f"  {count}  {files.get(cost.file, cost.file)}:{cost.line}  {words}".rstrip()
    if measured.outside:
        yield f"  {sum(measured.outside.values()):,} samples outside the kernel's code"


def _waits(cost: LineCost, files: Mapping[str, str]) -> str:
    """Where the data comes from that the line waits for most."""
    wait = wait_of(cost.waits_for, main_stall(cost.own))
    if wait is None:
        return ""
    opcode = opcode_of(wait.producer)
    if not wait.chain:
        return f" <- {opcode}"
    file, line = wait.chain[0]
    place = f"l.{line}" if file == cost.file else f"{files.get(file, file)}:{line}"
    return f" <- {opcode} {place}"
