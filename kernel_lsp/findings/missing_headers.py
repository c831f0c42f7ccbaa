"""A header that was not found -> what brings it, by `libraries.yaml`, as one sentence or two for people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

import yaml

_NOT_FOUND = re.compile(r"^(\S+): No such file or directory$|cannot open source file \"([^\"]+)\"")
_FOLDER = "Name its folder in the build's flags (-I; `flags` in kernel-lsp.yaml)"


@dataclass(frozen=True, slots=True)
class Library:
    """`package` is of PyPI, "" where there is none; `gone` says what stands in its place."""

    name: str
    headers: tuple[str, ...]
    package: str
    in_toolkit: bool
    gone: str


def header_advice(message: str, *, compiler_from_pypi: bool) -> str:
    """What to do about a compiler's message that a header is missing; "" for any other message."""
    found = _NOT_FOUND.search(message)
    if found is None:
        return ""
    name = found[1] or found[2]
    library = next((each for each in libraries() if any(fnmatchcase(name, part) for part in each.headers)), None)
    if library is None:
        return f"{_FOLDER}. A header that the build itself writes is there after one build."
    if library.gone:
        return library.gone
    if library.package and compiler_from_pypi:
        return f"{library.name} is a package of its own: pip install {library.package}, where kernel-lsp is installed."
    if not library.package:
        return f"It belongs to {library.name}. {_FOLDER}."
    if library.in_toolkit:
        return f"It belongs to {library.name}, a part of the CUDA toolkit that is not installed beside this nvcc."
    return f"It belongs to {library.name}, which is not in the CUDA toolkit. {_FOLDER}."


@cache
def libraries() -> tuple[Library, ...]:
    """All of `libraries.yaml`."""
    text = resources.files(__package__).joinpath("libraries.yaml").read_text(encoding="utf-8")
    return tuple(
        Library(
            entry["name"],
            tuple(entry["headers"]),
            entry.get("package", ""),
            entry.get("toolkit", True),
            entry.get("gone", ""),
        )
        for entry in yaml.safe_load(text)
    )
