"""Line markers of a preprocessed text become paths; the list is whole whenever it is asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.build.digests import FileDigests
from kernel_lsp.build.includes import ReadAhead, files_of_rule, files_read, tidy_path

GCC = b"""# 0 "/p/k.cu"
# 0 "<built-in>"
# 0 "<command-line>"
# 1 "/usr/include/stdc-predef.h" 1 3 4
# 1 "/p//"
# 1 "k.cu"
# 1 "inc/a.cuh" 1
x = "
# no marker
# 12 \\"also none\\"";
# 2 "inc/\\320\\274 \\"q\\".cuh" 1
#pragma once
# 3 "/p/k.cu" 2
"""


def test_markers_of_gcc_and_cl() -> None:
    assert files_read(GCC, Path("/p")) == (
        "/p/k.cu",
        "/usr/include/stdc-predef.h",
        "/p/inc/a.cuh",
        '/p/inc/м "q".cuh',
    )
    assert files_read(b'#line 1 "/p/k.cu"\n#line 7 "/p/b.h"\n', Path("/p")) == ("/p/k.cu", "/p/b.h")
    assert files_read(GCC, Path("/p"), without="/p/k.cu")[0] == "/usr/include/stdc-predef.h"


def test_parent_folders_are_tidied_only_where_that_names_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "x.cuh").write_text("1")
    (tmp_path / "x.cuh").write_text("2")
    assert tidy_path(f"{tmp_path}/a/b/../x.cuh") == f"{tmp_path}/a/x.cuh"
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    assert tidy_path(f"{tmp_path}/link/../x.cuh") == f"{tmp_path}/a/x.cuh"


@pytest.mark.parametrize("grows_later", [False, True])
async def test_files_are_those_of_the_finished_text(tmp_path: Path, grows_later: bool) -> None:
    text = tmp_path / "k.cpp1.ii"
    text.write_bytes(b'# 1 "/p/k.cu"\n')
    ahead = ReadAhead(tmp_path, Path("/p"), "", FileDigests())
    await asyncio.wait_for(ahead.follow(), 10)
    if grows_later:
        text.write_bytes(b'# 1 "/p/k.cu"\n# 1 "/p/late.cuh" 1\n')
    assert ahead.files() == (("/p/k.cu", "/p/late.cuh") if grows_later else ("/p/k.cu",))


async def test_no_preprocessed_text_means_no_files(tmp_path: Path) -> None:
    ahead = ReadAhead(tmp_path, Path("/p"), "", FileDigests())
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(ahead.follow(), 0.1)
    assert ahead.files() == ()


@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from([b'# 1 "', b'"', b"\\", b"\n", b"a", b"\\3", b"/"])).map(b"".join)
)
def test_any_bytes_give_absolute_paths(text: bytes) -> None:
    assert all(path.startswith("/") for path in files_read(text, Path("/p")))


def test_files_of_a_make_rule(tmp_path: Path) -> None:
    rule = rb"""out.cubin: /p/a\ b.cu \
    /usr/include/x.h \
    sub/../own.cuh /p/\#1/$$y.h"""
    assert files_of_rule(rule, tmp_path) == ("/p/a b.cu", "/usr/include/x.h", f"{tmp_path}/own.cuh", "/p/#1/$y.h")
    assert files_of_rule(b"", tmp_path) == ()
