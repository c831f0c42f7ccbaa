"""A source with an unsaved header's text in place of the `#include` lines that lead to it, names and lines kept.

The compiler reads the header's file wherever it stands on disk, so its unsaved text has to come with the source. Every
file on the way from the source to the header is written out in place of its `#include`, between `#line` directives;
all others are included as ever. Found by a cheap search: a computed `#include NAME` is not followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*"?)|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>)[^\n]*$', re.MULTILINE
)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*$", re.MULTILINE)
_MAX_DEPTH = 12
_MAX_BYTES = 16 << 20

Read = Callable[[str], "str | None"]  # the text of an absolute path; None where there is no such file


def with_unsaved_header(source: str, header: str, header_text: str, folders: Sequence[str], read: Read) -> str | None:
    """The text of `source` with the unsaved header inside; None where no include line leads to it.

    Absolute paths; `folders` are searched for headers after the including file's own folder.
    """
    text = read(source)
    if text is None:
        return None
    writer = _Writer(header, header_text, folders, read)
    written = writer.written(source, text, (source,))
    return written if writer.is_inside and len(written) <= _MAX_BYTES else None


class _Writer:
    def __init__(self, header: str, header_text: str, folders: Sequence[str], read: Read) -> None:
        self.is_inside = False
        self._header = os.path.realpath(header)
        self._header_text = header_text
        self._folders = folders
        self._read = read
        self._texts: dict[str, str | None] = {}
        self._leads: dict[str, bool] = {}
        self._n_written = 0

    def written(self, path: str, text: str, way: tuple[str, ...]) -> str:
        """A file's text with the files on the way to the header in place of their include lines."""
        parts: list[str] = []
        done = 0
        for match in _INCLUDE.finditer(_without_comments(text)):
            target = self._resolve(match, path)
            if target is None or target in way or not self._leads_to_header(target, way):
                continue
            inner = self._text(target)
            if inner is None or self._n_written > _MAX_BYTES:
                continue
            self._n_written += len(inner)
            self.is_inside = True
            line = text.count("\n", 0, match.end()) + 1
            parts += [text[done : match.start()], self._framed(target, inner, (*way, target))]
            parts.append(_line_directive(line + 1, path).removesuffix("\n"))
            done = match.end()
        return "".join([*parts, text[done:]])

    def _framed(self, path: str, text: str, way: tuple[str, ...]) -> str:
        """A header's text under its own name; `#pragma once` becomes a guard, since this text is no file."""
        body, n_once = _ONCE.subn("", text)
        framed = _line_directive(1, path) + self.written(path, body, way) + "\n"
        if not n_once:
            return framed
        guard = "KERNEL_LSP_ONCE_" + re.sub(r"\W", "_", path)
        return f"#ifndef {guard}\n#define {guard}\n{framed}#endif\n"

    def _leads_to_header(self, path: str, way: tuple[str, ...]) -> bool:
        if self._is_header(path):
            return True
        if path not in self._leads:
            self._leads[path] = False  # for includes that go round in circles
            text = self._text(path)
            if text is not None and len(way) < _MAX_DEPTH:
                targets = (self._resolve(match, path) for match in _INCLUDE.finditer(_without_comments(text)))
                self._leads[path] = any(
                    target is not None and target not in way and self._leads_to_header(target, (*way, path))
                    for target in targets
                )
        return self._leads[path]

    def _is_header(self, path: str) -> bool:
        named_alike = os.path.basename(path) == os.path.basename(self._header)  # noqa: PTH119
        return path == self._header or (named_alike and os.path.realpath(path) == self._header)

    def _resolve(self, include: re.Match[str], path: str) -> str | None:
        name = include["quoted"] or include["angled"]
        own = (os.path.dirname(path),) if include["quoted"] else ()  # noqa: PTH120
        candidates = (os.path.normpath(os.path.join(folder, name)) for folder in (*own, *self._folders))  # noqa: PTH118
        return next((candidate for candidate in candidates if self._text(candidate) is not None), None)

    def _text(self, path: str) -> str | None:
        if self._is_header(path):
            return self._header_text
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]


def _without_comments(text: str) -> str:
    """The text with blanks for comments, so that every place stays."""
    return _COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)


def _line_directive(line: int, path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{escaped}"\n'
