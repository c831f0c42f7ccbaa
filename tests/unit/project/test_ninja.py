"""build.ninja, with ninja itself as the judge: `ninja -t compdb` prints the command of every edge."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.find_command import ProjectFiles, find_command
from kernel_lsp.project.ninja import NinjaError, read_ninja
from kernel_lsp.project.words import simple_commands

TRICKY = r"""
ninja_required_version = 1.5
# a comment
top = -DTOP
nvcc = /usr/local/cuda/bin/nvcc
flags = $top -DDOLLAR=$$x
long = one $
       two $
       three
pool link_pool
  depth = 1
rule cuda
  depfile = $out.d
  command = $nvcc $flags $extra ${long} -c $in -o $out
build a.o b.o: cuda src/a.cu src/b$ c.cu | dep1 || order1
build with$ blank.o: cuda it's.cu
  extra = -DEDGE $flags
  flags = -DEDGE_FLAGS
flags = -DLATER
build c.o | implicit.o: cuda /abs/c.cu |@ check
include more.ninja
subninja sub.ninja
build e.o: cuda e.cu
default a.o
"""
MORE = "included = -DINCLUDED\nbuild m.o: cuda m.cu\n  extra = $included\n"
SUB = "flags = -DSUB\nrule only_here\n  command = nvcc $flags $in\nbuild s.o: cuda s.cu\nbuild t.o: only_here t.cu\n"


def find_ninja() -> str:
    ninja = shutil.which("ninja")
    if ninja is None:
        pytest.fail("ninja is not installed; apt install ninja-build, or pip install ninja")
    return ninja


def write_tricky(folder: Path) -> Path:
    (folder / "build.ninja").write_text(TRICKY)
    (folder / "more.ninja").write_text(MORE)
    (folder / "sub.ninja").write_text(SUB)
    return folder / "build.ninja"


def test_commands_are_those_of_ninja(tmp_path: Path) -> None:
    path = write_tricky(tmp_path)
    printed = subprocess.run(
        [find_ninja(), "-t", "compdb"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    expected = {row["output"]: row for row in json.loads(printed)}
    edges = {edge.outputs[0]: edge for edge in read_ninja(path)}
    assert len(edges) == 7
    for output, row in expected.items():
        command = edges[output].command()
        assert command is not None
        assert simple_commands(command, "posix") == simple_commands(row["command"], "posix"), output
        assert edges[output].inputs[0] == row["file"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("build a.o cuda a.cu\n", "build.ninja:1: build statement without a colon"),
        ("build a.o:\n", "build.ninja:1: build statement without a rule"),
        ("\n  indented = 1\n", "build.ninja:2: indented line"),
        ("rule r\n  nonsense\n", "build.ninja:2: expected NAME = VALUE"),
        ("nonsense\n", "build.ninja:1: expected a statement"),
        ("include build.ninja\n", "files included"),
    ],
)
def test_bad_files(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(text)
    with pytest.raises(NinjaError, match=said):
        read_ninja(tmp_path / "build.ninja")


def test_variables_that_grow_without_end(tmp_path: Path) -> None:
    lines = ["v0 = xxxxxxxxxxxxxxxx", *(f"v{number} = $v{number - 1}$v{number - 1}" for number in range(1, 60))]
    (tmp_path / "build.ninja").write_text("\n".join(lines) + "\n")
    with pytest.raises(NinjaError, match="longer than"):
        read_ninja(tmp_path / "build.ninja")
    (tmp_path / "build.ninja").write_text("rule r\n  a = $b\n  b = $a\n  command = nvcc $a $in\nbuild o: r a.cu\n")
    assert read_ninja(tmp_path / "build.ninja")[0].command() is not None


@given(st.text(st.sampled_from("build rule:=$ \n|ax{}-#"), max_size=80))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.ninja"
    path.write_text(text)
    try:
        edges = read_ninja(path)
    except (NinjaError, OSError):
        return
    for edge in edges:
        edge.command()


def torch_file(folder: Path, source: Path) -> None:
    folder.mkdir(parents=True)
    escaped = str(source).replace(" ", "$ ")
    (folder / "build.ninja").write_text(
        f"nvcc = /usr/local/cuda/bin/nvcc\ncuda_cflags = -DTORCH -gencode=arch=compute_80,code=sm_80\n"
        f"rule cuda_compile\n  command = $nvcc --generate-dependencies-with-compile --dependency-output $out.d "
        f"$cuda_cflags -c $in -o $out\nbuild a.o: cuda_compile {escaped}\n"
    )


def find(document: Path, root: Path, **environment: str) -> BuildCommand:
    return find_command(document, files=ProjectFiles(), workspace_roots=(root,), environment=environment)


@pytest.mark.parametrize("place", ["cache", "default cache", "setup.py"])
def test_torch_extensions(place: str, tmp_path: Path) -> None:
    root = tmp_path / "my ext"
    source = root / "csrc" / "a.cu"
    source.parent.mkdir(parents=True)
    source.write_text("")
    folder = {
        "cache": tmp_path / "torch" / "ops",
        "default cache": tmp_path / "home" / ".cache" / "torch_extensions" / "py311_cu130" / "ops",
        "setup.py": root / "build" / "temp.linux-x86_64-cpython-311",
    }[place]
    torch_file(folder, source)
    environment = {"HOME": str(tmp_path / "home")}
    if place == "cache":
        environment["TORCH_EXTENSIONS_DIR"] = str(tmp_path / "torch")
    command = find(source, root, **environment)
    assert command.origin == "build.ninja"
    assert command.origin_path == folder / "build.ninja"
    assert command.cwd == folder
    assert (command.flags, command.arch) == (("-DTORCH",), "sm_80")
    assert find(root / "csrc" / "other.cu", root, **environment).origin == "default"


def test_a_broken_ninja_file_is_noted_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "build.ninja").write_text("nonsense\n")
    (tmp_path / "a.cu").write_text("")
    command = find(tmp_path / "a.cu", tmp_path)
    assert command.origin == "default"
    assert any("build.ninja" in note.message and "not used" in note.message for note in command.notes)
