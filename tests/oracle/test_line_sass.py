"""Each instruction of a kernel stands on exactly one line as its own, whatever the kernel and the architecture."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.model.kernel_sass import CubinSass, KernelSass, read_cubin_sass
from kernel_lsp.model.line_sass import line_sass, local_lines
from kernel_lsp.report.sass_listing import sass_listing
from kernel_lsp.report.sass_value import instruction_values
from tests.oracle.cubin_corpus import assembled, build, sources_for, tool_text
from tests.unit.kernel_values import analysed
from tests.unit.kernel_values import kernel as binary

DATA = Path(__file__).parents[1] / "data"
OPCODES = DATA / "sass" / "ops.cu"
ON = ("sm_80", "sm_86", "sm_90a", "sm_100a", "sm_120a")


def decoded(source: Path, arch: str, toolkit: Path) -> CubinSass:
    cubin = (build if source == OPCODES else assembled)(source, arch, toolkit)
    return read_cubin_sass(cubin.data, tool_text(toolkit, cubin.path, "nvdisasm", *ARGUMENTS), "")


@pytest.mark.parametrize(
    ("source", "arch"),
    [
        *((OPCODES, arch) for arch in ON),
        *((source, arch) for arch in ("sm_86", "sm_100a") for source in sources_for(arch)),
    ],
    ids=lambda value: value if isinstance(value, str) else value.stem,
)
def test_the_lines_sum_is_the_kernels_each_once(source: Path, arch: str, toolkit: Path) -> None:
    for kernel in decoded(source, arch, toolkit).sections.values():
        assert_each_once(kernel)
        assert_local_memory_is_complete(kernel)


def assert_each_once(kernel: KernelSass) -> None:
    every = np.arange(kernel.code.start, kernel.code.padding)
    own = np.concatenate(list(kernel.rows.own.values()))
    assert np.array_equal(np.sort(own), every)
    without_line = kernel.rows.own.get(None, np.zeros(0, np.int64))
    counted: Counter[int] = Counter(without_line.tolist())
    for file, line in kernel.rows.within:
        here = line_sass(kernel, file, line)
        assert here is not None
        # A line holds a row once, be it its own or inlined.
        rows = [*here.own.tolist(), *(row for each in here.inlined for row in each.rows.tolist())]
        assert len(rows) == len(set(rows)) == len(here)
        assert sum(chain.count for chain in here.chains) <= len(here.own)
        counted.update(here.own.tolist())
    assert counted == Counter(every.tolist())


def assert_local_memory_is_complete(kernel: KernelSass) -> None:
    """The lines' local memory accesses are the kernel's, where every one has a line."""
    for purpose in ("spill", "array"):
        accesses = [each for each in kernel.local or () if each.purpose == purpose and kernel.frames(each.row)]
        lines = local_lines(kernel, purpose)
        assert sum(line.accesses for line in lines) == len(accesses)
        assert sum(line.store_bytes + line.load_bytes for line in lines) == sum(a.width_bytes for a in accesses)


def test_values_and_listing_hold_every_instruction(toolkit: Path) -> None:
    found = decoded(DATA / "cubin_corpus" / "lines.cu", "sm_86", toolkit)
    for sass in found.sections.values():
        values = instruction_values(sass)
        assert [value["pc"] for value in values] == list(range(0, 16 * sass.instruction_count, 16))
        assert all(value["text"] and value["opcode"] in value["text"] for value in values)
        kernel = replace(analysed([binary()]).kernels[0], sass=sass)
        listing = sass_listing(kernel, "")
        rows = listing.text.split("\n")
        printed = [row for row in rows if row[:4].strip() and set(row[:4]) <= set("0123456789abcdef")]
        assert len(printed) == sass.instruction_count
        linked = {link.row: link.lines for link in listing.links}
        for number, row in enumerate(rows, 1):
            if number in linked:
                value = values[int(row[:4], 16) // 16]
                assert linked[number][0] == (value["file"], value["line"])
                assert value["text"] in row
