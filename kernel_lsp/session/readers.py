"""Which open documents' builds hold a file: one that they read, or one that `#line` directives name in their code.

A header is found by the text of #include lines already; this knows what the compiler did: computed includes, -include,
and generated code whose lines stand in another file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.outcome import FileOutcome
from kernel_lsp.session.uris import real_path


def readers_of(path: Path, documents: Iterable[OpenDocument]) -> tuple[Path, ...]:
    """The sources whose latest builds hold a file, as far as they are open or were built for open documents."""
    wanted, name = real_path(path), path.name
    found: dict[Path, None] = {}
    for document in documents:
        outcome = document.last
        if document.path == path or outcome is None or outcome.command is None or outcome.command.source == path:
            continue
        if any(real_path(file) == wanted for file in _files(document, outcome) if file.endswith(name)):
            found[outcome.command.source] = None
    return tuple(found)


def lacks_source(document: OpenDocument) -> bool:
    """Whether a document was not built because no source was found that reads it."""
    command = document.last.command if document.last is not None else None
    return command is not None and command.skip_reason is not None and command.source == document.path


def _files(document: OpenDocument, outcome: FileOutcome) -> Iterator[str]:
    yield from outcome.reads
    coded = document.coded
    if coded is None or coded.analysis is None:
        return
    sections = [*(kernel.sass for kernel in coded.analysis.kernels), *coded.analysis.function_sass]
    for files in {sass.lines.files for sass in sections if sass is not None and sass.lines is not None}:
        yield from files
