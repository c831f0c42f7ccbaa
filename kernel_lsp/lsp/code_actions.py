"""Code actions: write the bottleneck report, of the kernel under the cursor or of the whole file."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from kernel_lsp.lsp.names import WRITE_REPORT
from kernel_lsp.lsp.placed import placed_kernels
from kernel_lsp.lsp.server import KernelLspServer


def code_actions(server: KernelLspServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """What can be done at a place of a document that has been analysed."""
    document = server.session.document(params.text_document.uri)
    if document is None or document.good is None or not _wanted(params.context.only):
        return []
    line = params.range.start.line + 1
    here = [placed.kernel for placed in placed_kernels(document) if placed.span.line == line]
    actions = [
        _report(f"Write bottleneck report of {k.binary.short_name}", document.uri, k.binary.mangled) for k in here
    ]
    actions.append(_report("Write bottleneck report of this file", document.uri, None))
    return actions


def _wanted(only: Sequence[types.CodeActionKind | str] | None) -> bool:
    wanted = None if only is None else {getattr(kind, "value", kind) for kind in only}
    return wanted is None or bool(wanted & {"", "source"})


def _report(title: str, uri: str, mangled: str | None) -> types.CodeAction:
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.Source,
        command=types.Command(title=title, command=WRITE_REPORT, arguments=[uri, mangled]),
    )
