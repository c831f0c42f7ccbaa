"""Relocatable device code: final numbers where the file stands alone, a lower bound that says so where it does not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kernel_lsp.build.device_link import is_relocatable
from kernel_lsp.build.nvcc import build
from kernel_lsp.build.store import BuildStore
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.session.outcome import PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings
from tests.build.test_nvcc import CommandMaker

ALONE = """__device__ __noinline__ float deep(float x)
{
    float r[64];
    for (int k = 0; k < 64; ++k) r[k] = x * k;
    float s = 0;
    for (int k = 0; k < (int)x; ++k) s += r[(k * 7) & 63] * r[k & 63];
    return s;
}
__device__ float for_others(float x) { return x * x; }
__global__ void own(float* p) { p[threadIdx.x] = deep(p[threadIdx.x]); }
"""
CALLS_OUT = "extern __device__ float far_away(float x);\n__global__ void out(float* p) { p[0] = far_away(p[1]); }\n"


@pytest.mark.parametrize(
    ("flags", "is_so"),
    [
        ((), False),
        (("-rdc=true",), True),
        (("--relocatable-device-code", "true"), True),
        (("-rdc=true", "-rdc=false"), False),
        (("-DX=-rdc=true",), False),
    ],
)
def test_is_relocatable(flags: tuple[str, ...], is_so: bool) -> None:
    assert is_relocatable(flags) == is_so


async def test_a_file_that_stands_alone_has_the_linkers_numbers(
    tmp_path: Path, pipeline: Pipeline, toolkit: Path
) -> None:
    source = tmp_path / "alone.cu"
    source.write_text(ALONE)
    request = PipelineRequest(
        document=source, settings=Settings(arch="sm_90"), explicit_flags=("-rdc=true",), roots=(tmp_path,)
    )
    outcome = await pipeline.analyze(request)
    assert outcome.analysis is not None
    [kernel] = outcome.analysis.kernels
    cubin, linked = tmp_path / "c.cubin", tmp_path / "l.cubin"
    tools = toolkit / "bin"
    subprocess.run([tools / "nvcc", "-cubin", "-rdc=true", "-arch=sm_90", source, "-o", cubin], check=True)
    subprocess.run([tools / "nvlink", "-arch=sm_90", cubin, "-o", linked], check=True)
    said = subprocess.run([tools / "cuobjdump", "-res-usage", linked], capture_output=True, text=True, check=True)
    told = re.search(r"_Z3ownPf:\s+REG:(\d+) STACK:(\d+)", said.stdout)
    assert told
    resources = kernel.binary.resources
    assert (resources.registers, resources.stack_bytes) == (int(told[1]), int(told[2]))
    assert not resources.relocatable
    # What no kernel here calls is there for others, though the linker drops it.
    assert [function.short_name for function in outcome.analysis.device_functions] == ["deep", "for_others"]
    assert "KL905" not in [finding.code for finding in outcome.findings]
    again = await pipeline.analyze(request)
    assert again.build is not None
    assert again.build.cached
    assert again.analysis is not None
    assert again.analysis.kernels[0].binary == kernel.binary


async def test_what_calls_out_is_not_linked(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    for name, text in (("out.cu", CALLS_OUT), ("functions.cu", "__device__ float f(float x) { return x; }\n")):
        source = tmp_path / name
        source.write_text(text)
        built = await build(command(source, "sm_90", "-rdc=true"), tools, store)
        assert (built.status, built.linked, built.messages) == ("ok", None, ())
