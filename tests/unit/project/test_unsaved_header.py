"""A header's unsaved text inside the source that reads it: nvcc says what the two together are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernel_lsp.project.unsaved_header import with_unsaved_header

SOURCE = """#define WIDTH 16
// #include "inc/outer.cuh"
#include "inc/outer.cuh"  // what it needs
#include <plain.cuh>
int after = __LINE__;
"""
OUTER = """#pragma once
#include "deep/inner.cuh"
#include "deep/inner.cuh"
int outer = __LINE__;
"""
INNER = """#pragma once
int inner = VALUE + WIDTH;
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inc" / "deep").mkdir(parents=True)
    (tmp_path / "plain").mkdir()
    (tmp_path / "main.cu").write_text(SOURCE)
    (tmp_path / "inc" / "outer.cuh").write_text(OUTER)
    (tmp_path / "inc" / "deep" / "inner.cuh").write_text(INNER.replace("VALUE", "1"))
    (tmp_path / "plain" / "plain.cuh").write_text("int plain = __LINE__;\n")
    return tmp_path


def read(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except OSError:
        return None


def preprocessed(text: str, project: Path) -> list[tuple[str, int, str]]:
    """File, line and text of every line of code, as the host compiler's preprocessor has it."""
    words = ["g++", "-E", "-x", "c++", "-", "-iquote", str(project), "-I", str(project / "plain")]
    done = subprocess.run(
        words, input=f'#line 1 "{project}/main.cu"\n{text}', capture_output=True, text=True, check=True
    )
    file, line, found = "", 0, []
    for written in done.stdout.splitlines():
        if written.startswith("# "):
            number, name = written[2:].split(maxsplit=1)
            file, line = name.split('"')[1], int(number)
        else:
            if written.strip():
                found.append((file.removeprefix(f"{project}/"), line, written))
            line += 1
    return found


def test_the_unsaved_text_stands_on_its_own_lines_once(project: Path) -> None:
    unsaved = "// one line more\n" + INNER.replace("VALUE", "2")
    header = project / "inc" / "deep" / "inner.cuh"
    text = with_unsaved_header(str(project / "main.cu"), str(header), unsaved, (str(project / "plain"),), read)
    assert text is not None
    assert preprocessed(text, project) == [
        ("inc/deep/inner.cuh", 3, "int inner = 2 + 16;"),
        ("inc/outer.cuh", 4, "int outer = 4;"),
        ("plain/plain.cuh", 1, "int plain = 1;"),
        ("main.cu", 5, "int after = 5;"),
    ]


def test_saved_text_gives_what_is_on_disk(project: Path) -> None:
    header = project / "inc" / "deep" / "inner.cuh"
    text = with_unsaved_header(
        str(project / "main.cu"), str(header), header.read_text(), (str(project / "plain"),), read
    )
    assert text is not None
    assert preprocessed(text, project) == preprocessed(SOURCE, project)


def test_through_a_search_folder_and_a_symbolic_link(project: Path) -> None:
    link = project / "link"
    link.symlink_to(project / "plain")
    text = with_unsaved_header(
        str(project / "main.cu"), str(link / "plain.cuh"), "int plain = 7;\n", (str(project / "plain"),), read
    )
    assert text is not None
    assert ("plain/plain.cuh", 1, "int plain = 7;") in preprocessed(text, project)


def test_what_no_include_line_leads_to(project: Path) -> None:
    computed = project / "computed.cu"
    computed.write_text('#define H "inc/outer.cuh"\n#include H\n/*\n#include "inc/outer.cuh"\n*/\n')
    for source, header in (
        (computed, "inc/outer.cuh"),
        (project / "main.cu", "none.cuh"),
        (project / "no.cu", "x.cuh"),
    ):
        assert with_unsaved_header(str(source), str(project / header), "int x;\n", (), read) is None


def test_circles_and_floods_end(project: Path) -> None:
    (project / "a.cuh").write_text('#include "b.cuh"\nint a;\n')
    (project / "b.cuh").write_text('#include "a.cuh"\nint b;\n')
    (project / "round.cu").write_text('#include "a.cuh"\n')
    text = with_unsaved_header(str(project / "round.cu"), str(project / "b.cuh"), "int b2;\n", (), read)
    assert text is not None
    assert "int b2;" in text
    # Each level includes the next one twice: two to the twentieth without a bound.
    for level in range(20):
        (project / f"l{level}.cuh").write_text(f'#include "l{level + 1}.cuh"\n' * 2)
    (project / "flood.cu").write_text('#include "l0.cuh"\n')
    flood = with_unsaved_header(str(project / "flood.cu"), str(project / "l11.cuh"), "x" * 10_000, (), read)
    assert flood is None or len(flood) < (17 << 20)
