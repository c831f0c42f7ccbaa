"""Turns two versions of a text into a map between their lines: results of the built text follow the edits.

A line maps only where its text is unchanged; a touched line maps nowhere. The method is a patience diff: lines
that occur once in both versions anchor the map, and the short gaps between anchors are compared by difflib.
It takes about n log n for n lines, where difflib alone is quadratic on files full of equal lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from kernel_lsp.source.lines import split_lines

# Gaps up to this size are compared line by line; larger ones without a common unique line count as rewritten.
_MAX_GAP_LINES = 200


class LineMap:
    """Between the lines of `old_text` and `new_text`, 1-based. Immutable; order is kept, no line maps twice."""

    __slots__ = ("_new_of_old", "_old_of_new", "is_identity")

    def __init__(self, old_text: str, new_text: str) -> None:
        self.is_identity = old_text == new_text
        if self.is_identity:
            count = old_text.count("\n") + old_text.count("\r") + 1 - old_text.count("\r\n")
            self._new_of_old: Sequence[int] = range(1, count + 1)
            self._old_of_new: Sequence[int] = self._new_of_old
            return
        old, new = split_lines(old_text), split_lines(new_text)
        new_of_old, old_of_new = [0] * len(old), [0] * len(new)
        for old_idx, new_idx, length in _matching_blocks(old, new):
            for step in range(length):
                new_of_old[old_idx + step] = new_idx + step + 1
                old_of_new[new_idx + step] = old_idx + step + 1
        self._new_of_old, self._old_of_new = new_of_old, old_of_new

    def to_new(self, line: int) -> int | None:
        """Where a line of the old text stands now; None: it was changed or removed, or never existed."""
        return _lookup(self._new_of_old, line)

    def to_old(self, line: int) -> int | None:
        """Which line of the old text this is; None: it is new or changed, or does not exist."""
        return _lookup(self._old_of_new, line)

    @property
    def touched_line_count(self) -> int:
        """How many lines of the new text have no old counterpart."""
        return sum(1 for line in self._old_of_new if line == 0)


def _lookup(lines: Sequence[int], line: int) -> int | None:
    if not 1 <= line <= len(lines):
        return None
    return lines[line - 1] or None


def _matching_blocks(old: list[str], new: list[str]) -> list[tuple[int, int, int]]:
    """(old index, new index, length) of equal runs, 0-based."""
    blocks: list[tuple[int, int, int]] = []
    pending = [(0, len(old), 0, len(new))]
    while pending:
        old_start, old_end, new_start, new_end = pending.pop()
        prefix = _common_prefix(old, old_start, old_end, new, new_start, new_end)
        if prefix:
            blocks.append((old_start, new_start, prefix))
            old_start, new_start = old_start + prefix, new_start + prefix
        suffix = _common_suffix(old, old_start, old_end, new, new_start, new_end)
        if suffix:
            blocks.append((old_end - suffix, new_end - suffix, suffix))
            old_end, new_end = old_end - suffix, new_end - suffix
        if old_start == old_end or new_start == new_end:
            continue
        anchors = _anchors(old, old_start, old_end, new, new_start, new_end)
        if anchors:
            # Each anchor opens the gap that starts with it, so that the prefix step above takes the anchor.
            bounds = [(old_start, new_start), *anchors, (old_end, new_end)]
            for (old_from, new_from), (old_to, new_to) in pairwise(bounds):
                pending.append((old_from, old_to, new_from, new_to))
        elif max(old_end - old_start, new_end - new_start) <= _MAX_GAP_LINES:
            matcher = SequenceMatcher(None, old[old_start:old_end], new[new_start:new_end], autojunk=False)
            blocks += [
                (old_start + block.a, new_start + block.b, block.size)
                for block in matcher.get_matching_blocks()
                if block.size
            ]
    return blocks


def _common_prefix(old: list[str], old_start: int, old_end: int, new: list[str], new_start: int, new_end: int) -> int:
    limit = min(old_end - old_start, new_end - new_start)
    length = 0
    while length < limit and old[old_start + length] == new[new_start + length]:
        length += 1
    return length


def _common_suffix(old: list[str], old_start: int, old_end: int, new: list[str], new_start: int, new_end: int) -> int:
    limit = min(old_end - old_start, new_end - new_start)
    length = 0
    while length < limit and old[old_end - 1 - length] == new[new_end - 1 - length]:
        length += 1
    return length


def _anchors(
    old: list[str], old_start: int, old_end: int, new: list[str], new_start: int, new_end: int
) -> list[tuple[int, int]]:
    """Lines that occur once in either part, as the longest run that is ascending in both."""
    old_counts, new_counts = Counter(old[old_start:old_end]), Counter(new[new_start:new_end])
    new_places = {new[idx]: idx for idx in range(new_start, new_end) if new_counts[new[idx]] == 1}
    pairs = [
        (idx, new_places[old[idx]])
        for idx in range(old_start, old_end)
        if old_counts[old[idx]] == 1 and old[idx] in new_places
    ]
    tails: list[int] = []  # smallest new index that ends an ascending run of each length
    tail_pairs: list[int] = []
    before = [-1] * len(pairs)
    for pair_idx, (_, new_idx) in enumerate(pairs):
        length = bisect_left(tails, new_idx)
        if length:
            before[pair_idx] = tail_pairs[length - 1]
        if length == len(tails):
            tails.append(new_idx)
            tail_pairs.append(pair_idx)
        else:
            tails[length] = new_idx
            tail_pairs[length] = pair_idx
    chain: list[tuple[int, int]] = []
    pair_idx = tail_pairs[-1] if tail_pairs else -1
    while pair_idx >= 0:
        chain.append(pairs[pair_idx])
        pair_idx = before[pair_idx]
    return chain[::-1]
