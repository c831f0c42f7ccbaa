"""The words of an nvcc command -> `DeviceFlags`: what decides the device code, and a note for everything else.

An allow-list, because the words come from a file of the workspace: an option that the tables do not name never
reaches nvcc, and a value that would reach a shell through nvcc is refused (`shell_hazard`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kernel_lsp.project.arch import Target, arch_number
from kernel_lsp.project.command import CommandNote
from kernel_lsp.project.nvcc_options import MatchedOption, match_option, pattern_rows, split_list
from kernel_lsp.project.shell_hazard import macro_hazard, path_hazard
from kernel_lsp.project.words import Platform

# Reads a response file: its words, or the note that says why it was not read.
ReadResponse = Callable[[str], "tuple[str, ...] | CommandNote"]

_PLAIN_VALUE = re.compile(r"[\w.,+:=/@?-]*")
_HOST_WORD = re.compile(r"[\w+=./:@%^-]*")
_WINDOWS_HOST_WORD = re.compile(r"[\w+=.,/:\\@~-]*")
_MACROS = ("--define-macro", "--undefine-macro")
_PATHS = ("--include-path", "--system-include", "--pre-include")
_MAX_WORDS = 20_000
_MAX_RESPONSE_FILES = 64
_CODE = re.compile(r"\b(?:sm|compute|lto)_\d+[af]?\b|\ball-major\b|\ball\b|\bnative\b")
_CUDAFE = re.compile(r"--?(?:diag_(?:suppress|warning|error|remark|default)=[\w,]+|display_error_number|no_\w+)")

DebugLevel = Literal["none", "host", "device"]


@dataclass(frozen=True, slots=True)
class DeviceFlags:
    """`flags` in the build's order, without architecture, input and outputs."""

    flags: tuple[str, ...]
    targets: tuple[Target, ...]
    sources: tuple[str, ...]
    host_compiler: str | None  # of -ccbin: never used from here, named for messages
    debug: DebugLevel
    optimised: bool  # -O1 or more, or NDEBUG
    relocatable: bool
    notes: tuple[CommandNote, ...]


def read_nvcc_words(
    words: tuple[str, ...],
    *,
    platform: Platform = "posix",
    read_response: ReadResponse | None = None,
    from_user: bool = False,
) -> DeviceFlags:
    """Sorts the words behind the compiler's name; `read_response` splices `--options-file` (None: refused).

    `from_user`: the words were typed by the user, not read in a workspace, so -ccbin is kept.
    """
    reader = _Reader(platform, read_response, from_user)
    reader.read(words)
    return reader.result()


class _Reader:
    """One pass over the words; every option goes to the method of its treatment."""

    def __init__(self, platform: Platform, read_response: ReadResponse | None, from_user: bool) -> None:
        self._platform = platform
        self._from_user = from_user
        self._read_response = read_response
        self._n_response_files = 0
        self._flags: list[str] = []
        self._notes: list[CommandNote] = []
        self._sources: list[str] = []
        self._targets: list[Target] = []
        self._architecture: tuple[str, str] | None = None
        self._codes: list[str] = []
        self._host_compiler: str | None = None
        self._debug: DebugLevel = "none"
        self._optimised = False
        self._relocatable = False
        self._forward: str | None = None
        self._forwarded: list[str] = []

    def read(self, words: tuple[str, ...]) -> None:
        queue = list(words[:_MAX_WORDS])
        if len(words) > _MAX_WORDS:
            self._note("warning", f"more than {_MAX_WORDS:,} words; the rest is not read", "warning")
        position = 0
        while position < len(queue):
            word = queue[position]
            if word.startswith("@") and len(word) > 1:
                queue[position : position + 1] = self._spliced(word[1:], word)
                continue
            if not word.startswith("-") or word == "-":
                self._sources.append(word)
                position += 1
                continue
            matched = match_option((word, queue[position + 1]) if position + 1 < len(queue) else (word,), 0)
            if matched is None:
                position += self._unknown(queue, position)
            elif matched.option.treatment == "splice":
                spliced = [part for name in split_list(matched.value) for part in self._spliced(name, word)]
                queue[position : position + len(matched.words)] = spliced
            else:
                self._option(matched)
                position += len(matched.words)

    def result(self) -> DeviceFlags:
        flags = [self._forward, *self._flags] if self._forward and self._forwarded else self._flags
        return DeviceFlags(
            tuple(flags),
            (*self._architecture_targets(), *self._targets),
            tuple(self._sources),
            self._host_compiler,
            self._debug,
            self._optimised,
            self._relocatable,
            tuple(self._notes),
        )

    def _note(self, kind: str, message: str, severity: Literal["warning", "information", "log"] = "log") -> None:
        self._notes.append(CommandNote(kind, message, severity))  # type: ignore[arg-type]

    def _drop(self, words: tuple[str, ...], why: str) -> None:
        self._note("dropped", f"{' '.join(words)}: {why}")

    def _refuse(self, words: tuple[str, ...], why: str, *, quiet: bool = False) -> None:
        self._note("refused", f"{' '.join(words)}: refused, {why}", "log" if quiet else "information")

    def _spliced(self, name: str, word: str) -> list[str]:
        self._n_response_files += 1
        if self._n_response_files > _MAX_RESPONSE_FILES:
            self._refuse((word, name), f"more than {_MAX_RESPONSE_FILES} response files in one command")
            return []
        if self._read_response is None:
            self._refuse((word, name), "response files are not read here")
            return []
        words = self._read_response(name)
        if isinstance(words, CommandNote):
            self._notes.append(words)
            return []
        return list(words[:_MAX_WORDS])

    def _option(self, matched: MatchedOption) -> None:
        option, words, value = matched.option, matched.words, matched.value
        name = option.long
        if option.value != "none" and not value:
            self._drop(words, "its value is missing")
            return
        match option.treatment:
            case "keep":
                self._keep(matched)
            case "drop":
                self._drop(words, option.why)
            case "refuse" if self._from_user and name == "--compiler-bindir":
                self._keep(matched)
            case "refuse":
                if name == "--compiler-bindir":
                    self._host_compiler = value
                self._refuse(words, option.why, quiet=name == "--compiler-bindir")
            case "arch":
                self._arch(name, value, " ".join(words))
            case "debug":
                self._debug_option(name, words)
            case "rdc":
                self._rdc(name, words, value)
            case "lto":
                self._note(
                    "dropped",
                    f"{words[0]}: link-time optimisation is left out; registers are those of this file alone",
                    "information",
                )
            case "language":
                self._language(words, value)
            case "host":
                self._host(words, value)
            case "ptxas":
                self._ptxas(words, value)
            case "cudafe":
                if all(_CUDAFE.fullmatch(part) for part in split_list(value)):
                    self._flags += words
                else:
                    self._drop(words, "it is not on the list of front end options that may be passed on")
            case "forward":
                self._forward = words[0]

    def _keep(self, matched: MatchedOption) -> None:
        name, words, value = matched.option.long, matched.words, matched.value
        if name in _MACROS:
            hazard = macro_hazard(value, self._platform)
        elif name in _PATHS:
            hazard = path_hazard(value, self._platform)
        else:
            hazard = None if _PLAIN_VALUE.fullmatch(value) else "no such value holds these letters"
        if hazard:
            self._refuse(words, hazard)
            return
        if name == "--optimize":
            self._optimised = value != "0"
        elif name == "--define-macro" and any(part.split("=")[0] == "NDEBUG" for part in value.split(",")):
            self._optimised = True
        self._flags += words

    def _arch(self, name: str, value: str, spelled: str) -> None:
        value = value.replace('"', "").replace("'", "")
        if name == "--gpu-architecture":
            self._architecture = (value.strip(), spelled)
        elif name == "--gpu-code":
            self._codes += _CODE.findall(value)
        else:
            for part in re.split(r",?\s*arch=", value)[1:]:
                virtual, _, codes = part.partition(",code=")
                self._targets += _targets(virtual.strip(), _CODE.findall(codes) or [virtual.strip()], spelled)
        self._drop((spelled,), "replaced by the one architecture of the analysis")

    def _architecture_targets(self) -> list[Target]:
        if self._architecture is None:
            return [target for code in self._codes for target in _targets(code, [code], f"-code={code}")]
        value, spelled = self._architecture
        return _targets(value, self._codes or [value], spelled)

    def _debug_option(self, name: str, words: tuple[str, ...]) -> None:
        if name == "--device-debug":
            self._debug = "device"
            self._note(
                "debug",
                "build flags have -G (device debug, no optimisation); analysed without -G",
                "information",
            )
            self._drop(words, "device debug switches the optimisation off")
        elif name == "--generate-line-info":
            self._drop(words, "replaced by the analysis's own")
        else:
            self._debug = "host" if self._debug == "none" else self._debug
            self._drop(words, "debug information is chosen by the analysis")

    def _rdc(self, name: str, words: tuple[str, ...], value: str) -> None:
        if name == "--device-c":
            self._relocatable = True
            self._flags.append("-rdc=true")
            self._note("translated", f"{words[0]}: said as -rdc=true, the compile step itself is dropped")
        else:
            self._relocatable = value == "true"
            if value in {"true", "false"}:
                self._flags += words

    def _language(self, words: tuple[str, ...], value: str) -> None:
        if value == "cu":
            self._flags += words
        else:
            self._drop(words, "the file is analysed as CUDA")

    def _unknown(self, queue: list[str], position: int) -> int:
        """A word that is no option of nvcc: one for the host compiler, by the same list as -Xcompiler."""
        word = queue[position]
        treatment, why = self._host_treatment(word)
        n_words = 2 if treatment in {"pair", "drop-pair"} and position + 1 < len(queue) else 1
        words = tuple(queue[position : position + n_words])
        if treatment in {"keep", "pair"} and self._is_plain(words):
            if self._forward:
                self._flags += words
                self._forwarded += words
            else:
                self._flags += [f"-Xcompiler={part}" for part in words]
        elif treatment == "refuse" or treatment in {"keep", "pair"}:
            self._refuse(words, why or "nvcc hands it to a shell, which acts on its letters")
        else:
            self._drop(words, why or "it is no option of nvcc")
        return n_words

    def _host(self, words: tuple[str, ...], value: str) -> None:
        parts = [part for piece in split_list(value) for part in piece.split()]
        kept: list[str] = []
        position = 0
        while position < len(parts):
            treatment, why = self._host_treatment(parts[position])
            n_parts = 2 if treatment in {"pair", "drop-pair"} and position + 1 < len(parts) else 1
            taken = tuple(parts[position : position + n_parts])
            position += n_parts
            if treatment in {"keep", "pair"} and self._is_plain(taken):
                kept += taken
            elif treatment == "refuse" or treatment in {"keep", "pair"}:
                self._refuse(("-Xcompiler", *taken), why or "nvcc hands it to a shell, which acts on its letters")
            else:
                self._drop(("-Xcompiler", *taken), why)
        if kept and kept == parts and (self._platform == "windows" or " " not in value):
            self._flags += words
        elif kept:
            self._flags.append("-Xcompiler=" + ",".join(kept))

    def _is_plain(self, words: tuple[str, ...]) -> bool:
        """Whether a shell takes these words, which nvcc does not quote, as they are."""
        plain = _WINDOWS_HOST_WORD if self._platform == "windows" else _HOST_WORD
        return all(plain.fullmatch(word) for word in words)

    def _host_treatment(self, part: str) -> tuple[str, str]:
        for row in pattern_rows("host_flags.csv"):
            if row.pattern.fullmatch(part) and (row.treatment != "msvc" or self._platform == "windows"):
                return "keep" if row.treatment == "msvc" else row.treatment, row.why
        return "drop", ""

    def _ptxas(self, words: tuple[str, ...], value: str) -> None:
        parts = [part for piece in split_list(value) for part in piece.split()]
        kept: list[str] = []
        follows_kept = False
        for part in parts:
            row = next(row for row in pattern_rows("ptxas_options.csv") if row.pattern.fullmatch(part))
            treatment = row.treatment
            if treatment == "value":
                treatment = "keep" if follows_kept else "drop"
            if treatment == "keep":
                kept.append(part)
            elif treatment == "refuse":
                self._refuse(("-Xptxas", part), row.why)
            else:
                self._drop(("-Xptxas", part), row.why or "the option in front of it was dropped")
            follows_kept = treatment == "keep" and part.startswith("-") and "=" not in part
        if kept and kept == parts and " " not in value:
            self._flags += words
        elif kept:
            self._flags.append("-Xptxas=" + ",".join(kept))


def _targets(virtual: str, codes: list[str], spelled: str) -> list[Target]:
    found = []
    for code in codes:
        if code in {"all", "all-major", "native"}:
            found.append(Target("", code, spelled))
            continue
        number = arch_number(code)
        if number is None:
            continue
        named = arch_number(virtual)
        compute = f"compute_{named[0]}{named[1]}" if named else f"compute_{number[0]}{number[1]}"
        real = None if code.startswith("compute_") else f"sm_{number[0]}{number[1]}"
        found.append(Target(compute, real, spelled))
    return found
