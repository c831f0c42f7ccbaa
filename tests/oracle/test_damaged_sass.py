"""Damaged cubins with the real nvdisasm: what can be known is kept, the rest is unknown, no error but CubinError."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.cubin.elf import read_elf
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.cubin.salvage import Answer, Salvaged, salvage
from kernel_lsp.cubin.sass import decode_sass
from kernel_lsp.model.kernel_sass import read_cubin_sass
from tests.oracle.cubin_corpus import build, tool_text

SOURCE = """
__global__ void first(float* x, int n) { for (int i = 0; i < n; ++i) x[i] += x[i + n]; }
__global__ void second(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= x[i + n]; }
__global__ void third(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1.f; }
"""


@pytest.fixture(scope="module")
def path(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("damaged") / "three.cu"
    source.write_text(SOURCE)
    return build(source, "sm_90", toolkit).path


def disassemble(toolkit: Path, folder: Path, data: bytes) -> Answer:
    path = folder / "damaged.cubin"
    path.write_bytes(data)
    command = [str(toolkit / "bin" / "nvdisasm"), *ARGUMENTS, str(path)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=100)
    return Answer(done.returncode == 0, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def drive(data: bytes, toolkit: Path, folder: Path) -> Salvaged:
    attempt = salvage(data)
    copy = next(attempt)
    while True:
        try:
            copy = attempt.send(disassemble(toolkit, folder, copy))
        except StopIteration as end:
            salvaged: Salvaged = end.value
            return salvaged


def test_illegal_instructions_cost_themselves_alone(path: Path, toolkit: Path, tmp_path: Path) -> None:
    good = path.read_bytes()
    elf = read_elf(good)
    whole = decode_sass(elf, tool_text(toolkit, path, "nvdisasm", *ARGUMENTS))
    bad = bytearray(good)
    second = elf.section(".text._Z6secondPfi")
    code = whole.code("_Z6secondPfi")
    assert second is not None
    assert code is not None
    for at in (2, 5):
        bad[second.offset + 16 * at : second.offset + 16 * at + 16] = b"\xff" * 16
    assert disassemble(toolkit, tmp_path, bytes(bad)).text == ""  # nvdisasm alone prints nothing
    found = drive(bytes(bad), toolkit, tmp_path)
    assert [(each.section, each.offsets) for each in found.lost] == [(second.name, (32, 80))]
    sass = decode_sass(read_elf(bytes(bad)), found.text)
    unknown = {row for row in range(len(sass)) if not sass.text(row)}
    assert unknown == {code.start + 2, code.start + 5}
    assert all(sass.opcode(row) == whole.opcode(row) for row in range(len(sass)) if row not in unknown)
    assert [sass.target[row] for row in range(len(sass)) if row not in unknown] == [
        whole.target[row] for row in range(len(sass)) if row not in unknown
    ]
    kernels = read_cubin_sass(bytes(bad), found.text, "damaged").sections
    assert kernels["_Z6secondPfi"].live.peak is None
    assert not kernels["_Z6secondPfi"].flow.is_whole
    for name in ("_Z5firstPfi", "_Z5thirdPfi"):
        assert kernels[name].text_why == ""
        assert kernels[name].live.peak is not None


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_and_truncated_cubins_never_raise(path: Path, toolkit: Path, data: st.DataObject) -> None:
    """The text is that of the undamaged cubin, which fits worse the more is damaged."""
    good = path.read_bytes()
    text = tool_text(toolkit, path, "nvdisasm", *ARGUMENTS)
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(bad) - 1))
        bad[at] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()):
        del bad[data.draw(st.integers(0, len(bad))) :]
    text = text[: data.draw(st.integers(0, len(text)))]
    try:
        found = read_cubin_sass(bytes(bad), text, "cut")
    except CubinError:
        return
    for kernel in found.sections.values():
        assert kernel.code.start <= kernel.code.padding <= kernel.code.stop
        assert sum(map(len, kernel.rows.own.values())) == kernel.instruction_count
        assert kernel.waits is not None
        missing = [row for row in range(kernel.code.start, kernel.code.padding) if not kernel.sass.text(row)]
        assert bool(missing) == bool(kernel.text_why)
        if missing:
            assert kernel.live.peak is None
            assert kernel.live.why
