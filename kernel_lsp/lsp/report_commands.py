"""Commands about reports of Nsight Compute: choose which launch is shown for a kernel, compare two of them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any

from lsprotocol import types

from kernel_lsp.lsp.commands import show_page
from kernel_lsp.lsp.pick import PickItem, pick
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.report.measured_compare import compare_markdown
from kernel_lsp.report.measured_words import duration_words, of_age
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.launch_options import LaunchOption
from kernel_lsp.session.uris import uri_key

LONGEST_WAIT_S = 10.0  # for reports that are being read
BY_ITSELF = "Always the newest"
FITS = {"exact": "fits exactly", "by line": "fits by line", "stale": "stale"}


def choose_report(server: KernelLspServer, uri: Any = None, mangled: Any = None) -> None:
    """Ask which launch of which report is shown for a kernel; without `mangled`, first for which kernel."""
    _start(server, _choose(server, uri, mangled))


def compare_reports(server: KernelLspServer, uri: Any = None, mangled: Any = None) -> None:
    """Compare the launch that is shown for a kernel with another: the only one there is, or one that is picked.

    The page is written beside the source, as the bottleneck report is.
    """
    _start(server, _compare(server, uri, mangled))


def _start(server: KernelLspServer, work: Coroutine[Any, Any, None]) -> None:
    # Beside the request: it must not be under way when the client shuts down.
    server.in_background(asyncio.get_running_loop().create_task(work))


async def _choose(server: KernelLspServer, uri: Any, mangled: Any) -> None:
    reports = server.session.reports
    found = await _kernel_and_launches(server, uri, mangled, "Kernel whose report is chosen")
    if found is None:
        return
    document, kernel, options = found
    shown = kernel.measured.ref if kernel.measured is not None else None
    chosen = reports.chosen(uri_key(document.uri)).get(kernel.binary.mangled)
    items = [PickItem(BY_ITSELF, f"{options[0].report_name} now", "" if chosen is not None else "chosen")]
    items += [_item(option, is_shown=option.ref == shown) for option in options]
    unread = [(each.file.path.name, each.problem) for each in reports.shelf.shelved if each.problem]
    items += [PickItem(f"{name} is not read", reason.partition(": ")[2] or reason) for name, reason in unread]
    index = await pick(server, f"Measurement shown for {kernel.binary.short_name}", items)
    if index is None:
        return
    if index > len(options):
        _say(server, unread[index - len(options) - 1][1])
        return
    launch = None if index == 0 else options[index - 1].ref
    reports.choose(uri_key(document.uri), kernel.binary.mangled, launch)


async def _compare(server: KernelLspServer, uri: Any, mangled: Any) -> None:
    found = await _kernel_and_launches(server, uri, mangled, "Kernel whose reports are compared")
    if found is None:
        return
    document, kernel, options = found
    name = kernel.binary.short_name
    if len(options) < 2:
        _say(server, f"{name} was measured once ({options[0].report_name}): comparing takes a second report.")
        return
    shown = kernel.measured.ref if kernel.measured is not None else None
    one = next((option for option in options if option.ref == shown), options[0])
    # Launches of other reports first: those of the same report are of the same code.
    others = sorted((option for option in options if option is not one), key=lambda other: other.report is one.report)
    other = others[0]
    if len(others) > 1:
        title = f"Compare {one.report_name} ({_launch(one)}) of {name} with"
        index = await pick(server, title, [_item(option, is_shown=False) for option in others])
        if index is None:
            return
        other = others[index]
    before, after = sorted((one, other), key=lambda option: (option.modified_at, option.number))
    both = await server.session.reports.measurements(document, kernel.binary.mangled, (before, after))
    if document.path is not None and len(both) == 2:
        page = document.path.with_name(f"{document.path.name}.compare.md")
        await show_page(server, page, compare_markdown(*both), "comparison")


async def _kernel_and_launches(
    server: KernelLspServer, uri: Any, mangled: Any, question: str
) -> tuple[OpenDocument, KernelAnalysis, tuple[LaunchOption, ...]] | None:
    """The kernel that is meant, with its measured launches; None where there are none, which is said."""
    document = server.session.document(uri) if isinstance(uri, str) else None
    if document is None:
        _say(server, "Open a CUDA file first: reports are shown on its kernels.")
        return None
    await _up_to_date(server)
    if document.good is None or document.good.analysis is None:
        reason = document.last.summary if document.last is not None else "the first build has not ended yet"
        _say(server, f"The kernels of {document.name} are not known: {reason}.")
        return None
    wanted = {mangled} if isinstance(mangled, str) else await server.session.reports.measured_kernels(document)
    kernels = [kernel for kernel in document.good.analysis.kernels if kernel.binary.mangled in wanted]
    kernel = kernels[0] if kernels else None
    if len(kernels) > 1:
        items = [PickItem(each.binary.short_name, f"l.{each.line}", _shown(each)) for each in kernels]
        index = await pick(server, question, items)
        if index is None:
            return None
        kernel = kernels[index]
    options = () if kernel is None else await server.session.reports.options(document, kernel.binary.mangled)
    if kernel is None or not options:
        _say(server, _nothing(server, document, kernel))
        return None
    return document, kernel, options


async def _up_to_date(server: KernelLspServer) -> None:
    """Look for reports where the client does not watch files, and wait a little for those that are being read."""
    server.session.look_at_reports()
    try:
        await asyncio.wait_for(server.session.reports.shelf.settled(), LONGEST_WAIT_S)
    except asyncio.TimeoutError:
        return


def _nothing(server: KernelLspServer, document: OpenDocument, kernel: KernelAnalysis | None) -> str:
    """Why there is nothing to choose from."""
    shelf = server.session.reports.shelf
    n_read, unread = len(shelf.reports), [each.problem for each in shelf.shelved if each.problem]
    whose = f"a kernel of {document.name}" if kernel is None else kernel.binary.short_name
    said = [f"No report of Nsight Compute holds {whose}."]
    said.append(f"{'1 was' if n_read == 1 else f'{n_read} were'} read." if n_read or unread else "None was found.")
    if unread:
        more = f", and {len(unread) - 1} more (see the log)" if len(unread) > 1 else ""
        said.append(f"Not read: {unread[0]}{more}.")
    if not server.session.trusted:
        said.append("This workspace is not trusted: reports in it are not read.")
    elif shelf.is_cut:
        said.append("The workspace is large and was searched in part: kernelLsp.reports.paths names reports.")
    return " ".join(said)


def _item(option: LaunchOption, *, is_shown: bool) -> PickItem:
    profile = option.profile
    label = option.report_name if option.count == 1 else f"{option.report_name} ({_launch(option)})"
    facts = [duration_words(profile.duration_ns) if profile.duration_ns is not None else ""]
    facts += [
        f"{name} {'x'.join(map(str, sizes))}"
        for name, sizes in (("grid", profile.launch.grid), ("block", profile.launch.block))
        if sizes is not None
    ]
    state = [
        of_age(option.modified_at, datetime.now().astimezone()).removeprefix("of "),
        FITS.get(option.fit or "", ""),
    ]
    state += ["shown now"] if is_shown else []
    joined = (" · ".join(part for part in parts if part) for parts in (facts, state))
    return PickItem(label, *joined)


def _launch(option: LaunchOption) -> str:
    return f"launch {option.number} of {option.count}"


def _shown(kernel: KernelAnalysis) -> str:
    return "" if kernel.measured is None else kernel.measured.report_name


def _say(server: KernelLspServer, text: str) -> None:
    server.window_show_message(types.ShowMessageParams(type=types.MessageType.Info, message=text))
