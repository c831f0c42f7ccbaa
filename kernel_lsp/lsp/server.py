"""The language server object: its session, the client's abilities, and how errors and notices reach the user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer

from kernel_lsp import __version__
from kernel_lsp.lsp.diagnostics import publish
from kernel_lsp.lsp.progress import BUILD_TITLE, READ_TITLE, REPORTS_TITLE, WorkProgress
from kernel_lsp.lsp.protocol import KernelLspProtocol, tolerant_converter
from kernel_lsp.lsp.status import send_status
from kernel_lsp.session.settings import resolve

if TYPE_CHECKING:
    from pygls.server import ServerErrors

    from kernel_lsp.session.documents import OpenDocument
    from kernel_lsp.session.outcome import FileOutcome
    from kernel_lsp.session.published import FilePublication
    from kernel_lsp.session.session import AnalysisSession
    from kernel_lsp.source.lines import Encoding

logger = logging.getLogger(__name__)

STOPPED = "cancelled"


class KernelLspServer(LanguageServer):
    """Holds the session; listens to it and tells the client. Created on the running event loop."""

    protocol: KernelLspProtocol

    def __init__(self) -> None:
        super().__init__(
            "kernel-lsp",
            __version__,
            protocol_cls=KernelLspProtocol,
            converter_factory=tolerant_converter,
        )
        self._session: AnalysisSession | None = None
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.wants_status = False
        self.picks = False  # the client answers kernelLsp/pick with a list of its own
        self.opens_sass = False  # the client runs the command that opens a kernel's instructions
        self.watch_parent = False  # a TCP connection does not end with the editor
        self.pending_settings: Any = None
        self.trusted = True
        self.roots: tuple[Path, ...] = ()
        self._progress: dict[int, WorkProgress] = {}
        self._reports_progress: WorkProgress | None = None
        self._background: set[asyncio.Task[None]] = set()

    @property
    def session(self) -> AnalysisSession:
        """The state of the conversation; made, with all that it needs, at the first use."""
        if self._session is None:
            from kernel_lsp.session.pipeline import Pipeline
            from kernel_lsp.session.session import AnalysisSession

            self._session = AnalysisSession(Pipeline(), self)
            self._session.trusted = self.trusted
            self._session.roots = self.roots
            # A document may be opened before `initialized` was handled: its build must not start with the defaults.
            self._session.configure(resolve(self.pending_settings)[0])
        return self._session

    # --- what the client can do ------------------------------------------------------------------------------------

    def client_can(self, capability: str) -> bool:
        """Whether the client declared a boolean capability, by its dotted name."""
        return bool(get_capability(self.client_capabilities, capability, False))

    @property
    def encoding(self) -> Encoding:
        """The unit of columns that was agreed with the client."""
        agreed = self.workspace.position_encoding  # an enum member or, as it came, a plain word
        return cast("Encoding", str(getattr(agreed, "value", agreed) or "utf-16"))

    def in_background(self, work: asyncio.Task[None]) -> None:
        """Keep a task alive until it is done; its errors are logged."""
        self._background.add(work)
        work.add_done_callback(self._background_done)

    def _background_done(self, work: asyncio.Task[None]) -> None:
        self._background.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            logger.error("a background task failed", exc_info=error)

    # --- SessionListener -------------------------------------------------------------------------------------------

    def findings_changed(self, publications: Iterable[FilePublication]) -> None:
        publish(self, publications)

    def run_started(self, document: OpenDocument, run: asyncio.Task[object]) -> None:
        self._progress[id(document)] = WorkProgress(self, BUILD_TITLE, document.name, run)
        send_status(self, document, "building")

    def first_numbers(self, document: OpenDocument) -> None:
        self.refresh_views(hints=False)

    def run_ended(self, document: OpenDocument, outcome: FileOutcome | None) -> None:
        progress = self._progress.pop(id(document), None)
        if progress is not None:
            progress.end(outcome.summary if outcome is not None else STOPPED)
        send_status(self, document, "idle")
        if outcome is not None:
            self.refresh_views(hints=not outcome.more_to_come)

    def reading_started(self, document: OpenDocument, reading: asyncio.Task[object]) -> None:
        progress = WorkProgress(self, READ_TITLE, document.name, reading)

        def ended(done: asyncio.Task[object]) -> None:
            progress.end(STOPPED if done.cancelled() or document.last is None else document.last.summary)

        reading.add_done_callback(ended)

    def instructions_read(self, document: OpenDocument) -> None:
        send_status(self, document, "idle")
        self.refresh_views(lenses=False)

    def reading_reports(self, work: asyncio.Task[None]) -> None:
        progress = self._reports_progress = WorkProgress(self, REPORTS_TITLE, "", work)
        work.add_done_callback(lambda done: progress.end(STOPPED if done.cancelled() else ""))

    def reading_report(self, name: str) -> None:
        if self._reports_progress is not None:
            self._reports_progress.tell(name)

    def notice(self, text: str) -> None:
        self.window_show_message(types.ShowMessageParams(type=types.MessageType.Warning, message=text))

    # --- telling the client ----------------------------------------------------------------------------------------

    def refresh_views(self, *, lenses: bool = True, hints: bool = True) -> None:
        """Ask the client to fetch lenses and hints again, each once per finished build, where it knows how."""

        async def ask() -> None:
            try:
                if lenses and self.client_can("workspace.code_lens.refresh_support"):
                    await self.workspace_code_lens_refresh_async(None)
                if hints and self.client_can("workspace.inlay_hint.refresh_support"):
                    await self.workspace_inlay_hint_refresh_async(None)
            except Exception as error:  # a client that answers with an error loses nothing but the refresh
                logger.info("the client did not refresh its views: %s", error)

        self.in_background(asyncio.get_running_loop().create_task(ask()))

    def report_server_error(self, error: Exception, source: ServerErrors) -> None:
        """Log it. Requests get their error as the answer; a popup for each would only shout."""
        logger.error("%s: %s", getattr(source, "__name__", source), error)

    async def end(self) -> None:
        """Stop all runs and background work; nothing of them is left afterwards."""
        if self._session is not None:
            await self._session.end()
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
