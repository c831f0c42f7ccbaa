"""Reads the expectations written into a `.cu` file as comments, on the line that they are about.

    //@ finding("KL110", "52,224 B", at="smooth")    one finding of this line: code, a part of its message, its text
    //@ lens("2 blocks/SM")                          a part of one of this line's lenses
    //@ hover("smooth", "<- limit")                  a part of the hover on this word of the line
    //@ line_hover("32 LDS", "loop depth 1")         parts of the hover elsewhere on the line; (): none
    //@ hint("spill stores")                         a part of the hint at the line's end; (): none
    //~ ...                                          the same, about the line above (for lines that must stay bare)
    //@ target sm_90                                 header: the architecture; also: gpu NAME, allow_extra

Every finding needs a marker and every marker a finding, unless the header says `allow_extra`. Lenses, hovers and hints
are only checked where they are marked. Comments do not move lines, so the compiled code is that of the bare file.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

_MARKER = re.compile(r"//([@~])\s*(\w+)\s*(.*)$")
_CALLS = {"finding", "lens", "hover", "line_hover", "hint"}


@dataclass(frozen=True)
class Marker:
    kind: str
    line: int
    args: tuple[str, ...]
    at: str | None


@dataclass(frozen=True)
class MarkerFile:
    path: Path
    text: str
    arch: str
    gpu: str
    allow_extra: bool
    markers: tuple[Marker, ...]

    def of(self, kind: str) -> list[Marker]:
        return [marker for marker in self.markers if marker.kind == kind]


def read_marker_file(path: Path) -> MarkerFile:
    """Raises AssertionError on a comment that starts like a marker and is none: a typo must not pass silently."""
    text = path.read_text("utf-8")
    arch, gpu, allow_extra = "", "", False
    markers: list[Marker] = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _MARKER.search(line)
        if not found:
            continue
        sign, word, rest = found.groups()
        if word == "target":
            arch = rest.strip()
        elif word == "gpu":
            gpu = rest.strip()
        elif word == "allow_extra":
            allow_extra = True
        else:
            assert word in _CALLS, f"{path.name}:{number}: unknown marker {word!r}"
            for call in _calls(f"{word}{rest}", path, number):
                markers.append(_marker(call, number - (sign == "~"), path))
    return MarkerFile(path, text, arch, gpu, allow_extra, tuple(markers))


def _calls(source: str, path: Path, number: int) -> list[ast.Call]:
    try:
        body = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        raise AssertionError(f"{path.name}:{number}: not a marker: {source!r}") from error
    written = body.elts if isinstance(body, ast.Tuple) else [body]
    calls = [call for call in written if isinstance(call, ast.Call)]
    assert len(calls) == len(written), f"{path.name}:{number}: not a marker: {source!r}"
    return calls


def _marker(call: ast.Call, line: int, path: Path) -> Marker:
    assert isinstance(call.func, ast.Name)
    assert call.func.id in _CALLS, f"{path.name}:{line}: unknown marker {call.func.id!r}"
    values = [ast.literal_eval(argument) for argument in call.args]
    keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert set(keywords) <= {"at"}, f"{path.name}:{line}: unknown keyword in {sorted(map(str, keywords))}"
    return Marker(call.func.id, line, tuple(values), keywords.get("at"))
