"""`// kernel-lsp:` comments that tell a launch: where they may stand, what they may say, what is wrong with them."""

from __future__ import annotations

import pytest

from kernel_lsp.source.kernels import scan

PLACES = {
    "line above": "// kernel-lsp: block=256\n__global__ void f() {}",
    "lines above": "// kernel-lsp: block=256\n// more words\n\n__global__ void f() {}",
    "above the template": "/* kernel-lsp: block=256 */\ntemplate <int N>\n__global__ void f() {}",
    "on its line": "__global__ void f() {  // kernel-lsp: block=256\n}",
    "inside the head": "template <int N>\n// kernel-lsp: block=256\n__global__ void\nf() {}",
    "behind the name": "__global__ void\nf()  // kernel-lsp: block=256\n{}",
}


@pytest.mark.parametrize("text", PLACES.values(), ids=PLACES.keys())
def test_places(text: str) -> None:
    found = scan(f"__global__ void before() {{\n}}\n{text}\n__global__ void after() {{}}\n")
    assert found.notes == ()
    assert [(c.kernel, c.block) for c in found.comments] == [("f", (256, 1, 1))]


def test_everything_a_comment_can_say() -> None:
    text = """\
// kernel-lsp: block=16x16 smem=48 KB, grid=64x2x3 cluster=2x1
// kernel-lsp: block=32,8 smem=1.5KB; grid=4
// kernel-lsp: block=128 smem=0
// kernel-lsp: smem=49152
__global__ void f() {}
"""
    found = scan(text)
    assert found.notes == ()
    assert [(c.line, c.block, c.grid, c.dynamic_shared_bytes, c.cluster) for c in found.comments] == [
        (1, (16, 16, 1), (64, 2, 3), 49152, 2),
        (2, (32, 8, 1), (4, 1, 1), 1536, None),
        (3, (128, 1, 1), None, 0, None),
        (4, None, None, 49152, None),
    ]


WRONG = {
    "blok=256": ("blok=256", "blok is not known here: block, grid, smem and cluster are"),
    "block=many": ("block=many", "block=many is not understood: write block=256, block=16x16"),
    "block=0": ("block=0", "block=0 is not understood: write block=256"),
    "block=32x64": ("block=32x64", "at most 1,024 threads"),
    "block=1x2x3x4": ("block=1x2x3x4", "block=1x2x3x4 is not understood"),
    "smem=48MBit": ("smem=48MBit", "smem=48MBit is not understood: write smem=49152 or smem=48KB"),
    "smem=1.0001": ("smem=1.0001", "smem=1.0001 is not understood"),
    "cluster=32": ("cluster=32", "at most 16 blocks"),
    "block 256": ("block", "'block' is not understood here: block=256"),
    "block=64 block=32": ("block=32", "block=32 is given twice"),
    "": ("", "says nothing: write block=256"),
}


@pytest.mark.parametrize("body", WRONG)
def test_what_is_wrong_is_told_with_its_place_and_the_right_form(body: str) -> None:
    text = f"  // kernel-lsp: {body}\n__global__ void f() {{}}\n"
    found = scan(text)
    place, message = WRONG[body]
    note = found.notes[0]
    line = text.split("\n")[note.span.line - 1]
    assert line[note.span.column - 1 : note.span.end_column - 1].strip() == place
    assert message in note.message
    assert all(comment.block in (None, (64, 1, 1)) for comment in found.comments)


def test_a_comment_at_no_kernel() -> None:
    found = scan("// kernel-lsp: block=256\nint x;\n__global__ void f() {}\nint y; // kernel-lsp: block=3\n")
    assert found.comments == ()
    assert [(n.span.line, "the line above a __global__ function" in n.message) for n in found.notes] == [
        (1, True),
        (4, True),
    ]


def test_other_comments_are_left_to_their_readers() -> None:
    found = scan("// kernel-lsp: ignore KL101\n// kernel-lsp:ignore\n__global__ void f() {}\n")
    assert (found.comments, found.notes) == ((), ())
