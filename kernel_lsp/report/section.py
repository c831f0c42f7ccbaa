"""The blocks that a report is made of, independent of Markdown or JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text; `code spans` are allowed, other Markdown signs are escaped on output."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; `ordered` where the order is a ranking."""

    items: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A short table; every row has as many cells as the header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command that makes an unknown thing known."""

    line: str


Block = Paragraph | Bullets | Table | Command


@dataclass(frozen=True, slots=True)
class Section:
    """A section; `known` is False where it only says what would make its content known."""

    key: str
    title: str
    known: bool
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """How the analysed code was made; `argv` (without an output) is empty for a given cubin."""

    argv: tuple[str, ...]
    origin: str  # "the flags of compile_commands.json, entry 2 of 3"; "" where nothing was built
    freshness: str | None  # "from the save of 14:02", None where it is the text as it stands
