"""Values that nvcc must not be given, because its sub-commands go through a shell -> the reason, for a message.

nvcc builds one line of text for each of its steps and hands it to `sh -c`. Tried with 13.0 and 13.5 on Linux: macros
and source names stand between double quotes there, so `$` and the backquote act; a backslash at the end of a value (a
run of two in a macro, where nvcc takes one away) undoes the closing quote, and what follows is a command. Windows
was not tried; there the letters that cmd.exe acts on are refused too.
"""

from __future__ import annotations

import re
import sys

from kernel_lsp.project.words import Platform

HOST_PLATFORM: Platform = "windows" if sys.platform == "win32" else "posix"

_ACTIVE = re.compile(r"[$`\x00-\x1f\x7f]")
_ACTIVE_WINDOWS = re.compile(r"[$`\x00-\x1f\x7f%&|^<>]")
_MACRO_BACKSLASHES = re.compile(r"\\\\|\\$")
_TRAILING_BACKSLASH = re.compile(r"\\$")
_PATH_LETTERS = re.compile(r"[\"\\]")
_PATH_LETTERS_WINDOWS = re.compile(r"\"|\\$")


def macro_hazard(value: str, platform: Platform = HOST_PLATFORM) -> str | None:
    """For the value of -D or -U. None: nothing speaks against it."""
    return _found(_ACTIVE_WINDOWS if platform == "windows" else _ACTIVE, value) or _found(_MACRO_BACKSLASHES, value)


def path_hazard(value: str, platform: Platform = HOST_PLATFORM) -> str | None:
    """For a search folder, a header, the source itself, and the folder that nvcc runs in."""
    if platform == "windows":
        return _found(_ACTIVE_WINDOWS, value) or _found(_PATH_LETTERS_WINDOWS, value)
    return _found(_ACTIVE, value) or _found(_PATH_LETTERS, value)


def shell_hazard(word: str) -> str | None:
    """For any word of nvcc's command line on this machine, the last guard before it is run."""
    if HOST_PLATFORM == "windows":
        return _found(_ACTIVE_WINDOWS, word) or _found(_TRAILING_BACKSLASH, word)
    return _found(_ACTIVE, word) or _found(_MACRO_BACKSLASHES, word)


def _found(pattern: re.Pattern[str], value: str) -> str | None:
    match = pattern.search(value)
    if match is None:
        return None
    letter = match.group()
    shown = letter if letter.isprintable() else f"the control character {ord(letter)}"
    return f"nvcc hands it to a shell, which acts on {shown}"
