"""Every number of every kernel against `ptxas -v` and `cuobjdump -res-usage`, on every architecture."""

from __future__ import annotations

from pathlib import Path
from subprocess import run

import pytest

from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.kernel import Cubin, Resources
from tests.oracle.cubin_corpus import (
    ARCHS,
    BuiltCubin,
    PtxasFunction,
    assembled,
    build,
    ptxas_functions,
    resource_usage,
    sources_for,
)

SYSTEM_SHARED = 1024  # per block, from sm_90 on in what cuobjdump prints


def check_against_ptxas(cubin: Cubin, text: str) -> None:
    kernels, functions = ptxas_functions(text)
    assert {kernel.mangled for kernel in cubin.kernels} == set(kernels)
    for kernel in cubin.kernels:
        expected = kernels[kernel.mangled]
        resources = kernel.resources
        if resources.frame_bytes is None:  # the cubin has the whole stack in its place
            assert any(said.frame for (inside, _), said in functions.items() if inside == kernel.mangled)
        found = PtxasFunction(
            frame=expected.frame if resources.frame_bytes is None else resources.frame_bytes,
            spill_stores=-1 if resources.spill_store_bytes is None else resources.spill_store_bytes,
            spill_loads=-1 if resources.spill_load_bytes is None else resources.spill_load_bytes,
            registers=resources.registers,
            barriers=None if expected.barriers is None else resources.barriers,
            # ptxas prints no size for a stack that it does not know, and none before linking.
            stack=expected.stack if resources.stack_bytes is None or cubin.relocatable else resources.stack_bytes,
            shared=resources.static_shared_bytes,
            local=resources.local_bytes,
            constants=None if expected.constants is None else resources.constant_bytes,
        )
        assert found == expected, kernel.mangled
    for function in cubin.device_functions:
        said = functions.get((function.kernel or "", function.mangled))
        said = said or next((said for (_, name), said in functions.items() if name == function.mangled), None)
        if said is not None and function.spill_store_bytes is not None:
            # ptxas counts the registers saved for the caller as well.
            assert function.spill_store_bytes <= said.spill_stores
            assert function.spill_load_bytes is not None
            assert function.spill_load_bytes <= said.spill_loads


def check_against_cuobjdump(cubin: Cubin, built: BuiltCubin, toolkit: Path) -> None:
    usage = resource_usage(built.path, toolkit)
    reserve = SYSTEM_SHARED if int(cubin.arch[3:].rstrip("af")) >= 90 and not cubin.relocatable else 0
    for kernel in cubin.kernels:
        said = usage[kernel.mangled]
        resources = kernel.resources
        assert resources.registers == int(said["REG"]), kernel.mangled
        assert resources.local_bytes == int(said["LOCAL"])
        assert resources.constant_bytes == int(said["CONSTANT[0]"])
        # Kernels of a file without any shared memory have none of the reserve either.
        assert int(said["SHARED"]) in (
            {resources.static_shared_bytes + reserve} | ({0} if not resources.static_shared_bytes else set())
        )
        if not cubin.relocatable:
            assert said["STACK"] == ("UNKNOWN" if resources.stack_bytes is None else str(resources.stack_bytes))


@pytest.mark.parametrize("arch", ARCHS)
def test_equal_to_nvidias_tools(arch: str, toolkit: Path) -> None:
    sources = sources_for(arch)
    assert len(sources) >= 16
    for source in sources:
        built = assembled(source, arch, toolkit)
        cubin = read_cubin(built.data)
        assert cubin.arch == arch
        check_against_ptxas(cubin, built.ptxas_text)
        check_against_cuobjdump(cubin, built, toolkit)


def resources_of(name: str, arch: str, toolkit: Path) -> dict[str, Resources]:
    built = build(next(source for source in sources_for(arch) if source.stem == name), arch, toolkit)
    return {kernel.short_name: kernel.resources for kernel in read_cubin(built.data).kernels}


def test_bounds_are_those_of_the_source(toolkit: Path) -> None:
    bounds = resources_of("bounds", "sm_90a", toolkit)
    assert {
        name: (found.max_block, found.min_blocks_per_sm, found.required_block)
        for name, found in bounds.items()
        if found.max_block or found.min_blocks_per_sm or found.required_block
    } == {
        "max_only": ((256, 1, 1), None, None),
        "with_min": ((384, 1, 1), 2, None),
        "with_cluster": ((128, 1, 1), 3, None),
        "required": (None, None, (64, 2, 1)),
        "block_and_cluster": (None, None, (64, 2, 1)),
    }
    assert bounds["required"].max_threads == 128
    assert bounds["free_size"].max_threads is None


@pytest.mark.parametrize("arch", ["sm_86", "sm_90a"])
def test_dynamic_shared_memory_belongs_to_the_kernels_that_touch_it(arch: str, toolkit: Path) -> None:
    shared = resources_of("shared", arch, toolkit)
    assert {name for name, found in shared.items() if found.uses_dynamic_shared} == {"only_dynamic", "both"}
    assert all(found.uses_dynamic_shared is not None for found in shared.values())
    rdc = resources_of("rdc", arch, toolkit)
    assert rdc["uses_near"].uses_dynamic_shared
    assert rdc["uses_far"].uses_dynamic_shared is None  # the function of the other file may
    # near_by is inlined: what calls nothing is final before the link.
    assert {name for name, found in rdc.items() if found.relocatable} == {"uses_far", "spills_unlinked"}


def test_a_linked_cubin_holds_what_the_linker_knows(toolkit: Path, tmp_path: Path) -> None:
    near, far = tmp_path / "near.cu", tmp_path / "far.cu"
    near.write_text(
        "extern __device__ float far_away(float, int);\n"
        "__global__ void uses_far(float* x, int n) { x[threadIdx.x] = far_away(x[threadIdx.x], n); }\n"
    )
    far.write_text(
        "extern __shared__ float pool[];\n"
        "__device__ float far_away(float x, int n) {\n"
        "  float t[40];\n"
        "  for (int k = 0; k < 40; ++k) t[k] = x + k * pool[k];\n"
        "  for (int k = 0; k < n; ++k) t[k % 40] *= t[(k * 3) % 40];\n"
        "  return t[n % 40];\n"
        "}\n"
    )
    for source in (near, far):
        command = [str(toolkit / "bin/nvcc"), "-cubin", "-lineinfo", "-rdc=true", "-arch=sm_90", str(source)]
        run([*command, "-o", str(source.with_suffix(".cubin"))], check=True, capture_output=True)
    parts = [read_cubin(source.with_suffix(".cubin").read_bytes()) for source in (near, far)]
    linked = tmp_path / "linked.cubin"
    objects = [str(near.with_suffix(".cubin")), str(far.with_suffix(".cubin"))]
    run([str(toolkit / "bin/nvlink"), "-arch=sm_90", *objects, "-o", str(linked)], check=True, capture_output=True)
    cubin = read_cubin(linked.read_bytes())
    said = resource_usage(linked, toolkit)["_Z8uses_farPfi"]
    kernel = cubin.kernels[0]
    assert kernel.resources.registers == int(said["REG"]) > parts[0].kernels[0].resources.registers
    assert kernel.resources.stack_bytes == int(said["STACK"]) > 0
    assert kernel.resources.uses_dynamic_shared
    assert not cubin.relocatable
    assert kernel.definition is not None
    assert (Path(kernel.definition.file).name, kernel.definition.line) == ("near.cu", 2)
    assert not parts[1].kernels
    assert [(function.name, function.frame_bytes) for function in parts[1].device_functions] == [
        ("far_away(float, int)", kernel.resources.stack_bytes)
    ]
