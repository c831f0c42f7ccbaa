"""Work-done progress of one piece of work: shown only when it takes over a second, cancellable, always ended."""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING, Any

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.lsp.server import KernelLspServer

logger = logging.getLogger(__name__)

SHOW_AFTER_S = 1.0
BUILD_TITLE = "Building device code"
READ_TITLE = "Reading instructions"
REPORTS_TITLE = "Reading reports"


class WorkProgress:
    """Begins after a second unless the work has ended by then; cancelling the item cancels the work.

    `message` stands beside the title: the name of what is worked on.
    """

    def __init__(self, server: KernelLspServer, title: str, message: str, work: asyncio.Task[Any]) -> None:
        self._server = server
        self._message = message
        self._work = work
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
        cancelled.add_done_callback(lambda future: self._work.cancel() if future.cancelled() else None)
        if self._ended:
            progress.tokens.pop(self._token, None)
            return
        self._begun = True
        progress.begin(
            self._token, types.WorkDoneProgressBegin(title=self._title, message=self._message, cancellable=True)
        )

    def tell(self, message: str) -> None:
        """Say what is worked on now."""
        self._message = message
        if self._begun and not self._ended:
            self._server.work_done_progress.report(self._token, types.WorkDoneProgressReport(message=message))

    def end(self, message: str) -> None:
        """End the item, if it was shown."""
        self._ended = True
        if self._begun:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd(message=message))
            self._server.work_done_progress.tokens.pop(self._token, None)
