"""How findings are merged, silenced and sorted; and what a build has to say."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from kernel_lsp.analysis import failed_build_findings
from kernel_lsp.findings.catalogue import rule_texts
from kernel_lsp.findings.facts import BuildNote
from kernel_lsp.findings.rules import RULES, measured_rules
from kernel_lsp.findings.suppression import ignored_codes
from kernel_lsp.source.kernels import scan
from kernel_lsp.source.message import CompilerMessage, MessageNote
from tests.unit.kernel_values import PATH, analysed, kernel

RULE_PAGES = Path(__file__).parents[3] / "docs" / "rules"
SOURCE = """// line 1
template <int N>
__global__ void
pick(float* x) { x[0] = N; }
template <int N> __global__ void unused(float* x) {}
"""


def test_instances_of_a_template_are_one_finding_of_the_worst() -> None:
    kernels = [kernel(f"pick<{n}>", line=4, frame_bytes=n, stack_bytes=n) for n in (64, 256, 128)]
    found = [f for f in analysed(kernels, text=SOURCE).findings if f.code == "KL204"]
    assert len(found) == 1
    assert found[0].message.startswith("pick<256>, worst of 3: 256 B per thread")
    assert (found[0].line, found[0].column, found[0].end_column) == (4, 1, 5)


def test_kernels_without_a_place_are_not_taken_for_instances_of_each_other() -> None:
    kernels = [kernel(name, line=None, frame_bytes=64, stack_bytes=64) for name in ("a", "b")]
    found = analysed(kernels).findings
    assert [(f.file, f.line, f.kernel) for f in found] == [(PATH, 1, "void a(float*)"), (PATH, 1, "void b(float*)")]


@pytest.mark.parametrize(
    ("comment", "is_silent"),
    [
        ("// kernel-lsp: ignore KL204", True),
        ("// kernel-lsp: ignore local-array", True),
        ("// kernel-lsp: ignore KL101, KL204", True),
        ("// kernel-lsp: ignore", True),
        ("// kernel-lsp: ignore KL101", False),
        ("// nothing to see", False),
    ],
)
def test_a_comment_above_the_template_header_silences(comment: str, is_silent: bool) -> None:
    text = SOURCE.replace("// line 1", comment)
    found = analysed([kernel("pick<1>", line=4, frame_bytes=64, stack_bytes=64)], text=text).findings
    assert ("KL204" not in [f.code for f in found]) is is_silent


def test_comments_speak_of_their_own_line_or_of_the_next_with_code() -> None:
    text = "a(); // kernel-lsp: ignore KL201\n// kernel-lsp: ignore KL101\n// why\nb();\nc();\n"
    assert ignored_codes(text) == {1: {"KL201"}, 4: {"KL101"}}


@pytest.mark.parametrize("text", ["//" * 200_000, "/*" * 200_000, '"' * 200_000 + "\\", "//kernel-lsp:" * 50_000])
def test_hostile_text_costs_no_time(text: str) -> None:
    start = time.perf_counter()
    analysed([kernel()], text="__device__ int f(int x) { return x; }\n" + text)
    assert time.perf_counter() - start < 10


def test_severities_by_code_and_by_name() -> None:
    kernels = [kernel(frame_bytes=64, stack_bytes=64)]
    assert analysed(kernels, severities={"KL204": "off"}).findings == ()
    assert [f.severity for f in analysed(kernels, severities={"local-array": "error"}).findings] == ["error"]


def test_not_compiled_says_why() -> None:
    text = SOURCE + "__device__ float helper(float x) { return x; } // helper\n"
    found = analysed([kernel("pick<1>", line=4)], text=text).findings
    assert [(f.line, f.severity, f.message) for f in found] == [
        (5, "hint", "not compiled: template unused is not instantiated in this file"),
        (6, "hint", "not compiled: no kernel of this file calls helper"),
    ]


def test_a_failed_build_is_told_by_its_messages() -> None:
    message = CompilerMessage(
        "cudafe", "error", PATH, 7, None, None, 'expected a ";"', notes=(MessageNote(PATH, 9, "instantiated here"),)
    )
    twice = (message, message)
    found = failed_build_findings(PATH, "", "nvcc ended with status 2", twice)
    assert [(f.code, f.severity, f.line, f.message) for f in found] == [("KL901", "error", 7, 'expected a ";"')]
    assert [(r.line, r.message) for r in found[0].related] == [(9, "instantiated here")]


def test_a_build_without_a_placed_error_says_that_it_failed() -> None:
    found = failed_build_findings(PATH, "", "nvcc took longer than 300 s and was stopped.", ())
    assert [(f.code, f.line, f.message) for f in found] == [
        ("KL902", 1, "not built: nvcc took longer than 300 s and was stopped")
    ]


def test_notes_of_the_build() -> None:
    found = analysed([], notes=[BuildNote("analysed without -G", "information")]).findings
    assert [(f.code, f.severity, f.message) for f in found] == [("KL903", "information", "analysed without -G")]


def test_notes_of_a_message_name_kernels_as_people_do() -> None:
    mangled = "_Z7touchedPf"
    note = MessageNote(PATH, 3, f"warpgroup.wait is injected in function '{mangled}' (C7517)")
    message = CompilerMessage(
        "ptxas", "warning", PATH, 2, None, "C7511", f"serialized in '{mangled}'", mangled, (note,)
    )
    (found,) = failed_build_findings(PATH, "", "", [message])
    assert found.message == "serialized in 'touched' [C7511]"
    assert [r.message for r in found.related] == ["warpgroup.wait is injected in function 'touched' (C7517)"]


def test_a_note_of_ptxas_comes_with_its_cure(toolkit: Path) -> None:
    words = "Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry."
    message = CompilerMessage("ptxas", "warning", PATH, 2, None, "C7508", words, "_Z2wsPf")
    (found,) = failed_build_findings(PATH, "", "", [message])
    assert "__launch_bounds__(threads, 1)" in found.advice
    # All that is looked for are ptxas's own words.
    ptxas = (toolkit / "bin" / "ptxas").read_bytes()
    for part in rule_texts()["KL901"].advice:
        assert part.encode() in ptxas, part


def test_a_comment_that_does_not_count_is_said_at_its_word() -> None:
    text = "// kernel-lsp: block=0 smem=48KB\n__global__ void gemm(float* x) {}\n"
    found = analysed([kernel(line=2)], text=text).findings
    (comment,) = (f for f in found if f.code == "KL904")
    assert (comment.line, comment.severity) == (1, "warning")
    assert text[(comment.column or 0) - 1 : (comment.end_column or 0) - 1] == "block=0"
    assert "block=0 is not understood" in comment.message


def test_a_message_that_names_only_a_kernel_stands_at_its_line() -> None:
    message = CompilerMessage("ptxas", "warning", "", 0, None, None, "wgmma serialised", kernel="_Z_pick<1>")
    found = analysed([kernel("pick<1>", line=4)], text=SOURCE, messages=[message]).findings
    assert ("KL901", 4) in [(f.code, f.line) for f in found]


def test_an_instance_that_ptxas_refuses_is_named_as_people_write_it() -> None:
    # ptxas says: "Entry function '_Z8tile_sumILi98EEvPKfPf' uses too much shared data".
    text = (
        "template <int ROWS>\n__global__ void tile_sum(const float* in, float* out) {\n"
        "  __shared__ float tile[ROWS][128];\n}\n"
        "template __global__ void tile_sum<64>(const float*, float*);\n"
        "template __global__ void tile_sum< 98 >(const float*, float*);\n"
    )
    mangled = "_Z8tile_sumILi98EEvPKfPf"
    words = f"Entry function '{mangled}' uses too much shared data (50176 bytes, 49152 max)"
    message = CompilerMessage("ptxas", "error", PATH, 2, None, None, words, kernel=mangled)
    (found,) = failed_build_findings(PATH, text, "", [message], scan=scan(text))
    assert found.message == "Entry function 'tile_sum<98>' uses too much shared data (50176 bytes, 49152 max) [ptxas]"
    assert [(r.line, r.message) for r in found.related] == [
        (6, "tile_sum<98> is asked for here"),
        (3, "shared memory: tile"),
    ]


def test_every_rule_has_texts_and_a_page() -> None:
    assert [rule.code for rule in (*RULES, *measured_rules())] == list(
        dict.fromkeys(rule.code for rule in (*RULES, *measured_rules()))
    )
    assert {rule.code for rule in (*RULES, *measured_rules())} == set(rule_texts())
    for code, text in rule_texts().items():
        page = (RULE_PAGES / f"{code}.md").read_text("utf-8")
        assert page.startswith(f"# {code} {text.slug}\n")
        assert set(text.yields_to) <= set(rule_texts())
        for message in text.messages.values():
            plain = re.sub(r"\{[^}]*\}", "12", message)
            assert len(plain) <= 100, f"{code}: {message}"
    assert {page.stem for page in RULE_PAGES.glob("KL*.md")} == set(rule_texts())
