"""Splits what a build wrote down (one shell line, a Windows command line, a response file) into words.

Nothing is expanded and no shell is asked: variables and substitutions stay as they were written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Platform = Literal["posix", "windows"]

_PLAIN = re.compile(r"""[^\s\\'"<>|&;()]+""")
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
_BLANKS = " \t\r\n\v\f"  # a no-break space is a letter like others
_OPERATORS = ("&&", "||", ";", "|", "&", "\n", "(", ")")
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>|>\||>&|<&|<<<|<<|<>|>|<)")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program with its words, and the redirections that a shell would have taken away."""

    words: tuple[str, ...]
    redirections: tuple[str, ...]


def platform_of(*texts: str) -> Platform:
    """Windows where one of the texts (a directory, a file, a program) starts with a drive or holds `\\`."""
    return "windows" if any(_DRIVE.match(text) or text.startswith("\\\\") for text in texts) else "posix"


def simple_commands(line: str, platform: Platform) -> tuple[SimpleCommand, ...]:
    """The simple commands of one command line, split at `&&`, `||`, `;`, `|`, `&` and ends of line."""
    tokens = _windows_tokens(line) if platform == "windows" else _posix_tokens(line)
    commands: list[SimpleCommand] = []
    words: list[str] = []
    redirections: list[str] = []
    pending = ""
    for text, is_operator in tokens:
        if pending and not (is_operator and text in _OPERATORS):
            redirections.append(f"{pending}{text}" if pending.endswith("&") else f"{pending} {text}")
            pending = ""
        elif is_operator and text in _OPERATORS:
            if words:
                commands.append(SimpleCommand(tuple(words), tuple(redirections)))
            words, redirections, pending = [], [], ""
        elif is_operator:
            pending = text
        else:
            words.append(text)
    if words:
        commands.append(SimpleCommand(tuple(words), tuple(redirections)))
    return tuple(commands)


def response_words(text: str, platform: Platform) -> tuple[str, ...]:
    """Words of a file for nvcc's `--options-file`, and of NVCC_PREPEND_FLAGS / NVCC_APPEND_FLAGS.

    nvcc knows double quotes and the backslash only: a single quote is a letter like others (tried with 13.0
    and 13.5). For Windows the backslash is a letter too, unless a double quote follows.
    """
    words: list[str] = []
    word: str | None = None
    quoted = False
    position = 0
    while position < len(text):
        letter = text[position]
        following = text[position + 1] if position + 1 < len(text) else ""
        if letter == "\\" and following and (platform == "posix" or following == '"'):
            word = (word or "") + following
            position += 1
        elif letter == '"':
            quoted = not quoted
            word = word or ""
        elif letter in _BLANKS and not quoted:
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + letter
        position += 1
    if word is not None:
        words.append(word)
    return tuple(words)


def gnu_response_words(text: str) -> tuple[str, ...]:
    """Words of an `@file` as clang and gcc read it: both quotes and the backslash, no operators."""
    return tuple(text_ for text_, _ in _posix_tokens(text, operators=False))


def _posix_tokens(line: str, *, operators: bool = True) -> list[tuple[str, bool]]:
    tokens: list[tuple[str, bool]] = []
    word: str | None = None
    position = 0

    def flush() -> None:
        nonlocal word
        if word is not None:
            tokens.append((word, False))
        word = None

    while position < len(line):
        plain = _PLAIN.match(line, position)
        if plain:
            word = (word or "") + plain.group()
            position = plain.end()
            continue
        letter = line[position]
        if letter == "\\":
            if position + 1 < len(line) and line[position + 1] != "\n":
                word = (word or "") + line[position + 1]
            position += 2
        elif letter == "'":
            end = line.find("'", position + 1)
            end = len(line) if end < 0 else end
            word = (word or "") + line[position + 1 : end]
            position = end + 1
        elif letter == '"':
            word = word or ""
            position += 1
            while position < len(line) and line[position] != '"':
                if line[position] == "\\" and position + 1 < len(line) and line[position + 1] in '\\"$`\n':
                    position += 1
                    word += "" if line[position] == "\n" else line[position]
                else:
                    word += line[position]
                position += 1
            position += 1
        elif operators and (found := _operator_at(line, position, word)):
            text, is_redirection = found
            if is_redirection and text[0].isdigit():
                word = None  # the number in front of ">" names a file descriptor
            flush()
            tokens.append((text, True))
            position += len(text.lstrip("0123456789"))
        elif letter in _BLANKS:
            flush()
            position += 1
        else:
            word = (word or "") + letter
            position += 1
    flush()
    return tokens


def _operator_at(line: str, position: int, word: str | None) -> tuple[str, bool] | None:
    """(operator, is it a redirection) at this place; a redirection takes the digits just before it along."""
    redirection = _REDIRECTION.match(line, position)
    if redirection and redirection.group()[0] in "<>&" and redirection.group() != "&":
        digits = word if word is not None and word.isdigit() else ""
        return digits + redirection.group(), True
    for operator in _OPERATORS:
        if line.startswith(operator, position):
            return operator, False
    return None


def _windows_tokens(line: str) -> list[tuple[str, bool]]:
    """Words by the rules of CommandLineToArgvW; unquoted words that are operators of cmd.exe are marked."""
    tokens: list[tuple[str, bool]] = []
    word: str | None = None
    quoted = was_quoted = False

    def flush() -> None:
        nonlocal word, was_quoted
        if word is not None:
            redirection = None if was_quoted else _REDIRECTION.match(word)
            if not was_quoted and word in _OPERATORS:
                tokens.append((word, True))
            elif redirection and redirection.group() not in {"", "&"}:
                tokens.append((redirection.group(), True))
                if len(word) > redirection.end():
                    tokens.append((word[redirection.end() :], False))
            else:
                tokens.append((word, False))
        word, was_quoted = None, False

    position = 0
    while position < len(line):
        letter = line[position]
        if letter == "\\":
            n_backslashes = len(line) - position - len(line[position:].lstrip("\\"))
            position += n_backslashes
            if line[position : position + 1] == '"':
                word = (word or "") + "\\" * (n_backslashes // 2)
                if n_backslashes % 2:
                    word += '"'
                    position += 1
            else:
                word = (word or "") + "\\" * n_backslashes
        elif letter == '"':
            word = word or ""
            was_quoted = True
            if quoted and line[position + 1 : position + 2] == '"':
                word += '"'
                position += 1
            else:
                quoted = not quoted
            position += 1
        elif letter in _BLANKS and not quoted:
            flush()
            position += 1
        else:
            word = (word or "") + letter
            position += 1
    flush()
    return tokens
