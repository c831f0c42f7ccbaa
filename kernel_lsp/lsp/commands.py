"""Commands and custom requests: write the report, analyse again, list the boards."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from lsprotocol import types

from kernel_lsp.hardware.catalog import boards
from kernel_lsp.lsp.placed import freshness
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.report.markdown import report_markdown
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.report import report_of

logger = logging.getLogger(__name__)


def write_report(server: KernelLspServer, uri: Any = None, mangled: Any = None) -> None:
    """Write the report of a document, or of one of its kernels, beside the source, and show it."""
    document = server.session.document(uri) if isinstance(uri, str) else None
    if document is None:
        _say(server, types.MessageType.Warning, "Open a CUDA file first: there is nothing to report on.")
    elif document.path is None:
        _say(server, types.MessageType.Warning, "Save the buffer as a .cu file first: the report stands beside it.")
    elif document.good is None:
        reason = document.last.summary if document.last is not None else "the first build has not ended yet"
        _say(server, types.MessageType.Warning, f"No report yet for {document.path.name}: {reason}.")
    else:
        kernel = mangled if isinstance(mangled, str) else None
        server.in_background(asyncio.get_running_loop().create_task(_write_and_show(server, document, kernel)))


def rebuild(server: KernelLspServer, uri: Any = None) -> None:
    """Analyse one document again, or all."""
    server.session.rebuild(uri if isinstance(uri, str) else None)


def gpus() -> list[dict[str, str]]:
    """Names and architectures of all boards, for a menu."""
    return [{"name": board.name, "arch": board.arch} for board in boards()]


async def _write_and_show(server: KernelLspServer, document: OpenDocument, mangled: str | None) -> None:
    assert document.path is not None
    assert document.good is not None
    report = report_of(document.good, mangled, freshness(document))
    text = report_markdown(report, str(document.path.parent))
    await show_page(server, document.path.with_name(f"{document.path.name}.bottleneck.md"), text, "report")


async def show_page(server: KernelLspServer, path: Path, text: str, what: str) -> None:
    """Write a page beside the source and show it. `what` it is, for messages: "report"."""
    try:
        await asyncio.to_thread(path.write_text, text, "utf-8")
    except OSError as error:
        _say(server, types.MessageType.Error, f"The {what} could not be written to {path}: {error.strerror}.")
        return
    if server.client_can("window.show_document.support"):
        await server.window_show_document_async(types.ShowDocumentParams(uri=path.as_uri(), take_focus=True))
    else:
        _say(server, types.MessageType.Info, f"The {what} was written to {path}.")


def _say(server: KernelLspServer, level: types.MessageType, text: str) -> None:
    server.window_show_message(types.ShowMessageParams(type=level, message=text))
