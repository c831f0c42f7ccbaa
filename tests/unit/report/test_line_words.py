"""Words of a line's hover: names of inlined functions, template instances as one place, what is waited for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.model.kernel_sass import read_cubin_sass
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.report.sass_words import last_name
from tests.oracle.cubin_corpus import build, tool_text
from tests.unit.kernel_values import analysed
from tests.unit.kernel_values import kernel as binary


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("ns::Mma<(int)3>::operator()", "Mma::operator()"),
        ("f<g<1>>", "f"),
        ("a<b>::c<d>::e", "e"),
        ("cute::operator>><0u, 192u, 3>", "cute::operator>>"),
        ("a::operator<<<int>", "a::operator<<"),
        ("x<int>::operator< <int>", "x::operator<"),
        ("p<3>::operator-><a<b>>", "p::operator->"),
        ("it::operator->*", "it::operator->*"),
        ("t::operator<=>", "t::operator<=>"),
    ],
)
def test_names_of_functions(name: str, last: str) -> None:
    assert last_name(name) == last


# (Not on the line of its call: ptxas drops a frame that has the number of the line before it.)
HEADER = """#pragma once


template <int N> __device__ __forceinline__ float times(const float* x)
{
    return x[N] * N;
}
"""
SOURCE = """#include "times.cuh"
__global__ void sum(const float* x, float* y)
{
    float a = times<3>(x) + times<5>(x);
    y[0] = a + times<7>(x);
}
"""


def test_instances_are_one_place_and_waits_name_the_call(toolkit: Path, tmp_path: Path) -> None:
    (tmp_path / "times.cuh").write_text(HEADER)
    source = tmp_path / "sum.cu"
    source.write_text(SOURCE)
    cubin = build(source, "sm_86", toolkit)
    sass = read_cubin_sass(cubin.data, tool_text(toolkit, cubin.path, "nvdisasm", *ARGUMENTS), "").sections
    [code] = sass.values()
    analysis = analysed([binary()])
    analysis = replace(analysis, path=str(source), kernels=(replace(analysis.kernels[0], sass=code),))
    first = line_hover(analysis, 4)
    assert first is not None
    [inlined] = [line for line in first.splitlines() if line.startswith("inlined")]
    assert inlined.startswith("inlined  times.cuh:6 (times)  2 LDG.E")
    second = line_hover(analysis, 5)
    assert second is not None
    [waits] = [line for line in second.splitlines() if line.startswith("Waits")]
    assert "LDG.E of this line (times.cuh:6)" in waits
