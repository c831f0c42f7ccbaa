"""Launches read from the text: expectations by hand, and unknown where C++ leaves any doubt."""

from __future__ import annotations

import pytest

from kernel_lsp.source.expressions import fold
from kernel_lsp.source.kernels import scan
from kernel_lsp.source.scan_result import SourceLaunch
from tests.unit.source.known_launches import KNOWN


def values(launch: SourceLaunch, **arguments: str) -> tuple[object, object, object]:
    """(grid, block, dynamic shared bytes) with template arguments filled in."""

    def extents(found: tuple[object, ...] | None) -> tuple[int | None, ...] | None:
        return None if found is None else tuple(fold(extent, arguments) for extent in found)  # type: ignore[arg-type]

    return extents(launch.grid), extents(launch.block), fold(launch.dynamic_shared_bytes, arguments)


def only_launch(text: str, defines: dict[str, str] | None = None) -> SourceLaunch:
    found = scan(text, defines).launches
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(("before", "statements", "expected"), KNOWN.values(), ids=KNOWN.keys())
def test_what_the_text_decides(before: str, statements: str, expected: tuple[object, ...]) -> None:
    text = f"{before}\n__global__ void f(int* p) {{}}\nvoid host(int* p, int n) {{\n{statements}\n}}\n"
    launch = only_launch(text)
    assert launch.kernel == ("f",)
    assert values(launch) == expected
    assert launch.line == before.count("\n") + 4


UNKNOWN_BLOCK = {
    "parameter": ("", "f<<<1, n>>>(p);"),
    "assigned later": ("", "int t = 64; if (n) t = 128; f<<<1, t>>>(p);"),
    "assigned after the launch, in a loop": ("", "int t = 64; while (n--) { f<<<1, t>>>(p); t *= 2; }"),
    "counted": ("", "for (int t = 32; t < 1024; t *= 2) f<<<1, t>>>(p);"),
    "range": ("", "for (int t : {32, 64}) f<<<1, t>>>(p);"),
    "address taken": ("", "int t = 64; cudaOccupancyMaxPotentialBlockSize(&g, &t, f); f<<<1, t>>>(p);"),
    "by reference": ("void pick(int& t) { t = 3; }", "int t = 64; pick(t); f<<<1, t>>>(p);"),
    "given to something unseen": ("", "int t = 64; parse(argv, t); f<<<1, t>>>(p);"),
    "read from a stream": ("", "int t = 64; std::cin >> t; f<<<1, t>>>(p);"),
    "aliased": ("", "int t = 64; int& r = t; r = 3; f<<<1, t>>>(p);"),
    "captured by reference": ("", "int t = 64; auto g = [&] { t = 128; }; g(); f<<<1, t>>>(p);"),
    "structured binding": ("constexpr int t = 64;", "auto [g, t] = pick(); f<<<g, t>>>(p);"),
    "lambda parameter": ("constexpr int t = 64;", "auto run = [&](int t) { f<<<1, t>>>(p); };"),
    "reference parameter hides a constant": ("constexpr int n = 64;", "f<<<1, n>>>(p);"),
    "dim3 with an assigned part": ("", "dim3 b(16, 16); b.y = n; f<<<1, b>>>(p);"),
    "global variable": ("int t = 64;", "f<<<1, t>>>(p);"),
    "extern constant": ("extern const int t;", "f<<<1, t>>>(p);"),
    "from a header": ('#include "config.h"', "f<<<1, kThreads>>>(p);"),
    "macro with two values": ("#ifdef BIG\n#define T 512\n#else\n#define T 64\n#endif", "f<<<1, T>>>(p);"),
    "macro that something else may define": ("#ifndef T\n#define T 64\n#endif", "f<<<1, T>>>(p);"),
    "constant with two values": ("#if A\nconst int t = 5;\n#else\nconst int t = 6;\n#endif", "f<<<1, t>>>(p);"),
    "constant in another #if": ("#if BIG\nconstexpr int t = 512;\n#endif", "f<<<1, t>>>(p);"),
    "macro changed in an #if": ("#define T 64\n#ifdef BIG\n#undef T\n#define T 512\n#endif", "f<<<1, T>>>(p);"),
    "float": ("constexpr float t = 64;", "f<<<1, t>>>(p);"),
    "float literal": ("", "f<<<1, 64.0>>>(p);"),
    "call": ("", "f<<<1, block_size()>>>(p);"),
    "negative in between": ("", "f<<<1, 32 - 64 + 96>>>(p);"),
    "overflow": ("", "f<<<1, (1 << 30) * 4 / 4>>>(p);"),
    "division by zero": ("", "f<<<1, 64 / 0>>>(p);"),
    "function of a template": ("template <int N> struct C { static const int t = N; };", "f<<<1, C<64>::t>>>(p);"),
    "member": ("", "f<<<1, cfg.threads>>>(p);"),
    "array": ("", "const int t[] = {64}; f<<<1, t[0]>>>(p);"),
    "member of a class": ("const int t = 6; struct R { int t; void g(); };", "} void R::g() { f<<<1, t>>>(p);"),
    "recursive macro": ("#define A B\n#define B A", "f<<<1, A>>>(p);"),
    "recursive constant": ("const int a = a;", "f<<<1, a>>>(p);"),
    "four extents": ("", "f<<<1, dim3(1, 2, 3, 4)>>>(p);"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "statements"), UNKNOWN_BLOCK.values(), ids=UNKNOWN_BLOCK.keys())
def test_what_the_text_does_not_decide_is_unknown(before: str, statements: str) -> None:
    text = f"{before}\n__global__ void f(int* p) {{}}\nvoid host(int* p, const int& n) {{\n{statements}\n}}\n"
    found = values(only_launch(text))[1]
    assert found is None or None in found  # type: ignore[operator]


UNKNOWN_SHARED = {
    "parameter": "f<<<1, 32, n>>>(p);",
    "sizeof of a class": "f<<<1, 32, sizeof(Storage)>>>(p);",
    "sizeof of a long": "f<<<1, 32, sizeof(long)>>>(p);",
    "sizeof of a class that hides an alias": "f<<<1, 32, sizeof(T)>>>(p);",
}


@pytest.mark.parametrize("statement", UNKNOWN_SHARED.values(), ids=UNKNOWN_SHARED.keys())
def test_shared_memory_that_the_text_does_not_decide(statement: str) -> None:
    text = f"using T = float; struct U {{ struct T {{}}; }};\nvoid host(int n) {{ {statement} }}"
    assert values(only_launch(text)) == ((1, 1, 1), (32, 1, 1), None)


def test_defines_of_the_command_line_decide_a_default() -> None:
    text = "#ifndef T\n#define T 64\n#endif\nvoid host() { f<<<1, T>>>(); }"
    assert values(only_launch(text, {}))[1] == (64, 1, 1)
    assert values(only_launch(text, {"T": "128"}))[1] == (128, 1, 1)
    assert values(only_launch(text))[1] is None
    with_header = '#include "tune.h"\n' + text
    assert values(only_launch(with_header, {}))[1] is None
    assert values(only_launch("void host() { f<<<1, T>>>(); }", {"T": "96"}))[1] == (96, 1, 1)


def test_the_arm_of_the_launch_decides_its_constant() -> None:
    text = """\
#ifdef BIG
constexpr int t = 512;
void host() { f<<<1, t>>>(); }
#else
constexpr int t = 64;
void host() { f<<<1, t>>>(); }
#endif
"""
    assert [values(launch)[1] for launch in scan(text).launches] == [(512, 1, 1), (64, 1, 1)]
    assert all(launch.is_conditional for launch in scan(text).launches)


def test_template_arguments_at_a_launch() -> None:
    text = """\
template <int T> void run(float* p) {
  constexpr int kThreads = T * T;
  ns::tiled<T, float, (3 > 2)><<<1, dim3(T, T), kThreads * 2 * sizeof(float)>>>(p);
}
template <typename E, int N> void typed(float* p) { g<E><<<1, N, 8 * sizeof(E)>>>(p); }
"""
    tiled, g = scan(text).launches
    assert (tiled.kernel, tiled.kernel_args) == (("ns", "tiled"), ("T", "float", "(3>2)"))
    assert values(tiled)[1:] == ((None, None, 1), None)
    assert values(tiled, T="16")[1:] == ((16, 16, 1), 2048)
    assert values(g, E="double")[1:] == ((None, 1, 1), 64)
    assert values(g, E="Matrix", N="32")[1:] == ((32, 1, 1), None)


def test_launch_syntax_over_several_lines_and_nested_angles() -> None:
    text = "void host() {\n  k<A<B<3>>, 4>\n    <<<\n      dim3((n >> 3) + 1),\n      128\n    >>>(x);\n}"
    launch = only_launch(text)
    assert (launch.kernel_args, launch.line, values(launch)[1]) == (("A<B<3>>", "4"), 3, (128, 1, 1))


def test_a_parameter_that_holds_some_kernel_is_not_the_kernel_of_that_name() -> None:
    text = "__global__ void kernel() {}\ntemplate <class K> void run(K kernel) { kernel<<<1, 32>>>(); }"
    assert scan(text).launches == ()


def test_no_launch() -> None:
    text = 'int a = b << 3 >> 2; // f<<<1, 2>>>()\nauto s = "f<<<1, 2>>>()";\nint c = x <<< y;\nf<<<1>>>(); f<<<1, 2'
    assert scan("__global__ void f();" + text).launches == ()


def test_shared_memory_limits() -> None:
    text = """\
template <int T> void run() {
  cudaFuncSetAttribute(tiled<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, T * 1024);
  auto kernel = &tiled<64>;
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304));
  cudaFuncSetAttribute(other, cudaFuncAttributePreferredSharedMemoryCarveout, 50);
  cudaFuncSetAttribute(other, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
"""
    first, second = scan(text).shared_memory_limits
    assert (first.kernel, first.kernel_args, fold(first.limit_bytes, {"T": "48"})) == (("tiled",), ("T",), 49152)
    assert (second.kernel, second.kernel_args, second.limit_bytes, second.line) == (("tiled",), ("64",), 98304, 4)
