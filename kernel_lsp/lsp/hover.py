"""Hover: on a kernel's name what is known of it, on any other place of a line its instructions; answered at once."""

from __future__ import annotations

import re
from datetime import datetime

from lsprotocol import types

from kernel_lsp.lsp.convert import lsp_range
from kernel_lsp.lsp.placed import freshness, placed_kernels
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.line_hover import busiest_line, line_hover
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.source.kernel_match import kernel_name
from kernel_lsp.source.lines import LineTable
from kernel_lsp.source.position import Span
from kernel_lsp.source.statements import statement_lines

_USED_NAME = re.compile(r"[A-Za-z_]\w*(?=\s*<)")


def hover(server: KernelLspServer, params: types.HoverParams) -> types.Hover | None:
    """The kernel whose name is under the cursor, else the line; None where nothing is known."""
    document = server.session.document(params.text_document.uri)
    if document is None or not server.session.settings.hover_enable:
        return None
    line = params.position.line + 1
    table = LineTable(document.text)
    return _of_kernel(server, document, table, line, params.position.character) or _of_line(
        server, document, table, line
    )


def _of_kernel(
    server: KernelLspServer, document: OpenDocument, table: LineTable, line: int, units: int
) -> types.Hover | None:
    """Where its name is declared, and where it is launched or instantiated: kernels of headers have no other place."""
    good = document.good
    if good is None or good.analysis is None:
        return None
    column = table.column_from_units(line, units, server.encoding)
    span = kernel = None
    for placed in placed_kernels(document):
        if placed.span.line == line and placed.span.column <= column <= placed.span.end_column:
            span, kernel = placed.span, placed.kernel
            break
    else:
        span = _used_name(table.line(line), line, column)
        word = table.line(line)[span.column - 1 : span.end_column - 1] if span else ""
        kernel = next((each for each in good.analysis.kernels if _last_name(each) == word), None)
    if span is None or kernel is None:
        return None
    moved = document.line_map(good).to_new
    text = kernel_hover(kernel, good.analysis, freshness(document), moved, datetime.now().astimezone())
    return _hover(server, table, text, span.line, span.column, span.end_column)


def _used_name(text: str, line: int, column: int) -> Span | None:
    """The name under the cursor that template arguments or a launch follow."""
    for found in _USED_NAME.finditer(text):
        if found.start() < column <= found.end() + 1:
            return Span(line, found.start() + 1, found.end() + 1)
    return None


def _last_name(kernel: KernelAnalysis) -> str:
    return kernel_name(kernel.binary.name).scope_and_name[-1]


def _of_line(server: KernelLspServer, document: OpenDocument, table: LineTable, line: int) -> types.Hover | None:
    outcome = document.coded or document.good  # without instructions what was measured is known still
    if outcome is None or outcome.analysis is None:
        return None
    lines = document.line_map(outcome)
    built_line = lines.to_old(line)
    if built_line is None:
        return None
    analysis, age, now = outcome.analysis, freshness(document, outcome), datetime.now().astimezone()
    text = line_hover(analysis, built_line, age, lines.to_new, now)
    if text is None and (statement := statement_lines(table, line)) is not None:
        built = (lines.to_old(each) for each in range(statement[0], statement[1] + 1))
        busiest = busiest_line(analysis, (each for each in built if each is not None))
        if busiest is not None:
            text = line_hover(analysis, busiest, age, lines.to_new, now, statement)
    return None if text is None else _hover(server, table, text, line, None, None)


def _hover(
    server: KernelLspServer, table: LineTable, text: str, line: int, column: int | None, end_column: int | None
) -> types.Hover:
    return types.Hover(
        contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value=text),
        range=lsp_range(table, server.encoding, line, column, line, end_column),
    )
