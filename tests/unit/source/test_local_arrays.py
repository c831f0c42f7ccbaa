"""Local arrays that a line indexes: only those declared in the function, never members, parameters or shared ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.source.kernels import scan
from kernel_lsp.source.local_arrays import indexed_arrays

TEXT = """__global__ void k(float* out, int n) {
  alignas(16) float a[4], b[8]; __shared__ float s[3];
  std::array<int, 3> v[2]; const unsigned int *p[3];
  float x = b[n], y = out[n];
  out[n] = a[n] + s[n] + q.a[n] + v[n].x; // b[1]
  for (int i = 0; i < n; i++) { float c[2] = {a[i], b[i]}; out[i] = c[n]; }
  const char* t = "a[0]"; return a[n];
}
float outside(float* f) { return f[0]; }
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (1, []),
        (2, []),
        (4, [("b", 2)]),
        (5, [("a", 2), ("v", 3)]),
        (6, [("a", 2), ("b", 2), ("c", 6)]),
        (7, [("a", 2)]),
        (9, []),
        (99, []),
    ],
)
def test_arrays_of_a_line(line: int, expected: list[tuple[str, int]]) -> None:
    found = indexed_arrays(TEXT, scan(TEXT), line)
    assert [(array.name, array.declared_line) for array in found] == expected
    text = TEXT.split("\n")[line - 1] if line < 10 else ""
    assert all(text[a.span.column - 1 : a.span.end_column - 1] == a.name for a in found)


@given(st.text(alphabet="abk(){}[];=,<> \n\"'/*#_globalvoidfloat0123", max_size=200), st.integers(0, 12))
def test_any_text_ends_in_an_answer(body: str, line: int) -> None:
    text = "__global__ void k(float* o) {\n" + body + "\n}\n"
    for array in indexed_arrays(text, scan(text), line):
        assert array.declared_line <= line
