"""What the compiler says that it lacks to build a file -> the flags that it names for it.

For files whose flags are a guess in any case. Each flag allows what is an error without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernel_lsp.source.message import CompilerMessage

_NAMED = {
    "--extended-lambda": re.compile(r"requires --?(?:expt-)?extended-lambda|flag '--?extended-lambda' is specified"),
    "-rdc=true": re.compile(r"requires separate compilation mode"),
    "--expt-relaxed-constexpr": re.compile(r"flag '--?expt-relaxed-constexpr' can be used"),
}


def wanted_flags(messages: Iterable[CompilerMessage]) -> tuple[str, ...]:
    """The flags that errors name as their cure."""
    errors = [message.text for message in messages if message.severity == "error"]
    return tuple(flag for flag, named in _NAMED.items() if any(named.search(text) for text in errors))
