"""Text document notifications: each is handed to the session at once; nothing is parsed or built here.

Changes are applied to the session's own text: pygls splits lines at form feeds and other characters that no client
counts as line ends, which moves every later edit of such a file.
"""

from __future__ import annotations

from lsprotocol import types

from kernel_lsp.lsp.convert import offset_in_text
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.session.uris import is_cuda_source
from kernel_lsp.source.lines import LineTable


def did_open(server: KernelLspServer, params: types.DidOpenTextDocumentParams) -> None:
    """Hand a CUDA document to the session."""
    document = params.text_document
    if is_cuda_source(document.uri, document.language_id):
        server.session.open(document.uri, document.version, document.text)


def did_change(server: KernelLspServer, params: types.DidChangeTextDocumentParams) -> None:
    """Apply the changes, in order, to the session's text."""
    document = server.session.document(params.text_document.uri)
    if document is None:
        return
    text = document.text
    for change in params.content_changes:
        text = _changed(text, change, server)
    server.session.change(params.text_document.uri, params.text_document.version, text)


def did_save(server: KernelLspServer, params: types.DidSaveTextDocumentParams) -> None:
    """Have the document analysed, and those that read it."""
    server.session.save(params.text_document.uri)


def did_close(server: KernelLspServer, params: types.DidCloseTextDocumentParams) -> None:
    """Stop its run and clear what it shows."""
    server.session.close(params.text_document.uri)


def _changed(text: str, change: types.TextDocumentContentChangeEvent, server: KernelLspServer) -> str:
    if not isinstance(change, types.TextDocumentContentChangePartial):
        return change.text
    table = LineTable(text)
    start = offset_in_text(table, server.encoding, change.range.start)
    end = max(start, offset_in_text(table, server.encoding, change.range.end))
    return text[:start] + change.text + text[end:]
