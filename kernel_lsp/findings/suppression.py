"""Reads `// kernel-lsp: ignore KL101, KL120` comments: which findings the author of a line does not want to see."""

from __future__ import annotations

import re
from collections.abc import Mapping

_IGNORE = re.compile(r"kernel-lsp:\s*ignore\b(?P<codes>[^/\n]*)")
_CODE = re.compile(r"KL\d{3}|[a-z]+(?:-[a-z]+)+")
_ALONE = re.compile(r"^\s*//")


def ignored_codes(text: str) -> Mapping[int, frozenset[str]]:
    """Codes and slugs ignored on each 1-based line; an empty set stands for all of them.

    A comment speaks of its own line; standing alone on a line it speaks of the next line that is no comment.
    """
    found: dict[int, frozenset[str]] = {}
    waiting: frozenset[str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        match = _IGNORE.search(line)
        if match and "//" not in line[: match.start()]:
            match = None
        codes = frozenset(_CODE.findall(match["codes"])) if match else None
        if _ALONE.match(line):
            waiting = codes if codes is not None else waiting
        else:
            spoken = codes if codes is not None else waiting
            waiting = None
            if spoken is not None:
                found[number] = spoken
    return found
