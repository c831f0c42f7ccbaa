"""Commands that run the user's programs on a GPU: profile a kernel, run the benchmark. With progress and cancel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from lsprotocol import types

from kernel_lsp.lsp.progress import WorkProgress
from kernel_lsp.lsp.server import STOPPED, KernelLspServer
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.gpu_runs import Benchmarked, GpuRunError, RunPlace

logger = logging.getLogger(__name__)

PROFILE_TITLE = "Profiling"
BENCHMARK_TITLE = "Running the benchmark"


def profile_kernel(server: KernelLspServer, uri: Any = None, mangled: Any = None) -> None:
    """Measure a kernel of a document with ncu; its report is then shown like any other.

    Without `mangled`, the document's only kernel.
    """
    place = _place(server, uri)
    document = server.session.document(uri) if place is not None else None
    if place is None or document is None:
        return
    found = _kernel(document, mangled)
    if isinstance(found, str):
        _say(server, types.MessageType.Warning, found)
        return
    name = found.binary.short_name
    _start(server, PROFILE_TITLE, name, _profile(server, place, name, found.binary.mangled))


def benchmark(server: KernelLspServer, uri: Any = None) -> None:
    """Run the benchmark command of the settings; its result is kept for the document and shown as a page."""
    place = _place(server, uri)
    if place is not None:
        _start(server, BENCHMARK_TITLE, place.source.name, _benchmark(server, place))


def _place(server: KernelLspServer, uri: Any) -> RunPlace | None:
    session = server.session
    document = session.document(uri) if isinstance(uri, str) else None
    if document is None or document.path is None:
        what = "Open a CUDA file first" if document is None else "Save the buffer as a .cu file first"
        _say(server, types.MessageType.Warning, f"{what}: it says what is run for which kernel.")
        return None
    return RunPlace(document.path, session.roots, session.settings, session.trusted)


def _kernel(document: OpenDocument, mangled: Any) -> KernelAnalysis | str:
    """The kernel that is meant, or why none is."""
    if document.good is None or document.good.analysis is None:
        reason = document.last.summary if document.last is not None else "the first build has not ended yet"
        return f"The kernels of {document.name} are not known: {reason}."
    kernels = document.good.analysis.kernels
    if mangled is None and len(kernels) > 1:
        return 'There are several kernels: put the cursor into one, and take its code action "Profile".'
    found = [kernel for kernel in kernels if mangled is None or kernel.binary.mangled == mangled]
    return found[0] if found else f"{document.name} no longer holds this kernel."


async def _profile(server: KernelLspServer, place: RunPlace, name: str, mangled: str) -> str:
    collected = await server.session.gpu_runs.profile(place, name, mangled)
    server.session.use_report(collected.report)
    if collected.note:
        _say(server, types.MessageType.Warning, f"{name} was profiled, but {collected.note}.")
    return f"{name} was profiled"


async def _benchmark(server: KernelLspServer, place: RunPlace) -> str:
    done = await server.session.gpu_runs.benchmark(place)
    await _show(server, done)
    return done.line


async def _show(server: KernelLspServer, done: Benchmarked) -> None:
    if server.client_can("window.show_document.support"):
        await server.window_show_document_async(types.ShowDocumentParams(uri=done.page.as_uri(), take_focus=False))
    else:
        _say(server, types.MessageType.Info, f"Benchmark: {done.line}. All of it: {done.page}.")


def _start(server: KernelLspServer, title: str, message: str, work: Coroutine[Any, Any, str]) -> None:
    """Run it beside everything else; how it ended is said in one place."""

    async def run() -> None:
        task = asyncio.current_task()
        assert task is not None
        progress = WorkProgress(server, title, message, task)
        ending = STOPPED
        try:
            ending = await work
        except GpuRunError as error:
            ending = "failed"
            _say(server, types.MessageType.Warning, str(error))
        finally:
            progress.end(ending)

    server.in_background(asyncio.get_running_loop().create_task(run()))


def _say(server: KernelLspServer, level: types.MessageType, text: str) -> None:
    server.window_show_message(types.ShowMessageParams(type=level, message=text))
