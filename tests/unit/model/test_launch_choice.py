"""Which launches a kernel has, from all that is known, and in which order they are spoken of."""

from __future__ import annotations

from typing import Any

from kernel_lsp.cubin.kernel import KernelBinary
from kernel_lsp.model.launch import Launch
from kernel_lsp.model.launch_choice import launches_for
from kernel_lsp.source.kernels import scan
from tests.unit.kernel_values import PATH, kernel, launch

TEXT = """\
// kernel-lsp: block=64 smem=1KB
__global__ void __launch_bounds__(512) gemm(float* p) {
  extern __shared__ float tile[];
}
void host() { gemm<<<8, dim3(16, 16), 2048>>>(p); gemm<<<4, 128, bytes>>>(p); gemm<<<4, n, 3072>>>(p); }
"""


def shapes(found: tuple[Launch, ...]) -> list[tuple[str, tuple[int, int, int], int | None, str]]:
    return [(entry.origin, entry.block, entry.dynamic_shared_bytes, entry.where) for entry in found]


def launches(
    text: str, name: str = "gemm", line: int | None = None, configured: tuple[Launch, ...] = (), **values: Any
) -> list[tuple[str, tuple[int, int, int], int | None, str]]:
    override = values.pop("override", None)
    profiled = values.pop("profiled", ())
    return shapes(launches_for(binary(name, line, **values), scan(text), PATH, configured, override, profiled))


def binary(name: str, line: int | None, **values: Any) -> KernelBinary:
    return kernel(name, line, **{"uses_dynamic_shared": True, **values})


def test_every_source_in_order() -> None:
    profiled = launch(32, 4096, "profile", "run.ncu-rep")
    configured = launch(96, None, "config", "kernel-lsp.yaml:3")
    found = launches(TEXT, line=2, configured=(configured,), profiled=(profiled,), max_block=(512, 1, 1))
    assert found == [
        ("profile", (32, 1, 1), 4096, "run.ncu-rep"),
        ("config", (96, 1, 1), 3072, "kernel-lsp.yaml:3"),
        ("comment", (64, 1, 1), 1024, "gemm.cu:1"),
        ("launch_bounds", (512, 1, 1), 3072, "gemm.cu:2"),
        ("source", (16, 16, 1), 2048, "gemm.cu:5"),
        ("source", (128, 1, 1), None, "gemm.cu:5"),
    ]


def test_an_override_stands_alone() -> None:
    override = launch(1024, 0, "override", "--block")
    assert launches(TEXT, line=2, override=override) == [("override", (1024, 1, 1), 0, "--block")]


def test_shared_memory_of_another_block_size_is_not_lent() -> None:
    text = "__global__ void gemm(float* p) {}\nvoid host() { gemm<<<8, 256, 2048>>>(p); gemm<<<8, 128, n>>>(p); }"
    assert launches(text, line=1, max_block=(512, 1, 1)) == [
        ("launch_bounds", (512, 1, 1), None, "gemm.cu:1"),
        ("source", (256, 1, 1), 2048, "gemm.cu:2"),
        ("source", (128, 1, 1), None, "gemm.cu:2"),
    ]


def test_without_dynamic_shared_memory_the_size_is_known_to_be_zero() -> None:
    found = launches("__global__ void gemm(float* p) {}", line=1, uses_dynamic_shared=False, max_block=(512, 1, 1))
    assert found == [("launch_bounds", (512, 1, 1), 0, "gemm.cu:1")]
    found = launches("__global__ void gemm(float* p) {}", line=1, uses_dynamic_shared=None, max_block=(512, 1, 1))
    assert found[0][2] is None


def test_shared_memory_from_a_comment_of_its_own_and_from_the_attribute() -> None:
    text = "// kernel-lsp: smem=48KB\n__global__ void gemm(float* p) {}\nvoid host() { gemm<<<8, 256, n>>>(p); }"
    found = launches_for(binary("gemm", 2), scan(text), PATH)
    assert shapes(found) == [("source", (256, 1, 1), 49152, "gemm.cu:3")]
    assert found[0].dynamic_shared_where == "gemm.cu:1"
    text = """\
__global__ void gemm(float* p) {}
void host() {
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  gemm<<<8, 256, n>>>(p);
}
"""
    found = launches_for(binary("gemm", 1), scan(text), PATH)
    assert (found[0].dynamic_shared_bytes, found[0].dynamic_shared_where) == (65536, "gemm.cu:3")


def test_a_required_block_has_its_shape() -> None:
    found = launches("__global__ void gemm(float* p) {}", line=1, required_block=(8, 8, 2))
    assert found == [("launch_bounds", (8, 8, 2), None, "gemm.cu:1")]


INSTANCES = """\
template <int T> __global__ void tiled(float* p) {}
template <int T> void run() { tiled<T><<<8, dim3(T, T), T * T * sizeof(float)>>>(p); }
void host() { run<8>(); tiled<32><<<8, dim3(32, 4)>>>(p); tiled<32><<<8, dim3(32, 4)>>>(p); }
"""


def test_instances_have_the_launches_with_their_arguments() -> None:
    assert launches(INSTANCES, "tiled<8>", 1) == [("source", (8, 8, 1), 256, "gemm.cu:2")]
    assert launches(INSTANCES, "tiled<32>", 1) == [
        ("source", (32, 32, 1), 4096, "gemm.cu:2"),
        ("source", (32, 4, 1), 0, "gemm.cu:3"),
    ]
    assert [entry[1] for entry in launches("void host() { tiled<16><<<1, 64>>>(p); }", "tiled<32>")] == []


def test_launches_that_may_be_of_another_instance_must_agree() -> None:
    deduced = "template <class T> __global__ void k(T* p) {}\nvoid host() { k<<<1, 64>>>(a); k<<<1, 64>>>(b); }"
    assert launches(deduced, "k<float>", 1, uses_dynamic_shared=False) == [("source", (64, 1, 1), 0, "gemm.cu:2")]
    assert launches(deduced.replace("k<<<1, 64>>>(b)", "k<<<1, 32>>>(b)"), "k<float>", 1) == []
    assert launches(deduced.replace("k<<<1, 64>>>(b)", "k<<<1, n>>>(b)"), "k<float>", 1) == []
    certain = deduced.replace("k<<<1, 64>>>(b)", "k<float><<<1, 32>>>(b)")
    assert [entry[1] for entry in launches(certain, "k<float>", 1)] == [(32, 1, 1)]


def test_a_launch_inside_an_undecided_if_comes_last() -> None:
    text = "void host() {\n#ifdef SMALL\nf<<<1, 32>>>(p);\n#endif\nf<<<1, 64>>>(p);\n}"
    assert [entry[1] for entry in launches(text, "f")] == [(64, 1, 1), (32, 1, 1)]


def test_comments_belong_to_one_definition() -> None:
    text = """\
// kernel-lsp: block=32
__global__ void f(float* p) {}
// kernel-lsp: block=64
__global__ void f(double* p) {}
"""
    assert [entry[1] for entry in launches(text, "f", 2)] == [(32, 1, 1)]
    assert [entry[1] for entry in launches(text, "f", 4)] == [(64, 1, 1)]
    assert launches(text, "f", None) == []


def test_clusters_of_the_kernel() -> None:
    text = "__global__ void __cluster_dims__(2, 2, 1) f(float* p) {}\nvoid host() { f<<<8, 64>>>(p); }"
    assert launches_for(binary("f", 1), scan(text), PATH)[0].cluster == 4


def test_a_kernel_of_a_header_still_has_the_launches_of_this_file() -> None:
    found = launches_for(kernel("f", 3), scan("void host() { f<<<8, 64>>>(p); }"), "/project/other.cu")
    assert shapes(found) == [("source", (64, 1, 1), 0, "other.cu:1")]


def test_nothing_known() -> None:
    assert launches("__global__ void gemm(float* p) {}", line=1) == []
    assert launches("void host(int n) { gemm<<<1, n>>>(p); gemm<<<1, 0>>>(p); }") == []


def test_sizes_below_zero_are_not_known() -> None:
    text = """\
__global__ void gemm(float* p) { extern __shared__ float tile[]; }
constexpr int LESS = 4 - 9;
void host() { gemm<<<-2, 128, LESS>>>(p); gemm<<<1, dim3(8, -8), 64>>>(p); }
void allow() { cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, LESS); }
"""
    [found] = launches_for(binary("gemm", None), scan(text), PATH)
    assert (found.block, found.grid, found.dynamic_shared_bytes) == ((128, 1, 1), None, None)
