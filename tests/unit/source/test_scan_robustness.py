"""Any text in, a scan out: no exception, places inside the text, bounded time on hostile input."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel_lsp.source.kernels import scan
from kernel_lsp.source.lines import LineTable

WORDS = """__global__ __device__ __shared__ __launch_bounds__ void f g int const dim3 auto extern using namespace
struct enum template operator sizeof 256 cudaFuncSetAttribute cudaLaunchKernel cudaLaunchKernelEx f=3;"""
SIGNS = """( ) { } < > <<< >>> :: -> . = ; , [ ] & " ' /* */ // R"x( )x" 🚀 \\"""
LINES = ["#if X\n", "#else\n", "#elif 0\n", "#endif\n", "#define f g\n", "#define g(x) x\n", "#undef f\n", "\\\n"]
PIECES = st.sampled_from(
    [word + " " for word in WORDS.split()] + SIGNS.split() + LINES + ["\n", "\r", "// kernel-lsp: block=3 "]
)
WHOLE = """\
#define N 32
namespace { template <int T> __global__ void __launch_bounds__(T, 2) f(float* p) {
  extern __shared__ float s[]; __shared__ int a[T][N + 1]; }}
// kernel-lsp: block=16x16 smem=48KB
__global__ void g() {}
void host() { dim3 b(N, 4); auto k = &f<N>; f<N><<<dim3(3), b, 2 * sizeof(float)>>>(p); k<<<1, N>>>(p); }
"""


def check(text: str) -> None:
    found = scan(text, {})
    table = LineTable(text)
    for function in (*found.kernels, *found.device_functions):
        line = table.line(function.span.line)
        assert line[function.span.column - 1 : function.span.end_column - 1] == function.name
        assert function.first_line <= function.span.line <= function.body_first_line <= function.last_line
        assert table.has_line(function.last_line)
    for launch in found.launches:
        assert table.has_line(launch.line)
    for note in found.notes:
        assert table.has_line(note.span.line)


@given(st.lists(PIECES, max_size=60).map("".join))
@settings(max_examples=200, deadline=None)
@example("__global__ void f(){#")
@example("[" * 50 + "__global__ void f() {} <<<")
def test_pieces_of_cuda_in_any_order(text: str) -> None:
    check(text)


@given(st.text(max_size=60).map(lambda text: "__global__ " + text))
@settings(deadline=None)
def test_any_characters(text: str) -> None:
    check(text)


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.sampled_from(["", "(", "}", "#if\n", '"', "<"]))
@settings(max_examples=100, deadline=None)
def test_a_file_cut_or_broken_anywhere(start: int, end: int, inserted: str) -> None:
    check(WHOLE[:start])
    check(WHOLE[:start] + inserted + WHOLE[start:])
    check(WHOLE[: min(start, end)] + WHOLE[max(start, end) :])


def many(count: int) -> dict[str, str]:
    names = "".join(f"const int n{i} = n{i + 1} + 1; " for i in range(count // 30))
    return {
        "braces": "__global__ void f() " + "{" * count,
        "closing": "__global__ void f() {" + "}" * count,
        "parentheses": "void h() { f<<<1, " + "(" * count + "1" + ")" * count + ">>>(); }",
        "angles": "template " + "<" * count + " __global__ void f() {}",
        "templates": "template <int N> " * (count // 17) + "__global__ void f() {}",
        "markers": "__global__ " * (count // 11) + "void f() {}",
        "open comment": "/* __global__" * (count // 13),
        "raw strings": '__global__ R"x(' * (count // 15),
        "quotes": '__global__ "\n' * (count // 13),
        "ifs": "__global__ void f() {\n" + "#if X\n{(\n" * (count // 9) + "#else\n}\n#endif\n" * (count // 15),
        "settled ifs": "__global__ void f() {}\n" + "#if 1\n#elif Y\n" * (count // 14),
        "one directive": "__global__ void f() {}\n#define X " + "(/**/" * (count // 5),
        "continued": "__global__ void f() {}\n#define X " + "\\\n" * (count // 2),
        "launches": "void h(int t) { " + "f<<<1, t>>>(); " * (count // 15) + "}",
        "launches of one local": "void h() { int t = 3; " + "f<<<1, t>>>(t); " * (count // 16) + "}",
        "launches without end": "f<<<1, 2 > 1 " * (count // 13),
        "macros": "".join(f"#define m{i} m{i + 1} m{i + 1}\n" for i in range(count // 22))
        + "void h() { f<<<1, m0>>>(); }",
        "constants": names + "void h() { " + "f<<<1, n0>>>(); " * (count // 60) + "}",
        "enumerators": "enum { " + "e, " * (count // 3) + "last }; void h() { f<<<1, last>>>(); }",
        "kernels": "".join(f"__global__ void k{i}() {{ }}\n" for i in range(count // 30)),
        "kernels in namespaces": "".join(f"namespace n{i} {{ __global__ void k() {{}} " for i in range(count // 40)),
        "shared": "__global__ void f() { " + "__shared__ int a[N], b; " * (count // 24) + "}",
        "comments": "// kernel-lsp: block=\n" * (count // 21) + "__global__ void f() {}",
        "heads": "__global__ void " + "M(x) " * (count // 5),
        "words": "__device__ " + "int " * (count // 4),
        "limits": "cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, x); " * (count // 76),
        "configs": "void h() { c.blockDim = 3; " + "cudaLaunchKernelEx(&c, f, p); " * (count // 30) + "}",
        "device functions": "".join(f"__device__ void d{i}() {{ d{i + 1}(); }}\n" for i in range(count // 40)),
        "same function": "__device__ void d() { d(); }\n" * (count // 29),
        "same kernel": "// kernel-lsp: block=3\n__global__ void d() { }\n" * (count // 47),
    }


@pytest.mark.parametrize("kind", many(100))
def test_time_grows_with_the_text_and_not_with_its_square(kind: str) -> None:
    text = many(100_000)[kind]
    start = time.process_time()
    check(text)
    assert time.process_time() - start < 4  # most take 0.05 to 0.3 s; squares would take a minute
