"""nvcc's options as data: `nvcc_options.csv` (from `nvcc --help` of 13.0 and 13.5), looked up word by word.

The CSV's `class` says what the analysis does with an option: keep, drop, refuse, or a treatment of its own
(arch, debug, rdc, lto, language, host, ptxas, cudafe, splice, forward). `ptxas_options.csv` and `host_flags.csv` do the
same for what is passed on to ptxas and to the host compiler's preprocessor.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

ValueKind = Literal["none", "one", "list", "bool"]


@dataclass(frozen=True, slots=True)
class NvccOption:
    """One row of the table; `glued`: the value may follow at once, as in -DX ("digits": only a number, as in -O3)."""

    long: str
    short: str
    value: ValueKind
    glued: Literal["", "yes", "digits"]
    treatment: str
    why: str


@dataclass(frozen=True, slots=True)
class MatchedOption:
    """An option as it stands in a command: its words as written, and its value ("" where it takes none)."""

    option: NvccOption
    words: tuple[str, ...]
    value: str


@dataclass(frozen=True, slots=True)
class PatternRow:
    """One row of `ptxas_options.csv` or `host_flags.csv`: words that match in full get this treatment."""

    pattern: re.Pattern[str]
    treatment: str
    why: str


@cache
def nvcc_options() -> tuple[NvccOption, ...]:
    """All rows of `nvcc_options.csv`."""
    return tuple(
        NvccOption(row["long"], row["short"], _kind(row["value"]), _glued_kind(row["glued"]), row["class"], row["why"])
        for row in _rows("nvcc_options.csv")
    )


@cache
def pattern_rows(name: Literal["ptxas_options.csv", "host_flags.csv", "clang_flags.csv"]) -> tuple[PatternRow, ...]:
    """The rows in the file's order: the first that matches a word decides."""
    return tuple(PatternRow(re.compile(row["pattern"]), row["class"], row["why"]) for row in _rows(name))


def match_option(words: tuple[str, ...], position: int) -> MatchedOption | None:
    """The option at `position`, with its value's word where that stands apart; None: nvcc does not know it."""
    word = words[position]
    head, equals, tail = word.partition("=")
    option = _by_name().get(head)
    if option is None:
        option = _glued().get(word[:2]) if len(word) > 2 and not word.startswith("--") else None
        if option is None or (option.glued == "digits" and not word[2:].isdecimal()):
            return None
        return MatchedOption(option, (word,), word[2:])
    if option.value == "none":
        return MatchedOption(option, (word,), "") if not equals else None
    if equals:
        return MatchedOption(option, (word,), tail)
    if position + 1 < len(words):
        return MatchedOption(option, words[position : position + 2], words[position + 1])
    return MatchedOption(option, (word,), "")


def split_list(value: str) -> tuple[str, ...]:
    """Parts of a list value: nvcc cuts at commas, and `\\,` stands for a comma."""
    return tuple(
        re.sub(r"\\(.)", r"\1", part) if "\\," in part else part for part in re.split(r"(?<!\\),", value) if part
    )


@cache
def _by_name() -> dict[str, NvccOption]:
    named = {}
    for option in nvcc_options():
        named[option.long] = option
        if option.short:
            named[option.short] = option
    return named


@cache
def _glued() -> dict[str, NvccOption]:
    return {option.short: option for option in nvcc_options() if option.glued}


def _kind(text: str) -> ValueKind:
    for kind in ("none", "one", "list", "bool"):
        if text == kind:
            return kind
    raise ValueError(f"nvcc_options.csv: value is {text!r}, not none, one, list or bool")


def _glued_kind(text: str) -> Literal["", "yes", "digits"]:
    for kind in ("", "yes", "digits"):
        if text == kind:
            return kind
    raise ValueError(f"nvcc_options.csv: glued is {text!r}, not yes or digits")


def _rows(name: str) -> list[dict[str, str]]:
    text = files("kernel_lsp.project").joinpath(name).read_text("utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
