"""What a report of Nsight Compute puts into the sections of the bottleneck report: blocks, before any output format."""

from __future__ import annotations

import re

from kernel_lsp.findings import wording
from kernel_lsp.model.roofline import measured_roofline
from kernel_lsp.ncu.attach import Counters
from kernel_lsp.ncu.hot_lines import main_stall, wait_of
from kernel_lsp.ncu.kernel_measurement import KernelMeasurement
from kernel_lsp.ncu.kernel_profile import IntColumn
from kernel_lsp.ncu.raw_report import RuleResult
from kernel_lsp.report.measured_lines import file_line, wait_words
from kernel_lsp.report.measured_rows import CostRow, cost_rows
from kernel_lsp.report.measured_sentences import (
    achieved_sentence,
    dram_sentence,
    missing_by_option,
    reading_sentence,
    roofline_sentences,
    sol_words,
    tensor_words,
    waves_sentence,
)
from kernel_lsp.report.measured_words import (
    amount_words,
    duration_words,
    fit_sentence,
    number_words,
    provenance,
    rate_words,
    reason_words,
    share_words,
)
from kernel_lsp.report.sass_words import Places
from kernel_lsp.report.section import Block, Bullets, Paragraph, Table

MOST_LINES = 10
MOST_RULES = 8
_LONGEST_MESSAGE = 400  # letters
_MARKUP = re.compile(r"@(section|url|source):([^:@]*):([^@]*)@")


def summary_sentence(found: KernelMeasurement) -> str:
    """`Measured: 1.92 ms, SM 31 %, memory 88 % (DRAM 84 %). DRAM-bound. Next: ...`"""
    duration_ns = found.profile.duration_ns
    parts = ["" if duration_ns is None else duration_words(duration_ns), sol_words(found.profile.sol)]
    said = f"Measured: {', '.join(part for part in parts if part)}." if any(parts) else "Measured."
    return f"{said} {reading_sentence(found.sol)}".strip()


def baseline_blocks(found: KernelMeasurement) -> tuple[Block, ...]:
    """Time and work of the launch, and where the numbers are from."""
    profile, launch = found.profile, found.profile.launch
    rows: list[tuple[str, str]] = []
    if profile.duration_ns is not None:
        rows.append(("duration", duration_words(profile.duration_ns)))
    if launch.grid is not None and launch.block is not None:
        rows.append(("launch", f"grid {_size(launch.grid)}, block {_size(launch.block)}"))
    if profile.sm_hz:
        rows.append(("SM clock", f"{profile.sm_hz / 1e6:,.0f} MHz"))
    for point in profile.roofline:
        if point.flop:
            text = f"{amount_words(point.flop, 'FLOP')}, {rate_words(point.flop_per_s, 'FLOPS')}"
            rows.append((f"{point.precision} work", text))
    traffic = next((point.dram_bytes for point in profile.roofline if point.dram_bytes is not None), None)
    if traffic is not None:
        rows.append(("DRAM traffic", amount_words(traffic, "B")))
    blocks: list[Block] = [Paragraph(f"From {provenance(found, None)}. {fit_sentence(found)}".strip())]
    if rows:
        blocks.append(Table(("measured", "value"), tuple(rows)))
    return tuple(blocks)


def roofline_blocks(found: KernelMeasurement) -> tuple[Block, ...]:
    """The place of every precision that did work, at the clocks of the run; () where the report does not tell."""
    profile = found.profile
    blocks: list[Block] = []
    working = [point for point in profile.roofline if point.flop_per_s > 0]
    if working and tensor_words(profile) is None:
        rows = tuple(
            (
                point.precision,
                rate_words(point.flop_per_s, "FLOPS"),
                "" if place.intensity is None else number_words(place.intensity),
                "" if place.balance is None else number_words(place.balance),
                place.side or "",
                "" if place.attained is None else share_words(place.attained),
            )
            for point, place in ((point, measured_roofline(point)) for point in working)
        )
        header = ("measured", "rate", "FLOP per DRAM byte", "balance of the run", "side", "of what it allows")
        blocks.append(Table(header, rows))
    else:
        blocks += [Paragraph(sentence) for sentence in roofline_sentences(profile)]
    if sentence := dram_sentence(profile):
        blocks.append(Paragraph(sentence))
    return tuple(blocks)


def occupancy_paragraph(found: KernelMeasurement) -> Paragraph | None:
    """Achieved against theoretical, and the waves."""
    said = [achieved_sentence(found.profile), waves_sentence(found.profile, found.tail_wave)]
    text = " ".join(sentence for sentence in said if sentence)
    return Paragraph(f"Measured: {text}") if text else None


def hot_line_blocks(found: KernelMeasurement, places: Places) -> tuple[Block, ...]:
    """The lines with most samples, and the samples that are on none; () without samples."""
    samples, placed, measured = found.profile.samples, found.placed, found.measured
    if samples is None or not samples.total:
        return ()
    rows = [_hot_row(found, row, places) for row in cost_rows(found, 1)[:MOST_LINES]]
    blocks: list[Block] = [Paragraph(f"{wording.counted(samples.total, 'sample')} in all{_few(found)}.")]
    if rows:
        blocks.append(Table(("line", "share", "samples", "most of them", "", "executed"), tuple(rows)))
    rest = {
        "outside the kernel's own code": sum(measured.outside.values()),
        "on instructions without a line (built without -lineinfo?)": measured.nowhere.samples
        if measured.nowhere
        else 0,
        "on lines that were changed since": placed.lost_samples,
    }
    items = tuple(f"{count:,} samples {where}" for where, count in rest.items() if count)
    if items:
        blocks.append(Bullets(items))
    if found.issue.stalls_matter is False:
        blocks.append(Paragraph(found.issue.healthy[0]))
    return tuple(blocks)


def _few(found: KernelMeasurement) -> str:
    samples = found.profile.samples
    return ", too few for percentages" if samples is not None and samples.few else ""


def _hot_row(found: KernelMeasurement, row: CostRow, places: Places) -> tuple[str, ...]:
    samples, here = found.profile.samples, row.here
    assert samples is not None
    reason = main_stall(here)
    wait = wait_of(row.waits, reason)
    share = "" if samples.few else share_words(here.samples / samples.total)
    why = "" if reason is None else f"{reason_words(reason)} {share_words(here.by_reason[reason] / here.samples)}"
    waiting = "" if wait is None else wait_words(wait, found.placed, places, row.line if row.in_file else 0)
    executed = "" if here.executed is None else f"{here.executed:,}"
    return _place(row, places), share, f"{here.samples:,}", why, waiting, executed


def _place(row: CostRow, places: Places) -> str:
    return places.of(places.path, row.line) if row.in_file else file_line(row.file, row.line)


def memory_blocks(found: KernelMeasurement, places: Places) -> tuple[Block, ...]:
    """Sectors and wavefronts of the kernel and of its lines against the ideal; () where the report has none."""
    table = found.profile.instructions
    if table is None:
        return ()
    items = [
        _total("Global memory", "sector", table.global_sectors, table.global_sectors_ideal),
        _total("Shared memory", "wavefront", table.shared_wavefronts, table.shared_wavefronts_ideal),
        _total("Local memory", "sector", table.local_sectors, None),
    ]
    said = tuple(item for item in items if item)
    if not said:
        return ()
    rows = _memory_rows(found, places)
    header = ("line", "sectors per request", "ideal", "excess sectors", "excess wavefronts", "local sectors")
    return (Bullets(said), Table(header, tuple(rows))) if rows else (Bullets(said),)


def _total(what: str, noun: str, column: IntColumn | None, ideal: IntColumn | None) -> str:
    if column is None:
        return ""
    total = int(column.sum())
    if not total:
        return f"{what}: none."
    said = f"{what}: {wording.counted(total, noun)}"
    if ideal is None:
        return f"{said}."
    excess = max(0, total - int(ideal.sum()))
    return (
        f"{said}, {share_words(excess / total)} in excess of the ideal." if excess else f"{said}, no more than ideal."
    )


def _memory_rows(found: KernelMeasurement, places: Places) -> list[tuple[str, ...]]:
    touching = [
        row
        for row in cost_rows(found)
        if row.here.global_sectors or row.here.shared_wavefronts or row.here.local_sectors
    ]
    touching.sort(key=lambda row: -((row.here.excess_sectors or 0) + (row.here.excess_wavefronts or 0)))
    return [_memory_row(_place(row, places), row.here) for row in touching[:MOST_LINES]]


def _memory_row(place: str, here: Counters) -> tuple[str, ...]:
    ideal = here.global_sectors_ideal
    per_request = here.sectors_per_request
    return (
        place,
        "" if per_request is None or not here.global_sectors else f"{per_request:.1f}",
        f"{ideal / here.global_instructions:.1f}" if ideal and here.global_instructions else "",
        _excess(here.excess_sectors, here.excess_sector_share),
        _excess(here.excess_wavefronts, here.excess_wavefront_share),
        f"{here.local_sectors:,}" if here.local_sectors else "",
    )


def _excess(count: int | None, share: float | None) -> str:
    return "" if count is None or share is None else f"{count:,} ({share_words(share)})"


def rule_blocks(found: KernelMeasurement) -> tuple[Block, ...]:
    """What NVIDIA's own rules said, in their words and with their estimates."""
    telling = [
        rule for rule in found.profile.rules if rule.message and rule.kind in ("optimization", "warning", "error")
    ]
    telling.sort(key=lambda rule: (rule.speedup_scope != "global", -(rule.speedup_pct or 0.0)))
    by_rule: dict[str, list[RuleResult]] = {}
    for rule in telling:
        by_rule.setdefault(rule.rule, []).append(rule)
    if not by_rule:
        return ()
    items = tuple(
        _rule(same[0]) + (f" And {len(same) - 1} more of this rule." if len(same) > 1 else "")
        for same in list(by_rule.values())[:MOST_RULES]
    )
    if len(by_rule) > MOST_RULES:
        items += (f"{len(by_rule) - MOST_RULES} more rules in the report.",)
    return Paragraph("NVIDIA's own rules say of this launch (their words, and their estimates):"), Bullets(items)


def _rule(rule: RuleResult) -> str:
    message = _MARKUP.sub(lambda match: match[3] if match[1] == "section" else match[2], rule.message)
    message = re.sub(r"\s+", " ", message).strip().replace("`", "'")
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE].rpartition(" ")[0] + " ..."
    gain = "" if not rule.speedup_pct else f" Estimated {rule.speedup_scope} speed-up: {rule.speedup_pct:.0f} %."
    return f"{rule.title or rule.rule}: {message}{gain}"


def missing_items(found: KernelMeasurement) -> list[str]:
    """What the report lacks, with the option that collects it."""
    return [
        f"{words}: `ncu {option}`." if option else f"Not measured by this ncu or device: {words}."
        for option, words in missing_by_option(found.profile.missing).items()
    ]


def _size(size: tuple[int, int, int]) -> str:
    return wording.block_size(size)
