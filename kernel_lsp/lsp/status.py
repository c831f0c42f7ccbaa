"""The `kernelLsp/status` notification, for clients that asked for it: state, GPU, architecture, last build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_lsp.lsp.names import STATUS

if TYPE_CHECKING:
    from kernel_lsp.lsp.server import KernelLspServer
    from kernel_lsp.session.documents import OpenDocument
    from kernel_lsp.session.outcome import FileOutcome


def status_of(document: OpenDocument, state: str) -> dict[str, Any]:
    """The status of one document as JSON."""
    outcome = document.last
    if state == "idle" and outcome is not None and outcome.analysis is None:
        state = "failed"
    return {
        "uri": document.uri,
        "state": state,
        "message": outcome.summary if outcome is not None else "",
        "gpu": outcome.gpu.profile.name if outcome is not None and outcome.gpu is not None else None,
        "gpuWhy": outcome.gpu.detail if outcome is not None and outcome.gpu is not None else None,
        "arch": outcome.command.arch if outcome is not None and outcome.command is not None else None,
        "lastBuild": outcome.ended_at.isoformat() if outcome is not None else None,
        "instructions": outcome is not None and outcome is document.coded,
        "instructionsWhy": _why_no_instructions(outcome),
    }


def _why_no_instructions(outcome: FileOutcome | None) -> str:
    """Why the latest build's instructions are not shown (yet); "" where they are, or where there are no kernels."""
    kernels = outcome.analysis.kernels if outcome is not None and outcome.analysis is not None else ()
    return next((kernel.sass_why for kernel in kernels if kernel.sass_why), "")


def send_status(server: KernelLspServer, document: OpenDocument, state: str) -> None:
    """Tell the client, if it asked at initialisation."""
    if server.wants_status:
        server.protocol.notify(STATUS, status_of(document, state))
