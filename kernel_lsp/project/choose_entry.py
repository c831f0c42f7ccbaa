"""Several recorded commands for one file -> the one that is analysed: what ships before what is debugged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.project.command import CommandNote
from kernel_lsp.project.entry_flags import EntryFlags


@dataclass(frozen=True, slots=True)
class Candidate:
    """One entry of one database that builds the file."""

    database: Path
    flags: EntryFlags


@dataclass(frozen=True, slots=True)
class ChosenEntry:
    """`detail` is "Release (entry 2 of 3)", "" where there was nothing to choose."""

    candidate: Candidate
    detail: str
    notes: tuple[CommandNote, ...]


def choose_entry(
    candidates: Sequence[Candidate], wanted: int | str | None = None, link_target: str | None = None
) -> ChosenEntry:
    """The wanted one (a number as shown, or a label), else the first optimised, else the least debugged one.

    `link_target`: wanted for a device link into this target; of equals one that can be linked, of this target, goes
    first.
    """

    def order(number: int) -> tuple[int, bool, bool, int]:
        flags = candidates[number].flags
        if link_target is None:
            return flags.rank, False, False, number
        return flags.rank, not flags.device.relocatable, flags.target != link_target, number

    n_candidates = len(candidates)
    labels = [_label(candidate, candidates) for candidate in candidates]
    notes: list[CommandNote] = []
    index = min(range(n_candidates), key=order)
    if wanted is not None and n_candidates > 1:
        found = _wanted(wanted, labels)
        if found is None:
            known = ", ".join(f"{number} ({label})" if label else f"{number}" for number, label in enumerate(labels, 1))
            notes.append(
                CommandNote("warning", f"database_entry {wanted}: no such entry; there are {known}", "warning")
            )
        else:
            index = found
    detail = ""
    if n_candidates > 1:
        number = f"entry {index + 1} of {n_candidates}"
        detail = f"{labels[index]} ({number})" if labels[index] else number
        notes.append(CommandNote("chosen", f"{detail}; `database_entry` in kernel-lsp.yaml picks another one"))
    return ChosenEntry(candidates[index], detail, tuple(notes))


def _wanted(wanted: int | str, labels: Sequence[str]) -> int | None:
    if isinstance(wanted, int):
        return wanted - 1 if 0 < wanted <= len(labels) else None
    plain = [label.removeprefix("target ").lower() for label in labels]
    name = wanted.removeprefix("target ").lower()
    return plain.index(name) if name in plain else None


def _label(candidate: Candidate, among: Sequence[Candidate]) -> str:
    """The entry's own label; where databases differ, the folder of the database tells more."""
    if len({other.database for other in among}) > 1 and not candidate.flags.label.istitle():
        return candidate.database.parent.name
    return candidate.flags.label
