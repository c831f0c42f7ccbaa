"""Kernels of a document at their present places: facts of the last good build, lines moved with the edits since."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.outcome import FileOutcome
from kernel_lsp.source.position import Span


@dataclass(frozen=True, slots=True)
class PlacedKernel:
    """A kernel whose name stands at `span` in the text as it is now."""

    kernel: KernelAnalysis
    span: Span


def placed_kernels(document: OpenDocument) -> tuple[PlacedKernel, ...]:
    """The document's own kernels whose line was not touched since the build, in the analysis' order."""
    good = document.good
    if good is None or good.analysis is None:
        return ()
    lines = document.line_map(good)
    placed = []
    for kernel in good.analysis.kernels:
        if kernel.span is None or kernel.file != good.analysis.path:
            continue
        line = lines.to_new(kernel.span.line)
        if line is not None:
            placed.append(PlacedKernel(kernel, Span(line, kernel.span.column, kernel.span.end_column)))
    return tuple(placed)


def freshness(document: OpenDocument, outcome: FileOutcome | None = None) -> str | None:
    """How old the facts of an outcome (else of the last good one) are, as a sentence; None: of exactly this text."""
    good = outcome or document.good
    if good is None:
        return None
    when = f"from the build of {good.ended_at.strftime('%H:%M')}"
    n_edited = document.line_map(good).touched_line_count
    edited = (
        "" if document.text == good.text else f", {_lines(n_edited)} edited since" if n_edited else ", edited since"
    )
    if document.is_stale:
        return f"{when}{edited}: the build after it failed"
    return f"{when}{edited}" if edited or good is not document.good else None


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
