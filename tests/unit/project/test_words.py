"""Words of command lines, against the programs that split them in real life: a POSIX shell, nvcc, Windows' rules."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.project.words import SimpleCommand, gnu_response_words, platform_of, response_words, simple_commands

PLAIN_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r", exclude_categories=["Cc", "Cs"]))


@given(st.lists(PLAIN_TEXT, min_size=1))
def test_quoted_words_come_back(words: list[str]) -> None:
    line = " ".join(shlex.quote(word) for word in words)
    assert simple_commands(line, "posix") == (SimpleCommand(tuple(words), ()),)
    assert gnu_response_words(line) == tuple(words)


@pytest.mark.parametrize(
    "line",
    [
        r"""nvcc "-DA=\"v1 (dev)\"" '-DF(x)=((x)*2)' -DB=\"q\" a\ b.cu ''""",
        r"""nvcc -DX="a'b" -DY='a"b' -DZ=a\\b "tab	in" c""",
        "nvcc a.cu\\\n -O3",
    ],
)
def test_words_are_those_of_the_shell(line: str) -> None:
    printed = subprocess.run(
        ["sh", "-c", f"show() {{ for word; do printf '%s\\0' \"$word\"; done; }}; show {line}"],
        capture_output=True,
        check=True,
    )
    expected = tuple(word.decode() for word in printed.stdout.split(b"\0")[:-1])
    assert simple_commands(line, "posix")[0].words == expected


def test_operators_and_redirections() -> None:
    line = "mkdir -p objs && nvcc -O2 '>' '&&' a.cu >objs/a.log 2>&1 && :; x | y & z"
    assert simple_commands(line, "posix") == (
        SimpleCommand(("mkdir", "-p", "objs"), ()),
        SimpleCommand(("nvcc", "-O2", ">", "&&", "a.cu"), ("> objs/a.log", "2>&1")),
        SimpleCommand((":",), ()),
        SimpleCommand(("x",), ()),
        SimpleCommand(("y",), ()),
        SimpleCommand(("z",), ()),
    )


# Expected by hand, from Microsoft's "Parsing C++ command-line arguments".
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r'"a b c" d e', ("a b c", "d", "e")),
        (r'"ab\"c" "\\" d', ('ab"c', "\\", "d")),
        (r"a\\\b d e", (r"a\\\b", "d", "e")),
        (r"a\\\"b c d", (r"a\"b", "c", "d")),
        (r'a\\\\"b c" d e', (r"a\\b c", "d", "e")),
        (r'-I"C:\Program Files\x\" -IC:\inc', ('-IC:\\Program Files\\x" -IC:\\inc',)),
        (r"-IC:\proj\inc 'a b'", (r"-IC:\proj\inc", "'a", "b'")),
        ('"" x', ("", "x")),
    ],
)
def test_windows_words(line: str, words: tuple[str, ...]) -> None:
    assert simple_commands(line, "windows") == (SimpleCommand(words, ()),)


@given(st.lists(PLAIN_TEXT, min_size=1))
def test_windows_words_come_back(words: list[str]) -> None:
    line = subprocess.list2cmdline(["nvcc", *(f"-D{word}" for word in words)])
    assert simple_commands(line, "windows")[0].words == ("nvcc", *(f"-D{word}" for word in words))


def test_platform() -> None:
    assert platform_of("C:/proj", "x.cu") == "windows"
    assert platform_of("/proj", r"C:\x.cu") == "windows"
    assert platform_of(r"\\server\share") == "windows"
    assert platform_of("/proj", "x.cu") == "posix"


@pytest.mark.parametrize(
    "text",
    [
        "-DA1 -DA2",
        '"-DA=a b" -DB="c d"',
        "-DA=a\\ b\n-DB\n",
        '-I"/path with/inc" -isystem="/q r/s"',
        "-DA='v'",
        '-DA=x"y"z -DB',
    ],
)
def test_response_words_are_those_of_nvcc(text: str, tmp_path: Path, toolkit: Path) -> None:
    """nvcc makes the same preprocessor call from the file and from our words of it."""
    (tmp_path / "a.cu").write_text("")
    (tmp_path / "flags.rsp").write_text(text)

    def preprocessor(words: list[str]) -> str:
        run = subprocess.run(
            [toolkit / "bin" / "nvcc", "--dryrun", "-cubin", "a.cu", "-o", "a.cubin", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return next(line.partition(" -o ")[0] for line in run.stderr.splitlines() if "gcc" in line and " -E " in line)

    assert preprocessor(["--options-file", "flags.rsp"]) == preprocessor(list(response_words(text, "posix")))
