"""Relocatable device code: final numbers where a file stands alone or its project links it, else a bound that says so.

What is true is what nvlink makes of the same files by hand, as cuobjdump prints it.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.build.device_link import DeviceLink, device_link, is_relocatable
from kernel_lsp.build.nvcc import build
from kernel_lsp.build.store import BuildStore
from kernel_lsp.cubin.kernel import Resources
from kernel_lsp.findings.wording import linking
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.lens import lenses
from kernel_lsp.session import pipeline as pipeline_module
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings
from tests.build.test_nvcc import CommandMaker
from tests.cmake_projects import built, configured

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
# A function that takes many registers, shared memory and a barrier, and calls on.
FAR = """// float far_away(float x) { return 0; } is no definition here
extern __device__ float further(float x);
namespace deep { __device__ float scale; }
__device__ __noinline__ float far_away(float x) {
  __shared__ float tile[500];
  tile[threadIdx.x] = x;
  __syncthreads();
  return further(x) + tile[499 - threadIdx.x] * deep::scale;
}
"""
FURTHER = """__device__ __noinline__ float further(float x) {
  float r[100], s = 0;
#pragma unroll
  for (int k = 0; k < 100; ++k) r[k] = __sinf(x * k);
#pragma unroll
  for (int k = 0; k < 100; ++k) s += r[k] * r[(k * 7) % 100] * r[(k * 13 + 5) % 100];
  return s;
}
"""
POINTERS = """using Function = float (*)(float);
__device__ __noinline__ float small(float x) { return x + 1; }
__device__ Function chosen = small;
__global__ void through_pointer(float* p) { p[0] = chosen(p[1]); }
__device__ __noinline__ float between(float x, Function f) { return f(x) + 1; }
__global__ void deeper_down(float* p, Function f) { p[0] = between(p[1], f); }
__global__ void direct(float* p) { p[0] = small(p[1]); }
__global__ void nothing(float* p) { p[0] = 1; }
"""
LAUNCHES = """__global__ void child(float* p) { p[threadIdx.x] = 1; }
__global__ void parent(float* p) { child<<<1, 32>>>(p); }
"""


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


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def database(root: Path, commands: Sequence[str], folder: str = ".") -> None:
    """A compile database, in the way of CMake."""
    rows = [{"directory": str(root), "command": command, "file": command.split()[-1]} for command in commands]
    write(root, {f"{folder}/compile_commands.json": json.dumps(rows)})


def linked_by_hand(root: Path, sources: Sequence[str], toolkit: Path) -> dict[str, tuple[int, int, int]]:
    """Registers, stack and static shared memory of each function after nvlink, by mangled name."""
    tools, cubins = toolkit / "bin", []
    for name in sources:
        cubins.append(root / f"{Path(name).stem}.by_hand.cubin")
        subprocess.run(
            [tools / "nvcc", "-cubin", "-rdc=true", "-arch=sm_90", root / name, "-o", cubins[-1]], check=True
        )
    linked = root / "by_hand.linked"
    runtime = ["-L", str(toolkit / "lib"), "-lcudadevrt"]
    subprocess.run([tools / "nvlink", "-arch=sm_90", *cubins, *runtime, "-o", linked], check=True)
    said = subprocess.run([tools / "cuobjdump", "-res-usage", linked], capture_output=True, text=True, check=True)
    found = re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", said.stdout)
    for path in (*cubins, linked):
        path.unlink()
    return {name: (int(reg), int(stack), int(shared)) for name, reg, stack, shared in found}


async def analysed(pipeline: Pipeline, path: Path, *flags: str) -> FileOutcome:
    request = PipelineRequest(
        document=path, settings=Settings(arch="sm_90"), explicit_flags=flags or None, roots=(path.parent,)
    )
    return await pipeline.analyze(request)


def resources_of(outcome: FileOutcome) -> dict[str, Resources]:
    assert outcome.analysis is not None, outcome.findings
    return {kernel.binary.mangled: kernel.binary.resources for kernel in outcome.analysis.kernels}


def notes_of(outcome: FileOutcome) -> list[str]:
    return [finding.message for finding in outcome.findings if finding.code == "KL903"]


async def test_a_file_that_stands_alone_has_the_linkers_numbers(
    tmp_path: Path, pipeline: Pipeline, toolkit: Path
) -> None:
    write(tmp_path, {"alone.cu": ALONE})
    outcome = await analysed(pipeline, tmp_path / "alone.cu", "-rdc=true")
    [resources] = resources_of(outcome).values()
    registers, stack, _ = linked_by_hand(tmp_path, ["alone.cu"], toolkit)["_Z3ownPf"]
    assert (resources.registers, resources.stack_bytes) == (registers, stack)
    assert not resources.relocatable
    # What no kernel here calls is there for others, though the linker drops it.
    assert outcome.analysis is not None
    assert [function.short_name for function in outcome.analysis.device_functions] == ["deep", "for_others"]
    assert "KL905" not in [finding.code for finding in outcome.findings]
    again = await analysed(pipeline, tmp_path / "alone.cu", "-rdc=true")
    assert again.build is not None
    assert again.build.cached
    assert resources_of(again) == {"_Z3ownPf": resources}


async def test_calls_through_pointers_stay_a_bound(tmp_path: Path, pipeline: Pipeline, toolkit: Path) -> None:
    """Another file of the program can hold a hungrier function of the same parameters: the linker then says more."""
    hungry = FURTHER + "using Function = float (*)(float);\n__device__ Function other = further;\n"
    keeps_it = "__global__ void keeps_it(float* p) { p[0] = other(p[1]); }\n"
    write(tmp_path, {"pointers.cu": POINTERS, "hungry.cu": hungry + keeps_it})
    outcome = await analysed(pipeline, tmp_path / "pointers.cu", "-rdc=true")
    alone = linked_by_hand(tmp_path, ["pointers.cu"], toolkit)
    program = linked_by_hand(tmp_path, ["pointers.cu", "hungry.cu"], toolkit)
    found = resources_of(outcome)
    assert {name: resources.registers for name, resources in found.items()} == {name: alone[name][0] for name in found}
    assert {name for name in found if program[name][0] > alone[name][0]} == {
        name for name, resources in found.items() if resources.relocatable
    }
    assert {name for name, resources in found.items() if resources.calls_through_pointers} == {
        "_Z15through_pointerPf",
        "_Z11deeper_downPfPFffE",
    }
    assert outcome.analysis is not None
    texts = {lens.text.split(" ")[0] for lens in lenses(outcome.analysis.kernels, outcome.path)}
    assert texts
    [kernel] = [each for each in outcome.analysis.kernels if each.binary.short_name == "through_pointer"]
    assert "through pointers may need more registers" in kernel_hover(kernel, outcome.analysis)


async def test_kernels_that_launch_kernels(tmp_path: Path, pipeline: Pipeline, toolkit: Path) -> None:
    """The device runtime is linked in, as nvcc does, and its own kernels are not shown."""
    write(tmp_path, {"launches.cu": LAUNCHES})
    outcome = await analysed(pipeline, tmp_path / "launches.cu", "-rdc=true")
    found = resources_of(outcome)
    by_hand = linked_by_hand(tmp_path, ["launches.cu"], toolkit)
    assert len(by_hand) > 2
    assert {name: (each.registers, each.stack_bytes) for name, each in found.items()} == {
        name: by_hand[name][:2] for name in ("_Z5childPf", "_Z6parentPf")
    }
    assert not any(resources.relocatable for resources in found.values())
    assert outcome.analysis is not None
    assert outcome.analysis.device_functions == ()


async def test_what_calls_out_is_not_linked_by_itself(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    for name, text in (("out.cu", CALLS_OUT), ("functions.cu", "__device__ float f(float x) { return x; }\n")):
        source = tmp_path / name
        source.write_text(text)
        built = await build(command(source, "sm_90", "-rdc=true"), tools, store)
        assert (built.status, built.linked, built.messages) == ("ok", None, ())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Files that need each other in a row, and one that has nothing to do with them."""
    files = {"out.cu": CALLS_OUT, "far/far.cu": FAR, "further.cu": FURTHER, "calls.cu": CALLS_OUT.replace("out", "o")}
    write(tmp_path, files)
    database(tmp_path, [f"nvcc -rdc=true -arch=sm_90 -c {name}" for name in files])
    return tmp_path


async def test_files_of_the_project_that_it_needs(project: Path, pipeline: Pipeline, toolkit: Path) -> None:
    outcome = await analysed(pipeline, project / "out.cu")
    by_hand = linked_by_hand(project, ["out.cu", "far/far.cu", "further.cu"], toolkit)["_Z3outPf"]
    [own] = resources_of(outcome).values()
    assert own.relocatable
    assert own.linked is not None
    after = own.linked.resources
    # cuobjdump counts the 1 KB that the system takes of each block from sm_90 on.
    assert (after.registers, after.stack_bytes, after.static_shared_bytes + 1024) == by_hand
    assert (after.static_shared_bytes, after.barriers, after.relocatable) == (2000, 1, False)
    assert after.registers > own.registers
    assert own.linked.with_files == (str(project / "far/far.cu"), str(project / "further.cu"))
    assert notes_of(outcome) == []

    assert outcome.analysis is not None
    [kernel] = outcome.analysis.kernels
    [lens] = lenses(outcome.analysis.kernels, outcome.path)
    assert f">= {own.registers} regs, {after.registers} linked" in lens.text
    assert "2.0 KB shared" in lens.text
    hover = kernel_hover(kernel, outcome.analysis)
    said = f"Linked with far.cu and further.cu it has {after.registers} registers and a stack of {after.stack_bytes} B."
    assert said in hover
    assert linking(own) == said
    # The table over block sizes is that of the linked kernel: 65,536 / (256 threads x registers in units of 8).
    per_warp = -(-after.registers * 32 // 256) * 256
    row = next(row for row in kernel.block_sizes if row.threads == 256)
    assert row.occupancy.limit_registers == 65536 // 4 // per_warp * 4 // 8
    assert row.occupancy.is_upper_bound


async def test_a_link_is_made_again_only_where_a_part_changed(
    project: Path, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernel_lsp.session import linking as linking_module

    links: list[int] = []

    async def counted(*arguments: Any) -> DeviceLink:
        links.append(len(arguments))
        return await device_link(*arguments)

    monkeypatch.setattr(linking_module, "device_link", counted)
    first = await analysed(pipeline, project / "out.cu")
    assert {str(project / name) for name in ("far/far.cu", "further.cu")} <= first.reads
    n_links = len(links)
    again = await analysed(pipeline, project / "out.cu")
    assert resources_of(again) == resources_of(first)
    # What is missing is asked for again, the whole link is kept.
    assert len(links) - n_links < n_links
    (project / "further.cu").write_text("__device__ __noinline__ float further(float x) { return x; }\n")
    changed = resources_of(await analysed(pipeline, project / "out.cu"))["_Z3outPf"].linked
    before = resources_of(first)["_Z3outPf"].linked
    assert changed is not None
    assert before is not None
    assert changed.resources.registers < before.resources.registers


async def test_bounds_are_shown_while_others_are_built(
    project: Path, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "AT_ONCE_S", 0.0)
    request = PipelineRequest(document=project / "out.cu", settings=Settings(arch="sm_90"), roots=(project,))
    phases = [outcome async for outcome in pipeline.phases(request)]
    assert len(phases) > 1
    assert [outcome.is_interim for outcome in phases] == [True, *[False] * (len(phases) - 1)]
    assert [resources.linked is not None for outcome in phases for resources in resources_of(outcome).values()] == [
        not outcome.is_interim for outcome in phases
    ]
    assert all(resources.relocatable for outcome in phases for resources in resources_of(outcome).values())


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no file that the compile database builds for linking was found to define far_away"),
        ({"far.cu": "extern __device__ float far_away(float x);\n"}, "was found to define far_away"),
        ({"far.cu": "__device__ float far_away(float x) { return missing; }\n"}, "was found to define far_away"),
        (
            {
                f"{name}.cu": "__device__ __noinline__ float far_away(float x) { return x; }\n"
                for name in ("one", "two")
            },
            "one.cu and two.cu define far_away, and which is meant is not known",
        ),
        (
            {
                f"{name}.cu": "template <int N> __device__ float far_away(float x) { return x * N; }\n"
                for name in "abcdefg"
            },
            "7 files of the project seem to define far_away",
        ),
    ],
    ids=["nobody", "declared", "broken", "two", "many"],
)
async def test_why_there_is_no_link(files: dict[str, str], said: str, tmp_path: Path, pipeline: Pipeline) -> None:
    write(tmp_path, {"out.cu": CALLS_OUT, **files})
    database(tmp_path, [f"nvcc -dc -arch=sm_90 {name}" for name in ("out.cu", *files)])
    outcome = await analysed(pipeline, tmp_path / "out.cu")
    [resources] = resources_of(outcome).values()
    assert (resources.relocatable, resources.linked) == (True, None)
    [note] = notes_of(outcome)
    assert note.startswith("registers and stack are those before linking: ")
    assert said in note
    # As soon as one of them changes, this is asked again.
    if files and len(files) < 3 and "extern" not in "".join(files.values()):
        assert {str(tmp_path / name) for name in files} <= outcome.reads


async def test_of_several_programs_the_files_own_target(tmp_path: Path, pipeline: Pipeline, toolkit: Path) -> None:
    """Two targets define the same name; and one file is built for both, once not for linking."""
    files = {
        "a/out.cu": CALLS_OUT,
        "a/far.cu": "extern __device__ float further(float);\n"
        "__device__ __noinline__ float far_away(float x) { return further(x); }\n",
        "b/far.cu": "__device__ __noinline__ float far_away(float x) { return x; }\n",
        "both.cu": FURTHER,
    }
    write(tmp_path, files)
    database(
        tmp_path,
        [
            "nvcc -arch=sm_90 -o CMakeFiles/b.dir/both.cu.o -c both.cu",
            "nvcc -rdc=true -arch=sm_90 -o CMakeFiles/b.dir/b/far.cu.o -c b/far.cu",
            "nvcc -rdc=true -arch=sm_90 -o CMakeFiles/a.dir/a/out.cu.o -c a/out.cu",
            "nvcc -rdc=true -arch=sm_90 -o CMakeFiles/a.dir/a/far.cu.o -c a/far.cu",
            "nvcc -rdc=true -arch=sm_90 -o CMakeFiles/a.dir/both.cu.o -c both.cu",
        ],
    )
    outcome = await pipeline.analyze(
        PipelineRequest(document=tmp_path / "a/out.cu", settings=Settings(arch="sm_90"), roots=(tmp_path,))
    )
    [resources] = resources_of(outcome).values()
    assert resources.linked is not None
    assert resources.linked.with_files == (str(tmp_path / "a/far.cu"), str(tmp_path / "both.cu"))
    by_hand = linked_by_hand(tmp_path, ["a/out.cu", "a/far.cu", "both.cu"], toolkit)["_Z3outPf"]
    assert (resources.linked.resources.registers, resources.linked.resources.stack_bytes) == by_hand[:2]


async def test_a_real_cmake_project(pipeline: Pipeline, toolkit: Path, tmp_path: Path) -> None:
    """What nvlink makes of the objects that the project's own build puts into the target."""
    project = configured("multi", toolkit)
    request = PipelineRequest(document=project / "src/reduce.cu", settings=Settings(arch="sm_90"), roots=(project,))
    [resources] = resources_of(await pipeline.analyze(request)).values()
    objects = [built(project, f"CMakeFiles/reduce.dir/Release/src/{name}.cu.o") for name in ("reduce", "shared")]
    linked = tmp_path / "linked.cubin"
    tools = toolkit / "bin"
    subprocess.run([tools / "nvlink", "-arch=sm_90", *objects, "-o", linked], check=True)
    said = subprocess.run([tools / "cuobjdump", "-res-usage", linked], capture_output=True, text=True, check=True)
    [told] = re.findall(r"Function _Z11reduce_rows\w+:\s+REG:(\d+) STACK:(\d+)", said.stdout)
    assert resources.linked is not None
    after = resources.linked.resources
    assert (after.registers, after.stack_bytes) == (int(told[0]), int(told[1]))
    assert after.registers > resources.registers
    assert resources.linked.with_files == (str(project / "src/shared.cu"),)
