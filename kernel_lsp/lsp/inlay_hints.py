"""Inlay hints at the end of lines, from the last build whose instructions are known, moved with the edits since.

While no instructions are known (yet), what a report measured is shown alone.
"""

from __future__ import annotations

from datetime import datetime

from lsprotocol import types

from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.report.hints import line_hints
from kernel_lsp.source.lines import LineTable


def inlay_hints(server: KernelLspServer, params: types.InlayHintParams) -> list[types.InlayHint]:
    """The hints of the asked range; none on lines that were touched since the build."""
    document = server.session.document(params.text_document.uri)
    if document is None or not server.session.settings.inlay_hints_enable:
        return []
    outcome = document.coded or document.good
    if outcome is None or outcome.analysis is None:
        return []
    lines, table = document.line_map(outcome), LineTable(document.text)
    found = []
    for hint in line_hints(outcome.analysis, lines.to_new, datetime.now().astimezone()):
        line = lines.to_new(hint.line)
        if line is None or not params.range.start.line <= line - 1 <= params.range.end.line:
            continue
        end = table.column_in_units(line, len(table.line(line).rstrip()) + 1, server.encoding)
        found.append(
            types.InlayHint(
                position=types.Position(line - 1, end), label=hint.text, tooltip=hint.tooltip, padding_left=True
            )
        )
    return found
