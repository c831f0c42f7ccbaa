"""nvcc's flags -> the register limit that they set for kernels without bounds of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LIMIT = re.compile(r"(?:^|[=,])--?maxrregcount(?:[= ](\d{1,4}))?(?=,|$)")


def register_limit(flags: Sequence[str]) -> int | None:
    """The number of the last `-maxrregcount` (also of one that goes through -Xptxas); None: there is none.

    ptxas passes it over for a kernel with __launch_bounds__ (`ptxas -v` says "Overriding maximum register limit"
    for the others only).
    """
    limit: int | None = None
    for index, word in enumerate(flags):
        following = flags[index + 1] if index + 1 < len(flags) else ""
        for match in _LIMIT.finditer(word):
            digits = match[1] or (following if following.isdecimal() else "")
            limit = int(digits) if digits else limit
    return limit
