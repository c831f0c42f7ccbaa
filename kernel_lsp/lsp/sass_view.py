"""The `kernelLsp/sass` request: a kernel's instructions as text, with the source line of each of its rows.

Editors show it under the scheme `kernel-lsp-sass:` beside the source. Rows and lines are 0-based, as everywhere in the
protocol; lines of the document itself are where they stand now, and rows of lines touched since have no link there.
"""

from __future__ import annotations

from typing import Any

from kernel_lsp.lsp.diagnostics import uri_for
from kernel_lsp.lsp.placed import freshness
from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.report.kernel_choice import NoSuchKernelError, chosen_kernels
from kernel_lsp.report.sass_listing import ListingLink, sass_listing
from kernel_lsp.session.documents import OpenDocument

Json = dict[str, Any]


def sass_view(server: KernelLspServer, uri: Any, kernel: Any) -> Json:
    """`{"text", "kernel", "name", "kernels", "links": [{"row", "lines": [{"uri", "line"}]}]}`.

    Where nothing is known the text says why. `kernels` are all of the document, for a menu.
    """
    document = server.session.document(uri) if isinstance(uri, str) else None
    if document is None:
        return _nothing("this document is not open, or is no CUDA file")
    coded = document.coded
    analysis = coded.analysis if coded is not None else None
    if coded is None or analysis is None:
        last = document.last
        if last is None or last.more_to_come:
            return _nothing("the instructions are being read")
        return _nothing(next((k.sass_why for k in last.analysis.kernels if k.sass_why), "") if last.analysis else "")
    try:
        chosen = chosen_kernels(analysis, kernel if isinstance(kernel, str) else None)
    except NoSuchKernelError as error:
        return _nothing(str(error))
    found = next((each for each in chosen if each.sass is not None), None)
    if found is None:
        return _nothing("there are no kernels in this file")
    lines = document.line_map(coded)
    listing = sass_listing(found, analysis.path, lines.to_new)
    age = freshness(document, coded)
    head = f"// {age}\n" if age else ""
    uris: dict[str, str] = {}
    links = [_link(server, document, link, analysis.path, head.count("\n"), uris) for link in listing.links]
    return {
        "text": head + listing.text,
        "kernel": found.binary.mangled,
        "name": found.binary.short_name,
        "kernels": [
            {"kernel": each.binary.mangled, "name": each.binary.short_name} for each in analysis.kernels if each.sass
        ],
        "links": [link for link in links if link["lines"]],
    }


def _link(
    server: KernelLspServer, document: OpenDocument, link: ListingLink, path: str, offset: int, uris: dict[str, str]
) -> Json:
    assert document.coded is not None
    lines = document.line_map(document.coded)
    places = []
    for file, line in link.lines:
        now = lines.to_new(line) if file == path else line
        if now is None:
            continue
        if file not in uris:
            uris[file] = document.uri if file == path else uri_for(server, file)
        places.append({"uri": uris[file], "line": now - 1})
    return {"row": link.row - 1 + offset, "lines": places}


def _nothing(why: str) -> Json:
    text = f"// No instructions: {why or 'nothing was built'}\n"
    return {"text": text, "kernel": None, "name": None, "kernels": [], "links": []}
