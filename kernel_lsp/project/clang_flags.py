"""The words of a clang (or NVHPC) CUDA command said in nvcc's options, by `clang_flags.csv`."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kernel_lsp.project.command import CommandNote


@dataclass(frozen=True, slots=True)
class TranslatedWords:
    """Words for `read_nvcc_words`, and what was said differently or left out on the way."""

    words: tuple[str, ...]
    notes: tuple[CommandNote, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    pattern: re.Pattern[str]
    treatment: str
    say: str
    why: str


def translate_clang_words(words: tuple[str, ...]) -> TranslatedWords:
    """clang's options in nvcc's words, in the same order; `words` are those behind the program."""
    translated: list[str] = []
    notes: list[CommandNote] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word in {"-x", "-Xcuda-ptxas"} and position + 1 < len(words):
            word = f"{word} {words[position + 1]}" if word == "-Xcuda-ptxas" else f"-x={words[position + 1]}"
            position += 1
        position += 1
        if not word.startswith("-"):
            translated.append(word)
            continue
        row, match = next((row, match) for row in _rows() if (match := row.pattern.fullmatch(word)))
        shown = word.replace("-x=", "-x ", 1)
        following = words[position] if position < len(words) else ""
        match row.treatment:
            case "keep":
                translated.append(word)
            case "keep-pair":
                translated += [word, following]
                position += 1
            case "isystem":
                translated.append(f"-isystem={word.removeprefix('-isystem')}")
            case "arch":
                translated += [_gencode(arch) for arch in match[1].split(",")]
            case "native":
                translated.append("-arch=native")
            case "ptxas":
                translated.append(f"-Xptxas={match[1] or match[2]}")
            case "debug":
                if word != "-g0":
                    translated.append("-G" if "noopt-device" in word else "-g")
            case "translate":
                said = match.expand(row.say) if "\\" in row.say else row.say
                translated += said.split(" ")
                if said != word:
                    notes.append(CommandNote("translated", f"{shown}: said as {said}"))
            case "drop-pair":
                notes.append(CommandNote("dropped", f"{word} {following}: {row.why}"))
                position += 1
            case "refuse":
                notes.append(CommandNote("refused", f"{word}: refused, {row.why}", "information"))
            case _:
                notes.append(CommandNote("dropped", f"{shown}: {row.why}"))
    return TranslatedWords(tuple(translated), tuple(notes))


def translate_nvhpc_words(words: tuple[str, ...]) -> TranslatedWords:
    """nvc++'s `-gpu=cc80,cc90,maxregcount:32` and `-cuda` in nvcc's options, by way of clang's."""
    said: list[str] = []
    notes: list[CommandNote] = []
    for word in words:
        if word.startswith("-gpu="):
            for part in word.removeprefix("-gpu=").split(","):
                option = _nvhpc_option(part)
                if option:
                    said.append(option)
                else:
                    notes.append(CommandNote("dropped", f"-gpu={part}: nvcc has no such option"))
        elif word.startswith(("-cuda", "-acc", "-mp", "-stdpar", "-M", "--c++", "-gopt")):
            notes.append(CommandNote("dropped", f"{word}: nvcc has no such option"))
        else:
            said.append("-O2" if word in {"-fast", "-fastsse"} else word)
    inner = translate_clang_words(tuple(said))
    return TranslatedWords(inner.words, (*notes, *inner.notes))


def _nvhpc_option(part: str) -> str | None:
    if re.fullmatch(r"cc\d+[af]?", part):
        return f"--cuda-gpu-arch=sm_{part[2:]}"
    if re.fullmatch(r"maxregcount:\d+", part):
        return f"-maxrregcount={part.partition(':')[2]}"
    options = {"fastmath": "-ffast-math", "nofma": "-ffp-contract=off", "rdc": "-fgpu-rdc", "nordc": "-fno-gpu-rdc"}
    return options.get(part)


def _gencode(arch: str) -> str:
    return f"-gencode=arch=compute_{arch.removeprefix('sm_')},code={arch}"


@cache
def _rows() -> tuple[_Row, ...]:
    text = files("kernel_lsp.project").joinpath("clang_flags.csv").read_text("utf-8")
    return tuple(
        _Row(re.compile(row["pattern"]), row["class"], row["say"], row["why"])
        for row in csv.DictReader(text.splitlines())
    )
