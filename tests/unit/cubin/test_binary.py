"""Kernels of cubins that several releases of ptxas made, against what each printed; names, helpers, definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.elf import read_elf
from kernel_lsp.cubin.kernel import Cubin, KernelBinary
from kernel_lsp.source.position import SourceLine
from tests.oracle.cubin_corpus import ptxas_functions

RECORDED = sorted((Path(__file__).parents[2] / "data" / "cubin_recorded").glob("*.cubin"))
SPILLS_NOT_LISTED = ("ptxas_12.0", "ptxas_12.4")


def kernel(cubin: Cubin, short_name: str) -> KernelBinary:
    return next(kernel for kernel in cubin.kernels if kernel.short_name == short_name)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_numbers_are_those_that_ptxas_printed(path: Path) -> None:
    cubin = read_cubin(path.read_bytes())
    release, arch = path.stem.removeprefix("ptxas_").split(".sm_")
    assert cubin.arch == f"sm_{arch}"
    assert (cubin.toolkit or "").startswith(release)
    expected, _ = ptxas_functions(path.with_suffix(".txt").read_text("utf-8"))
    assert [found.mangled for found in cubin.kernels] == sorted(expected)
    for found in cubin.kernels:
        said, resources = expected[found.mangled], found.resources
        assert resources.registers == said.registers
        assert resources.static_shared_bytes == said.shared
        assert resources.frame_bytes == said.frame
        assert said.barriers is None or resources.barriers == said.barriers
        assert said.constants is None or resources.constant_bytes == said.constants
        if path.stem.startswith(SPILLS_NOT_LISTED) and said.spill_stores:
            assert resources.spill_store_bytes is None
            assert resources.spill_load_bytes is None
            assert "before 12.6" in (resources.spill_why or "")
        else:
            assert (resources.spill_store_bytes, resources.spill_load_bytes) == (said.spill_stores, said.spill_loads)
            assert resources.spill_why is None


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_facts_from_the_source(path: Path) -> None:
    cubin = read_cubin(path.read_bytes())
    assert kernel(cubin, "spills").resources.max_block == (256, 1, 1)
    assert kernel(cubin, "spills").resources.min_blocks_per_sm == 6
    assert kernel(cubin, "plain").resources.max_threads is None
    assert [found.short_name for found in cubin.kernels if found.resources.uses_dynamic_shared] == ["dynamic"]
    assert kernel(cubin, "dynamic").resources.barriers == 4  # barrier 3, so 0 to 3
    # ptxas 12.6 to 13.0 writes 0 for the stack of a kernel that recurses; it cannot be known.
    assert [found.short_name for found in cubin.kernels if found.resources.stack_bytes is None] == ["recurses"]
    assert kernel(cubin, "plain").definition == SourceLine("/project/recorded.cu", 27)
    assert kernel(cubin, "dynamic").definition == SourceLine("/project/recorded.cu", 20)
    fib = next(function for function in cubin.device_functions if function.short_name == "fib")
    assert fib.kernel == kernel(cubin, "recurses").mangled
    assert not fib.is_helper
    assert 0 < fib.offset_bytes < fib.offset_bytes + fib.code_bytes <= kernel(cubin, "recurses").code_bytes


def test_a_damaged_list_of_spills_costs_the_spills_alone() -> None:
    """One place in it behind the end of the code: registers and the rest still count."""
    good = next(path for path in RECORDED if path.stem == "ptxas_13.0.sm_86").read_bytes()
    elf = read_elf(good)
    section = elf.section(f".nv.info.{kernel(read_cubin(good), 'spills').mangled}")
    assert section is not None
    # A record of the list: 4 (has a size), 0x55 (annotations), size; then pairs of a kind and an offset.
    at = good.index(b"\x04\x55", section.offset) + 8
    damaged = bytearray(good)
    damaged[at + 2] ^= 0x10
    found = kernel(read_cubin(bytes(damaged)), "spills").resources
    assert found.spill_store_bytes is None
    assert found.spill_load_bytes is None
    assert "list of spills is damaged" in (found.spill_why or "")
    assert found.registers == kernel(read_cubin(good), "spills").resources.registers
