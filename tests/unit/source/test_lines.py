"""LineTable and unit conversion, against the plainest possible references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.source.lines import LineTable, from_units, split_lines, to_units

TEXTS = st.text(alphabet=st.sampled_from("ab\r\n\f\v\x1c\x85\u2028\u2029é合🚀\t "), max_size=40)
LINES = st.text(alphabet=st.sampled_from("aé合🚀\t"), max_size=20)
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def naive_lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def naive_units(text: str, encoding: str) -> int:
    codec, size = CODECS[encoding]
    return len(text.encode(codec)) // size


@given(TEXTS)
def test_lines_end_at_lf_crlf_and_cr_only(text: str) -> None:
    table = LineTable(text)
    expected = naive_lines(text)
    assert split_lines(text) == expected
    assert table.line_count == len(expected)
    assert [table.line(number) for number in range(1, len(expected) + 1)] == expected


def test_form_feed_and_unicode_separators_do_not_break_a_line() -> None:
    assert LineTable("a\fb\u2028c\x85d\ve\nf").line_count == 2


def test_lines_that_do_not_exist() -> None:
    table = LineTable("a\nb")
    assert [table.has_line(number) for number in (-1, 0, 1, 2, 3)] == [False, False, True, True, False]
    assert [table.line(number) for number in (-1, 0, 3)] == ["", "", ""]


@given(TEXTS, st.integers(-3, 50))
def test_position_counts_the_line_ends_before_an_offset(text: str, offset: int) -> None:
    line, column = LineTable(text).position(offset)
    clamped = min(max(offset, 0), len(text))
    if text[clamped - 1 : clamped + 1] == "\r\n":
        clamped -= 1  # between CR and LF: the end of that line
    before = naive_lines(text[:clamped])
    assert (line, column) == (len(before), len(before[-1]) + 1)


@given(TEXTS, st.integers(-2, 12), st.integers(-2, 50))
def test_offset_and_position_are_inverse_on_clamped_places(text: str, line: int, column: int) -> None:
    table = LineTable(text)
    place = table.clamp(line, column)
    assert table.position(table.offset(line, column)) == place
    assert table.has_line(place[0])
    assert 1 <= place[1] <= len(table.line(place[0])) + 1
    if table.has_line(line) and 1 <= column <= len(table.line(line)) + 1:
        assert place == (line, column)


@given(LINES, st.integers(0, 20), st.sampled_from(sorted(CODECS)))
def test_units_equal_what_the_codecs_say(line: str, code_points: int, encoding: str) -> None:
    units = to_units(line, code_points, encoding)  # type: ignore[arg-type]
    assert units == naive_units(line[:code_points], encoding)
    assert from_units(line, units, encoding) == min(code_points, len(line))  # type: ignore[arg-type]


@given(LINES, st.integers(-3, 90), st.sampled_from(sorted(CODECS)))
def test_a_place_inside_a_character_is_its_start(line: str, units: int, encoding: str) -> None:
    found = from_units(line, units, encoding)  # type: ignore[arg-type]
    fitting = [n for n in range(len(line) + 1) if naive_units(line[:n], encoding) <= max(units, 0)]
    assert found == max(fitting)


def test_a_lone_surrogate_counts_and_does_not_raise() -> None:
    assert to_units("a\ud800b", 3, "utf-8") == 5
    assert to_units("a\ud800b", 3, "utf-16") == 3


@pytest.mark.parametrize(("encoding", "expected"), [("utf-16", (30, 36)), ("utf-8", (38, 44)), ("utf-32", (28, 34))])
def test_columns_of_a_name_behind_emoji_and_kanji(encoding: str, expected: tuple[int, int]) -> None:
    line = "/* 🚀🚀 合計 */ __global__ void rowsum(const float* x, float* out) { /* 行 */"
    start = line.index("rowsum")
    table = LineTable(line + "\n")
    columns = tuple(table.column_in_units(1, start + 1 + step, encoding) for step in (0, 6))  # type: ignore[arg-type]
    assert columns == expected
    assert table.column_from_units(1, expected[0], encoding) == start + 1  # type: ignore[arg-type]


def test_byte_columns_of_compilers() -> None:
    table = LineTable("é合x\n")
    assert [table.column_of_byte(1, byte) for byte in (1, 2, 3, 4, 6, 7, 99)] == [1, 1, 2, 2, 3, 4, 4]
