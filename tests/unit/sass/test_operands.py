"""Operand texts become registers defined and used (expected by hand from PTX types and SASS operand order)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.cubin.operands import ALL_REGISTERS, BANK_START, registers_of


def names(mask: int | None) -> set[str] | None:
    if mask is None:
        return None
    sizes = {"R": 256, "UR": 256, "P": 8, "UP": 8}
    return {f"{bank}{at}" for bank, first in BANK_START.items() for at in range(sizes[bank]) if mask >> first + at & 1}


@pytest.mark.parametrize(
    ("instruction", "defines", "uses"),
    [
        ("FFMA R9, R4.reuse, -R4, |R2|", "R9", "R4 R2"),
        ("MOV R0, RZ", "R0", ""),
        ("IMAD.WIDE R4, R2, 0x4, R6", "R4 R5", "R2 R6 R7"),
        ("IMAD.WIDE.U32 R4, P1, R2, R3, R6", "R4 R5 P1", "R2 R3 R6 R7"),
        ("IMAD.HI.U32 R5, R4, R7, R6", "R5", "R4 R7 R6 R7"),
        ("IADD3 R6, P1, P2, R1, UR4, RZ", "R6 P1 P2", "R1 UR4"),
        ("IADD3.X R7, R1, UR5, RZ, P1, !PT", "R7", "R1 UR5 P1"),
        ("IADD.64 R2, R4, UR6", "R2 R3", "R4 R5 UR6 UR7"),
        ("ISETP.GE.AND P0, PT, R2, 0x10, !P3", "P0", "R2 P3"),
        ("LOP3.LUT P2, RZ, R3, 0x1, RZ, 0xc0, !PT", "P2", "R3"),
        ("PLOP3.LUT P0, PT, P1, P2, PT, 0x80, 0x0", "P0", "P1 P2"),
        ("SEL R0, R1, R2, !P4", "R0", "R1 R2 P4"),
        ("DFMA R2, -R4, c[0x0][0x168], R6", "R2 R3", "R4 R5 R6 R7"),
        ("DSETP.GT.AND P1, PT, R2, RZ, PT", "P1", "R2 R3"),
        ("F2F.F64.F32 R2, R7", "R2 R3", "R7"),
        ("F2F.F32.F64 R7, R2", "R7", "R2 R3"),
        ("F2I.S64.TRUNC R2, R7", "R2 R3", "R7"),
        ("I2F.F64.S64 R2, R4", "R2 R3", "R4 R5"),
        ("LDG.E R4, desc[UR36][R2.64+0x10]", "R4", "UR36 UR37 R2 R3"),
        ("LDG.E.128.SYS R4, [R2]", "R4 R5 R6 R7", "R2 R3"),
        ("LDG.E.SYS R4, [R2.U32+UR6]", "R4", "R2 UR6 UR7"),
        ("LDG.E.ENL2.256 R8, R4, desc[UR4][R2.64]", "R4 R5 R6 R7 R8 R9 R10 R11", "UR4 UR5 R2 R3"),
        ("STG.E.64 desc[UR4][R2.64], R8", "", "UR4 UR5 R2 R3 R8 R9"),
        ("LDS.64 R4, [R2+UR3+0x8]", "R4 R5", "R2 UR3"),
        ("STL.128 [R1+0x10], R4", "", "R1 R4 R5 R6 R7"),
        ("LDC.64 R8, c[0x4][R0]", "R8 R9", "R0"),
        ("LDGSTS.E.BYPASS.128 [R7+0x40], desc[UR36][R4.64], P2", "", "R7 UR36 UR37 R4 R5 P2"),
        ("ATOMG.E.CAS.64.STRONG.GPU PT, R2, [R4], R6, R8", "R2 R3", "R4 R5 R6 R7 R8 R9"),
        ("ATOMS.CAST.SPIN P0, [R2], R3, R4", "P0", "R2 R3 R4"),
        ("REDG.E.ADD.F64.RN.STRONG.GPU desc[UR4][R2.64], R6", "", "UR4 UR5 R2 R3 R6 R7"),
        ("SHFL.UP P0, R4, R5, 0x1, RZ", "P0 R4", "R5"),
        ("VOTE.ANY R9, PT, P0", "R9", "P0"),
        ("R2UR UR4, R2", "UR4", "R2"),
        ("CS2R R2, SRZ", "R2 R3", ""),
        ("R2P PR, R8, 0x3", "P0 P1", "R8"),
        ("P2R R0, PR, R0, 0x5", "R0", "R0 P0 P2"),
        ("LDSM.16.M88.4 R4, [R2]", "R4 R5 R6 R7", "R2"),
        ("HMMA.16816.F32 R4, R8.reuse, R12, R4", "R4 R5 R6 R7", "R8 R9 R10 R11 R12 R13 R4 R5 R6 R7"),
        ("HMMA.884.F32.F32.STEP1 R6, R16.ROW, R18.COL, R6", "R6 R7", "R16 R17 R18 R19 R6 R7"),
        ("HMMA.16816.F16 R4, R8, R12, RZ", "R4 R5", "R8 R9 R10 R11 R12 R13"),
        ("IMMA.8816.S8.S8 R4, R8.ROW, R9.COL, R4", "R4 R5", "R8 R9 R4 R5"),
        ("HMMA.SP.16816.F32 R4, R8, R10, R4, R14, 0x1", "R4 R5 R6 R7", "R8 R9 R10 R11 R4 R5 R6 R7 R14"),
        ("HGMMA.64x8x16.F32 R4, gdesc[UR8], R4, UP0, gsb0", "R4 R5 R6 R7", "UR8 UR9 UR10 UR11 R4 R5 R6 R7 UP0"),
        ("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR2], UPT", "", "UR2 UR4 UR5 UR6 UR7 UR8 UR9"),
        ("UTMALDG.2D [UR8], [UR4]", "", "UR8 UR9 UR10 UR11 UR4 UR5"),
        ("UTMALDG.2D.GATHER4 [UR8], [UR4]", "", "UR8 UR9 UR10 UR11 UR12 UR13 UR14 UR4 UR5"),
        ("UTMASTG.2D.SCATTER4 [UR8], [UR4]", "", "UR8 UR9 UR10 UR11 UR12 UR13 UR4 UR5"),
        ("UBLKCP.S.G [UR4], [UR6], UR8", "", "UR4 UR5 UR6 UR7 UR8"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2", "P0", "UR4 R2"),
        ("RET.REL.NODEC R20 `(_Z4fooR9v)", "", "R20 R21"),
        ("BRA P1, `(.L_x_3)", "", "P1"),
        ("BSSY B0, `(.L_x_2)", "", ""),
        ("DADD R2, R2, +INF ", "R2 R3", "R2 R3"),
        ("TEX.LL R14, R12, R10, R29, UR4, 2D", "R12 R13 R14 R15", "R10 R11 R29 UR4 UR5"),
        ("TLD.LZ RZ, R0, R2, UR4, 1D, 0x1", "R0", "R2 UR4 UR5"),
        # Behind the coordinates stand level, offset and reference value; without another operand for it the handle too.
        ("TEX.LL.AOFFI.DC P0, R6, R4, R24, R16, UR4, 2D", "P0 R4 R5 R6 R7", "R24 R25 R16 R17 R18 UR4 UR5"),
        ("TEX.SCR.B.LL RZ, R4, R6, R8, ARRAY_1D, 0x1", "R4", "R6 R7 R8 R9"),
        ("TXD.B R26, R24, R12, R8, ARRAY_1D", "R24 R25 R26 R27", "R12 R13 R14 R8 R9"),
        ("TEX.SCR.F16.RN.LL R2, R3, R8, R5, 0x0, 0x58, 2D", "R2 R3", "R8 R9 R5"),
        ("SULD.D.BA.2D_ARRAY.128.STRONG.SM.TRAP R4, [R8], R0", "R4 R5 R6 R7", "R8 R9 R10 R0"),
        ("SUST.P.3D.STRONG.SM.RG.TRAP [R4], R24, UR6", "", "R4 R5 R6 R24 R25 UR6"),
        ("MATCH.ALL.U64 P1, R5, R8", "P1 R5", "R8 R9"),
        ("IMNMX.S64 PT, PT, R10, R6, R8, !PT, !PT", "R10 R11", "R6 R7 R8 R9"),
        ("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR9], idesc[UR2], UR12, UPT", "",
         "UR2 UR4 UR5 UR6 UR7 UR8 UR9 UR12 UR13 UR14 UR15"),
        ("UTCHMMA.WS tmem[UR3], gdesc[UR6].B_KEEP.BUFFER2, tmem[UR8], tmem[UR9], idesc[UR2], UR12, UP0", "",
         "UR2 UR3 UR6 UR7 UR8 UR9 UR12 UR13 UP0"),
        ("MOV R20, 32@lo((_Z3fooIf7BYR3P4EvPf + .L_x_0@srel))", "R20", ""),
        ("UP2UR UR4, UPR, UR4, 0x5", "UR4", "UR4 UP0 UP2"),
        ("RPCMOV.32 R11, Rpc.HI", "R11", ""),
    ],
)  # fmt: skip
def test_registers(instruction: str, defines: str, uses: str) -> None:
    opcode, _, operands = instruction.partition(" ")
    found = registers_of(opcode, operands)
    assert found.reason is None
    assert (names(found.defines), names(found.uses)) == (set(defines.split()), set(uses.split()))


def test_unknown_opcode_says_so() -> None:
    found = registers_of("FUTURE.64", "R1, R2")
    assert (found.defines, found.uses) == (None, None)
    assert found.reason == "the operands of FUTURE are not known"


def test_a_register_that_does_not_exist_is_no_number() -> None:
    assert registers_of("MOV", "R300, R2").defines is None


_PIECES = st.sampled_from(
    [
        "R1",
        "R255",
        "R999",
        "UR63",
        "P6",
        "PT",
        "!P0",
        "[",
        "]",
        ",",
        " ",
        "desc[UR4]",
        "0x10",
        "`(",
        ")",
        "(*",
        "-",
        "|",
    ]
)


@given(st.sampled_from(["FFMA", "LDG.E.128", "HMMA.16816.F32", "UTMALDG.3D", "TEX.LL", "R2P", "IMAD.WIDE", "NOPE"]),
       st.lists(_PIECES, max_size=12).map("".join) | st.text(max_size=40))  # fmt: skip
def test_any_text_gives_registers_or_a_reason(opcode: str, operands: str) -> None:
    found = registers_of(opcode, operands)
    if found.reason is None:
        assert found.defines is not None
        assert found.uses is not None
        assert (found.defines | found.uses) & ~ALL_REGISTERS == 0
    else:
        assert found.defines is None
        assert found.uses is None
