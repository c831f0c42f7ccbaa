"""Publishes findings as diagnostics, each file under the URI that the client knows it by."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from kernel_lsp.lsp.convert import diagnostic
from kernel_lsp.session.published import FilePublication
from kernel_lsp.session.uris import real_path
from kernel_lsp.source.lines import LineTable

if TYPE_CHECKING:
    from kernel_lsp.lsp.server import KernelLspServer

_MAX_PER_FILE = 500  # a broken file can give thousands of errors; no client shows them well


def uri_for(server: KernelLspServer, file: str) -> str:
    """The URI of a file: as it is open in the client, else through the workspace folder that holds it, else its own."""
    if "://" in file or not Path(file).is_absolute():
        return file
    if (uri := server.session.open_uri_of(file)) is not None:
        return uri
    real = real_path(file)
    for root in server.session.roots:
        real_root = real_path(root)
        if real.startswith(real_root + os.sep):
            return (root / os.path.relpath(real, real_root)).as_uri()
    return Path(file).as_uri()


def publish(server: KernelLspServer, publications: Iterable[FilePublication]) -> None:
    """Send one `publishDiagnostics` per file; versioned where the file is open."""
    encoding = server.encoding
    for publication in publications:
        uri = uri_for(server, publication.file)
        document = server.session.document(uri)
        if document is not None:
            table: LineTable | None = LineTable(document.text)
        else:
            table = _table_of_file(publication.file) if publication.findings else None
        server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=uri,
                version=document.version if document is not None else None,
                diagnostics=[diagnostic(f, table, encoding) for f in publication.findings[:_MAX_PER_FILE]],
            )
        )


def _table_of_file(file: str) -> LineTable | None:
    try:
        return LineTable(Path(file).read_text("utf-8", "replace"))
    except OSError:
        return None
