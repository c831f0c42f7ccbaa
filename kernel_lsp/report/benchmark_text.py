"""A benchmark's times beside those of the run before become a Markdown page, and one line that says the most."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kernel_lsp.model.benchmark_times import Comparison
from kernel_lsp.report.markdown_text import code_span, escaped
from kernel_lsp.report.measured_words import duration_words

_VERDICTS = {
    "within the spread": "no difference beyond the spread of the runs",
    "too few times": "too few times to tell",
}


@dataclass(frozen=True, slots=True)
class BenchmarkPage:
    """What the page says beside the times. `before_at` None: there is no result before."""

    title: str  # the source file
    command: Sequence[str]
    ended_at: datetime
    before_at: datetime | None
    n_runs: int
    n_warmup: int


def benchmark_markdown(page: BenchmarkPage, comparisons: Sequence[Comparison]) -> str:
    """The page. Kernel and size columns are left out where the program names none."""
    head = [f"# Benchmark of {escaped(page.title)}", "", f"{escaped(benchmark_line(comparisons))}.", ""]
    named = any(each.now.name for each in comparisons)
    sized = any(each.now.size for each in comparisons)
    columns = [*(["kernel"] if named else []), *(["size"] if sized else []), "measured", "least to most", "times"]
    columns += ["before", "change"] if page.before_at is not None else []
    rows = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for each in comparisons:
        now = each.now
        cells = [*([escaped(now.name)] if named else []), *([escaped(now.size)] if sized else [])]
        cells += [duration_words(now.median_ns), _range(each), str(now.n_times)]
        if page.before_at is not None:
            cells += [duration_words(each.before.median_ns) if each.before is not None else "", change_words(each)]
        rows.append(f"| {' | '.join(cells)} |")
    runs = "1 run" if page.n_runs == 1 else f"{page.n_runs} runs"
    warmup = "" if not page.n_warmup else f", after {page.n_warmup} to warm up that {_are(page.n_warmup)} not counted"
    foot = [
        "",
        f"Medians of the times that the program printed in {runs} of each size{warmup}. How long its process took is "
        "not used.",
        "",
        f"Measured {page.ended_at:%Y-%m-%d %H:%M}"
        + (f", before: {page.before_at:%Y-%m-%d %H:%M}" if page.before_at is not None else "")
        + f", with {code_span(shlex.join(page.command))}",
        "",
    ]
    return "\n".join([*head, *rows, *foot])


def benchmark_line(comparisons: Sequence[Comparison]) -> str:
    """The row with the largest difference that is one, else the first.

    `gemm 4096: 1.92 ms, 10.7 % less time (2.15 ms before)`
    """
    told = [each for each in comparisons if each.verdict in ("faster", "slower")]
    each = max(told, key=lambda one: abs(one.change or 0.0)) if told else comparisons[0]
    name = " ".join(part for part in (each.now.name, each.now.size) if part)
    said = f"{name}: {duration_words(each.now.median_ns)}" if name else duration_words(each.now.median_ns)
    if each.before is None:
        return said
    return f"{said}, {change_words(each)} ({duration_words(each.before.median_ns)} before)"


def change_words(each: Comparison) -> str:
    """`10.7 % less time`, or why that is not said; "" without a result before."""
    if each.change is None:
        return ""
    if each.verdict in ("faster", "slower"):
        return f"{100 * abs(each.change):.1f} % {'less' if each.verdict == 'faster' else 'more'} time"
    return f"{100 * each.change:+.1f} %, {_VERDICTS[each.verdict]}"


def _range(each: Comparison) -> str:
    return f"{duration_words(each.now.least_ns)} to {duration_words(each.now.most_ns)}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
