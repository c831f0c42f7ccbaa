"""Work-done progress of one run: shown only when it takes over a second, cancellable, always ended."""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.lsp.server import KernelLspServer
    from kernel_lsp.session.documents import OpenDocument
    from kernel_lsp.session.outcome import FileOutcome

logger = logging.getLogger(__name__)

SHOW_AFTER_S = 1.0
BUILD_TITLE = "Building device code"
READ_TITLE = "Reading instructions"


class RunProgress:
    """Begins after a second unless the run has ended by then."""

    def __init__(
        self, server: KernelLspServer, document: OpenDocument, run: asyncio.Task[object], title: str = BUILD_TITLE
    ) -> None:
        self._server = server
        self._name = document.path.name if document.path is not None else document.uri
        self._run = run
        self._title = title
        self._token = str(uuid.uuid4())
        self._begun = False
        self._ended = False
        if server.client_can("window.work_done_progress"):
            server.in_background(asyncio.get_running_loop().create_task(self._show()))

    async def _show(self) -> None:
        await asyncio.sleep(SHOW_AFTER_S)
        if self._ended:
            return
        progress = self._server.work_done_progress
        try:
            await progress.create_async(self._token)
        except Exception as error:
            logger.info("the client refused a progress item: %s", error)
            return
        cancelled = progress.tokens[self._token]
        cancelled.add_done_callback(lambda future: self._run.cancel() if future.cancelled() else None)
        if self._ended:
            progress.tokens.pop(self._token, None)
            return
        self._begun = True
        progress.begin(
            self._token, types.WorkDoneProgressBegin(title=self._title, message=self._name, cancellable=True)
        )

    def end(self, outcome: FileOutcome | None) -> None:
        """End the item, if it was shown."""
        self._ended = True
        if self._begun:
            message = "cancelled" if outcome is None else outcome.summary
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd(message=message))
            self._server.work_done_progress.tokens.pop(self._token, None)
