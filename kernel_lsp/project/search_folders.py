"""nvcc's flags -> the folders that it searches for headers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernel_lsp.project.nvcc_options import match_option


def search_folders(flags: Sequence[str], directory: str) -> tuple[str, ...]:
    """Folders of -I and -isystem in the order of the flags, absolute; `directory` is where the command runs."""
    words = tuple(flags)
    folders: list[str] = []
    position = 0
    while position < len(words):
        matched = match_option(words[position : position + 2], 0)
        if matched and matched.option.long in {"--include-path", "--system-include"}:
            folders += [str(Path(directory, part)) for part in matched.value.split(",")]
        position += len(matched.words) if matched else 1
    return tuple(folders)
