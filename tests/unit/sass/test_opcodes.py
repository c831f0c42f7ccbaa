"""Opcodes become classes, widths and FLOP by whole tokens (values by hand from PTX ISA shapes and types)."""

from __future__ import annotations

import pytest

from kernel_lsp.cubin.opcodes import classes, describe, matrix_shape


@pytest.mark.parametrize(
    ("text", "kind", "width", "flop"),
    [
        ("FFMA", "compute", 0, 64),  # 32 lanes, multiply and add
        ("FFMA2", "compute", 0, 128),
        ("FADD", "compute", 0, 32),
        ("HFMA2.MMA.BF16_V2", "compute", 0, 128),
        ("HADD2.F32", "compute", 0, 0),  # a conversion
        ("UFFMA", "compute", 0, 2),  # one result a warp
        ("DFMA", "compute", 0, 64),
        ("HMMA.1688.F32", "tensor", 0, 2 * 16 * 8 * 8),
        ("HMMA.1688.F32.TF32", "tensor", 0, 2 * 16 * 8 * 8),
        ("HMMA.16816.F32.BF16", "tensor", 0, 2 * 16 * 8 * 16),
        ("HMMA.SP.16832.F32", "tensor", 0, 2 * 16 * 8 * 32),
        ("HMMA.884.F32.F32.STEP0", "tensor", 0, 512),  # m8n8k4 for each quad pair: 2048 in four steps,
        ("HMMA.884.F16.F16.STEP0", "tensor", 0, 1024),  # or in two
        ("IMMA.16832.S8.S8", "tensor", 0, 2 * 16 * 8 * 32),
        ("BMMA.168256.AND.POPC", "tensor", 0, 2 * 16 * 8 * 256),
        ("DMMA.16x8x16", "tensor", 0, 2 * 16 * 8 * 16),
        ("QMMA.16832.F16.E4M3.E4M3", "tensor", 0, 2 * 16 * 8 * 32),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X", "tensor", 0, 2 * 16 * 8 * 64),
        ("HGMMA.64x128x16.F32", "tensor", 0, 2 * 64 * 128 * 16 // 4),  # a quarter: four warps issue it
        ("UTCHMMA.2CTA", "tensor", 0, None),  # shape in a register
        ("MOVM.16.MT88", "tensor", 0, 0),
        ("LDG.E", "global_load", 4, 0),
        ("LDG.E.U8.CONSTANT", "global_load", 1, 0),
        ("LDG.E.LTC128B.64", "global_load", 8, 0),
        ("LDG.E.ENL2.256", "global_load", 32, 0),
        ("LDS.U.128", "shared_load", 16, 0),
        ("LDSM.16.M88", "shared_load", 4, 0),
        ("LDSM.16.MT88.4", "shared_load", 16, 0),
        ("LDSM.8.MT1616.2", "shared_load", 16, 0),  # two of 16x16 bytes: 512 bytes for 32 threads
        ("LDSM.U4x16P64TO8.M816.2", "shared_load", 8, 0),  # two of 8 rows of 16 bytes
        ("FHADD.BF16", "compute", 0, 32),  # one sum a thread
        ("FHFMA", "compute", 0, 64),
        ("SUST.P.2D.STRONG.SM.TRAP", "texture", None, 0),  # how the surface stores it is not in the text
        ("SUST.D.BA.2D_ARRAY.64.STRONG.SM.IGN", "texture", 8, 0),
        ("SURED.D.BA.1D.ADD.U64.STRONG.SYS.IGN", "texture", 8, 0),
        ("ATOMG.E.ADD.F64.RN.STRONG.GPU", "global_atomic", 8, 0),
        ("ATOMG.E.CAS.STRONG.GPU", "global_atomic", 4, 0),
        ("REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU", "global_atomic", 16, 0),
        ("LDTM.x8", "tensor_memory", 32, 0),
        ("LDTM.16dp256bit", "tensor_memory", 16, 0),
        ("LDGSTS.E.BYPASS.LTC128B.128", "async_copy", 16, 0),
        ("UTMALDG.2D", "async_copy", None, 0),
        ("LDL.LU.64", "local_load", 8, 0),
        ("BAR.SYNC.DEFER_BLOCKING", "sync", 0, 0),
    ],
)
def test_known_opcodes(text: str, kind: str, width: int | None, flop: int | None) -> None:
    found = describe(text)
    assert (found.kind, found.width_bytes, found.flop) == (kind, width, flop)
    assert found.kind in classes()


@pytest.mark.parametrize("text", ["FFMA3", "XHMMA.16816.F32", "LDGX.E", "", "MMA", "FUTURE.64"])
def test_unknown_opcodes_have_no_numbers(text: str) -> None:
    found = describe(text)
    assert not found.known
    assert (found.kind, found.width_bytes, found.flop) == ("unknown", None, None)


def test_registers_of_matrices_are_bits_over_threads() -> None:
    # m16n8k16 of 16-bit elements over 32 threads: A 16*16*16/1024, B 16*8*16/1024, C 16*8*32/1024
    shape = matrix_shape("HMMA.16816.F32")
    assert shape is not None
    assert [shape.registers(which) for which in "abc"] == [4, 2, 4]
    # a warpgroup's 64x128 FP32 accumulator: 64*128/128 per thread
    group = matrix_shape("HGMMA.64x128x16.F32")
    assert group is not None
    assert group.registers("c") == 64
    assert matrix_shape("UTCHMMA") is None
    assert matrix_shape("FFMA") is None
