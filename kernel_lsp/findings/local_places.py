"""Lines with local memory accesses as second places of a finding: how many, how deep in loops, by which calls."""

from __future__ import annotations

from pathlib import PurePath

from kernel_lsp.cubin.linemap import Frame
from kernel_lsp.findings import wording
from kernel_lsp.findings.finding import Related
from kernel_lsp.model.line_sass import LocalLine

MOST_PLACES = 8


def access_places(lines: tuple[LocalLine, ...], path: str) -> tuple[Related, ...]:
    """The lines with the most accesses, in their order; calls as seen from the file at `path`."""
    return tuple(
        Related(each.frames[0].file, each.frames[0].line, _said(each, path))
        for each in lines[:MOST_PLACES]
        if each.frames[0].line
    )


def _said(line: LocalLine, path: str) -> str:
    """`60 STL, 52 LDL, loop depth 1, inlined at l.16`."""
    counts = [f"{line.stores} STL ({wording.exact_bytes(line.store_bytes)})"] if line.stores else []
    counts += [f"{line.loads} LDL ({wording.exact_bytes(line.load_bytes)})"] if line.loads else []
    said = ", ".join(counts)
    if line.loop_depth:
        said += f", loop depth {line.loop_depth}"
    calls = call_chain(line.frames[1:], path)
    return f"{said}, inlined at {calls}" if calls else said


def call_chain(frames: tuple[Frame, ...], path: str) -> str:
    """The calls outwards: `l.16`, `mma.h:41 <- gemm.cu:16`."""
    return " <- ".join(
        f"l.{frame.line}" if frame.file == path else f"{PurePath(frame.file).name}:{frame.line}"
        for frame in frames
        if frame.line
    )
