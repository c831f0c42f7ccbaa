"""A line's hover and hint read aloud: chains of results, kernels that spill, aligned excerpts. Built by nvcc."""

from __future__ import annotations

from pathlib import Path

from kernel_lsp.analysis import FileAnalysis, analyze
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.model.kernel_sass import read_cubin_lines, read_cubin_sass
from kernel_lsp.report.hints import line_hints
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.source.kernels import scan
from tests.oracle.cubin_corpus import build, tool_text
from tests.unit.kernel_values import gpu

# One sum (each FFMA adds to the one before) and eight sums in turn, eight apart.
CHAINS = """__global__ void one_sum(const float* a, float* y)
{
    float s = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; i++)
        s += a[i] * a[i + 32];
    y[0] = s;
}

__global__ void eight_sums(const float* a, float* y)
{
    float x[8], s[8];
    for (int j = 0; j < 8; j++) { x[j] = a[j]; s[j] = a[j + 8]; }
#pragma unroll
    for (int i = 0; i < 64; i++)
        s[i % 8] = s[i % 8] * x[(i / 8 + i) % 8] + x[i % 8];
    for (int j = 0; j < 8; j++) y[j] = s[j];
}
"""
# `tight` has 32 registers for 48 values, `loose` enough.
SHARED = """template <int N> __device__ __forceinline__
void mix(const float* __restrict__ a, float* __restrict__ b, int n) {
    float r[N];
#pragma unroll
    for (int k = 0; k < N; ++k) r[k] = a[threadIdx.x + k * n];
    for (int i = 0; i < n; ++i)
#pragma unroll
        for (int k = 0; k < N; ++k) r[k] = r[k] * r[(k + 1) % N] + r[(k + 7) % N];
#pragma unroll
    for (int k = 0; k < N; ++k) b[threadIdx.x + k * n] = r[k];
}
__global__ void __launch_bounds__(1024, 2) tight(const float* a, float* b, int n) { mix<48>(a, b, n); }
__global__ void __launch_bounds__(256) loose(const float* a, float* b, int n) { mix<48>(a, b, n); }
"""


def analysed(text: str, arch: str, toolkit: Path, folder: Path) -> FileAnalysis:
    source = folder / "kernels.cu"
    source.write_text(text)
    cubin = build(source, arch, toolkit)
    sass = read_cubin_sass(
        cubin.data,
        tool_text(toolkit, cubin.path, "nvdisasm", *ARGUMENTS),
        "",
        read_cubin_lines(cubin.data, lambda file: str(source) if Path(file).name == source.name else file),
    )
    return analyze(str(source), text, read_cubin(cubin.data), gpu(), scan(text), {}, sass=sass)


def hover(analysis: FileAnalysis, line: int) -> str:
    text = line_hover(analysis, line)
    assert text is not None
    return text


def test_a_chain_of_results_is_told_from_sums_in_turn(toolkit: Path, tmp_path: Path) -> None:
    analysis = analysed(CHAINS, "sm_86", toolkit, tmp_path)
    chained = next(line for line in hover(analysis, 6).splitlines() if "apart" in line)
    assert "each needs the result of the one before, and ptxas usually leaves 4 then" in chained
    # As close as ptxas ever puts them: nothing is said.
    assert "apart" not in hover(analysis, 16)


def test_a_division_is_no_chain_to_act_on(toolkit: Path, tmp_path: Path) -> None:
    text = "__global__ void divide(float* x, int n) { x[threadIdx.x] = x[threadIdx.x] / x[threadIdx.x + n]; }\n"
    divided = hover(analysed(text, "sm_90a", toolkit, tmp_path), 1)
    assert "FFMA" in divided
    assert "apart" not in divided


CALLS = """__device__ __noinline__ float heavy(const float* x, int n)
{
    float s = 0;
    for (int k = 0; k < n; k++) s += x[k] * x[k + 1];
    return s;
}
__global__ void calls(float* x, double* y, int n)
{
    x[threadIdx.x] = heavy(x, n) + 1.0f;
    x[threadIdx.x + 32] = heavy(x + 1, n);
    y[threadIdx.x] = y[threadIdx.x] / y[threadIdx.x + n];
}
"""


def test_calls_that_were_not_inlined_are_told_on_both_sides(toolkit: Path, tmp_path: Path) -> None:
    analysis = analysed(CALLS, "sm_90a", toolkit, tmp_path)
    call = hover(analysis, 9)
    assert "Calls heavy, which was not inlined: " in call
    assert " in heavy, called from l.9, l.10" in hover(analysis, 4)
    [helper] = [line.replace("`", "") for line in hover(analysis, 11).splitlines() if line.startswith("Calls")]
    assert helper.startswith("Calls NVIDIA's __cuda_sm20_div_rn_f64_full: ")
    assert helper.endswith(" instructions that belong to no line.")


def test_the_kernel_that_spills_there_stands_first(toolkit: Path, tmp_path: Path) -> None:
    analysis = analysed(SHARED, "sm_86", toolkit, tmp_path)
    spilling = hover(analysis, 5)
    assert spilling.startswith("**l.5** in tight")
    assert "Spilled registers: " in spilling
    assert "- loose: " in spilling
    assert "of spills" not in spilling
    assert "instructions inlined into l.12" in spilling


def test_one_turn_of_an_unrolled_loop_is_told_beside_all_of_it(toolkit: Path, tmp_path: Path) -> None:
    """The loop with most of the line; what the rest of the iterations takes stands behind it."""
    text = """__global__ void dot(const float* a, const float* b, float* y, int n)
{
    float s = 0.0f;
    for (int i = 0; i < n; i++)
        s += a[i] * b[i];
    y[0] = s;
}
"""
    analysis = analysed(text, "sm_86", toolkit, tmp_path)
    rows = {line.split()[0]: line for line in hover(analysis, 5).splitlines() if line.startswith(("own", "in loop"))}
    turns = [loop.work.compute_ops for loop in analysis.kernels[0].sass.loops or ()] if analysis.kernels[0].sass else []
    in_all = int(rows["own"].split()[1])
    assert len(turns) > 1
    assert in_all >= sum(turns) > max(turns)
    assert rows["in"].startswith(f"in loop  {max(turns)} FFMA  {2 * max(turns)} LDG.E")
    assert "in loop" not in hover(analysis, 6)


def test_a_loop_that_only_computes_is_the_kernels(toolkit: Path, tmp_path: Path) -> None:
    analysis = analysed(SHARED, "sm_86", toolkit, tmp_path)
    loose = next(kernel for kernel in analysis.kernels if kernel.binary.short_name == "loose")
    assert "Inner loop l.6-8: 48 FFMA, no global load." in kernel_hover(loose, analysis)


def test_a_hint_never_mixes_two_kernels(toolkit: Path, tmp_path: Path) -> None:
    """Where the line's spills are one kernel's and its peak another's, the peak says whose it is."""
    analysis = analysed(SHARED, "sm_90a", toolkit, tmp_path)
    mixed = [hint.text for hint in line_hints(analysis) if "spill" in hint.text and "regs live" in hint.text]
    assert mixed
    assert all(text.endswith(" regs live in loose") for text in mixed)


def test_an_excerpt_is_aligned(toolkit: Path, tmp_path: Path) -> None:
    """Also where every instruction is shorter than the head of its column."""
    lines = hover(analysed(CHAINS, "sm_86", toolkit, tmp_path), 8).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("pc "))
    assert "EXIT" in lines[at + 1]
    assert len(lines[at]) == len(lines[at + 1])
