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


def register(server: KernelLspServer) -> None:
    """Register the handlers of this module."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        if is_cuda_source(document.uri, document.language_id):
            server.session.open(document.uri, document.version, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = server.session.document(params.text_document.uri)
        if document is None:
            return
        text = document.text
        for change in params.content_changes:
            text = _changed(text, change, server)
        server.session.change(params.text_document.uri, params.text_document.version, text)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        server.session.save(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.session.close(params.text_document.uri)


def _changed(text: str, change: types.TextDocumentContentChangeEvent, server: KernelLspServer) -> str:
    if not isinstance(change, types.TextDocumentContentChangePartial):
        return change.text
    table = LineTable(text)
    start = offset_in_text(table, server.encoding, change.range.start)
    end = max(start, offset_in_text(table, server.encoding, change.range.end))
    return text[:start] + change.text + text[end:]
