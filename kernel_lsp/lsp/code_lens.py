"""Code lenses: one above every kernel (or instance of a template), from the last good build, one more if measured."""

from __future__ import annotations

from datetime import datetime

from lsprotocol import types

from kernel_lsp.lsp.convert import lsp_range
from kernel_lsp.lsp.names import CHOOSE_REPORT, WRITE_REPORT
from kernel_lsp.lsp.placed import placed_kernels
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.report.lens import lenses, measured_lenses
from kernel_lsp.source.lines import LineTable


def code_lens(server: KernelLspServer, params: types.CodeLensParams) -> list[types.CodeLens]:
    """All lenses of a document, at the present places of its kernels."""
    document = server.session.document(params.text_document.uri)
    if document is None or document.good is None or document.good.analysis is None:
        return []
    if not server.session.settings.code_lens_enable:
        return []
    analysis = document.good.analysis
    now_at = {id(placed.kernel): placed.span for placed in placed_kernels(document)}
    table = LineTable(document.text)
    now = datetime.now().astimezone()
    shown = [(lens, WRITE_REPORT) for lens in lenses(analysis.kernels, analysis.path)]
    shown += [(lens, CHOOSE_REPORT) for lens in measured_lenses(analysis.kernels, analysis.path, now)]
    found = []
    for lens, command in shown:
        span = now_at.get(id(lens.kernel))
        if span is None:
            continue
        title = f"{lens.text} (before the failed build)" if document.is_stale else lens.text
        arguments = [document.uri, lens.kernel.binary.mangled]
        found.append(
            types.CodeLens(
                range=lsp_range(table, server.encoding, span.line, span.column, span.line, span.end_column),
                command=types.Command(title=title, command=command, arguments=arguments),
            )
        )
    return found
