"""Keeps open documents analysed: each open, save or change of settings becomes a scheduled run whose outcome is kept.

Knows no LSP types: the language server calls the methods below and listens through `SessionListener`. All of it runs
on one event loop; reading answers from what is known and never waits for a build.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kernel_lsp.findings.finding import Finding
from kernel_lsp.session.conclude import failed_outcome
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.published import FilePublication, PublishedFindings
from kernel_lsp.session.readers import lacks_source, readers_of
from kernel_lsp.session.remapped import remapped_findings
from kernel_lsp.session.scheduler import Scheduler
from kernel_lsp.session.session_reports import SessionReports
from kernel_lsp.session.settings import Settings
from kernel_lsp.session.uris import folder_of_runs, path_of, real_path, uri_key

if TYPE_CHECKING:
    from kernel_lsp.session.gpu_runs import GpuRuns

logger = logging.getLogger(__name__)

PROJECT_FILES = frozenset({"compile_commands.json", "compile_flags.txt", ".clangd", "build.ninja", "kernel-lsp.yaml"})
PROJECT_SUFFIXES = frozenset({".rsp"})  # CMake's response files
MOST_TOLD = 10_000
TYPING_PAUSE_S = 0.6  # with build.onType: the text is built after this long without a change


@dataclass(frozen=True, slots=True)
class _Run:
    unsaved_text: str | None  # None: the file as it is on disk


class SessionListener(Protocol):
    """What a client of the session is told; called on the event loop, must not block."""

    def findings_changed(self, publications: Iterable[FilePublication]) -> None:
        """Files whose shown findings changed; each list is complete."""

    def run_started(self, document: OpenDocument, run: asyncio.Task[object]) -> None:
        """A run began; cancelling `run` stops its build."""

    def first_numbers(self, document: OpenDocument) -> None:
        """A run has published numbers that it goes on to make better."""

    def run_ended(self, document: OpenDocument, outcome: FileOutcome | None) -> None:
        """A run ended; None: it was stopped, or a newer request made it pointless."""

    def reading_started(self, document: OpenDocument, reading: asyncio.Task[object]) -> None:
        """The instructions of a build that was published are being read; cancelling `reading` stops it."""

    def instructions_read(self, document: OpenDocument) -> None:
        """The document's latest outcome now has its instructions, or says why not; its run had ended before."""

    def reading_reports(self, work: asyncio.Task[None]) -> None:
        """Reports are being looked for and read; cancelling `work` leaves the rest unread."""

    def reading_report(self, name: str) -> None:
        """The file that is being read."""

    def notice(self, text: str) -> None:
        """Something the user must act on, said once per session for the same text."""


class AnalysisSession:
    """The state of one client: settings, open documents, what is published."""

    def __init__(self, pipeline: Pipeline, listener: SessionListener) -> None:
        self._pipeline = pipeline
        self._listener = listener
        self._documents: dict[str, OpenDocument] = {}
        self._published = PublishedFindings()
        self.reports = SessionReports(pipeline, self._documents, self, listener)
        self._scheduler: Scheduler[str, _Run] = Scheduler(self._analyze, at_rest=self.reports.follow)
        self._typing: dict[str, asyncio.TimerHandle] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}  # of instructions, after a run has published
        self._to_end: set[asyncio.Task[None]] = set()  # these, and those that were stopped and still clean up
        self._noticed: set[str] = set()
        self._told: dict[Path, tuple[int, int] | None] = {}  # files that changed: (mtime_ns, size) when it was said
        self.settings = Settings()
        self.trusted = True
        self.watches_files = False  # the client tells of every change in the workspace
        self.roots: tuple[Path, ...] = ()

    # --- what the client tells -------------------------------------------------------------------------------------

    def configure(self, settings: Settings) -> None:
        """Use other settings; open documents are analysed again where it matters."""
        if settings == self.settings:
            return
        self.settings = settings
        self._scheduler.set_max_parallel(settings.build_max_parallel)
        self._use_reports()
        for key, document in self._documents.items():
            self._request(key, document)

    def use_roots(self, roots: tuple[Path, ...]) -> None:
        """Other workspace folders."""
        self.roots = roots
        self._use_reports()

    def use_report(self, path: Path) -> None:
        """A report that a command of ours has made: read it, wherever it lies."""
        self.reports.add(path)
        self._use_reports()

    def open(self, uri: str, version: int | None, text: str) -> None:
        """A document was opened: analyse it as it is on disk (or tell why that cannot be)."""
        key = uri_key(uri)
        document = OpenDocument(uri=uri, path=path_of(uri), version=version, text=text)
        self._documents[key] = document
        self._request(key, document)
        self._use_reports()
        self.look_at_reports()

    def change(self, uri: str, version: int | None, text: str) -> None:
        """The text changed in the editor; facts stay those of the last build, on their moved lines."""
        document = self._documents.get(uri_key(uri))
        if document is None:
            return
        document.version = version
        document.text = text
        if self.settings.build_on_type:
            self._build_after_typing(uri_key(uri), document)

    def save(self, uri: str) -> None:
        """A document was saved: analyse it, and every open document whose build read it."""
        key, path = uri_key(uri), path_of(uri)
        news = [] if path is None else self._news([path])
        document = self._documents.get(key)
        # Where the client's watcher told of this save first, its run is under way.
        if document is not None and (news or not self._scheduler.busy(key)):
            self._request(key, document)
        self._renew(news, except_key=key)
        self.look_at_reports()

    def close(self, uri: str) -> None:
        """A document was closed: stop its run and clear what it shows, in headers too."""
        key = uri_key(uri)
        if self._documents.pop(key, None) is None:
            return
        if (timer := self._typing.pop(key, None)) is not None:
            timer.cancel()
        self._scheduler.cancel(key)
        self._stop_reading(key)
        self.reports.closed(key)
        self._listener.findings_changed(self._published.drop(key))

    def files_changed(self, paths: Sequence[Path]) -> None:
        """Files changed on disk: analyse again exactly the open documents whose build read one of them."""
        self._renew(self._news(self.reports.without_reports(list(paths))))

    def _renew(self, paths: Sequence[Path], except_key: str = "") -> None:
        changed = {real_path(path) for path in paths}
        of_project = any(path.name in PROJECT_FILES or path.suffix in PROJECT_SUFFIXES for path in paths)
        for key, document in self._documents.items():
            if key != except_key and (of_project or self._may_read(key, document, paths, changed)):
                self._request(key, document)

    def _news(self, paths: Sequence[Path]) -> list[Path]:
        """Those not told of in this state before: a client says that it saved, and its watcher says it again."""
        news = []
        for path in paths:
            try:
                stat = path.stat()
                stamp = (stat.st_mtime_ns, stat.st_size)
            except OSError:
                stamp = None
            if stamp is None or self._told.get(path) != stamp:
                news.append(path)
            self._told[path] = stamp
        while len(self._told) > MOST_TOLD:
            self._told.pop(next(iter(self._told)))
        return news

    def _may_read(self, key: str, document: OpenDocument, paths: Sequence[Path], changed: set[str]) -> bool:
        last = document.last
        if last is None:  # what the first run reads is not known yet; it may have read the file before the change
            return self._scheduler.busy(key) and any(path.suffix != ".cu" for path in paths)
        if not changed.isdisjoint(last.reads):
            return True
        # A header that was missing is not among the files read, but the error names it.
        errors = [message.text for message in last.build.messages] if last.analysis is None and last.build else []
        return any(path.name in text for path in paths for text in errors)

    def rebuild(self, uri: str | None = None) -> None:
        """Analyse one document (or all) again."""
        for key, document in self._documents.items():
            if uri is None or key == uri_key(uri):
                self._request(key, document)
        self.reports.shelf.retry()

    async def end(self) -> None:
        """Stop all runs and wait until nothing of them is left."""
        for timer in self._typing.values():
            timer.cancel()
        await self._pipeline.end_gpu_runs()
        await self.reports.end()
        await self._scheduler.close()
        self._reading.clear()
        for reading in self._to_end:
            reading.cancel()
        await asyncio.gather(*self._to_end, return_exceptions=True)
        self._pipeline.close()

    # --- what the client asks --------------------------------------------------------------------------------------

    @property
    def gpu_runs(self) -> GpuRuns:
        """Profiles and benchmarks with programs of the user's settings."""
        return self._pipeline.gpu_runs

    def document(self, uri: str) -> OpenDocument | None:
        """The open document of a URI in any spelling."""
        return self._documents.get(uri_key(uri))

    def open_uri_of(self, path: str) -> str | None:
        """The URI under which a file is open, in the client's spelling; symbolic links are seen through."""
        wanted = real_path(path)
        for document in self._documents.values():
            if document.path is not None and real_path(document.path) == wanted:
                return document.uri
        return None

    def is_busy(self, uri: str) -> bool:
        """Whether a run for the document waits or is under way."""
        return self._scheduler.busy(uri_key(uri))

    def say_once(self, text: str) -> None:
        """A notice to the user, unless the same was said before in this session."""
        if text not in self._noticed:
            self._noticed.add(text)
            self._listener.notice(text)

    # --- reports of Nsight Compute ---------------------------------------------------------------------------------

    def _use_reports(self) -> None:
        # Files outside of all workspace folders, or opened without one, are profiled from their own folder.
        own = (folder_of_runs(each.path, self.roots) for each in self._documents.values() if each.path is not None)
        kept = self._pipeline.kept_reports(tuple(dict.fromkeys((*self.roots, *own))))
        self.reports.use(self.settings, self.roots, trusted=self.trusted, kept=kept)

    def look_at_reports(self) -> None:
        """See what became of the reports that are known, and of the workspace where the client does not watch it."""
        self.reports.shelf.look(search=not self.watches_files)

    # --- runs ------------------------------------------------------------------------------------------------------

    def _build_after_typing(self, key: str, document: OpenDocument) -> None:
        if (timer := self._typing.pop(key, None)) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._typing[key] = loop.call_later(TYPING_PAUSE_S, self._request_unsaved, key, document)

    def _request_unsaved(self, key: str, document: OpenDocument) -> None:
        self._typing.pop(key, None)
        if self._documents.get(key) is document and document.path is not None:
            self._stop_reading(key)
            self._scheduler.request(key, _Run(unsaved_text=document.text))

    def analyse_again(self, key: str) -> None:
        """Analyse the text of a document's last run again, with what is known now."""
        document = self._documents.get(key)
        if document is not None and (key not in self._typing):  # else a run with the newest text is about to come
            self._stop_reading(key)
            self._scheduler.request(key, _Run(unsaved_text=document.built_text))

    def is_at_rest(self, key: str) -> bool:
        """Whether no run of the document, nor the reading of its instructions, waits or is under way."""
        reading = self._reading.get(key)
        return not self._scheduler.busy(key) and (reading is None or reading.done())

    def _request(self, key: str, document: OpenDocument) -> None:
        self._stop_reading(key)
        self._scheduler.request(key, _Run(unsaved_text=None))

    async def _analyze(self, key: str, run: _Run, generation: int) -> None:
        document = self._documents.get(key)
        if document is None:
            return
        task = asyncio.current_task()
        assert task is not None
        outcome: FileOutcome | None = None
        document.built_text = run.unsaved_text
        reports = self.reports.shelf.reports
        self._listener.run_started(document, task)
        try:
            phases = self._pipeline.phases(
                PipelineRequest(
                    document=document.path,
                    unsaved_text=run.unsaved_text,
                    settings=self.settings,
                    roots=self.roots,
                    trusted=self.trusted,
                    open_texts=tuple((d.path, d.text) for d in self._documents.values() if d.path is not None),
                    readers=readers_of(document.path, self._documents.values()) if document.path else (),
                    reports=reports,
                    launches=self.reports.chosen(key),
                )
            )
            outcome = await anext(phases)
            if self._documents.get(key) is not document or generation < document.published_generation:
                outcome = None
                return
            document.published_generation = generation
            self._accept(key, document, outcome, is_first=True)
            if outcome.is_interim:
                self._listener.first_numbers(document)
                outcome = await anext(phases)
                if self._documents.get(key) is not document or generation < document.published_generation:
                    outcome = None
                    return
                self._accept(key, document, outcome, is_first=False)
            self.reports.accepted(key, document, reports)
            if outcome.more_to_come:
                # Outside the run: the next build, of this document or another, does not wait for it.
                reading = asyncio.create_task(self._read_instructions(key, document, generation, phases))
                self._reading[key] = reading
                self._to_end.add(reading)
                self._listener.reading_started(document, reading)
                reading.add_done_callback(self._to_end.discard)
                reading.add_done_callback(lambda _: self.reports.follow(key))
        except Exception:
            logger.exception("the analysis of %s ended in an unexpected error", document.uri)
            if self._documents.get(key) is document:
                outcome = failed_outcome(
                    str(document.path or ""), "kernel-lsp met an error of its own; its log says where, please report it"
                )
                self._accept(key, document, outcome, is_first=True)
        finally:
            self._listener.run_ended(document, outcome)

    async def _read_instructions(
        self, key: str, document: OpenDocument, generation: int, phases: AsyncGenerator[FileOutcome, None]
    ) -> None:
        try:
            outcome = await anext(phases)
            if self._documents.get(key) is document and generation == document.published_generation:
                self._accept(key, document, outcome, is_first=False)
                self._listener.instructions_read(document)
        except asyncio.CancelledError:
            if self._reading.get(key) is asyncio.current_task():  # by the user: the session takes it out first
                document.reading_stopped()
                self._listener.instructions_read(document)
            raise
        except Exception:
            logger.exception("the instructions of %s could not be read", key)

    def _stop_reading(self, key: str) -> None:
        if (reading := self._reading.pop(key, None)) is not None:
            reading.cancel()

    def _accept(self, key: str, document: OpenDocument, outcome: FileOutcome, *, is_first: bool) -> None:
        document.accept(outcome)
        for other_key, other in self._documents.items():
            if lacks_source(other) and other.path is not None and readers_of(other.path, [document]):
                self.analyse_again(other_key)
        self._publish(key, document, even_if_unchanged=is_first)
        for text in outcome.notices:
            self.say_once(text)

    def _publish(self, key: str, document: OpenDocument, *, even_if_unchanged: bool) -> None:
        """Publish the findings of a document's latest outcome, at the lines where its text is now."""
        outcome = document.last
        if outcome is None:
            return
        by_file: dict[str, list[Finding]] = {}
        if self.settings.diagnostics_enable:
            for finding in remapped_findings(document, outcome, document.good):
                by_file.setdefault(self._shown_file(document, finding.file), []).append(finding)
        own = document.uri if document.path is None else str(document.path)
        always = [own] if even_if_unchanged else []
        self._listener.findings_changed(self._published.accept(key, by_file, always=always))

    def _shown_file(self, document: OpenDocument, file: str) -> str:
        """The path under which findings of a file are shown: the document's own spelling where it is the same file."""
        if document.path is None:
            return document.uri
        return str(document.path) if real_path(file) == real_path(document.path) else file
