"""The names that a device link misses -> the project's sources that seem to define them, by a cheap search of text.

Only sources that a compile database builds for linking count: no other record says what a program is made of.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from kernel_lsp.project.flag_sources import FlagSources
from kernel_lsp.project.includers import distance

_COMMENT = re.compile(r"//[^\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_BODY = re.compile(r"\s*(?:<[^;{}()]{0,200}>\s*)?\([^;{}]*\)\s*(?:(?:const|noexcept)\s*){0,2}\{")
_VARIABLE = re.compile(r"\s*[;={\[,]")
_SPACE = re.compile(r"\b__(?:device|constant|managed)__\b")
_EXTERN = re.compile(r"\bextern\b")
_MAX_FILES = 2_000
_MAX_BYTES = 2 << 20
_MAX_MENTIONS = 200  # of a name in one file
_MAX_BEFORE, _MAX_BEHIND = 300, 1_500  # characters looked at around a mention


def linked_sources(document: Path, sources: FlagSources) -> tuple[str, ...]:
    """The sources that the databases which may speak of this file build for linking."""
    return tuple(sources.relocatable_files(sources.databases(document)))


def likely_definers(
    names: Iterable[str], source: str, candidates: Sequence[str], open_texts: Mapping[str, str] = MappingProxyType({})
) -> dict[str, tuple[str, ...]]:
    """For each plain name (`far_away`) the candidates whose text seems to define it, those nearest to `source` first.

    A name that only macros make is not found. `open_texts` stand for the files that the editor has open.
    """
    found: dict[str, list[str]] = {name: [] for name in names}
    nearest = sorted((path for path in candidates if path != source), key=lambda path: distance(path, source))
    for path in nearest[:_MAX_FILES]:
        text = open_texts[path] if path in open_texts else _text(path)
        present = [name for name in found if name in text]
        if present:
            text = _COMMENT.sub(" ", text)
            for name in present:
                if _defines(text, name):
                    found[name].append(path)
    return {name: tuple(paths) for name, paths in found.items()}


def _defines(text: str, name: str) -> bool:
    """Whether there is a function of this name with a body, or a variable of the device that is not only declared."""
    for mention in islice(re.finditer(rf"\b{re.escape(name)}\b", text), _MAX_MENTIONS):
        before = text[max(text.rfind("\n", 0, mention.start()) + 1, mention.start() - _MAX_BEFORE) : mention.start()]
        after = text[mention.end() : mention.end() + _MAX_BEHIND]
        if _BODY.match(after):
            return True
        if _VARIABLE.match(after) and _SPACE.search(before) and not _EXTERN.search(before):
            return True
    return False


def _text(path: str) -> str:
    try:
        if os.stat(path).st_size > _MAX_BYTES:  # noqa: PTH116
            return ""
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_BYTES)
    except (OSError, ValueError):
        return ""
