"""Usual stalls from the table, and pipe clocks by hand from FLOP and peak rates."""

from __future__ import annotations

import pytest

from kernel_lsp.cubin.opcodes import describe
from kernel_lsp.model.usual_stalls import UsualStall, pipe_clocks, usual_stall


@pytest.mark.parametrize(
    ("opcode", "arch", "expected"),
    [
        ("FFMA", "sm_86", UsualStall(1, 4)),
        ("FFMA.FTZ", "sm_75", UsualStall(2, 4)),
        ("HMMA.16816.F32", "sm_80", UsualStall(8, 24)),
        ("HMMA.1688.F32", "sm_80", UsualStall(4, 16)),
        ("HMMA.1688.F32.TF32", "sm_80", UsualStall(8, 24)),
        ("IMMA.16816.S8.S8", "sm_90a", UsualStall(4, 16)),
        ("IMMA.16864.S4.S4.SAT", "sm_86", UsualStall(8, 24)),
        ("HMMA.SP.16832.F32", "sm_80", UsualStall(8, 24)),
        # Not measured: other sizes and types of sparse, scaled and 4-bit products than those of the table.
        ("HMMA.SP.16816.F32", "sm_80", None),
        ("IMMA.SP.16864.S8.S8", "sm_80", None),
        ("IMMA.16832.S4.S4", "sm_80", None),
        ("QMMA.SF.16832.F32.E4M3.E4M3.E8", "sm_120a", None),
        ("DMMA.8x8x4", "sm_120", UsualStall(584, None)),
        ("QMMA.16832.F32.E4M3.E4M3", "sm_80", None),  # there is none on 8.0
        ("FFMA2", "sm_100a", None),  # not in the table: no substring match
        ("FFMA", "sm_130", None),
    ],
)
def test_usual_stall(opcode: str, arch: str, expected: UsualStall | None) -> None:
    assert usual_stall(describe(opcode), arch) == expected


def test_pipe_clocks_by_hand() -> None:
    # A100: 2048 dense FP16 FLOP per clock and SM: 4096 / (2048 / 4) = 8. GA102 with FP32 accumulation: 512, so 32.
    hmma = describe("HMMA.16816.F32")
    assert (pipe_clocks(hmma, 2048), pipe_clocks(hmma, 512)) == (8, 32)
    assert pipe_clocks(describe("UTCHMMA"), 8192) is None
    assert pipe_clocks(describe("MOV"), 256) is None
