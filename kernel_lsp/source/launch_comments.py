"""Turns `// kernel-lsp: block=16x16 smem=48KB` comments into launches of the kernels they stand at.

A comment speaks of the kernel that follows it, or of the one on its own line. What it says wrongly becomes a note
that tells the right form.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from math import prod

from kernel_lsp.source.lines import LineTable
from kernel_lsp.source.position import Span
from kernel_lsp.source.scan_result import LaunchComment, ScanNote, SourceKernel
from kernel_lsp.source.tokens import Tokens

_MARK = "kernel-lsp:"
_FIELD = re.compile(r"(\w+)\s*=\s*([^\s,;=]*(?:\s*,\s*\d+)*(?:\s+(?:kib|kb|mib|mb|bytes?|b)\b)?)|\S+", re.IGNORECASE)
_EXTENTS = re.compile(r"\d{1,10}(?:\s*[x,]\s*\d{1,10}){0,2}", re.IGNORECASE)
_BYTES = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(kib|kb|mib|mb|bytes?|b|)", re.IGNORECASE)
_UNITS = {"k": 1 << 10, "m": 1 << 20, "b": 1, "": 1}
_OTHER_COMMENTS = ("ignore",)  # read elsewhere

_EXAMPLES = {
    "block": "block=256, block=16x16 or block=32,8 with at most 1,024 threads",
    "grid": "grid=1024 or grid=64x64",
    "smem": "smem=49152 or smem=48KB",
    "cluster": "cluster=2, at most 16 blocks",
}
_MOST_THREADS, _MOST_CLUSTER_BLOCKS = 1024, 16


def launch_comments(
    tokens: Tokens, kernels: tuple[SourceKernel, ...], lines: LineTable
) -> tuple[tuple[LaunchComment, ...], tuple[ScanNote, ...]]:
    """The comments of a text that speak of launches, and what is wrong with them."""
    found: list[LaunchComment] = []
    notes: list[ScanNote] = []
    for offset, comment in tokens.comments:
        start = comment.index(_MARK) + len(_MARK)
        body = comment[start:].removesuffix("*/")
        if body.split()[:1] and body.split()[0].startswith(_OTHER_COMMENTS):
            continue
        fields, wrong = _fields(body)
        notes += [
            ScanNote(_span(lines, offset + start + first, last - first), message) for first, last, message in wrong
        ]
        kernel = _kernel_at(tokens, kernels, offset, comment, lines)
        if kernel is None:
            message = "belongs to no kernel: write it on the line above a __global__ function"
            notes.append(ScanNote(_span(lines, offset, len(comment.split("\n")[0])), message))
        elif fields:
            found.append(
                LaunchComment(
                    kernel=kernel.qualified_name,
                    kernel_line=kernel.span.line,
                    line=lines.position(offset)[0],
                    block=fields.get("block"),
                    grid=fields.get("grid"),
                    dynamic_shared_bytes=fields["smem"][0] if "smem" in fields else None,
                    cluster=prod(fields["cluster"]) if "cluster" in fields else None,
                )
            )
    return tuple(found), tuple(notes)


def _fields(body: str) -> tuple[dict[str, tuple[int, int, int]], list[tuple[int, int, str]]]:
    """Values by key, bytes in the first place, and (start, end, message) of what is wrong."""
    fields: dict[str, tuple[int, int, int]] = {}
    wrong: list[tuple[int, int, str]] = []
    for match in _FIELD.finditer(body):
        key, value = match.group(1), (match.group(2) or "").strip()
        if key is None:
            if match.group() not in (",", ";"):
                message = f"{match.group()!r} is not understood here: {_EXAMPLES['block']}; {_EXAMPLES['smem']}"
                wrong.append((match.start(), match.end(), message))
            continue
        if key not in _EXAMPLES:
            message = f"{key} is not known here: block, grid, smem and cluster are"
            wrong.append((match.start(), match.end(), message))
            continue
        number = _bytes(value) if key == "smem" else _extents(key, value)
        if number is None or key in fields:
            message = f"{key}={value} is given twice" if key in fields else f"{key}={value} is not understood"
            wrong.append((match.start(), match.end(), f"{message}: write {_EXAMPLES[key]}"))
        else:
            fields[key] = number
    if not fields and not wrong:
        wrong.append((0, len(body.rstrip()), f"says nothing: write {_EXAMPLES['block']}, {_EXAMPLES['smem']}"))
    return fields, wrong


def _extents(key: str, value: str) -> tuple[int, int, int] | None:
    if not _EXTENTS.fullmatch(value):
        return None
    numbers = [int(part) for part in re.split(r"[x,]", value, flags=re.IGNORECASE)]
    x, y, z = (*numbers, 1, 1)[:3]
    most = {"block": _MOST_THREADS, "cluster": _MOST_CLUSTER_BLOCKS}.get(key, 2**31 - 1)
    if min(x, y, z) < 1 or (key != "grid" and x * y * z > most) or max(x, y, z) > most:
        return None
    return x, y, z


def _bytes(value: str) -> tuple[int, int, int] | None:
    match = _BYTES.fullmatch(value)
    if match is None:
        return None
    size = float(match.group(1)) * _UNITS[match.group(2)[:1].lower()]
    return (int(size), 1, 1) if size == int(size) and size <= 1 << 20 else None


def _kernel_at(
    tokens: Tokens, kernels: tuple[SourceKernel, ...], offset: int, comment: str, lines: LineTable
) -> SourceKernel | None:
    """The kernel on the comment's line, in whose head it stands, or that is the next code after it."""
    line = lines.position(offset)[0]
    nearest = bisect_left(kernels, line, key=lambda kernel: kernel.body_first_line)
    kernel = kernels[nearest] if nearest < len(kernels) else None
    if kernel is None or kernel.first_line <= line:
        return kernel
    following = tokens.first_at_or_after(offset + len(comment))
    if following is None:
        return None
    next_line = lines.position(tokens.starts[following])[0]
    before_on_line = following > 0 and lines.position(tokens.starts[following - 1])[0] == line
    if before_on_line:
        return None  # behind other code on that line
    return kernel if kernel.first_line == next_line else None


def _span(lines: LineTable, offset: int, length: int) -> Span:
    line, column = lines.position(offset)
    return Span(line, column, column + length)
