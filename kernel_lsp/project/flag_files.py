"""compile_flags.txt and .clangd (CompileFlags.Add) -> a list of flags, for files that no build records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from kernel_lsp.project.command import CommandNote
from kernel_lsp.project.compile_db import folders_upwards
from kernel_lsp.project.yaml_limits import BoundedLoader

_MAX_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class RecordedFlags:
    """Flags in clang's or nvcc's spelling, relative to the folder of `path`."""

    words: tuple[str, ...]
    path: Path


def flags_from_files(document: Path, roots: tuple[Path, ...], notes: list[CommandNote]) -> RecordedFlags | None:
    """The nearest of both files upwards that holds flags for this document."""
    for folder in folders_upwards(document, roots):
        for name, read in (("compile_flags.txt", _flags_txt), (".clangd", _clangd)):
            path = folder / name
            try:
                if not path.is_file():
                    continue
                if path.stat().st_size > _MAX_BYTES:
                    raise ValueError(f"larger than {_MAX_BYTES >> 10} KB")
                words = read(path, document)
            except (OSError, ValueError, yaml.YAMLError, RecursionError, re.error) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                notes.append(CommandNote("warning", f"{path}: not used ({reason})", "warning"))
                continue
            if words:
                return RecordedFlags(words, path)
    return None


def _flags_txt(path: Path, document: Path) -> tuple[str, ...]:
    lines = path.read_text("utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _clangd(path: Path, document: Path) -> tuple[str, ...]:
    text = path.read_text("utf-8")
    words: list[str] = []
    for fragment in yaml.load_all(text, Loader=BoundedLoader):
        if not isinstance(fragment, dict) or not _applies(fragment.get("If"), path, document):
            continue
        compile_flags = fragment.get("CompileFlags")
        added = compile_flags.get("Add") if isinstance(compile_flags, dict) else None
        added = [added] if isinstance(added, str) else added
        if isinstance(added, list):
            words += [word for word in added if isinstance(word, str)]
    return tuple(words)


def _applies(condition: object, path: Path, document: Path) -> bool:
    if not isinstance(condition, dict):
        return condition is None
    relative = document.relative_to(path.parent).as_posix()
    for name, wanted in (("PathMatch", True), ("PathExclude", False)):
        patterns = condition.get(name)
        if patterns is None:
            continue
        patterns = [patterns] if isinstance(patterns, str) else patterns
        if not isinstance(patterns, list):
            return False
        if any(isinstance(one, str) and _simple(one).fullmatch(relative) for one in patterns) != wanted:
            return False
    return True


def _simple(pattern: str) -> re.Pattern[str]:
    """The pattern compiled, where matching it cannot take long: few repetitions, none of a group."""
    if len(pattern) > 200 or re.search(r"\)[*+{?]", pattern) or len(re.findall(r"[*+{]", pattern)) > 3:
        raise ValueError(f"the pattern {pattern[:60]!r} is too involved to be matched here")
    return re.compile(pattern)
