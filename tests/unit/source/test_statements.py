"""The lines of the statement that a line belongs to; expected by reading the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.source.lines import LineTable
from kernel_lsp.source.statements import statement_lines

TEXT = """__global__ void gemm(float* out,
                     const float* a)
{
    float sums[4] = {0};
    for (int i = 0;
         i < 4;
         ++i)
        if (a[i] > 0)
            sums[i] +=
                a[i] *
                a[i + 1];
    // a comment
    const float4 v = reinterpret_cast<const float4*>(
        &a[threadIdx.x])[0];
    out[0] = sums[0]; out[1] = combine(
        v.x,
        [&](float x) {
            return x
                * 2.0f;
        });

    if constexpr (sizeof(float)
                  == 4) {
        out[2] = 1.0f;
    }
    else
        out[3] =
            2.0f;
}
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (1, None),  # the head of the function
        (2, None),
        (3, None),
        (5, (5, 7)),
        (6, (5, 7)),
        (7, (5, 7)),
        (8, (8, 8)),
        (9, (9, 11)),
        (10, (9, 11)),
        (11, (9, 11)),
        (12, None),  # a comment
        (13, (13, 14)),
        (14, (13, 14)),
        (15, (15, 15)),
        (16, (15, 20)),
        (18, (18, 19)),
        (19, (18, 19)),
        (21, None),  # blank
        (22, (22, 23)),
        (23, (22, 23)),
        (24, (24, 24)),
        (25, None),
        (27, (27, 28)),
        (28, (27, 28)),
        (29, None),
        (99, None),
    ],
)
def test_lines_of_a_statement(line: int, expected: tuple[int, int] | None) -> None:
    assert statement_lines(LineTable(TEXT), line) == expected


@given(st.text(alphabet="ab{}();[]for if\n\"'/*#=", max_size=200), st.integers(-1, 30))
def test_any_text_is_taken(text: str, line: int) -> None:
    found = statement_lines(LineTable(text), line)
    assert found is None or 1 <= found[0] <= found[1] <= LineTable(text).line_count
