"""The scan against CUDA as people write it: expectations read off the snippet by eye."""

from __future__ import annotations

import pytest

from kernel_lsp.source.kernels import scan
from kernel_lsp.source.scan_result import SourceKernel


def only_kernel(text: str) -> SourceKernel:
    found = scan(text).kernels
    assert len(found) == 1, found
    return found[0]


HEADS = {
    "plain": "__global__ void f(int* p) {}",
    "static": "static __global__ void f(int* p) {}",
    "void first": "void __global__ f(int* p) {}",
    "extern C": 'extern "C" __global__ void f(int* p) {}',
    "bounds before void": "__global__ __launch_bounds__(256, 2) void f(int* p) {}",
    "bounds after void": "__global__ void __launch_bounds__(256, 2) f(int* p) {}",
    "bounds before all": "__launch_bounds__(256, 2) __global__ void f(int* p) {}",
    "bounds of a macro": "__global__ void __launch_bounds__(MAX_T) f(int* p) {}",
    "attribute macro": "__global__ void MY_BOUNDS(256) f(int* p) {}",
    "attribute macro without void": "KERNEL_API(3) __global__ MY_BOUNDS(256, (2)) void f(int* p) {}",
    "gnu attribute": "__global__ __attribute__((noinline, used)) void f(int* p) {}",
    "standard attribute": "[[maybe_unused]] __global__ void f(int* p) {}",
    "template": "template <typename T, int N>\n__global__ void f(T* p) {}",
    "template default": "template <typename T = float, int N = (3 > 2), class U = A<B<T>>>\n__global__ void f(T* p) {}",
    "requires": "template <int N> requires (N > 0) && C<N>\n__global__ void f(int* p) {}",
    "trailing requires": "template <int N>\n__global__ void f(int* p) requires (N > 0) {}",
    "trailing return": "__global__ auto f(int* p) -> void {}",
    "return type by enable_if": "template <class T> __global__ std::enable_if_t<(sizeof(T) > 2), void> f(T* p) {}",
    "noexcept": "__global__ void f(int* p) noexcept(true) {}",
    "trailing macro": "__global__ void f(int* p) KERNEL_END {}",
    "K&R breaks": "__global__\nvoid\nf\n(\n  int *p\n)\n{\n}",
    "function pointer": "__global__ void f(void (*g)(int), int n) {}",
    "grid constant": "__global__ void f(const __grid_constant__ Params<int, 3> params) {}",
    "inline macro in front": "KERNEL_LINKAGE inline __global__ void f(int* p) {}",
    "default argument": "__global__ void f(int n = g(1, 2), S s = {1, 2}) {}",
    "specialisation": "template <> __global__ void f<16>(int* p) {}",
    "cluster": "__global__ void __cluster_dims__(2, 1, 1) f(int* p) {}",
    "comment inside": "__global__ /* void g() */ void // g(\nf(int* p) {}",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_the_name_of_a_kernel_is_found_in_every_order_of_its_head(head: str) -> None:
    text = f"int before;\n\n{head}\nint after;\n"
    kernel = only_kernel(text)
    assert kernel.name == kernel.qualified_name == "f"
    line = text.split("\n")[kernel.span.line - 1]
    assert line[kernel.span.column - 1 : kernel.span.end_column - 1] == "f"
    assert kernel.first_line == 3
    assert kernel.last_line == text.count("\n") - 1


NO_KERNELS = {
    "line comment": "// __global__ void f() {}\n__device__ int x;",
    "comment continued": "// a \\\n__global__ void f() {}",
    "block comment": "/* __global__ void f() {} */",
    "string": 'const char* s = "__global__ void f() {}";',
    "raw string": 'const char* s = R"(\n__global__ void f() {}\n)";',
    "raw string with a mark": 'const char* s = R"cu( )" __global__ void f() {} )cu";',
    "macro body": "#define K __global__ void f() {}\n",
    "macro body continued": "#define K \\\n  __global__ void f() \\\n  {}\n",
    "never compiled": "#if 0\n__global__ void f() {}\n#endif",
    "other arm of true": "#if 1\n#else\n__global__ void f() {}\n#endif",
    "other compiler": "#ifndef __CUDACC__\n__global__ void f() {}\n#endif",
    "declaration": "__global__ void f(int* p);",
    "instantiation": "template __global__ void f<16>(int*);",
    "made by a macro": "__global__ void NAME(f)(int* p) {}",
    "incomplete": "__global__ void f(int* p",
    "incomplete without parameters": "__global__ void f",
    "marker at the end": "int x; __global__",
    "longer word": "my__global__ void f() {}",
}


@pytest.mark.parametrize("text", NO_KERNELS.values(), ids=NO_KERNELS.keys())
def test_what_looks_like_a_kernel_and_is_none(text: str) -> None:
    assert scan(text).kernels == ()


def test_names_of_namespaces_and_anonymous_ones() -> None:
    text = """\
namespace a::b {
inline namespace v1 { __global__ void one() {} }
namespace { __global__ void two() {} }
extern "C" { __global__ void three() {} }
}
namespace [[deprecated]] c { struct S { int x; }; __global__ void four() { if (1) { S s{1}; } } }
__global__ void five() {}
"""
    assert [kernel.qualified_name for kernel in scan(text).kernels] == [
        "a::b::v1::one",
        "a::b::(anonymous namespace)::two",
        "a::b::three",
        "c::four",
        "five",
    ]
    assert [kernel.is_static for kernel in scan(text).kernels] == [False, True, False, False, False]


def test_extent_parameters_and_bounds_of_a_template() -> None:
    text = """\
constexpr int kThreads = 128;

template <typename T, int TILE, class... Ts>
__global__ void __launch_bounds__(kThreads * 2, 3)
gemm(const T* a, T* b) {
  if (a) {
  }
}
"""
    kernel = only_kernel(text)
    assert (kernel.first_line, kernel.body_first_line, kernel.last_line) == (3, 5, 8)
    assert kernel.template_params == ("T", "TILE", "Ts...")
    assert kernel.is_template
    assert (kernel.launch_bounds_text, kernel.max_threads, kernel.min_blocks_per_sm) == ("kThreads*2, 3", 256, 3)


def test_bounds_that_are_no_constant_are_unknown_and_not_guessed() -> None:
    kernel = only_kernel("template <int N> __global__ void __launch_bounds__(N, 2) f() {}")
    assert (kernel.launch_bounds_text, kernel.max_threads, kernel.min_blocks_per_sm) == ("N, 2", None, 2)
    kernel = only_kernel('#include "config.h"\n__global__ void __launch_bounds__(kThreads) f() {}')
    assert (kernel.launch_bounds_text, kernel.max_threads) == ("kThreads", None)
    assert only_kernel("__global__ void f() {}").launch_bounds_text is None


def test_shared_arrays() -> None:
    text = """\
#define TILE 16
extern __shared__ float scratch[];
extern __shared__ char unused[];
template <int N>
__global__ void f() {
  __shared__ float a[TILE][TILE + 1], b[4];
  __shared__ alignas(16) half c[N];
  static __shared__ unsigned int count;
  __shared__ typename R<int, N>::Storage storage;
  __shared__ __align__(128) cuda::barrier<cuda::thread_scope_block> bar[2];
  extern __shared__ __align__(16) unsigned char raw[];
  scratch[0] = 1;
}
__device__ void g() { __shared__ int other[2]; }
"""
    kernel = only_kernel(text)
    found = [(a.name, a.element_type, a.dims, a.line, a.is_dynamic) for a in kernel.shared_arrays]
    assert found == [
        ("scratch", "float", (None,), 2, True),
        ("a", "float", (16, 17), 6, False),
        ("b", "float", (4,), 6, False),
        ("c", "half", (None,), 7, False),
        ("count", "unsigned int", (), 8, False),
        ("storage", "typename R<int,N>::Storage", (), 9, False),
        ("bar", "cuda::barrier<cuda::thread_scope_block>", (2,), 10, False),
        ("raw", "unsigned char", (None,), 11, True),
    ]


def test_device_functions() -> None:
    text = """\
__device__ float table[3];
__device__ float declared(float);
__device__ __forceinline__ float helper(float x) { return x; }
template <class T> __host__ __device__ inline T twice(T x) { return x + x; }
struct S { __device__ int member() const { return 1; } __device__ bool operator()(int) { return true; } };
void host() { auto f = [=] __device__ (int i) { return i; }; }
namespace n { __device__ std::pair<int, float> two(int) { return {}; } }
"""
    found = scan(text)
    assert found.kernels == ()
    assert [f.qualified_name for f in found.device_functions] == ["helper", "twice", "S::member", "n::two"]
    assert [f.is_template for f in found.device_functions] == [False, True, False, False]


def test_a_missing_brace_does_not_swallow_the_next_kernel() -> None:
    text = "__global__ void f() {\n  if (x) {\n}\n\n__global__ void g() {\n}\n"
    f, g = scan(text).kernels
    assert (f.name, f.first_line, f.last_line) == ("f", 1, 3)
    assert (g.name, g.first_line, g.last_line) == ("g", 5, 6)


def test_arms_of_an_if_that_share_a_closing_brace() -> None:
    text = """\
namespace n {
#ifdef FAST
__global__ void f(float* p) {
#else
__global__ void f(double* p) {
#endif
  p[0] = 1;
}
__global__ void g() {}
}
__global__ void h() {}
"""
    kernels = scan(text).kernels
    assert [k.qualified_name for k in kernels] == ["n::f", "n::f", "n::g", "h"]
    assert [k.condition for k in kernels] == ["#ifdef FAST (line 2)", "#else (line 4)", None, None]
    assert kernels[1].last_line == 8


def test_an_include_guard_is_no_condition() -> None:
    text = """\
#ifndef K_CUH
#define K_CUH
#ifdef __cplusplus
extern "C" {
#endif
__global__ void f() {}
#ifdef __cplusplus
}
#endif
#endif
"""
    assert only_kernel(text).condition is None


def test_columns_count_code_points_and_lines_end_as_in_editors() -> None:
    kernel = only_kernel("/* 🚀🚀 合計 */ __global__ void rowsum(const float* x, float* out) {\r\n}\r\n")
    assert (kernel.span.line, kernel.span.column, kernel.span.end_column) == (1, 29, 35)
    kernel = only_kernel("int a;\f\u2028\r__global__ void f() {\r}\r")
    assert (kernel.span.line, kernel.last_line) == (2, 3)


def test_host_code_alone_and_a_text_too_large() -> None:
    assert scan("#include <cstdio>\nint answer() { return 42; }\n").notes == ()
    found = scan("__global__ void f() {}\n" + " " * 10_000_000)
    assert found.kernels == ()
    assert "10 MB" in found.notes[0].message
