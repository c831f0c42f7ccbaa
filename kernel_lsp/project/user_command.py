"""The user's own command templates (profile, benchmark) become argument lists: placeholders, ssh quoting, program.

Words stay words: nothing is joined for a shell of ours. Only ssh joins what it is given with spaces and has the shell
on the other machine read it; what is put into a template that starts ssh is quoted for that shell.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from kernel_lsp.project.toolchain import machine_places

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NCU_NAMES = ("ncu", "nv-nsight-cu-cli")


class UserCommandError(Exception):
    """A template that cannot be run; the message names the setting and says what to do."""


def goes_through_ssh(template: Sequence[str]) -> bool:
    """Whether a remote shell will read the words again."""
    return any(PurePath(word).name.removesuffix(".exe") == "ssh" for word in template)


def extended(template: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """The template with words after it."""
    quote = shlex.quote if goes_through_ssh(template) else str
    return (*template, *(quote(word) for word in words))


def filled(template: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """The template with `{name}` replaced by a value, anywhere in a word; other braces stay as they are."""
    quote = shlex.quote if goes_through_ssh(template) else str

    def value(match: re.Match[str]) -> str:
        return quote(values[match[1]]) if match[1] in values else match[0]

    return tuple(_PLACEHOLDER.sub(value, word) for word in template)


def placeholders(template: Sequence[str]) -> frozenset[str]:
    """The names in braces that a template has."""
    return frozenset(name for word in template for name in _PLACEHOLDER.findall(word))


def runs_here(template: Sequence[str]) -> bool:
    """Whether a profile template starts ncu itself, on this machine."""
    return bool(template) and PurePath(template[0]).name.removesuffix(".exe") in _NCU_NAMES


def with_program(words: Sequence[str], setting: str, folder: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The words with the path of their program: beside `folder` where it has a slash, else from PATH.

    ncu is also looked for where CUDA's installers put it.

    Raises:
        UserCommandError: there is no such program.
    """
    name = words[0]
    if {"/", os.sep} & set(name):
        path = folder / Path(name).expanduser()
        if path.is_file() and os.access(path, os.X_OK):
            return (str(path), *words[1:])
        what = "is not a program that can be run" if path.exists() else "does not exist"
        raise UserCommandError(f"kernelLsp.{setting}: {path} {what}. Build it, or correct the setting.")
    found = shutil.which(name, path=_absolute_path(environment)) or _ncu_elsewhere(name, environment)
    if found is not None:
        return (found, *words[1:])
    if PurePath(name).name.removesuffix(".exe") in _NCU_NAMES:
        raise UserCommandError(
            f"There is no {name} on PATH or where CUDA's installers put it. It comes with the CUDA toolkit (bin/ncu) "
            "and with Nsight Compute (https://developer.nvidia.com/nsight-compute); conda: "
            '"conda install -c nvidia nsight-compute". No PyPI package has it. For a GPU elsewhere, name a command '
            f'that reaches it in kernelLsp.{setting}, for example ["ssh", "gpuhost", "ncu"].'
        )
    raise UserCommandError(f"kernelLsp.{setting} starts with {name}, which is no program on PATH. Name its whole path.")


def _absolute_path(environment: Mapping[str, str]) -> str:
    """PATH without relative entries: those would be looked for in the folder that the server happens to be in."""
    entries = environment.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if entry and Path(entry).is_absolute())


def _ncu_elsewhere(name: str, environment: Mapping[str, str]) -> str | None:
    if name.removesuffix(".exe") not in _NCU_NAMES:
        return None
    folders = [Path(environment[key]) / "bin" for key in ("CUDA_HOME", "CUDA_PATH") if environment.get(key)]
    folders += [place.folder for place in machine_places(environment)]
    if sys.platform == "win32":
        root = Path(environment.get("ProgramFiles", r"C:\Program Files")) / "NVIDIA Corporation"
        folders += sorted(root.glob("Nsight Compute *"), reverse=True)
    else:
        folders += sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    return shutil.which(name, path=os.pathsep.join(str(folder) for folder in folders if folder.is_absolute()))
