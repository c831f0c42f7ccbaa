"""Markers of NVIDIA's rules as its library gives them: dicts that hold only the place of their kind."""

from __future__ import annotations

from kernel_lsp.ncu.worker import _marker


def test_a_marker_on_an_instruction_and_one_on_a_line() -> None:
    said = {"rule_identifier": "CPIStall", "section_identifier": "WarpStateStats", "message_type": 2}
    on_pc = _marker(said | {"kind": 0, "message": "46.3% of all", "source_address": 0x7F9573FFF5F0})
    on_line = _marker(said | {"kind": 1, "message": "high", "source_location": {"file_name": "/a/b.cu", "line": 69}})
    assert on_pc == {"rule": "CPIStall", "message": "46.3% of all", "pc": 0x7F9573FFF5F0, "file": None, "line": None}
    assert on_line == {"rule": "CPIStall", "message": "high", "pc": None, "file": "/a/b.cu", "line": 69}
