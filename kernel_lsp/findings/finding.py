"""One finding: a stable code, a place, a message with its evidence, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "information", "hint"]
Kind = Literal["measured", "exact", "estimated"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A number behind a finding; `source` is "cubin", "model", "ncu:FILE", "nvcc" ..."""

    name: str
    value: float | int | str
    unit: str
    kind: Kind
    source: str


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that belongs to a finding (1-based line)."""

    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Places are 1-based lines and code-point columns; `end_column` is exclusive. Column None: the whole line."""

    code: str  # "KL101"
    slug: str  # "occupancy-limiter"
    severity: Severity
    file: str
    line: int
    end_line: int
    column: int | None
    end_column: int | None
    kernel: str | None
    message: str
    advice: str
    evidence: tuple[Evidence, ...] = ()
    related: tuple[Related, ...] = ()
    instances: tuple[str, ...] = ()  # the kernels of a template that it stands for, where they are several
