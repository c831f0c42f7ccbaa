"""Findings, places and text as lsprotocol types; the only place where columns get the client's encoding."""

from __future__ import annotations

import functools
from pathlib import Path

from lsprotocol import types

import kernel_lsp
from kernel_lsp.findings.finding import Finding, Severity
from kernel_lsp.source.lines import Encoding, LineTable

SOURCE = "kernel-lsp"

_SEVERITY: dict[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


def rule_page(code: str) -> types.CodeDescription | None:
    """Link to the page of a code, which is installed with the server."""
    page = _rule_pages_folder() / f"{code}.md"
    return types.CodeDescription(href=page.as_uri()) if page.is_file() else None


@functools.lru_cache(maxsize=1)
def _rule_pages_folder() -> Path:
    """Inside an installed package, or at the top of a source checkout."""
    package = Path(kernel_lsp.__file__).resolve().parent
    installed = package / "docs" / "rules"
    return installed if installed.is_dir() else package.parent / "docs" / "rules"


def lsp_range(
    table: LineTable | None,
    encoding: Encoding,
    line: int,
    column: int | None,
    end_line: int,
    end_column: int | None,
) -> types.Range:
    """A range from 1-based lines and code-point columns; without columns: from the line's first letter to its end.

    Lines beyond the text are held inside it. Without a table (the file is not at hand) columns are kept as they are.
    """
    if table is None:
        start = types.Position(max(line - 1, 0), max((column or 1) - 1, 0))
        end = types.Position(max(end_line - 1, line - 1, 0), max((end_column or column or 1) - 1, 0))
        return types.Range(start, end)
    first = min(max(line, 1), table.line_count)
    last = min(max(end_line, first), table.line_count)
    first_text, last_text = table.line(first), table.line(last)
    from_column = column if column is not None else len(first_text) - len(first_text.lstrip()) + 1
    to_column = end_column if end_column is not None else len(last_text) + 1
    return types.Range(
        types.Position(first - 1, table.column_in_units(first, from_column, encoding)),
        types.Position(last - 1, table.column_in_units(last, to_column, encoding)),
    )


def offset_in_text(table: LineTable, encoding: Encoding, position: types.Position) -> int:
    """Index into the text of a client's position; a place past the end of its line or of the text is that end."""
    line = position.line + 1
    return table.offset(line, table.column_from_units(line, position.character, encoding))


def diagnostic(finding: Finding, table: LineTable | None, encoding: Encoding) -> types.Diagnostic:
    """A finding as a diagnostic; places of related files stand at the first column of their line."""
    related = [
        types.DiagnosticRelatedInformation(
            location=types.Location(uri=Path(place.file).as_uri(), range=_line_start(place.line)),
            message=place.message,
        )
        for place in finding.related
        if Path(place.file).is_absolute()
    ]
    return types.Diagnostic(
        range=lsp_range(table, encoding, finding.line, finding.column, finding.end_line, finding.end_column),
        message=f"{finding.message}\n{finding.advice}" if finding.advice else finding.message,
        severity=_SEVERITY[finding.severity],
        code=finding.code,
        code_description=rule_page(finding.code),
        source=SOURCE,
        related_information=related or None,
        data={"code": finding.code, "kernel": finding.kernel},
    )


def _line_start(line: int) -> types.Range:
    position = types.Position(max(line - 1, 0), 0)
    return types.Range(position, position)
