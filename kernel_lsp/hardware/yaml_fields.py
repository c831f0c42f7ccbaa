"""YAML text becomes a checked view of its fields: each read says what it expects, each error where it is.

An error reads `hw_profiles/x.yaml: peaks.fp32.dense: expected a number, got 'abc'`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


class HardwareDataError(ValueError):
    """A file of `hw_profiles/` does not say what it must; the message names file, field and what was expected."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping of a YAML file, with the file's name and the path to it for messages."""

    file: str
    path: str
    values: Mapping[str, Any]

    def number(self, key: str) -> float:
        """A number, as it was written (int stays int)."""
        value = self._required(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or value < 0:
            raise self.error(key, f"expected a number, got {value!r}")
        return value

    def integer(self, key: str) -> int:
        """A whole number, 0 or more."""
        value = self._required(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(key, f"expected a whole number, got {value!r}")
        return value

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value = self._required(key)
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"expected a text, got {value!r}")
        return value.strip()

    def flag(self, key: str) -> bool:
        """true or false."""
        value = self._required(key)
        if not isinstance(value, bool):
            raise self.error(key, f"expected true or false, got {value!r}")
        return value

    def one_of(self, key: str, words: tuple[str, ...]) -> str:
        """One of the words."""
        value = self._required(key)
        if value not in words:
            raise self.error(key, f"expected one of {', '.join(words)}, got {value!r}")
        return str(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; a missing key is an empty list."""
        value = self.values.get(key, ())
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            raise self.error(key, f"expected a list of texts, got {value!r}")
        return tuple(item.strip() for item in value)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers in ascending order."""
        value = self._required(key)
        if not isinstance(value, list) or not all(type(item) is int for item in value) or sorted(value) != value:
            raise self.error(key, f"expected whole numbers in ascending order, got {value!r}")
        return tuple(value)

    def child(self, key: str) -> Fields:
        """The mapping under a key."""
        value = self._required(key)
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self.error(key, f"expected named fields, got {value!r}")
        return Fields(self.file, self._at(key), value)

    def children(self) -> Iterator[tuple[str, Fields]]:
        """Every key with the mapping under it."""
        for key in self.values:
            yield key, self.child(key)

    def has(self, key: str) -> bool:
        """Whether the key is there with a value (null is none)."""
        return self.values.get(key) is not None

    def only(self, *known: str) -> None:
        """Refuse keys that nobody reads: a misspelt one would be lost in silence."""
        for key in self.values:
            if key not in known:
                raise self.error(key, f"unknown field; known are {', '.join(sorted(known))}")

    def error(self, key: str, problem: str) -> HardwareDataError:
        """The error for a field of this mapping."""
        return HardwareDataError(f"{self.file}: {self._at(key)}: {problem}")

    def _required(self, key: str) -> Any:
        if key not in self.values:
            raise self.error(key, "missing")
        return self.values[key]

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def parse_fields(file: str, text: str) -> Fields:
    """The top-level mapping of a YAML text. Safe-loaded: no tags, no code.

    Raises:
        HardwareDataError: no YAML, or not a mapping.
    """
    import yaml  # not at the top: importing the catalogue must cost nothing until it is asked

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe loaders
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        raise HardwareDataError(f"{file}: {place}not YAML: {getattr(error, 'problem', error)}") from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise HardwareDataError(f"{file}: expected named fields, got {type(data).__name__}")
    return Fields(file, "", data)
