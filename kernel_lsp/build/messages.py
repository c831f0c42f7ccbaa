"""What nvcc's chain printed becomes messages with absolute files, lines, back traces as notes (pure).

Columns are left out: cudafe++ and cicc point into a line whose comments are blanked and whose macros are expanded
(`__global__` is printed as an attribute), gcc counts screen columns.
"""

from __future__ import annotations

import os.path
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from kernel_lsp.build.process import Finished
from kernel_lsp.build.ptx_places import PtxPlaces
from kernel_lsp.build.ptxas_messages import PtxasLine, ptxas_messages
from kernel_lsp.source.message import CompilerMessage, MessageNote

Severity = Literal["error", "warning", "information"]

_N_MESSAGES_MAX = 500
_TEXT_MAX = 2_000
_SAID_MAX = 200

_EDG = re.compile(
    r"^(?P<file>\S.*?)\((?P<line>\d+)\): "
    r"(?P<level>catastrophic error|fatal error|internal error|error|warning|remark|note)(?: #(?P<code>[\w-]+))?\s*: "
    r"(?P<text>.*)$"
)
_EDG_END = re.compile(r"^At end of source: (?P<level>error|warning)(?: #(?P<code>[\w-]+))?\s*: (?P<text>.*)$")
_GCC = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+):(?:\d+:)? (?P<level>fatal error|error|warning|note): (?P<text>.*)$")
_GCC_PLAIN = re.compile(
    r"^(?P<program>cc1plus|gcc|g\+\+|clang\+\+|clang): (?P<level>fatal error|error|warning): (?P<text>.*)$"
)
_INCLUDED = re.compile(r"^(?:In file included from|\s+from) (?P<file>\S.*?):(?P<line>\d+)(?::\d+)?[,:]$")
_TOOL = re.compile(
    r"^(?P<tool>nvcc|ptxas|nvlink|cicc|cudafe\+\+|fatbinary)(?: (?P<ptx>\S.*), line (?P<ptx_line>\d+);)? "
    r"(?P<level>info|warning|error|fatal)\s*: (?P<text>.*)$"
)
_TRACE = re.compile(r"^\s+detected during(?::| (?P<text>.*))$")
_TRACE_PLACE = re.compile(r"^(?P<text>.*) at line (?P<line>\d+)(?: of (?P<file>\S.*))?$")
_CARET = re.compile(r"^\s*\^[\s~^]*$")
_GCC_ECHO = re.compile(r"^\s*\d* \| ")
_NOISE = re.compile(
    r"^(?:Remark: |compilation terminated|Error limit reached|\d+ (?:error|warning|catastrophic error)s?\b.* detected "
    r"|Compilation (?:aborted|terminated))"
)
_GCC_FLAG = re.compile(r" \[(-W[\w=+-]+)\]$")
# Said of our own way of building, not of the user's program: -lineinfo beside -G, a header built by itself.
_OURS = (
    "'--device-debug (-G)' overrides '--generate-line-info (-lineinfo)'",
    "Conflicting options --device-debug and --generate-line-info",
    "#pragma once in main file",
)
_CURES = {
    "Failed to preprocess host compiler properties": (
        " nvcc needs a host compiler: install g++ (Debian, Ubuntu: apt install g++) and see that it is on PATH."
    ),
    "Cannot find compiler 'cl.exe' in PATH": " Install the Visual Studio Build Tools for C++.",
    "died due to signal 9": " The machine may have run out of memory.",
}


def compiler_messages(
    said: str,
    *,
    cwd: str,
    source: str,
    ptx: str | None = None,
    standins: Mapping[str, str] | None = None,
) -> tuple[CompilerMessage, ...]:
    """Messages in the order of printing, equal ones once, at most 500, errors before others.

    `ptx`: the PTX that ptxas was given, to find source lines for its messages. `standins`: paths that stand for
    another (a temporary copy). Messages without a place get `source` and line 0.
    """
    reader = _Reader(cwd, source, standins or {})
    for line in said.splitlines():
        reader.take(line)
    reader.finish()
    messages = reader.messages
    if reader.assembler:
        messages += ptxas_messages(reader.assembler, PtxPlaces(ptx) if ptx else None, source)
    tidied = (replace(m, text=_tidied(m.text)) for m in messages if not any(own in m.text for own in _OURS))
    different = tuple(dict.fromkeys(tidied))
    kept = sorted(range(len(different)), key=lambda index: different[index].severity != "error")[:_N_MESSAGES_MAX]
    return tuple(different[index] for index in sorted(kept))


def failure_reason(finished: Finished, messages: tuple[CompilerMessage, ...], nvcc: str, time_limit_s: float) -> str:
    """Why there is no cubin, in one sentence for people."""
    if finished.ending == "not started":
        return f"{nvcc} could not be started: {finished.error}."
    if finished.ending == "timeout":
        return f"nvcc took longer than {time_limit_s:g} s and was stopped; kernelLsp.build.timeLimit raises the limit."
    if finished.ending == "runaway output":
        return f"{nvcc} printed without end and was stopped; it does not behave like nvcc."
    errors = [message for message in messages if message.severity == "error"]
    if errors:
        first = errors[0]
        place = f"{Path(first.file).name}:{first.line}: " if first.line else ""
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return f"{place}{first.text}{more}"
    said = _first_words((finished.stderr + b"\n" + finished.stdout).decode("utf-8", "replace"))
    heard = f'It said: "{said}"' if said else "It said nothing."
    code = finished.code or 0
    if code < 0:
        return f"{nvcc} was ended by {_signal_name(-code)}. {heard}"
    if code == 0:
        return f"{nvcc} reported success but wrote no cubin; it does not behave like nvcc. {heard}"
    return f"{nvcc} failed with exit status {code}. {heard}"


@dataclass(slots=True)
class _Open:
    """A message whose following lines are still being read."""

    message: CompilerMessage
    body: list[str] = field(default_factory=list)
    in_trace: bool = False

    def fold_body(self) -> None:
        """Lines before the echo of the source ("argument types are: (int)") join the text, the echo goes."""
        caret = next((i for i, line in enumerate(self.body) if _CARET.match(line)), 0)
        extra = [line.strip() for line in self.body[: max(0, caret - 1)] if not _GCC_ECHO.match(line)]
        if extra:
            self.message = replace(self.message, text="; ".join([self.message.text, *extra]))
        self.body.clear()


class _Reader:
    def __init__(self, cwd: str, source: str, standins: Mapping[str, str]) -> None:
        self.messages: list[CompilerMessage] = []
        self.assembler: list[PtxasLine] = []
        self._cwd = cwd
        self._source = source
        self._standins = standins
        self._open: _Open | None = None
        self._included_from: list[MessageNote] = []

    def take(self, line: str) -> None:
        if not line.strip():
            self.finish()
        elif match := _INCLUDED.match(line):
            self.finish()
            place = self._path(match["file"]), _number(match["line"])
            self._included_from.append(MessageNote(*place, "included from here"))
        elif match := _EDG.match(line) or _GCC.match(line) or _EDG_END.match(line) or _GCC_PLAIN.match(line):
            self._start(match)
        elif match := _TOOL.match(line):
            self.finish()
            self._tool(match)
        elif _NOISE.match(line):
            self.finish()
        elif self._open is not None:
            self._continue(self._open, line)

    def finish(self) -> None:
        """Close the message that is being read."""
        if self._open is None:
            return
        self._open.fold_body()
        self.messages.append(self._open.message)
        self._open = None

    def _start(self, match: re.Match[str]) -> None:
        groups = match.groupdict()
        file = self._path(groups["file"]) if groups.get("file") else self._source
        line = _number(groups.get("line") or "0")
        text, code = groups["text"], groups.get("code")
        if flag := _GCC_FLAG.search(text):
            text, code = text[: flag.start()], flag[1]
        if groups["level"] == "note":
            note = MessageNote(file, line, text)
            if self._open is not None:
                if not self._open.message.notes:
                    self._open.fold_body()
                self._open.body.clear()
                self._open.message = replace(self._open.message, notes=(*self._open.message.notes, note))
                return
            if self.messages:
                self.messages[-1] = replace(self.messages[-1], notes=(*self.messages[-1].notes, note))
            return
        self.finish()
        notes, self._included_from = tuple(self._included_from), []
        tool = "gcc" if match.re in (_GCC, _GCC_PLAIN) else "cicc"
        self._open = _Open(CompilerMessage(tool, _severity(groups["level"]), file, line, None, code, text, None, notes))

    def _continue(self, current: _Open, line: str) -> None:
        if match := _TRACE.match(line):
            # The lines before belong to the message; what follows up to a blank line is the back trace.
            current.in_trace = True
            if match["text"]:
                self._trace(current, match["text"])
        elif current.in_trace:
            self._trace(current, line.strip())
        else:
            current.body.append(line)

    def _trace(self, current: _Open, text: str) -> None:
        match = _TRACE_PLACE.match(text)
        if match is None:  # "[ 20 instantiation contexts not shown ]"
            return
        file = self._path(match["file"].strip('"')) if match["file"] else current.message.file
        note = MessageNote(file, _number(match["line"]), match["text"])
        current.message = replace(current.message, notes=(*current.message.notes, note))

    def _tool(self, match: re.Match[str]) -> None:
        tool, level, text = match["tool"], match["level"], match["text"].strip()
        if tool in ("ptxas", "nvlink"):
            ptx_line = _number(match["ptx_line"]) if match["ptx_line"] else None
            self.assembler.append(PtxasLine(tool, level, ptx_line, text))
            return
        if level == "info":
            return
        cure = next((cure for words, cure in _CURES.items() if words in text), "")
        self.messages.append(CompilerMessage(tool, _severity(level), self._source, 0, None, None, text + cure))

    def _path(self, name: str) -> str:
        path = os.path.normpath(Path(self._cwd, name))
        return self._standins.get(path, path)


def _severity(level: str) -> Severity:
    if level in ("warning",):
        return "warning"
    return "information" if level in ("remark", "info", "note") else "error"


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 10 else 0


def _tidied(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text).strip()
    return printable if len(printable) <= _TEXT_MAX else printable[:_TEXT_MAX] + " ..."


def _first_words(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    printable = "".join(c if c.isprintable() and c != "\ufffd" else "." for c in line.strip())
    return printable if len(printable) <= _SAID_MAX else printable[:_SAID_MAX] + " ..."


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
