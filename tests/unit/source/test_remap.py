"""LineMap: a sequence of edits by hand, and what must hold for any two texts."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.source.lines import split_lines
from kernel_lsp.source.remap import LineMap

BUILT = """\
__global__ void scale(const float* __restrict__ x, float* __restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i] * 3.0f;
}

__global__ void shift(const float* __restrict__ x, float* __restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i] + 3.0f;
}
"""
TEXTS = st.lists(st.sampled_from(["a", "b", "c", "}", "", "  x"]), max_size=14).map("\n".join)


def test_three_lines_inserted_one_changed_and_both_undone() -> None:
    inserted = "// a\n// b\n// c\n" + BUILT
    lines = LineMap(BUILT, inserted)
    assert [lines.to_new(n) for n in range(1, 13)] == list(range(4, 16))
    assert [lines.to_old(n) for n in (1, 2, 3)] == [None, None, None]
    assert (lines.to_old(7), lines.to_old(4), lines.to_old(10)) == (4, 1, 7)
    assert lines.touched_line_count == 3

    changed = inserted.replace("x[i] * 3.0f", "x[i] * 5.0f")
    lines = LineMap(BUILT, changed)
    assert (lines.to_old(7), lines.to_new(4)) == (None, None)
    assert [lines.to_old(n) for n in (4, 5, 6, 8, 9, 10, 11, 12, 13)] == [1, 2, 3, 5, 6, 7, 8, 9, 10]

    lines = LineMap(BUILT, BUILT)
    assert lines.is_identity
    assert [lines.to_old(n) for n in range(14)] == [None, *range(1, 13), None]
    assert lines.touched_line_count == 0


def test_line_endings_alone_touch_nothing() -> None:
    lines = LineMap(BUILT, BUILT.replace("\n", "\r\n"))
    assert not lines.is_identity
    assert [lines.to_new(n) for n in range(1, 13)] == list(range(1, 13))


def test_a_removed_kernel_does_not_lend_its_lines_to_its_twin() -> None:
    second = BUILT.split("\n\n")[1]
    lines = LineMap(BUILT, second)
    assert lines.to_old(4) == 10
    assert lines.to_new(4) is None


@given(TEXTS, TEXTS)
@settings(max_examples=300)
def test_a_mapped_line_has_the_same_text_and_the_map_is_ascending_and_symmetric(old: str, new: str) -> None:
    lines = LineMap(old, new)
    old_lines, new_lines = split_lines(old), split_lines(new)
    targets = []
    for number, text in enumerate(old_lines, 1):
        target = lines.to_new(number)
        if target is not None:
            assert new_lines[target - 1] == text
            assert lines.to_old(target) == number
            targets.append(target)
    assert targets == sorted(set(targets))
    assert lines.touched_line_count == len(new_lines) - len(targets)
    assert lines.to_new(0) is None
    assert lines.to_new(len(old_lines) + 1) is None


@given(TEXTS)
def test_the_same_text_maps_every_line_to_itself(text: str) -> None:
    lines = LineMap(text, text)
    count = len(split_lines(text))
    assert [lines.to_new(n) for n in range(1, count + 1)] == list(range(1, count + 1))
    assert lines.to_old(count + 1) is None


@given(TEXTS, TEXTS, TEXTS)
def test_an_insertion_keeps_every_old_line(before: str, inserted: str, after: str) -> None:
    lines = LineMap(f"{before}\n{after}", f"{before}\n{inserted}\n{after}")
    count = len(split_lines(f"{before}\n{after}"))
    assert all(lines.to_new(n) is not None for n in range(1, count + 1))


def test_ten_thousand_lines_of_equal_and_changed_text_are_fast() -> None:
    old = [f"  x{n} = y{n};" if n % 3 else "}" for n in range(10_000)]
    new = [line.replace("x", "z") if n % 7 == 0 else line for n, line in enumerate(old)]
    start = time.perf_counter()
    scattered = LineMap("\n".join(old), "\n".join(new))
    rewritten = LineMap("}\n" * 10_000, "{\n" + "}\n" * 4_000 + "{\n" * 6_000)
    assert time.perf_counter() - start < 2  # about 0.05 s on a laptop; difflib alone takes minutes
    assert scattered.to_new(2) == 2
    assert rewritten.to_old(1) is None
