"""Code actions: write a report, open a kernel's SASS, profile it, choose or compare measurements, run the benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from kernel_lsp.lsp.names import BENCHMARK, CHOOSE_REPORT, COMPARE_REPORTS, OPEN_SASS, PROFILE, WRITE_REPORT
from kernel_lsp.lsp.placed import placed_kernels
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.session.documents import OpenDocument

MOST_KERNELS = 4  # of one line in the menu


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
    is_asked = params.context.trigger_kind != types.CodeActionTriggerKind.Automatic  # no light bulb on every line
    if is_asked:
        actions.append(_report(kind, "Write bottleneck report of this file", document.uri, None))
    kernels = _kernels_at(document, line) if here or is_asked else []
    if server.opens_sass:
        actions += [_of_kernel(kind, "Open SASS of", OPEN_SASS, kernel, document.uri) for kernel in kernels]
    for kernel in kernels or here:
        if kernel.measured is not None and len(kernel.measured.reports) + len(kernel.measured.launches) > 2:
            actions.append(_of_kernel(kind, "Choose the measurement of", CHOOSE_REPORT, kernel, document.uri))
            actions.append(_of_kernel(kind, "Compare measurements of", COMPARE_REPORTS, kernel, document.uri))
    if server.session.trusted:  # else it would only be refused
        actions += [_of_kernel(kind, "Profile", PROFILE, kernel, document.uri) for kernel in kernels or here]
        if is_asked and server.session.settings.benchmark_command:
            actions.append(_action(kind, "Run the benchmark", BENCHMARK, [document.uri]))
    return actions


def _kernels_at(document: OpenDocument, line: int) -> list[KernelAnalysis]:
    """The kernels with instructions on a line; those named on it where there are none."""
    coded = document.coded
    if coded is None or coded.analysis is None:
        return []
    built_line = document.line_map(coded).to_old(line)
    if built_line is None:
        return []
    key = (coded.analysis.path, built_line)
    kernels = [k for k in coded.analysis.kernels if k.sass is not None]
    return [k for k in kernels if k.sass is not None and key in k.sass.rows.within][:MOST_KERNELS] or [
        k for k in kernels if k.span is not None and k.span.line == built_line
    ][:MOST_KERNELS]


def _of_kernel(
    kind: types.CodeActionKind, verb: str, command: str, kernel: KernelAnalysis, uri: str
) -> types.CodeAction:
    return _action(kind, f"{verb} {kernel.binary.short_name}", command, [uri, kernel.binary.mangled])


def _action(kind: types.CodeActionKind, title: str, command: str, arguments: list[str | None]) -> types.CodeAction:
    return types.CodeAction(
        title=title, kind=kind, command=types.Command(title=title, command=command, arguments=arguments)
    )


def _kind(only: Sequence[types.CodeActionKind | str] | None) -> types.CodeActionKind | None:
    """The kind to answer with, None where none of ours is wanted.

    VS Code leaves source actions out of its light bulb's menu: who asks for nothing in particular gets no kind.
    """
    wanted = {""} if only is None else {getattr(kind, "value", kind) for kind in only}
    if "" in wanted:
        return types.CodeActionKind.Empty
    return types.CodeActionKind.Source if "source" in wanted else None


def _report(kind: types.CodeActionKind, title: str, uri: str, mangled: str | None) -> types.CodeAction:
    return _action(kind, title, WRITE_REPORT, [uri, mangled])
