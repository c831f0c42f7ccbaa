"""Without a disassembly, or with half of one: what is known is shown, the rest is said to be unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernel_lsp.analysis import FileAnalysis, analyze
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.model.kernel_sass import read_cubin_sass
from kernel_lsp.report.document import build_report
from kernel_lsp.report.hints import line_hints
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.json_document import report_value
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.report.sass_listing import sass_listing
from kernel_lsp.report.sass_value import instruction_values
from kernel_lsp.report.section import BuildFacts
from kernel_lsp.source.kernels import scan
from tests.unit.kernel_values import gpu

RECORDED = Path(__file__).parents[2] / "data" / "cubin_recorded"
CUBIN = (RECORDED / "ptxas_13.0.sm_86.cubin").read_bytes()
WHY = "nvdisasm not found, so no SASS can be shown. Install it with: pip install 'kernel-lsp[cuda]'."


def analysed(text: str, why: str) -> FileAnalysis:
    sass = read_cubin_sass(CUBIN, text, why)
    path = next(iter(next(iter(sass.sections.values())).rows.within))[0]
    return analyze(path, "", read_cubin(CUBIN), gpu(), scan(""), {}, sass=sass)


@pytest.fixture(scope="module")
def without() -> FileAnalysis:
    return analysed("", WHY)


def test_lines_are_counted_without_opcodes(without: FileAnalysis) -> None:
    for kernel in without.kernels:
        assert kernel.sass is not None
        assert kernel.sass.mix is None
        assert kernel.sass.instruction_count > 0
        line = next(line for file, line in kernel.sass.rows.within if file == without.path)
        text = line_hover(without, line)
        assert text is not None
        assert "instruction" in text
        assert f"Opcodes are not known: {WHY}" in text.replace("\\", "")
        kernel_hover(kernel, without)
    assert line_hints(without) == ()


def test_values_are_null_with_a_reason(without: FileAnalysis) -> None:
    value = report_value(build_report(without, BuildFacts((), "", None)))
    for kernel in value["kernels"]:
        assert (kernel["mix"], kernel["loops"], kernel["pressure"]) == (None, None, None)
        assert kernel["mix_why"] == WHY
        assert not kernel["sections"]["mix"]["known"]
    sass = without.kernels[0].sass
    assert sass is not None
    first = instruction_values(sass)[0]
    assert (first["text"], first["opcode"], first["live_registers"], first["loop_depth"]) == (None, None, None, None)
    assert first["stall"] is not None  # of the cubin's own words
    assert first["line"]


def test_half_a_text_is_said_to_be_half() -> None:
    sass = read_cubin_sass(CUBIN, "", "")
    name, kernel = next((n, k) for n, k in sass.sections.items() if k.instruction_count > 4)
    lines = [f'\t.section\t.text.{name},"ax",@progbits']
    lines += [f"        /*{16 * at:04x}*/                   NOP ;" for at in range(2)]
    half = analysed("\n".join(lines), "nvdisasm was stopped after 120 s.")
    found = next(k for k in half.kernels if k.binary.mangled == name)
    assert found.sass is not None
    assert found.sass.text_why == "nvdisasm was stopped after 120 s."
    assert found.sass.instruction_count == kernel.instruction_count
    listing = sass_listing(replace(found), half.path).text
    assert "Not all instructions are known: nvdisasm was stopped after 120 s." in listing
    assert listing.count(" ? ") + listing.count(" ?\n") == kernel.instruction_count - 2
