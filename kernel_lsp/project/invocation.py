"""One command of a build -> `Invocation`: which compiler it runs, in which dialect, with which words.

Launchers (ccache, env, cmake -E env, nice ...), VAR=value words, `cd DIR &&` and `sh -c '...'` in front of the
compiler are taken apart; nothing of them is run.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from dataclasses import dataclass
from typing import Literal

from kernel_lsp.project.command import CommandNote
from kernel_lsp.project.words import Platform, SimpleCommand, simple_commands

Dialect = Literal["nvcc", "clang", "nvc++", "hip", "host"]

_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_SHELLS = re.compile(r"^(?:ba|da|z|k)?sh$")
_NVCC = re.compile(r"^(?:[\w.-]*[-_])?nvcc(?:[-_.]?[\w.-]*)?$")
_PLAIN_NVCC = re.compile(r"^nvcc(?:-\d[\d.]*)?$")
_CLANG = re.compile(r"^(?:[\w.-]*-)?(?:clang(?:\+\+)?|clang-cl|icpx|crosstool_wrapper_driver\w*)(?:-[\d.]+)?$")
_NVCPP = re.compile(r"^(?:nvc\+\+|nvc|pgc\+\+)$")
_HIP = re.compile(r"^(?:hipcc(?:\.bin|\.pl)?|amdclang(?:\+\+)?|hipcc_cmake_linker_helper)$")
_HOST = re.compile(
    r"^(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|cl|icc|icpc|icx|dpcpp|mpicc|mpicxx|mpic\+\+|CC|nasm|gfortran)(?:-[\d.]+)?$"
)
_NVCC_WORDS = re.compile(
    r"^(?:-gencode|--generate-code|-arch=(?:sm|compute|all|native)|--gpu-architecture|-dc$|-rdc|--expt-|-Xcompiler|-Xptxas)"
)
_CLANG_CUDA_WORDS = re.compile(r"^(?:--cuda-gpu-arch|--cuda-path|--cuda-device-only|--offload-arch=sm_)")
_HIP_WORDS = re.compile(r"^(?:--offload-arch=(?:gfx|amdgcn)|--cuda-gpu-arch=gfx|--amdgpu-target|--hip-|-fhip)")
# Where the headers of the host compiler are found; nothing in them is run.
ENTRY_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "INCLUDE")
FLAG_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


@dataclass(frozen=True, slots=True)
class Invocation:
    """The compiler's part of a command. `directory` follows a `cd` in front; `program` is as written."""

    program: str
    dialect: Dialect
    words: tuple[str, ...]
    directory: str
    variables: tuple[tuple[str, str], ...]
    notes: tuple[CommandNote, ...]

    @property
    def compiler(self) -> str | None:
        """The program where it is an nvcc with a path of its own; a wrapper is none."""
        windows = "\\" in self.program or re.match(r"^[A-Za-z]:", self.program) is not None
        if not _PLAIN_NVCC.match(_base(self.program)):
            return None
        if windows:
            path = ntpath.normpath(ntpath.join(self.directory, self.program))
            return path if path.lower().endswith(".exe") else path + ".exe"
        if "/" not in self.program:
            return None
        return posixpath.normpath(posixpath.join(self.directory, self.program))


def invocation_of_line(line: str, directory: str, platform: Platform) -> Invocation | None:
    """From a `command`: the simple command that runs a CUDA compiler, else the first that runs any compiler."""
    return _best(simple_commands(line, platform), directory, platform, depth=0)


def invocation_of_words(words: tuple[str, ...], directory: str, platform: Platform) -> Invocation | None:
    """From `arguments`: the words are taken as they are, no shell rule is applied to them."""
    return _best((SimpleCommand(words, ()),), directory, platform, depth=0)


def dialect_of_flags(words: tuple[str, ...]) -> Dialect:
    """Whose spelling a bare list of flags has (compile_flags.txt, kernel-lsp.yaml): nvcc's unless it shows clang's."""
    clang = any(_CLANG_CUDA_WORDS.match(word) or word in {"-xcuda", "cuda"} for word in words)
    return "clang" if clang and not any(_NVCC_WORDS.match(word) for word in words) else "nvcc"


def _best(commands: tuple[SimpleCommand, ...], directory: str, platform: Platform, depth: int) -> Invocation | None:
    found: list[tuple[int, Invocation]] = []
    for index, command in enumerate(commands):
        if command.words[0] in {"cd", "pushd"} and len(command.words) > 1:
            join = ntpath.join if platform == "windows" else posixpath.join
            directory = join(directory, command.words[-1])
            continue
        invocation = _from_simple(command, directory, platform, depth)
        if invocation:
            found.append((index, invocation))
    if not found:
        return None
    index, best = min(found, key=lambda pair: (_order(pair[1].dialect), pair[0]))
    others = tuple(
        CommandNote("dropped", f"{' '.join(command.words)}: another command of the same line, not run")
        for position, command in enumerate(commands)
        if position != index and command.words not in {(":",), ("true",)} and command.words[0] != "cd"
    )
    return Invocation(best.program, best.dialect, best.words, best.directory, best.variables, (*others, *best.notes))


def _order(dialect: Dialect) -> int:
    return ("nvcc", "clang", "nvc++", "hip", "host").index(dialect)


def _from_simple(command: SimpleCommand, directory: str, platform: Platform, depth: int) -> Invocation | None:
    words = command.words
    notes: list[CommandNote] = []
    if command.redirections:
        notes.append(CommandNote("dropped", f"{' '.join(command.redirections)}: redirected, no shell is started"))
    variables: list[tuple[str, str]] = []
    for position, word in enumerate(words):
        if _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            variables.append((name, value))
            continue
        base = _base(word)
        line = _shell_line(base, words[position + 1 :])
        if line is not None and depth < 3:
            inner = _best(simple_commands(line, platform), directory, platform, depth + 1)
            if inner is None:
                return None
            return Invocation(
                inner.program,
                inner.dialect,
                inner.words,
                inner.directory,
                (*variables, *inner.variables),
                (*notes, *inner.notes),
            )
        dialect = _dialect(base, words[position + 1 :])
        if dialect is None:
            continue
        launcher = [launched for launched in words[:position] if not _ASSIGNMENT.match(launched)]
        if launcher:
            notes.append(CommandNote("dropped", f"{' '.join(launcher)}: a launcher, not run for the analysis"))
        kept, refused = _sort_variables(variables)
        return Invocation(word, dialect, words[position + 1 :], directory, kept, (*notes, *refused))
    return _by_words(words, directory, tuple(notes))


def _by_words(words: tuple[str, ...], directory: str, notes: tuple[CommandNote, ...]) -> Invocation | None:
    """A program of unknown name (a project's own wrapper) whose options tell what it runs in the end."""
    start = next((index for index, word in enumerate(words) if not _ASSIGNMENT.match(word)), None)
    if start is None:
        return None
    rest = words[start + 1 :]
    if any(_HIP_WORDS.match(word) for word in rest):
        dialect: Dialect = "hip"
    elif any(_NVCC_WORDS.match(word) for word in rest):
        dialect = "nvcc"
    elif any(_CLANG_CUDA_WORDS.match(word) for word in rest):
        dialect = "clang"
    else:
        return None
    return Invocation(words[start], dialect, rest, directory, (), notes)


def _dialect(base: str, rest: tuple[str, ...]) -> Dialect | None:
    languages = {rest[index + 1] for index, word in enumerate(rest[:-1]) if word == "-x"}
    languages |= {word[2:] for word in rest if word in {"-xcuda", "-xhip"}}
    hip = bool("hip" in languages or any(_HIP_WORDS.match(word) for word in rest))
    if _NVCC.match(base):
        return "nvcc"
    if _HIP.match(base):
        return "hip" if hip or base.startswith("hip") else "host"
    if _CLANG.match(base):
        if hip and not any(_CLANG_CUDA_WORDS.match(word) for word in rest):
            return "hip"
        cuda = "cuda" in languages or any(_CLANG_CUDA_WORDS.match(word) for word in rest)
        return "clang" if cuda or any(word.endswith((".cu", ".CU")) for word in rest) else "host"
    if _NVCPP.match(base):
        cuda = any(word.startswith(("-cuda", "-gpu=")) or word.endswith(".cu") for word in rest)
        return "nvc++" if cuda else "host"
    return "host" if _HOST.match(base) else None


def _shell_line(base: str, rest: tuple[str, ...]) -> str | None:
    if _SHELLS.match(base) and len(rest) > 1 and re.fullmatch(r"-\w*c", rest[0]):
        return rest[1]
    if base.lower() == "cmd" and len(rest) > 1 and rest[0].lower() == "/c":
        return " ".join(rest[1:])
    return None


def _sort_variables(
    variables: list[tuple[str, str]],
) -> tuple[tuple[tuple[str, str], ...], list[CommandNote]]:
    kept = tuple(pair for pair in variables if pair[0] in (*ENTRY_VARIABLES, *FLAG_VARIABLES))
    notes = [
        CommandNote("refused", f"{name}={value}: refused, the entry may not change the environment of nvcc")
        for name, value in variables
        if name not in (*ENTRY_VARIABLES, *FLAG_VARIABLES)
    ]
    return kept, notes


def _base(word: str) -> str:
    name = re.split(r"[\\/]", word)[-1]
    return re.sub(r"\.(?:exe|cmd|bat)$", "", name, flags=re.IGNORECASE)
