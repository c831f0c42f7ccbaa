"""The table of calls, made by hand; real ones are held against the linker in tests/build/test_device_link.py."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.cubin.call_graph import CallGraph, call_graph
from kernel_lsp.cubin.elf import CubinElf, read_elf

RECORDED = Path(__file__).parents[2] / "data" / "cubin_recorded"
DIRECT, TAKEN, POINTERS, USES = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFC


def with_table(content: bytes) -> CubinElf:
    """A real cubin of 20 or more symbols with another table of calls."""
    elf = read_elf((RECORDED / "ptxas_13.0.sm_86.cubin").read_bytes())
    old = elf.section(".nv.callgraph")
    assert old is not None
    assert len(elf.symbols) > 8
    section = replace(old, offset=len(elf.data), size=len(content))
    return replace(elf, data=elf.data + content, section_by_name={**elf.section_by_name, ".nv.callgraph": section})


def table(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<II", *pair) for pair in pairs)


def test_who_calls_whom() -> None:
    calls = [(0, DIRECT), (1, 2), (2, 3), (3, 2), (1, 4)]
    pointers = [(0, TAKEN), (5, 99), (0, POINTERS), (3, 99), (0, USES), (6, 5)]
    graph = call_graph(with_table(table(*calls, *pointers)))
    assert graph == CallGraph({1: (2, 4), 2: (3,), 3: (2,)}, frozenset({3}))
    assert [index for index in range(8) if graph.calls(index)] == [1, 2, 3]
    # 1 -> 2 -> 3 -> pointer; 2 and 3 call each other in a circle; 6 only takes an address.
    assert [index for index in range(8) if graph.reaches_pointer_call(index)] == [1, 2, 3]


@pytest.mark.parametrize("content", [b"", b"1234567", table((1, 2)), table((0, DIRECT), (1 << 20, 2))])
def test_a_table_that_is_not_understood_says_nothing(content: bytes) -> None:
    assert call_graph(with_table(content)) is None


def test_releases_before_12_4_have_none() -> None:
    assert call_graph(read_elf((RECORDED / "ptxas_12.0.sm_86.cubin").read_bytes())) is None
    assert call_graph(read_elf((RECORDED / "ptxas_12.4.sm_86.cubin").read_bytes())) == CallGraph({}, frozenset())


@given(st.binary(max_size=400))
def test_any_bytes(content: bytes) -> None:
    graph = call_graph(with_table(content))
    assert graph is None or not any(graph.reaches_pointer_call(i) for i in range(8) if not graph.calls(i))
