"""Headers are analysed through a source that reads them; sources that others include likewise."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.config import parse_config
from kernel_lsp.project.find_command import CommandPreferences, ProjectFiles, find_command


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def database(root: Path, *commands: str) -> None:
    rows = [{"directory": str(root), "command": command, "file": command.split(" ")[-1]} for command in commands]
    write(root, {"compile_commands.json": json.dumps(rows)})


def find(root: Path, name: str, **options: object) -> BuildCommand:
    options.setdefault("files", ProjectFiles())
    return find_command(root / name, workspace_roots=(root,), **options)  # type: ignore[arg-type]


def test_directly_included(tmp_path: Path) -> None:
    write(
        tmp_path, {"inc/h.cuh": "", "src/a.cu": '#include "h.cuh"\n', "src/b.cu": "  #  include <h.cuh>\n", "c.cu": ""}
    )
    database(tmp_path, "nvcc -Iinc -DA -c src/a.cu", "nvcc -Iinc -DB -c src/b.cu", "nvcc -c c.cu")
    command = find(tmp_path, "inc/h.cuh")
    assert command.source == tmp_path / "src/a.cu"
    assert command.document == tmp_path / "inc/h.cuh"
    assert command.alternatives == (tmp_path / "src/b.cu",)
    assert command.origin_detail == "as included by src/a.cu (1 of 2)"
    assert "-DA" in command.flags
    assert any("`headers:`" in note.message for note in command.notes)


def test_open_sources_go_first(tmp_path: Path) -> None:
    write(tmp_path, {"h.cuh": "", "a.cu": '#include "h.cuh"\n', "far/away/b.cu": '#include "../../h.cuh"\n'})
    database(tmp_path, "nvcc -c a.cu", "nvcc -c far/away/b.cu")
    assert find(tmp_path, "h.cuh").source == tmp_path / "a.cu"
    opened = {tmp_path / "far/away/b.cu": '#include "../../h.cuh"\n'}
    assert find(tmp_path, "h.cuh", open_texts=opened).source == tmp_path / "far/away/b.cu"
    # The editor's text counts: a.cu no longer includes it.
    assert find(tmp_path, "h.cuh", open_texts={tmp_path / "a.cu": ""}).source == tmp_path / "far/away/b.cu"


def test_through_other_headers(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "inc/deep.cuh": "",
            "inc/middle.cuh": '#include "deep.cuh"\n#include "loop.cuh"\n',
            "inc/loop.cuh": '#include "middle.cuh"\n',
            "src/a.cu": "#include <middle.cuh>\n",
            "src/b.cu": "#include <vector>\n",
        },
    )
    database(tmp_path, "nvcc -c src/b.cu", "nvcc -I inc -c src/a.cu")
    command = find(tmp_path, "inc/deep.cuh")
    assert command.source == tmp_path / "src/a.cu"
    assert command.origin_detail == "as included by src/a.cu (1 of 1)"


def test_same_name_in_another_folder_is_another_header(tmp_path: Path) -> None:
    write(tmp_path, {"one/h.cuh": "", "two/h.cuh": "", "a.cu": '#include "h.cuh"\n', "b.cu": '#include "h.cuh"\n'})
    database(tmp_path, "nvcc -Ione -c a.cu", "nvcc -Itwo -c b.cu")
    assert find(tmp_path, "two/h.cuh").source == tmp_path / "b.cu"
    assert find(tmp_path, "two/h.cuh").alternatives == ()


def test_host_sources_are_never_borrowed(tmp_path: Path) -> None:
    write(tmp_path, {"h.cuh": "", "host.cpp": '#include "h.cuh"\n', "other.cu": ""})
    database(tmp_path, "g++ -DHOST -c host.cpp", "nvcc -c other.cu")
    command = find(tmp_path, "h.cuh")
    assert command.flags == ()
    assert command.skip_reason
    assert "no CUDA source that includes h.cuh" in command.skip_reason


def test_without_a_database(tmp_path: Path) -> None:
    write(tmp_path, {"inc/h.cuh": "", "src/a.cu": '#include "../inc/h.cuh"\n'})
    command = find(tmp_path, "inc/h.cuh")
    assert command.source == tmp_path / "src/a.cu"
    assert command.origin == "default"


def test_source_that_others_include(tmp_path: Path) -> None:
    """CMake's unity builds: the database knows only the file that includes the sources."""
    write(tmp_path, {"src/a.cu": "", "src/b.cu": "", "build/Unity/unity_0_cu.cu": '#include "../../src/a.cu"\n'})
    database(tmp_path, "nvcc -DUNITY -c build/Unity/unity_0_cu.cu")
    command = find(tmp_path, "src/a.cu")
    assert command.source == tmp_path / "build/Unity/unity_0_cu.cu"
    assert command.flags == ("-DUNITY",)
    # b.cu is in no entry and nobody includes it: flags of a neighbour, and said to be.
    borrowed = find(tmp_path, "src/b.cu")
    assert borrowed.source == tmp_path / "src/b.cu"
    assert borrowed.origin_detail == "flags of build/Unity/unity_0_cu.cu"


def test_an_entry_of_its_own_goes_before_includers(tmp_path: Path) -> None:
    write(tmp_path, {"a.cu": "", "b.cu": '#include "a.cu"\n'})
    database(tmp_path, "nvcc -DOWN -c a.cu", "nvcc -DOTHER -c b.cu")
    assert find(tmp_path, "a.cu").flags == ("-DOWN",)


def test_a_headers_own_entry_counts_only_where_no_source_reads_it(tmp_path: Path) -> None:
    """Some tools add entries for headers; a header compiled by itself holds no instances of its templates."""
    write(tmp_path, {"h.cuh": "", "alone.cuh": "", "a.cu": '#include "h.cuh"\n'})
    database(tmp_path, "nvcc -DHEADER -x cu -c h.cuh", "nvcc -DALONE -x cu -c alone.cuh", "nvcc -DA -c a.cu")
    assert find(tmp_path, "h.cuh").flags == ("-DA",)
    alone = find(tmp_path, "alone.cuh")
    assert (alone.source, alone.flags) == (tmp_path / "alone.cuh", ("-DALONE", "-x", "cu"))


def test_the_user_picks_the_source(tmp_path: Path) -> None:
    write(tmp_path, {"inc/h.cuh": "", "a.cu": '#include "inc/h.cuh"\n', "b.cu": '#include "inc/h.cuh"\n'})
    database(tmp_path, "nvcc -DA -c a.cu", "nvcc -DB -c b.cu")
    config = parse_config('headers:\n  "inc/*.cuh": b.cu\n', tmp_path / "kernel-lsp.yaml")
    assert find(tmp_path, "inc/h.cuh", config=config).flags == ("-DB",)
    wanted = CommandPreferences(includers=(tmp_path / "b.cu",))
    assert find(tmp_path, "inc/h.cuh", preferences=wanted).flags == ("-DB",)
    gone = parse_config("headers: {h.cuh: gone.cu}\n", tmp_path / "kernel-lsp.yaml")
    command = find(tmp_path, "inc/h.cuh", config=gone)
    assert command.flags == ("-DA",)
    assert any("gone.cu" in note.message and note.severity == "warning" for note in command.notes)


def test_opened_through_a_symlink(tmp_path: Path) -> None:
    real = tmp_path / "real"
    write(real, {"inc/h.cuh": "", "src/a.cu": '#include "../inc/h.cuh"\n'})
    database(real, "nvcc -c src/a.cu")
    (tmp_path / "link").symlink_to("real")
    command = find(tmp_path / "link", "inc/h.cuh")
    assert command.source == tmp_path / "link" / "src" / "a.cu"
    assert command.origin_path is not None


@pytest.mark.parametrize("n_headers", [1, 4])
def test_includers_are_those_that_nvcc_names(n_headers: int, tmp_path: Path, toolkit: Path) -> None:
    """`nvcc -M` is asked for every source; it and the search of #include lines agree."""
    files = {f"inc/h{number}.cuh": f'#include "h{number + 1}.cuh"\n' for number in range(n_headers)}
    files[f"inc/h{n_headers}.cuh"] = "#pragma once\n"
    files |= {f"src/s{number}.cu": f"#include <h{number}.cuh>\n" for number in range(n_headers)}
    files["src/alone.cu"] = "#include <cuda_fp16.h>\n"
    write(tmp_path, files)
    sources = sorted(name for name in files if name.endswith(".cu"))
    database(tmp_path, *(f"nvcc -Iinc -c {name}" for name in sources))
    listed = {
        source: subprocess.run(
            [toolkit / "bin" / "nvcc", "-M", "-Iinc", source], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for source in sources
    }
    for header in sorted(name for name in files if name.endswith(".cuh")):
        named = {tmp_path / source for source in sources if header in listed[source]}
        command = find(tmp_path, header)
        found = {command.source, *command.alternatives}
        # Direct readers are offered first; the others only where there are none.
        assert found <= named
        assert bool(found) == bool(named)
