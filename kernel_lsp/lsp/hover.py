"""Hover: on a kernel's name, what is known of it; answered from the last build, at once."""

from __future__ import annotations

from lsprotocol import types

from kernel_lsp.lsp.convert import lsp_range
from kernel_lsp.lsp.placed import freshness, placed_kernels
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.source.lines import LineTable


def hover(server: KernelLspServer, params: types.HoverParams) -> types.Hover | None:
    """The kernel whose name is under the cursor; None elsewhere."""
    document = server.session.document(params.text_document.uri)
    if document is None or not server.session.settings.hover_enable:
        return None
    analysis = document.good.analysis if document.good is not None else None
    if analysis is None:
        return None
    line = params.position.line + 1
    on_line = [placed for placed in placed_kernels(document) if placed.span.line == line]
    if not on_line:
        return None
    table = LineTable(document.text)
    column = table.column_from_units(line, params.position.character, server.encoding)
    for placed in on_line:
        span = placed.span
        if span.column <= column <= span.end_column:
            return types.Hover(
                contents=types.MarkupContent(
                    kind=types.MarkupKind.Markdown,
                    value=kernel_hover(placed.kernel, analysis, freshness(document)),
                ),
                range=lsp_range(table, server.encoding, line, span.column, line, span.end_column),
            )
    return None
