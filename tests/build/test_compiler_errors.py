"""Live messages of nvcc, cicc, ptxas and gcc land on the user's lines (places counted by hand in the sources below)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernel_lsp.build.nvcc import build
from kernel_lsp.build.result import BuildResult
from kernel_lsp.build.store import BuildStore
from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.toolchain import Toolchain

CommandMaker = Callable[..., BuildCommand]
Place = tuple[str, int]


class Builder:
    """Writes sources into a folder and builds one of them."""

    def __init__(self, folder: Path, store: BuildStore, tools: Toolchain, command: CommandMaker) -> None:
        self.folder = folder
        self._store = store
        self._tools = tools
        self._command = command

    async def build(self, arch: str, *flags: str, **sources: str) -> BuildResult:
        paths = []
        for name, text in sources.items():
            stem, _, suffix = name.rpartition("_")
            path = self.folder / f"{stem}.{suffix}"
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return await build(self._command(paths[0], arch, *flags), self._tools, self._store)

    def places(self, built: BuildResult) -> list[tuple[str, str, int]]:
        return [(m.severity, str(Path(m.file).relative_to(self.folder)), m.line) for m in built.messages]


async def test_front_end(tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker) -> None:
    builder = Builder(tmp_path, store, tools, command)
    built = await builder.build(
        "sm_90",
        main_cu='#include "helper.cuh"\n__global__ void k(float *p) {\n  int i = 3\n  p[i] = helper(p[i]);\n'
        "  /* é */ p[i] = missing(p[i]);\n}\n",
        helper_cuh="__device__ float helper(float x) {\n  int unused_here = 3;\n  return x * FACTOR;\n}\n",
    )
    assert built.status == "failed"
    assert built.reason == 'helper.cuh:3: identifier "FACTOR" is undefined (and 2 more)'
    assert sorted(builder.places(built)) == [
        ("error", "helper.cuh", 3),
        ("error", "main.cu", 4),  # the place nvcc gives for the semicolon missing at the end of line 3
        ("error", "main.cu", 5),
        ("warning", "helper.cuh", 2),
    ]
    assert [m.code for m in built.messages if m.severity == "warning"] == ["177-D"]
    assert str(tmp_path / "helper.cuh") in built.dependencies


async def test_templates_headers_and_includes(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    builder = Builder(tmp_path, store, tools, command)
    built = await builder.build(
        "sm_90",
        t_cu='#include "b.cuh"\n__global__ void k() {\n  outer(3);\n}\n',
        a_cuh="#pragma once\ntemplate <class T> __device__ void inner(T t) { t.nope(); }\n",
        b_cuh='#pragma once\n#include "a.cuh"\ntemplate <class T> __device__ void outer(T t) {\n  inner(t);\n}\n',
    )
    (message,) = built.messages
    assert (message.file, message.line) == (str(tmp_path / "a.cuh"), 2)
    assert [(Path(note.file).name, note.line) for note in message.notes] == [("b.cuh", 4), ("t.cu", 3)]

    built = await builder.build("sm_90", h_cu='#include "c.cuh"\n', c_cuh='\n#include "нет.h"\n')
    (message,) = built.messages
    assert (message.file, message.line) == (str(tmp_path / "c.cuh"), 2)
    assert message.text == "нет.h: No such file or directory"
    assert [(Path(note.file).name, note.line) for note in message.notes] == [("h.cu", 1)]


async def test_ptxas_names_no_temporary_file(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    builder = Builder(tmp_path, store, tools, command)
    built = await builder.build(
        "sm_90",
        asm_cu='__device__ void helper() {\n  asm volatile("bogus.instr;");\n}\n'
        "__global__ void raw(float *p) {\n  p[0] = 1.f;\n  helper();\n}\n",
    )
    assert {(m.severity, m.file, m.line) for m in built.messages} == {("error", str(tmp_path / "asm.cu"), 2)}
    assert any("bogus" in m.text for m in built.messages)
    assert {(note.line, note.text) for m in built.messages for note in m.notes} == {(6, "inlined here")}


async def test_static_shared_memory_over_the_limit(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = (
        "template <int ROWS>\n__global__ void tile_sum(const float *in, float *out) {\n"
        "  __shared__ float tile[ROWS][128];\n  int t = threadIdx.x;\n"
        "  for (int r = 0; r < ROWS; ++r) tile[r][t] = in[r * 128 + t];\n  __syncthreads();\n"
        "  float s = 0.f;\n  for (int r = 0; r < ROWS; ++r) s += tile[r][127 - t];\n  out[t] = s;\n}\n"
        "template __global__ void tile_sum<64>(const float *, float *);\n"
        "template __global__ void tile_sum<98>(const float *, float *);\n"
    )
    builder = Builder(tmp_path, store, tools, command)
    built = await builder.build("sm_90", tile_cu=source)
    (message,) = built.messages
    assert (built.status, built.cubin) == ("failed", None)
    assert (message.file, message.line) == (str(tmp_path / "tile.cu"), 2)
    assert message.kernel == "_Z8tile_sumILi98EEvPKfPf"
    assert str(98 * 128 * 4) in message.text  # 50176 bytes asked for
    assert str(48 * 1024) in message.text  # 49152 bytes allowed
    # The limit is ptxas's word for the architecture: with the suffix it allows 227 KB of static shared memory.
    assert (await builder.build("sm_90a", tile_cu=source)).status == "ok"


async def test_serialised_wgmma_is_a_warning_on_the_kernel(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    source = (
        "#include <cstdint>\n__device__ __forceinline__ void mma(float (&d)[4], uint64_t a, uint64_t b) {\n"
        '  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\\n"\n'
        '      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));\n}\n'
        "__global__ void __launch_bounds__(128) touched(float *out, uint64_t a, uint64_t b) {\n"  # line 6
        "  float d[4] = {0, 0, 0, 0};\n"
        '  asm volatile("wgmma.fence.sync.aligned;\\n" ::: "memory");\n'
        "  for (int k = 0; k < 4; ++k) {\n    mma(d, a + k, b + k);\n    d[0] += 1.0f;\n  }\n"  # 10, 11
        '  asm volatile("wgmma.commit_group.sync.aligned;\\n" ::: "memory");\n'
        '  asm volatile("wgmma.wait_group.sync.aligned 0;\\n" ::: "memory");\n'
        "  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];\n}\n"
    )
    built = await Builder(tmp_path, store, tools, command).build("sm_90a", wg_cu=source)
    (message,) = built.messages
    assert built.status == "ok"
    assert (message.severity, message.code, message.line) == ("warning", "C7511", 6)
    assert message.kernel == "_Z7touchedPfmm"
    assert "serialized" in message.text
    assert {note.line for note in message.notes} <= {10, 11}
    assert 11 in {note.line for note in message.notes}
    assert {note.file for note in message.notes} == {str(tmp_path / "wg.cu")}


async def test_undefined_functions_and_whole_file_limits(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    builder = Builder(tmp_path, store, tools, command)
    built = await builder.build("sm_86", u_cu="__device__ int f(int);\n__global__ void k(int *p) {\n  *p = f(1);\n}\n")
    (message,) = built.messages
    assert (message.line, message.kernel) == (3, None)
    assert "-rdc=true" in message.text
    built = await builder.build(
        "sm_86", c_cu="__constant__ char big[70000];\n__global__ void k(char *p) { *p = big[threadIdx.x]; }\n"
    )
    (message,) = built.messages
    assert "65536 max" in message.text


async def test_the_choice_of_line_information_is_no_message(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    built = await Builder(tmp_path, store, tools, command).build("sm_86", "-G", g_cu="__global__ void k() {}\n")
    assert (built.status, built.messages) == ("ok", ())


async def test_a_fatal_word_of_nvcc(tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker) -> None:
    built = await Builder(tmp_path, store, tools, command).build("sm_35", k_cu="__global__ void k() {}\n")
    (message,) = built.messages
    assert (message.tool, message.severity, message.line) == ("nvcc", "error", 0)
    assert "sm_35" in message.text
    assert "sm_35" in built.reason


async def test_failed_builds_answer_at_once_while_nothing_changes(
    tmp_path: Path, store: BuildStore, tools: Toolchain, command: CommandMaker
) -> None:
    builder = Builder(tmp_path, store, tools, command)
    source = "__global__ void k() { missing; }\n"
    first = await builder.build("sm_86", k_cu=source)
    second = await builder.build("sm_86", k_cu=source)
    fixed = await builder.build("sm_86", k_cu=source.replace("missing", "int found"))
    assert (first.status, fixed.status, fixed.cached) == ("failed", "ok", False)
    assert (second.messages, second.reason, second.status) == (first.messages, first.reason, "failed")
