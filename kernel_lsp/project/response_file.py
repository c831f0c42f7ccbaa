"""Response files of a command (`--options-file`, `@file`) -> their words, read with bounds and within the workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kernel_lsp.project.command import CommandNote
from kernel_lsp.project.words import Platform, gnu_response_words, response_words

MAX_RESPONSE_BYTES = 1 << 20


def response_reader(
    directory: Path, roots: Sequence[Path], platform: Platform, *, gnu: bool = False
) -> Callable[[str], tuple[str, ...] | CommandNote]:
    """A reader for names relative to `directory`; a file outside `roots` (symlinks followed) is refused.

    `roots`: the workspace and the folder of the database, never the directory that an entry names.
    `gnu`: words are split as clang and gcc split an `@file`, not as nvcc splits an options file.
    """
    real_roots = [root.resolve() for root in roots]

    def read(name: str) -> tuple[str, ...] | CommandNote:
        path = directory / name
        try:
            real = path.resolve()
            if not any(real.is_relative_to(root) for root in real_roots):
                return CommandNote(
                    "refused", f"response file {name}: refused, it lies outside the workspace ({real})", "warning"
                )
            if not real.is_file():
                raise FileNotFoundError
            if real.stat().st_size > MAX_RESPONSE_BYTES:
                return CommandNote(
                    "refused", f"response file {name}: refused, larger than {MAX_RESPONSE_BYTES >> 20} MB", "warning"
                )
            text = real.read_text("utf-8", "surrogateescape")
        except (OSError, ValueError, RuntimeError):
            return CommandNote("warning", f"response file {path} cannot be read; build the project once", "warning")
        return gnu_response_words(text) if gnu else response_words(text, platform)

    return read
