"""Puts the server together: every feature is registered here, its code is loaded when it is first needed.

The answer to `initialize` needs none of it, and an editor starts a server with every window.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from kernel_lsp.lsp import lifecycle
from kernel_lsp.lsp.names import (
    BENCHMARK,
    CHOOSE_REPORT,
    COMPARE_REPORTS,
    GPUS,
    PROFILE,
    REBUILD,
    SASS,
    WRITE_REPORT,
)
from kernel_lsp.lsp.server import KernelLspServer


def create_server() -> KernelLspServer:
    """A server with all features, on the running event loop."""
    server = KernelLspServer()
    lifecycle.register(server)
    _register_documents(server)
    _register_features(server)
    return server


def _register_documents(server: KernelLspServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        from kernel_lsp.lsp import sync

        sync.did_open(server, params)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        from kernel_lsp.lsp import sync

        sync.did_change(server, params)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        from kernel_lsp.lsp import sync

        sync.did_save(server, params)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        from kernel_lsp.lsp import sync

        sync.did_close(server, params)


def _register_features(server: KernelLspServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        from kernel_lsp.lsp import hover

        return hover.hover(server, params)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        from kernel_lsp.lsp import code_lens

        return code_lens.code_lens(server, params)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintOptions(resolve_provider=False))
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        from kernel_lsp.lsp import inlay_hints

        return inlay_hints.inlay_hints(server, params)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.Empty, types.CodeActionKind.Source]),
    )
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        from kernel_lsp.lsp import code_actions

        return code_actions.code_actions(server, params)

    @server.command(WRITE_REPORT)
    def write_report(*arguments: Any) -> None:
        from kernel_lsp.lsp import commands

        commands.write_report(server, *arguments[:2])

    @server.command(PROFILE)
    def profile(*arguments: Any) -> None:
        from kernel_lsp.lsp import gpu_commands

        gpu_commands.profile_kernel(server, *arguments[:2])

    @server.command(BENCHMARK)
    def benchmark(*arguments: Any) -> None:
        from kernel_lsp.lsp import gpu_commands

        gpu_commands.benchmark(server, *arguments[:1])

    @server.command(CHOOSE_REPORT)
    def choose_report(*arguments: Any) -> None:
        from kernel_lsp.lsp import report_commands

        report_commands.choose_report(server, *arguments[:2])

    @server.command(COMPARE_REPORTS)
    def compare_reports(*arguments: Any) -> None:
        from kernel_lsp.lsp import report_commands

        report_commands.compare_reports(server, *arguments[:2])

    @server.command(REBUILD)
    def rebuild(*arguments: Any) -> None:
        from kernel_lsp.lsp import commands

        commands.rebuild(server, *arguments[:1])

    @server.feature(GPUS)
    def gpus(_: Any) -> list[dict[str, str]]:
        from kernel_lsp.lsp import commands

        return commands.gpus()

    @server.feature(SASS)
    def sass(params: Any) -> dict[str, Any]:
        from kernel_lsp.lsp import sass_view

        asked = lifecycle.plain(params)
        asked = asked if isinstance(asked, dict) else {}
        return sass_view.sass_view(server, asked.get("uri"), asked.get("kernel"))
