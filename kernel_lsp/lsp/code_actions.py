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
    kind = _kind(params.context.only)
    if document is None or document.good is None or kind is None:
        return []
    line = params.range.start.line + 1
    here = [placed.kernel for placed in placed_kernels(document) if placed.span.line == line]
    actions = [
        _report(kind, f"Write bottleneck report of {k.binary.short_name}", document.uri, k.binary.mangled) for k in here
    ]
    actions.append(_report(kind, "Write bottleneck report of this file", document.uri, None))
    return actions


def _kind(only: Sequence[types.CodeActionKind | str] | None) -> types.CodeActionKind | None:
    """The kind to answer with, None where none of ours is wanted.

    VS Code leaves source actions out of its light bulb's menu: who asks for nothing in particular gets no kind.
    """
    wanted = {""} if only is None else {getattr(kind, "value", kind) for kind in only}
    if "" in wanted:
        return types.CodeActionKind.Empty
    return types.CodeActionKind.Source if "source" in wanted else None


def _report(kind: types.CodeActionKind, title: str, uri: str, mangled: str | None) -> types.CodeAction:
    return types.CodeAction(
        title=title,
        kind=kind,
        command=types.Command(title=title, command=WRITE_REPORT, arguments=[uri, mangled]),
    )
