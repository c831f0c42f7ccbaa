"""The option table against the compiler itself: every option that `nvcc --help` prints has a row that fits."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from kernel_lsp.project.nvcc_options import match_option, nvcc_options, pattern_rows, split_list

_HELP = re.compile(r"^(--[\w-]+)\s+(\S.*?)??\s*\((-[\w+-]+)\)\s*$", re.MULTILINE)
TREATMENTS = {
    "keep", "drop", "refuse", "arch", "debug", "rdc", "lto", "language", "host", "ptxas", "cudafe", "splice", "forward",
}  # fmt: skip


def test_every_option_of_the_compiler_is_known(toolkit: Path) -> None:
    printed = subprocess.run([toolkit / "bin" / "nvcc", "--help"], capture_output=True, text=True, check=True).stdout
    found = _HELP.findall(printed)
    assert len(found) > 150
    rows = {option.long: option for option in nvcc_options()}
    for long, value, short in found:
        assert rows[long].short == short
        # The help leaves out that -MF takes a file.
        if long != "--dependency-output":
            assert (rows[long].value == "none") == (not value), long
        assert (rows[long].value == "list") == value.endswith(",..."), long
        assert (rows[long].value == "bool") == (value == "{true|false}"), long


def test_treatments() -> None:
    assert {option.treatment for option in nvcc_options()} == TREATMENTS
    assert all(option.why for option in nvcc_options() if option.treatment in {"drop", "refuse"})
    for name in ("ptxas_options.csv", "host_flags.csv"):
        assert {row.treatment for row in pattern_rows(name)} <= {
            "keep", "drop", "refuse", "value", "pair", "drop-pair", "msvc",
        }  # fmt: skip
        assert pattern_rows(name)[-1].pattern.pattern == ".*"


def test_spellings() -> None:
    def value(*words: str) -> tuple[str, str, int] | None:
        matched = match_option(words, 0)
        return (matched.option.long, matched.value, len(matched.words)) if matched else None

    for words in (("-arch", "sm_90"), ("-arch=sm_90",), ("--gpu-architecture=sm_90",), ("--gpu-architecture", "sm_90")):
        assert value(*words) == ("--gpu-architecture", "sm_90", len(words))
    assert value("-Idir") == value("-I=dir") == ("--include-path", "dir", 1)
    assert value("-DX=1") == ("--define-macro", "X=1", 1)
    assert value("-O3") == ("--optimize", "3", 1)
    assert value("-Ofc=max") == ("--Ofast-compile", "max", 1)
    assert value("-m64") == ("--m64", "", 1)
    assert value("-march=native") is value("-Ofast") is value("-tls") is None
    assert value("-lto") == ("--lto", "", 1)
    assert value("-lineinfo") == ("--generate-line-info", "", 1)
    # What nvcc itself calls an unknown option (tried with 13.0 and 13.5).
    for word in (
        "-archsm_90",
        "-isystemdir",
        "-xcu",
        "--DX",
        "--I=dir",
        "-Wall",
        "-fPIC",
        "-lineinfo=true",
        "--use-fast-math",
    ):
        assert value(word) is None


def test_list_values() -> None:
    assert split_list("-v,-O3") == ("-v", "-O3")
    assert split_list(r"-FdCMakeFiles\,-FS") == ("-FdCMakeFiles,-FS",)
    assert split_list("") == ()
