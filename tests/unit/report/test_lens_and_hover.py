"""The lens above a kernel and the hover on its name. Numbers are worked out in test_occupancy_rules.py or here."""

from __future__ import annotations

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.lens import lenses
from tests.unit.kernel_values import PATH, analysed, gpu, kernel, launch


def lens_of(file: FileAnalysis) -> str:
    (only,) = lenses(file.kernels, PATH)
    return only.text


def test_lens_of_a_full_sm() -> None:
    # 36 registers allocate 40: 48 warps; 2,048 + 1,024 B: 33 blocks; 256 threads: 6 blocks.
    tiled = kernel("tiled<16>", registers=36, static_shared_bytes=2048, barriers=1)
    assert (
        lens_of(analysed([tiled], {"tiled<16>": [launch(256)]}))
        == "6 blocks/SM · 48/48 warps · 36 regs · 2.0 KB shared · limited by registers, warps"
    )


def test_lens_says_how_far_the_cliff_is() -> None:
    # 50,176 - 49,152 = 1,024; two blocks of 4 warps.
    below = analysed([kernel(registers=64, uses_dynamic_shared=True)], {"gemm": [launch(128, dynamic=49_152)]})
    assert lens_of(below) == (
        "2 blocks/SM · 8/48 warps · 64 regs · 48.0 KB shared (dynamic) · 1.0 KB from the cliff · limited by shared"
    )
    above = analysed([kernel(registers=64, uses_dynamic_shared=True)], {"gemm": [launch(128, dynamic=52_224)]})
    assert "2.0 KB past the cliff" in lens_of(above)


def test_lens_names_the_block_that_is_only_a_bound() -> None:
    file = analysed([kernel(max_block=(224, 1, 1))], {"gemm": [launch(224, origin="launch_bounds", where="gemm.cu:5")]})
    assert "block 224 from __launch_bounds__" in lens_of(file)


def test_launches_in_the_text_are_spoken_of_rather_than_the_bound() -> None:
    bound = launch(1024, origin="launch_bounds", where="gemm.cu:5")
    file = analysed([kernel(max_block=(1024, 1, 1))], {"gemm": [bound, launch(256), launch(256, where="gemm.cu:60")]})
    assert lens_of(file).startswith("6 blocks/SM · 48/48 warps · 32 regs")
    hover = kernel_hover(file.kernels[0], file)
    assert "Block 256 from l.41." in hover
    assert "- block 1024 from `__launch_bounds__`: 1 block/SM, 67 %" in hover


def test_no_occupancy_without_the_block_size_it_belongs_to() -> None:
    # By registers 96 (20 warps an SM): 128 -> 5, 256 -> 2, 512 -> 1; 640 is the largest that starts.
    file = analysed([kernel(registers=96)])
    assert lens_of(file) == (
        "block size unknown · 96 regs · blocks/SM by block size: 128 -> 5, 256 -> 2, 512 -> 1, 1024 -> 0 · "
        "at most 640 threads"
    )
    hover = kernel_hover(file.kernels[0], file)
    assert "    256          2  16 of 48       33 %  registers" in hover
    assert "   1024          0  cannot start" in hover
    assert "The largest block that can start has 640 threads." in hover


def test_unknown_dynamic_shared_memory_is_never_a_bare_percentage() -> None:
    scan = kernel("scan", arch="sm_90", uses_dynamic_shared=True, max_block=(512, 1, 1))
    launches = {"scan": [launch(512, None, "launch_bounds", "gemm.cu:5")]}
    file = analysed([scan], launches, choice=gpu("H100 SXM"))
    assert "64/64 warps up to 56 KB of dynamic shared memory" in lens_of(file)
    assert "dynamic shared unknown" in lens_of(file)
    hover = kernel_hover(file.kernels[0], file)
    assert "4 blocks/SM, 64 of 64 warps, up to 56 KB of dynamic shared memory." in hover
    assert "`// kernel-lsp: smem=BYTES`" in hover


def test_unlinked_kernels_are_bounds_on_both_sides() -> None:
    file = analysed([kernel(registers=24, relocatable=True)], {"gemm": [launch(256)]})
    assert lens_of(file).startswith("at most 6 blocks/SM · 48/48 warps · >= 24 regs")
    hover = kernel_hover(file.kernels[0], file)
    assert "At most 100 % theoretical occupancy" in hover
    assert "- >= 24 registers per thread, before linking" in hover


def test_instances_have_a_lens_each_worst_first_until_they_are_many() -> None:
    few = analysed([kernel(f"axpy<{n}>", registers=n) for n in (10, 28)])
    assert [lens.text.partition(":")[0] for lens in lenses(few.kernels, PATH)] == ["axpy<28>", "axpy<10>"]
    many = analysed([kernel(f"axpy<{n}>", registers=n) for n in (10, 20, 28, 30)])
    (shared,) = lenses(many.kernels, PATH)
    assert shared.text.startswith("4 instances, 10-30 regs · worst axpy<30>: ")


def test_hover_lists_every_limit_and_marks_those_that_decide() -> None:
    tiled = kernel("tiled<16>", registers=36, static_shared_bytes=2048, barriers=1)
    file = analysed([tiled], {"tiled<16>": [launch(256)]})
    assert kernel_hover(file.kernels[0], file, "from the build of 14:02") == (
        "**tiled<16>**  RTX 3070 Ti, sm_86\n\n"
        "*from the build of 14:02*\n\n"
        "Block 256 from l.41.  \n"
        "100 % theoretical occupancy: 6 blocks/SM, 48 of 48 warps. Limited by registers and warps.\n\n"
        "```text\n"
        "limit      uses             blocks/SM\n"
        "registers  36 per thread            6   <- limit\n"
        "warps      8 per block              6   <- limit\n"
        "blocks                             16\n"
        "shared     2.0 KB + 1.0 KB         33\n"
        "barriers   1 of 16                  -\n"
        "```\n\n"
        "Next step up: none, the warps are full.  \n"
        "Next step down: 41 registers -> 5 blocks, or 16,001 B shared -> 5 blocks.\n\n"
        "- 36 registers per thread\n"
        "- 2,048 B static shared memory\n"
        "- 0 spills\n\n"
        "`void tiled<16>(float*)`"
    )


def test_hover_tells_instances_apart() -> None:
    file = analysed([kernel("axpy<float, 1>", registers=10), kernel("axpy<double, 4>", registers=28)])
    hover = kernel_hover(file.kernels[0], file)
    assert hover.startswith("**`axpy<double, 4>`**")
    assert "Other instances on this line:\n- `axpy<float, 1>`: 10 registers" in hover


def test_names_from_files_are_never_markup() -> None:
    evil = kernel("k<[a](command:x)>")
    file = analysed([evil], {"k<[a](command:x)>": [launch(where="[b](command:y).cu:1")]})
    hover = kernel_hover(file.kernels[0], file)
    outside_code = "".join(hover.split("`")[::2])
    assert "](command" not in outside_code.replace("\\[b](command", "")
    assert "\\[b](command:y).cu:1" in outside_code
