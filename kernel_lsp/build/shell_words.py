"""Arguments that nvcc would hand to a shell become a refusal (pure).

nvcc starts its own steps through `/bin/sh -c` and writes file names and macros between double quotes without escaping
`$` or the backquote: `-DX=$(command)` in a compile database, or a source file named that way, would run the command.
Values of -Xptxas, -Xcompiler and their like are not quoted at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LIVE_IN_QUOTES = re.compile(r"[$`\x00-\x08\x0a-\x1f\x7f]")
_PLAIN = re.compile(r"[\w=+,./:%@^-]*", re.ASCII)
_PASSED_ON = re.compile(
    r"(?:-X[a-z]+|--(?:[a-z]+-)?(?:options|compiler-options|ptxas-options|linker-options|archive-options))(?:=(.*))?",
    re.DOTALL,
)


def shell_hazard(arguments: Sequence[str], source: str) -> str | None:
    """Why nvcc must not be started with these arguments and source path, for people; None: nothing against it."""
    previous_passes_on = False
    for argument in arguments:
        if found := _LIVE_IN_QUOTES.search(argument):
            return (
                f"the argument {argument!r} holds {found.group()!r}, which nvcc would hand to a shell. "
                "Remove it from the flags."
            )
        if (len(argument) - len(argument.rstrip("\\"))) % 2:
            return f"the argument {argument!r} ends with a backslash, which nvcc would hand to a shell. Remove it."
        option = _PASSED_ON.fullmatch(argument)
        value = argument if previous_passes_on else (option.group(1) if option else None)
        if value is not None and not _PLAIN.fullmatch(value):
            return (
                f"the argument {argument!r} passes on characters that nvcc would hand to a shell. "
                "Only letters, digits and =+,./:%@^-_ are allowed there."
            )
        previous_passes_on = option is not None and option.group(1) is None
    if found := re.search(r"[$`\"\x00-\x1f\x7f]|\\(?=\Z|\")", source):
        return (
            f"the path {source!r} holds {found.group()!r}, which nvcc would hand to a shell. "
            "Rename the file or its folder."
        )
    return None
