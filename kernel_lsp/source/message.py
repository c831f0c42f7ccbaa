"""What a tool of the compiler chain said about a place in a source file: one value per message (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class MessageNote:
    """A further place of a compiler message (template back trace); `line` is 1-based."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class CompilerMessage:
    """One error or warning of nvcc's chain. `file` is absolute; `line` 1-based, 0 where the tool gave none."""

    tool: str  # "nvcc" | "cudafe" | "cicc" | "ptxas" | "nvlink" | "gcc"
    severity: Literal["error", "warning", "information"]
    file: str
    line: int
    column: int | None  # 1-based code point, where it is trustworthy
    code: str | None  # "177-D", "C7510"
    text: str
    kernel: str | None = None  # mangled, where the message names one
    notes: tuple[MessageNote, ...] = ()
