"""Reads `stall_reasons.yaml`: what each sampled warp state means and what is tried first, and who is waited for.

The same words serve findings, hovers, hints and the report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import yaml

Healthy = Literal["always", "at_roof", "never"]
Cost = Literal["bank_conflicts", "uncoalesced", "local_memory"]


@dataclass(frozen=True, slots=True)
class StallAction:
    """What to do; `needs`: something that is there to be removed, None where it always applies."""

    do: str
    needs: Cost | None


@dataclass(frozen=True, slots=True)
class StallReason:
    """A reason by ncu's name ("long_scoreboard"), as people say it ("long scoreboard"), and its actions in order."""

    name: str
    words: str
    means: str
    healthy: Healthy
    actions: tuple[StallAction, ...]

    def first_actions(self, absent: Collection[Cost] = ()) -> tuple[str, ...]:
        """The actions in order, without those against what is `absent` from the launch."""
        return tuple(action.do for action in self.actions if action.needs is None or action.needs not in absent)


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
            name: StallReason(
                name, each["words"], each["means"], each["healthy"], tuple(_action(said) for said in each["actions"])
            )
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


def _action(said: str | Mapping[str, Any]) -> StallAction:
    return StallAction(said, None) if isinstance(said, str) else StallAction(said["do"], said["needs"])


@cache
def _table() -> Mapping[str, Any]:
    text = Path(__file__).with_name("stall_reasons.yaml").read_text(encoding="utf-8")
    return MappingProxyType(yaml.safe_load(text))
