"""Lines of ptxas and nvlink become messages on source lines, in decimal and with the way out (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from kernel_lsp.build.ptx_places import PtxPlace, PtxPlaces
from kernel_lsp.source.message import CompilerMessage, MessageNote

Severity = Literal["error", "warning", "information"]

_HEX_BYTES = re.compile(r"0x([0-9a-f]+)(?= (?:bytes|max))")
_FUNCTION = re.compile(r"\b(?:entry function|[Ff]unction|entry|[Kk]ernel) '?([A-Za-z_$][\w$]*)'?")
_CODE = re.compile(r"^\((C\d+)\)\s*")
_LINE = re.compile(r"\s*\b(?:in around|around|in|on) line (\d+)\b")
_UNRESOLVED = re.compile(r"Unresolved extern \w+ '([^']+)'|Undefined reference to '([^']+)'")
_VERSION = re.compile(r"Unsupported \.version ([\d.]+); current version is '([\d.]+)'")
_LOSS = "Potential Performance Loss"
_SHARED_CURE = (
    "More is possible with dynamic shared memory (extern __shared__ and cudaFuncAttributeMaxDynamicSharedMemorySize)."
)


@dataclass(frozen=True, slots=True)
class PtxasLine:
    """One line of ptxas or nvlink, taken apart. `ptx_line` None: it names none in front."""

    tool: str
    level: str  # "info" | "warning" | "error" | "fatal"
    ptx_line: int | None
    text: str


def ptxas_messages(lines: list[PtxasLine], places: PtxPlaces | None, source: str) -> list[CompilerMessage]:
    """One message per statement; the compiler's own injections are notes of the loss that they explain."""
    messages = [_message(line, places, source) for line in lines if not _is_chatter(line, lines)]
    losses = [m for m in messages if m.code is not None and m.text.startswith(_LOSS)]
    gathered: list[CompilerMessage] = []
    for message in messages:
        owner = next((m for m in losses if m.kernel == message.kernel and m is not message), None)
        if message in losses:
            injected = [m for m in messages if _is_injection(m) and m.kernel == message.kernel]
            notes = [MessageNote(n.file, n.line, f"{m.text} ({m.code})") for m in injected for n in m.notes]
            gathered.append(replace(message, notes=_distinct([*message.notes, *notes])))
        elif not (_is_injection(message) and owner is not None):
            gathered.append(message)
    return gathered


def _message(line: PtxasLine, places: PtxPlaces | None, source: str) -> CompilerMessage:
    text, code = line.text.strip(), None
    if match := _CODE.match(text):
        code, text = match[1], text[match.end() :]
    kernel = match[1] if (match := _FUNCTION.search(text)) else None
    text = _HEX_BYTES.sub(lambda m: str(int(m[1], 16)), text)
    named_line = _LINE.search(text)
    ptx_line = line.ptx_line or (int(named_line[1]) if named_line else None)
    place: PtxPlace | None = None
    notes: tuple[MessageNote, ...] = ()
    if places is not None:
        at = places.at_line(ptx_line) if ptx_line is not None else None
        of_kernel = places.of_function(kernel) if kernel else None
        if of_kernel is not None and code is not None:
            # "around line 129" is the PTX's, and such a statement is about the kernel: the line is a further place.
            place = of_kernel
            if at is not None:
                file, at_line = at.inlined_at or (at.file, at.line)
                notes = (MessageNote(file, at_line, "here"),)
        else:
            place = at or of_kernel
            if place is not None and place.inlined_at not in (None, (place.file, place.line)):
                assert place.inlined_at is not None
                notes = (MessageNote(*place.inlined_at, "inlined here"),)
    if named_line is not None:
        text = (text[: named_line.start()] + text[named_line.end() :]).strip()
    text, undefined = _with_cure(text)
    if undefined and place is None and places is not None:
        place = places.first_use(undefined)
    return CompilerMessage(
        tool=line.tool,
        severity=_severity(line.level, text),
        file=place.file if place else source,
        line=place.line if place else 0,
        column=None,
        code=code,
        text=text,
        kernel=None if undefined else kernel,
        notes=notes,
    )


def _with_cure(text: str) -> tuple[str, str | None]:
    """The text with what to do, and the undefined symbol it is about."""
    if match := _VERSION.search(text):
        return (
            f"{text}: nvcc's compiler writes newer PTX than its ptxas reads, so the installed parts are of different "
            "CUDA releases. Install nvcc, nvvm and ptxas of one release, for example: pip install 'kernel-lsp[cuda]'"
        ), None
    if match := _UNRESOLVED.search(text):
        return f"{text}. It is defined in another file: build with -rdc=true, or define it here", (match[1] or match[2])
    if "uses too much shared data" in text:
        return f"{text}. {_SHARED_CURE}", None
    return text, None


def _severity(level: str, text: str) -> Severity:
    if level in ("error", "fatal"):
        return "error"
    return "warning" if level == "warning" or text.startswith(_LOSS) else "information"


def _is_injection(message: CompilerMessage) -> bool:
    return message.code is not None and " injected " in message.text


def _is_chatter(line: PtxasLine, lines: list[PtxasLine]) -> bool:
    if line.level == "info":
        return not line.text.startswith("(C")  # -v statistics
    aborted = "Ptx assembly aborted due to errors" in line.text
    return aborted and any(other.level in ("error", "fatal") and other is not line for other in lines)


def _distinct(notes: list[MessageNote]) -> tuple[MessageNote, ...]:
    by_place: dict[tuple[str, int], MessageNote] = {}
    for note in notes:
        by_place.setdefault((note.file, note.line), note)
    return tuple(by_place.values())
