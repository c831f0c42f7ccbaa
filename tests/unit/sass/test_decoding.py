"""Decoding of whole sections: columns, what is left of damaged text, control words, padding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.cubin.opcodes import classes
from kernel_lsp.cubin.sass import NO_TARGET, UNKNOWN_TARGET, decode_sass, guard_text
from tests.unit.sass.listing import container, control_word, decode, listing

SHAPES = """
    LDC R1, c[0x0][0x28]
    S2R R2, SR_TID.X
@!P0 BRA `(.L_x_1)
@!PT LDS RZ, [RZ]
.L_x_0:
    LDG.E.64 R4, desc[UR4][R2.64]
@UP1 UIADD3 UR4, UR4, 0x1, URZ
.L_x_1:
    EXIT
.L_x_2:
    BRA `(.L_x_2)
    NOP
    NOP
"""


def test_columns() -> None:
    sass = decode(SHAPES)
    (code,) = sass.codes
    assert (len(sass), code.padding - code.start, code.stop) == (10, 7, 10)  # EXIT is the last that counts
    assert sass.pc.tolist() == list(range(0, 160, 16))
    assert [guard_text(int(guard)) for guard in sass.guard[:7]] == ["", "", "!P0", "!PT", "", "UP1", ""]
    assert sass.target.tolist() == [NO_TARGET, NO_TARGET, 6, *[NO_TARGET] * 4, 7, NO_TARGET, NO_TARGET]
    assert sass.text(2) == "@!P0 BRA `(.L_x_1)"
    assert sass.text(4) == "LDG.E.64 R4, desc[UR4][R2.64]"
    assert [classes()[kind] for kind in sass.kind[:5]] == [
        "const_load", "special", "control", "shared_load", "global_load"
    ]  # fmt: skip
    assert sass.width_bytes[:5].tolist() == [4, 0, 0, 4, 8]
    assert sass.unknown_rows == 0


def test_control_fields() -> None:
    words = {0: control_word(4, write=2, wait=0b100001, reuse=3), 1: control_word(15, read=5, yields=True)}
    control = decode("FFMA R1, R2, R3, R4\nSTG.E desc[UR4][R2.64], R1\nEXIT", words).control
    assert control is not None
    columns = (control.stall, control.yields, control.write_barrier, control.read_barrier, control.wait_mask)
    assert [column.tolist() for column in columns] == [[4, 15, 1], [0, 1, 0], [2, 7, 7], [7, 5, 7], [33, 0, 0]]
    assert control.reuse.tolist() == [3, 0, 0]


@pytest.mark.parametrize("arch", ["sm_61", "sm_130"])
def test_control_words_of_other_architectures_are_unknown(arch: str) -> None:
    sass = decode(SHAPES, arch=arch)
    assert sass.control is None
    assert sass.control_why == f"the control words of {arch} are not known"


def test_hidden_descriptor_of_sm_80() -> None:
    """nvdisasm prints no descriptor for sm_80; bits 32-37 of the load hold it (here UR6)."""
    sass = decode("LDG.E R4, [R2.64]\nEXIT", {0: control_word() | 6 << 32}, arch="sm_80")
    uses = sass.forms[int(sass.form[0])].registers.uses
    assert uses == 0b1100 | 0b11 << 256 + 6


def test_without_text_addresses_and_control_words_stay() -> None:
    sass = decode_sass(container(control_word(3).to_bytes(16, "little") * 4), "")
    assert (len(sass), sass.unknown_rows, sass.text(0)) == (4, 4, "")
    assert sass.control is not None
    assert sass.control.stall.tolist() == [3, 3, 3, 3]


def test_indirect_call_and_branch_have_unknown_targets() -> None:
    sass = decode("CALL.REL.NOINC R2 `(k)\nBRX R10 -0x310\nCALL.REL.NOINC `(elsewhere)\nEXIT")
    assert sass.target.tolist() == [UNKNOWN_TARGET] * 3 + [NO_TARGET]


@given(cut=st.integers(0, len(listing(SHAPES))), noise=st.binary(max_size=12), at=st.integers(0, 400))
def test_damaged_text_keeps_what_it_still_holds(cut: int, noise: bytes, at: int) -> None:
    whole = decode(SHAPES)
    good = listing(SHAPES)[:cut]
    bad = good[:at] + noise.decode("latin-1") + good[at:]
    for text in (good, bad):
        sass = decode_sass(container(control_word().to_bytes(16, "little") * 10), text)
        assert len(sass) == 10
        assert sass.unknown_rows <= 10
    cut_short = decode_sass(container(control_word().to_bytes(16, "little") * 10), good)
    known = [row for row in range(10) if cut_short.text(row)]
    assert known == list(range(len(known)))
    assert [cut_short.text(row) for row in known] == [whole.text(row) for row in known]
