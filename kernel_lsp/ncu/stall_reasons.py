"""Reads `stall_reasons.yaml`: what each sampled warp state means and what is tried first, and who is waited for.

The same words serve findings, hovers, hints and the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import yaml

Healthy = Literal["always", "at_roof", "never"]


@dataclass(frozen=True, slots=True)
class StallReason:
    """A reason by ncu's name ("long_scoreboard"), as people say it ("long scoreboard"), and its actions in order."""

    name: str
    words: str
    means: str
    healthy: Healthy
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProducerKind:
    """What is waited for: `words` fit "waiting for the ...". `action` None: the reason's own first action."""

    words: str
    action: str | None


@cache
def stall_reasons() -> Mapping[str, StallReason]:
    """All reasons by ncu's name."""
    return MappingProxyType(
        {
            name: StallReason(name, each["words"], each["means"], each["healthy"], tuple(each["actions"]))
            for name, each in _table()["reasons"].items()
        }
    )


def stall_reason(name: str) -> StallReason:
    """One reason; one that the table does not know is said by its name."""
    found = stall_reasons().get(name)
    return found or StallReason(name, name.replace("_", " "), "a state that is not known here", "never", ())


def producer_kind(instruction: str) -> ProducerKind:
    """What an instruction is, from its text (`@P0 LDG.E R4, [R2.64]`); others are said by their opcode."""
    words = instruction.split()
    opcode = next((word for word in words if not word.startswith("@")), "instruction")
    family = opcode.partition(".")[0].rstrip(";")
    found = _table()["producers"].get(family)
    return ProducerKind(found["words"], found.get("action")) if found else ProducerKind(family, None)


@cache
def _table() -> Mapping[str, Any]:
    text = Path(__file__).with_name("stall_reasons.yaml").read_text(encoding="utf-8")
    return MappingProxyType(yaml.safe_load(text))
