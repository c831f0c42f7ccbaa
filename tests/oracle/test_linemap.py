"""The line map against a second decoder for every instruction, against `nvdisasm -gi`, and against the sources."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import run

import numpy as np
import pytest

from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.linemap import LineTable, read_line_table
from tests.oracle.cubin_corpus import ARCHS, CORPUS, assembled, build, sources_for, tool_text
from tests.oracle.line_table_oracle import oracle_sections

INSTRUCTION_BYTES = 16


@pytest.mark.parametrize("arch", ARCHS)
def test_every_instruction_equals_the_second_decoder(arch: str, toolkit: Path) -> None:
    compared = 0
    for source in sources_for(arch):
        data = assembled(source, arch, toolkit).data
        table = read_line_table(data)
        expected = oracle_sections(data)
        assert set(table.sections) == set(expected)
        for name, oracle in expected.items():
            lines = table.sections[name]
            addresses = np.arange(0, oracle.size, INSTRUCTION_BYTES)
            rows = lines.rows_at(addresses)
            for address, row in zip(addresses.tolist(), rows.tolist(), strict=True):
                answer = oracle.answer(address)
                assert (answer == "helper") == (lines.helper_at(address) is not None)
                frames = [
                    (frame.file.rsplit("/", 1)[-1], frame.line, frame.function or "")
                    for frame in lines.frames_of_row(row)
                ]
                assert frames == ([] if isinstance(answer, str) else answer), (source.name, name, hex(address))
                compared += 1
    assert compared > 3000


@pytest.mark.parametrize("arch", ["sm_86", "sm_120a"])
def test_chains_equal_what_nvdisasm_prints(arch: str, toolkit: Path) -> None:
    """nvdisasm prints the chain where it changes; it agrees wherever it prints one in this corpus."""
    compared = 0
    for source in sources_for(arch):
        built = assembled(source, arch, toolkit)
        text = tool_text(toolkit, built.path, "nvdisasm", "-gi", "-c", "-ndf")
        compared += compare_with_nvdisasm(text, read_line_table(built.data))
    assert compared > 800


def compare_with_nvdisasm(text: str, table: LineTable) -> int:
    compared = 0
    section = ""
    chain: list[tuple[str, int]] = []
    for line in text.splitlines():
        if started := re.match(r"(\.text\.\S+):$", line):
            section, chain = started[1], []
        elif line.lstrip().startswith("//## File"):
            file, number = re.findall(r'"([^"]+)", line (\d+)', line)[0]
            chain.append((Path(file).name, int(number)))
        elif instruction := re.match(r"\s+/\*([0-9a-f]{4,})\*/", line):
            if chain:
                address = int(instruction[1], 16)
                if table.sections[section].helper_at(address) is None:
                    frames = table.frames(section, address)
                    assert [(Path(frame.file).name, frame.line) for frame in frames] == chain, (section, hex(address))
                    compared += 1
            chain = []
    return compared


# Where the text of the declarator is not `name(` on a line of the file that holds it.
MADE_BY_MACRO = {
    "made_add": "MAKE_KERNEL(made_add",
    "made_mul": "MAKE_KERNEL(made_mul",
    "from_macro": "KERNEL_HEAD(from_macro)",
    "several_lines": "several_lines",
}
RENAMED = {"generated": ("generated.tmpl", 100)}


def declared_at(short_name: str, source: Path) -> tuple[str, int]:
    """File and line where the text has the kernel's name in front of its parameters."""
    name = re.sub(r"<.*", "", short_name).rsplit("::", 1)[-1]
    if name in RENAMED:
        return RENAMED[name]
    wanted = re.escape(MADE_BY_MACRO[name]) if name in MADE_BY_MACRO else rf"\b{name}\s*\("
    for file in (source, *sorted(CORPUS.glob("*.cuh"))):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if re.search(wanted, line) and not line.lstrip().startswith("//"):
                return file.name, number
    raise AssertionError(f"{short_name} is not in {source}")


@pytest.mark.parametrize("arch", ARCHS)
def test_definitions_are_the_lines_of_the_declarators(arch: str, toolkit: Path) -> None:
    for source in sources_for(arch):
        for kernel in read_cubin(assembled(source, arch, toolkit).data).kernels:
            assert kernel.definition is not None
            found = (Path(kernel.definition.file).name, kernel.definition.line)
            assert found == declared_at(kernel.short_name, source), kernel.name


def test_line_directives_name_their_own_files(toolkit: Path) -> None:
    table = read_line_table(build(CORPUS / "lines.cu", "sm_86", toolkit).data)
    lines = table.sections[".text._Z9generatedPf"]
    innermost = {
        (Path(lines.files[file]).name, int(line))
        for file, line in zip(lines.file[~lines.ends], lines.line[~lines.ends], strict=True)
    }
    assert {("other.tmpl", 8), ("other.tmpl", 30), ("lines.cuh", 3)} <= innermost
    assert not any(name == "lines.cu" and number in (8, 30) for name, number in innermost)


def test_letters_outside_ascii_in_paths(toolkit: Path, tmp_path: Path) -> None:
    """nvcc writes them as octal escapes; ptxas even cuts the path inside one."""
    folder = tmp_path / "мои ядра #1 (50%) o'b"
    folder.mkdir()
    (folder / "коэф.cuh").write_text("__device__ __forceinline__ float k(float v) {\n  return v * 3.f;\n}\n", "utf-8")
    source = folder / "saxpy.cu"
    source.write_text(
        '#include "коэф.cuh"\n__global__ void saxpy(float* x) {\n  x[threadIdx.x] = k(x[threadIdx.x]);\n}\n',
        "utf-8",
    )
    cubin = tmp_path / "a.cubin"
    command = [str(toolkit / "bin/nvcc"), "-cubin", "-lineinfo", "-arch=sm_86", str(source), "-o", str(cubin)]
    run(command, check=True, capture_output=True)
    lines = read_line_table(cubin.read_bytes()).sections[".text._Z5saxpyPf"]
    assert set(lines.files) - {""} == {str(source), str(folder / "коэф.cuh")}
    kernel = read_cubin(cubin.read_bytes()).kernels[0]
    assert kernel.definition is not None
    assert (kernel.definition.file, kernel.definition.line) == (str(source), 2)


def test_without_lineinfo_there_is_no_line_table(toolkit: Path, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(float* x) { x[0] = 1; }\n")
    cubin = tmp_path / "k.cubin"
    command = [str(toolkit / "bin/nvcc"), "-cubin", "-arch=sm_86", str(source), "-o", str(cubin)]
    run(command, check=True, capture_output=True)
    assert read_line_table(cubin.read_bytes()).sections == {}
    assert read_line_table(cubin.read_bytes()).frames(".text._Z1kPf", 0) == ()
    kernel = read_cubin(cubin.read_bytes()).kernels[0]
    assert kernel.definition is None
    assert kernel.resources.min_blocks_per_sm is None
    assert kernel.resources.uses_dynamic_shared is False
