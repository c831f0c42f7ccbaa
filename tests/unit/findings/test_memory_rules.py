"""Rules about local memory: spills, and arrays that are none."""

from __future__ import annotations

import pytest

from kernel_lsp.findings.wording import local_words
from tests.unit.kernel_values import analysed, gpu, kernel


def test_spill_under_launch_bounds() -> None:
    tight = kernel(
        "tight",
        registers=32,
        arch="sm_90",
        frame_bytes=512,
        stack_bytes=512,
        spill_store_bytes=800,
        spill_load_bytes=828,
        max_block=(1024, 1, 1),
        min_blocks_per_sm=2,
    )
    found = analysed([tight], choice=gpu("H100 SXM")).findings
    assert [f.code for f in found] == ["KL201"]
    assert found[0].message == (
        "800 B spill stores, 828 B spill loads: held to 32 registers by __launch_bounds__(1024, 2)"
    )
    assert found[0].severity == "warning"
    # 2 x 1024 threads share 65,536 registers: 32 each; one block alone: 64.
    assert "2 blocks of 1,024 threads leave 32 registers a thread, one block 64" in found[0].advice


def test_spill_with_every_register_taken() -> None:
    found = analysed([kernel(registers=255, spill_store_bytes=16, spill_load_bytes=16)]).findings
    spill = next(f for f in found if f.code == "KL201")
    assert spill.message == "16 B spill stores, 16 B spill loads: all 255 registers of a thread are taken"


@pytest.mark.parametrize(("frame", "severity"), [(128, "warning"), (64, "warning"), (8, "hint")])
def test_local_array_is_no_spill(frame: int, severity: str) -> None:
    found = analysed([kernel(frame_bytes=frame, stack_bytes=frame)]).findings
    assert [(f.code, f.severity) for f in found] == [("KL204", severity)]
    words = f"{found[0].message} {found[0].advice}"
    assert f"{frame} B per thread in local memory" in words
    assert "spill" not in words.replace("0 spills", "")
    assert "launch_bounds" not in words
    assert "maxrregcount" not in words


def test_a_frame_is_no_array_where_spills_are_unknown_or_calls_are_open() -> None:
    unknown = kernel(frame_bytes=64, spill_store_bytes=None, spill_load_bytes=None, spill_why="no debug data")
    assert analysed([unknown]).findings == ()
    assert analysed([kernel(frame_bytes=64, relocatable=True)]).findings == ()


def test_spill_under_the_flag() -> None:
    found = analysed([kernel(registers=32, spill_store_bytes=16, spill_load_bytes=16)], register_limit=32).findings
    (spill,) = (f for f in found if f.code == "KL201")
    assert spill.message.endswith("held to 32 registers by -maxrregcount=32")
    assert "-maxrregcount" in spill.advice


@pytest.mark.parametrize(("registers", "severity"), [(54, "information"), (30, "hint")])
def test_the_flag_has_no_effect_on_a_bounded_kernel(registers: int, severity: str) -> None:
    bounded = kernel("bounded", line=2, registers=registers, max_block=(256, 1, 1))
    found = analysed([bounded, kernel("free", line=9)], register_limit=32).findings
    (flag,) = (f for f in found if f.code == "KL125")
    assert (flag.line, flag.severity) == (2, severity)
    assert flag.message == (
        f"-maxrregcount=32 has no effect here: __launch_bounds__(256) decides ({registers} registers)"
    )
    assert not [f for f in analysed([bounded]).findings if f.code == "KL125"]


def test_a_frame_that_is_known_with_its_calls_alone_says_so() -> None:
    analysis = analysed([kernel(frame_bytes=None, stack_bytes=72)])
    (finding,) = analysis.findings
    assert finding.message.startswith("72 B per thread in local memory with the functions it calls, 0 spills")
    assert (finding.evidence[0].name, finding.evidence[0].value) == ("stack_bytes", 72)
    assert local_words(analysis.kernels[0]) == "72 B of local memory per thread with the functions it calls"
