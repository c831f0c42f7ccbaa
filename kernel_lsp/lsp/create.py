"""Puts the server together: every feature registered, ready to be served."""

from __future__ import annotations

from kernel_lsp.lsp import code_actions, code_lens, commands, hover, lifecycle, sync
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.session.pipeline import Pipeline


def create_server() -> KernelLspServer:
    """A server with all features, on the running event loop."""
    server = KernelLspServer(Pipeline())
    for feature in (lifecycle, sync, hover, code_lens, code_actions, commands):
        feature.register(server)
    return server
