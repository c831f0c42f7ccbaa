"""What is kept of a command, with nvcc itself as the judge: its dry run must call the same steps in the same way."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.project.nvcc_flags import DeviceFlags, read_nvcc_words


def kept(*words: str, **options: object) -> tuple[str, ...]:
    return read_nvcc_words(words, **options).flags  # type: ignore[arg-type]


def notes(flags: DeviceFlags, kind: str) -> str:
    return "\n".join(note.message for note in flags.notes if note.kind == kind)


def device_steps(nvcc: Path, folder: Path, words: tuple[str, ...]) -> list[str]:
    """The preprocessor, cicc and ptxas calls of `nvcc --dryrun -cubin`, without names of temporary files."""
    run = subprocess.run(
        [nvcc, "--dryrun", "-cubin", "a.cu", "-o", "a.cubin", *words], cwd=folder, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stderr.splitlines() if re.search(r" -E |cicc|ptxas ", line)]
    return [re.sub(r"tmpxft_\w+-", "tmp-", line) for line in lines]


SAME_STEPS = [
    "-O3 -DNDEBUG -std=c++17",
    "-DA=1 -UA -DA=2 -D B -D=C -DD,E --define-macro=F --undefine-macro G",
    "-Iinc -I inc2 -I=inc3 -isystem=sys -isystem sys2 --include-path inc4,inc5",
    "-include pre.h --pre-include=other.h",
    "-use_fast_math -fmad=false --ftz true -prec-div=false",
    "--use_fast_math -maxrregcount=64 -Xptxas -O2 -Xptxas=-dlcm=ca --ptxas-options=-allow-expensive-optimizations=true",
    "-std c++20 --expt-relaxed-constexpr --extended-lambda -restrict -default-stream per-thread",
    "-rdc=true -m64 -O 2",
    "-Xcompiler -fopenmp,-DHOST=1 -Xcompiler=-march=native --compiler-options -fno-exceptions",
    "-diag-suppress 177,20012 --display-error-number -Xcudafe --diag_suppress=550",
    "-forward-unknown-to-host-compiler -fopenmp -march=native -O3",
    "-keep-device-functions -jtd 50 --extra-device-vectorization",
    "-x cu -Ofc=min",
]


@pytest.mark.parametrize("line", SAME_STEPS)
def test_kept_words_make_the_same_steps(line: str, toolkit: Path, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("")
    words = tuple(line.split(" "))
    nvcc = toolkit / "bin" / "nvcc"
    build = (*words, "-arch=sm_90")
    ours = read_nvcc_words(words)
    assert not [note for note in ours.notes if note.kind == "refused"]
    assert device_steps(nvcc, tmp_path, (*ours.flags, "-arch=sm_90")) == device_steps(nvcc, tmp_path, build)


@pytest.mark.parametrize(
    ("line", "same_as"),
    [
        ("-O3 -Wall -Wextra -fdiagnostics-color -forward-unknown-to-host-compiler -arch=sm_90", "-O3 -arch=sm_90"),
        ("-dc -arch=sm_90 -O2", "-rdc=true -O2 -arch=sm_90"),
        ("-g -lineinfo -Xptxas -v -Xptxas=-v,-O3 -t 4 -arch=sm_90", "-Xptxas=-O3 -arch=sm_90"),
        ("-Xcompiler -Wall,-fPIC,-O2 -arch=sm_90", "-Xcompiler=-fPIC,-O2 -arch=sm_90"),
        (
            "-gencode arch=compute_80,code=sm_90 -Werror all-warnings -lcublas -L/x",
            "-gencode arch=compute_80,code=sm_90",
        ),
    ],
)
def test_what_is_left_out_does_not_reach_device_code(line: str, same_as: str, toolkit: Path, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("")
    nvcc = toolkit / "bin" / "nvcc"
    ours = read_nvcc_words(tuple(line.split(" ")))
    target = next(target for target in ours.targets if target.real)
    code = ("-gencode", f"arch={target.virtual},code={target.real}")
    assert device_steps(nvcc, tmp_path, (*ours.flags, *code)) == device_steps(nvcc, tmp_path, tuple(same_as.split(" ")))


def test_outputs_and_dependency_files_are_dropped() -> None:
    line = "-c -o a.o -odir out -MD -MMD -MP -MT a.o -MF a.d -M --keep --keep-dir /b -save-temps -time t.csv -objtemp"
    flags = read_nvcc_words(tuple(f"{line} -O3 a.cu".split(" ")))
    assert flags.flags == ("-O3",)
    assert flags.sources == ("a.cu",)
    for words in ("-o a.o", "-MF a.d", "-MT a.o", "--keep-dir /b", "-odir out"):
        assert words in notes(flags, "dropped")


def test_device_debug() -> None:
    flags = read_nvcc_words(("-G", "-g", "-lineinfo", "-O0"))
    assert flags.flags == ("-O0",)
    assert flags.debug == "device"
    shown = [note for note in flags.notes if note.severity != "log"]
    assert [(note.kind, note.severity) for note in shown] == [("debug", "information")]
    assert read_nvcc_words(("-g",)).debug == "host"
    assert read_nvcc_words(("-lineinfo",)).debug == "none"


def test_optimised() -> None:
    assert read_nvcc_words(("-O2", "-g")).optimised
    assert read_nvcc_words(("-DNDEBUG",)).optimised
    assert not read_nvcc_words(("-O0", "-g")).optimised
    assert not read_nvcc_words(("-DNDEBUGGER",)).optimised


def test_link_time_optimisation_is_said() -> None:
    flags = read_nvcc_words(("-dlto", "-gencode=arch=compute_80,code=lto_80"))
    assert flags.flags == ()
    assert [target.real for target in flags.targets] == ["sm_80"]
    assert any("link-time" in note.message and note.severity == "information" for note in flags.notes)


def test_values_that_are_missing() -> None:
    for word in ("-arch", "-I", "-D", "-Xptxas", "-include", "-maxrregcount", "-O"):
        flags = read_nvcc_words((word,))
        assert flags.flags == ()
        assert "missing" in notes(flags, "dropped") or flags.sources == ()


def test_windows_host_flags_only_for_windows() -> None:
    assert kept("-Xcompiler=/EHsc -Ob2", platform="windows") == ("-Xcompiler=/EHsc -Ob2",)
    assert kept("-Xcompiler=/EHsc,-Ob2") == ()
    # -MD is a runtime library of MSVC and a dependency file of gcc.
    assert kept("-Xcompiler=-MD", platform="windows") == ("-Xcompiler=-MD",)
    assert kept("-Xcompiler=-MD") == ()
    assert kept("-Xcompiler=-FdCMakeFiles\\k.dir\\,-FS", platform="windows") == ()


OPTIONS = "-D -I -arch -gencode -Xcompiler -Xptxas --options-file -o -x -dc -G -O3 @f a.cu -DX -Iinc"
WORDS = st.one_of(
    st.sampled_from(OPTIONS.split(" ")),
    st.text(max_size=12),
    st.builds("-{}={}".format, st.sampled_from(["D", "I", "arch", "code", "Xptxas", "Xcompiler"]), st.text(max_size=8)),
)


@given(st.lists(WORDS, max_size=12), st.sampled_from(["posix", "windows"]))
def test_any_words_are_sorted(words: list[str], platform: str) -> None:
    flags = read_nvcc_words(tuple(words), platform=platform)  # type: ignore[arg-type]
    # Nothing comes out that did not go in, but for what -dc and passed-on lists are said as.
    said = {"-rdc=true"}
    assert all(flag in words or flag in said or flag.startswith(("-Xcompiler=", "-Xptxas=")) for flag in flags.flags)
    assert not {"-o", "-G", "-dc", "-arch", "-gencode", "--options-file"} & {
        flag for flag, before in zip(flags.flags, ("", *flags.flags), strict=False) if before not in {"-D", "-I", "-x"}
    }
