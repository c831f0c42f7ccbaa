"""Findings of a build, moved to where their lines are in the text as it is now; those on touched lines are dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernel_lsp.findings.finding import Finding, Related
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.outcome import FileOutcome
from kernel_lsp.session.uris import real_path


def remapped_findings(document: OpenDocument, latest: FileOutcome, good: FileOutcome | None) -> Iterator[Finding]:
    """Findings of the latest outcome, and (after a failed build) those of the last good one, said to be older."""
    yield from _moved(document, latest, latest.findings)
    if good is not None and good is not latest and good.analysis is not None:
        when = good.ended_at.strftime("%H:%M")
        stale = (replace(finding, message=f"of {when}: {finding.message}") for finding in good.analysis.findings)
        yield from _moved(document, good, stale)


def _moved(
    document: OpenDocument, outcome: FileOutcome, findings: Iterator[Finding] | tuple[Finding, ...]
) -> Iterator[Finding]:
    if document.text == outcome.text:
        yield from findings
        return
    own = real_path(document.path) if document.path is not None else ""
    lines = document.line_map(outcome)

    def moved(place: Related) -> Related | None:
        if real_path(place.file) != own:
            return place
        line = lines.to_new(place.line)
        return None if line is None else replace(place, line=line)

    for finding in findings:
        if finding.related:
            related = tuple(place for each in finding.related if (place := moved(each)) is not None)
            finding = replace(finding, related=related)
        if real_path(finding.file) != own:
            yield finding
            continue
        line = lines.to_new(finding.line)
        if line is not None:
            yield replace(finding, line=line, end_line=line + finding.end_line - finding.line)
