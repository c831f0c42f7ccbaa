"""Salvaging a text from a disassembler that refuses damaged code, with a stand-in that refuses as nvdisasm does."""

from __future__ import annotations

import struct

import pytest

from kernel_lsp.cubin.elf import read_elf
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.cubin.salvage import MOST_RUNS, Answer, Salvaged, salvage

MOV, NOP, ILLEGAL = 0x7202, 0x7918, 0xFFFF
NAMES = {MOV: "MOV R0, R1", NOP: "NOP"}


def cubin(kernels: dict[str, list[int]]) -> bytes:
    """An ELF container of sm_90 with a code section for each kernel, of instructions given by their low word."""
    names, body = b"\0", b""
    headers = [bytes(64)]
    for name, words in kernels.items():
        code = b"".join(struct.pack("<QQ", word, 0) for word in words)
        headers.append(struct.pack("<IIQQQQIIQQ", len(names), 1, 6, 0, 64 + len(body), len(code), 0, 0, 128, 0))
        names += f".text.{name}".encode() + b"\0"
        body += code
    headers.append(struct.pack("<IIQQQQIIQQ", len(names), 3, 0, 0, 64 + len(body), len(names) + 18, 0, 0, 1, 0))
    names += b".shstrtab\0"
    headers.insert(-1, struct.pack("<IIQQQQIIQQ", len(names), 2, 0, 0, 64, 0, len(headers) - 1, 0, 8, 24))
    names += b".symtab\0"
    table = 64 + len(body) + len(names)
    ident = b"\x7fELF" + bytes([2, 1, 1, 0x33, 7]) + bytes(7)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, table, 0x5A055A, 64, 0, 0, 64, len(headers), len(headers) - 1
    )
    return head + body + names + b"".join(headers)


def disassemble(data: bytes) -> Answer:
    """As nvdisasm: nothing at all where one instruction of a section marked as code is illegal."""
    elf, text = read_elf(data), ""
    for section in elf.sections:
        if not section.name.startswith(".text.") or not section.flags & 4:
            continue
        text += f'\t.section\t{section.name},"ax",@progbits\n'
        for at, (word, _) in enumerate(struct.iter_unpack("<QQ", elf.content(section))):
            if word not in NAMES:
                return Answer(False, "", f"nvdisasm error   : Unrecognized operation at address {16 * at:#010x}\n")
            text += f"        /*{16 * at:04x}*/                   {NAMES[word]} ;\n"
    return Answer(True, text, "")


def drive(data: bytes) -> tuple[Salvaged, int]:
    attempt, runs = salvage(data), 0
    copy = next(attempt)
    while True:
        runs += 1
        try:
            copy = attempt.send(disassemble(copy))
        except StopIteration as end:
            return end.value, runs


def test_everything_but_the_illegal_instructions_is_kept() -> None:
    kernels = {f"k{number}": [MOV, MOV, NOP] for number in range(9)}
    kernels["k4"][1] = ILLEGAL
    kernels["k7"][0] = kernels["k7"][2] = ILLEGAL
    found, runs = drive(cubin(kernels))
    assert {(each.section, each.offsets) for each in found.lost} == {(".text.k4", (16,)), (".text.k7", (0, 32))}
    assert all("Unrecognized operation" in each.why for each in found.lost)
    assert found.text.count(".section") == 9
    assert found.text.count("MOV") == 9 * 2 - 2
    assert found.text.count("NOP") == 9 - 1  # those in place of illegal ones are not shown
    assert runs <= MOST_RUNS


def test_more_damage_than_runs_allow_is_said() -> None:
    kernels = {f"k{number}": [ILLEGAL] for number in range(40)}
    found, runs = drive(cubin(kernels))
    assert runs <= MOST_RUNS
    named = {each.section for each in found.lost}
    assert named == {f".text.{name}" for name in kernels}
    assert {each.why for each in found.lost if each.offsets is None} == {"too much of the cubin is damaged"}


def test_a_container_that_cannot_be_read_costs_one_run() -> None:
    attempt = salvage(cubin({"a": [MOV], "b": [MOV]}))
    next(attempt)
    with pytest.raises(StopIteration) as end:
        attempt.send(Answer(False, "", "nvdisasm fatal   : Unsupported architecture\n"))
    assert end.value.value.text == ""
    assert [(each.section, each.why) for each in end.value.value.lost] == [
        (".text.a", "Unsupported architecture"), (".text.b", "Unsupported architecture")
    ]  # fmt: skip


def test_no_cubin_is_no_cubin() -> None:
    with pytest.raises(CubinError, match="not a cubin"):
        next(salvage(b"\x7fELF"))
