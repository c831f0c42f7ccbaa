"""Demangled names against the text: which definition, which launch, what has no code."""

from __future__ import annotations

import pytest

from kernel_lsp.source.kernel_match import (
    kernel_in_text,
    kernel_name,
    match_arguments,
    names_kernel,
    not_compiled,
)
from kernel_lsp.source.kernels import scan

NAMES = {
    "scan": (("scan",), ()),
    "scan(float const*, float*)": (("scan",), ()),
    "void axpy<float, 1>(float, float const*, float*, int)": (("axpy",), ("float", "1")),
    "void a::(anonymous namespace)::f<b::C<int, (char)3>, true>(std::pair<int, b::D>*)": (
        ("a", "(anonymous namespace)", "f"),
        ("b::C<int, (char)3>", "true"),
    ),
    "(anonymous namespace)::f(int)": (("(anonymous namespace)", "f"), ()),
    "void n::f<int (*)(float, int)>(int (*)(float, int))": (("n", "f"), ("int (*)(float, int)",)),
    "void f<unsigned int, (Mode)1>(unsigned int*)": (("f",), ("unsigned int", "(Mode)1")),
    "_Z1fPfunreadable": (("_Z1fPfunreadable",), ()),
}


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_a_demangled_name(name: str) -> None:
    parts = kernel_name(name)
    assert (parts.scope_and_name, parts.template_args) == NAMES[name]


TEXT = """\
namespace a {
__global__ void f(float* p) {
}
__global__ void f(double* p) {
}
namespace { template <int N> __global__ void g() {} }
}
NAMESPACE_BEGIN(b)
__global__ void h() {}
NAMESPACE_END
"""


def test_line_decides_among_overloads_and_name_alone_where_it_is_unique() -> None:
    found = scan(TEXT)
    first, second, g, h = found.kernels
    assert kernel_in_text(found, kernel_name("a::f(float*)"), 2) is first
    assert kernel_in_text(found, kernel_name("a::f(double*)"), 4) is second
    assert kernel_in_text(found, kernel_name("a::f(double*)"), None) is None
    assert kernel_in_text(found, kernel_name("void a::(anonymous namespace)::g<3>()"), None) is g
    assert kernel_in_text(found, kernel_name("void a::(anonymous namespace)::g<3>()"), 30) is g
    assert kernel_in_text(found, kernel_name("b::h()"), 9) is h
    assert kernel_in_text(found, kernel_name("b::h()"), None) is None
    assert kernel_in_text(found, kernel_name("c::elsewhere()"), 2) is None


def test_a_name_at_a_launch_means_the_kernel_that_is_visible_there() -> None:
    text = "namespace a { __global__ void f() {} }\nnamespace b { __global__ void f() {} }\n__global__ void g() {}"
    found = scan(text)
    in_a, in_b = kernel_name("a::f()"), kernel_name("b::f()")
    assert names_kernel(("f",), ("a",), in_a, found)
    assert not names_kernel(("f",), ("a",), in_b, found)
    assert not names_kernel(("f",), (), in_a, found)
    assert names_kernel(("a", "f"), (), in_a, found)
    assert names_kernel(("g",), ("a", "c"), kernel_name("g()"), found)
    assert names_kernel(("k",), (), kernel_name("lib::k()"), found)


def test_arguments_match_by_value_and_by_canonical_type() -> None:
    launch = scan("constexpr int T = 8 * 2;\nvoid host() { f<T, half, Cfg><<<1, 2>>>(); }").launches[0]

    def matched(*instance: str) -> bool | None:
        found = match_arguments(launch.kernel_args, launch.arg_values, instance)
        return None if found is None else found.is_certain

    assert matched("16", "__half", "Cfg") is True
    assert matched("(int)16", "__half", "ns::Cfg") is False
    assert matched("32", "__half", "Cfg") is None
    assert matched("16", "float", "Cfg") is None
    assert matched("16", "__half") is None
    assert matched("16", "__half", "Cfg", "1") is False


def test_parameters_of_the_code_around_a_launch_are_bound() -> None:
    launch = scan("template <int N, class E> void host() { f<N, E, N * 2><<<1, N>>>(); }").launches[0]
    found = match_arguments(launch.kernel_args, launch.arg_values, ("16", "float", "32"))
    assert found is not None
    assert (found.is_certain, dict(found.bindings)) == (True, {"N": "16", "E": "float"})
    assert match_arguments(launch.kernel_args, launch.arg_values, ("16", "float", "16")) is None


def test_a_template_never_instantiated_and_a_function_never_called() -> None:
    text = """\
template <int N>
__global__ void never_used(float* p) { p[threadIdx.x] *= N; }

__device__ float helper(float x) { return x * 2.f; }
__device__ float used(float x) { return x; }
__device__ float by_macro(float x) { return x; }
#define TWICE(x) by_macro(by_macro(x))
__device__ float forward(float);
__device__ float forward(float x) { return x > 0 ? forward(x - 1) : 0; }
struct S { __device__ float member() { return 0; } };
#ifdef FAST
__global__ void fast() {}
#endif
__global__ void made(float* p) { *p = used(1); } // helper
"""
    found = scan(text)
    made = next(kernel for kernel in found.kernels if kernel.name == "made")
    assert [(span.line, reason) for span, reason in not_compiled(found, [made], ["made"], [], False)] == [
        (2, "template never_used is not instantiated in this file"),
        (4, "no kernel of this file calls helper"),
        (9, "no kernel of this file calls forward"),
        (12, "fast stands inside #ifdef FAST (line 11)"),
    ]
    assert not_compiled(found, found.kernels, [], ["helper", "forward"], False) == ()
    in_header = not_compiled(found, [made], ["made"], [], True)
    assert [reason for _, reason in in_header] == [
        "template never_used is not instantiated in this build",
        "fast stands inside #ifdef FAST (line 11)",
    ]


def test_a_kernel_that_a_line_directive_moves_away_has_code() -> None:
    found = scan('#line 1 "default_program"\n__global__ void from_string(float* p) {}\n')
    assert not_compiled(found, [], ["from_string"], [], False) == ()
