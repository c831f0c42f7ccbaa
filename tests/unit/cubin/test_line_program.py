"""Line programs written byte by byte from the DWARF standard: every opcode, path spelling and damage."""

from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.cubin.elf import Symbol
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.cubin.line_program import Sequence, decode_sequences, read_units
from kernel_lsp.cubin.linemap import Frame, Helper, SectionLines, _columns, _FunctionNames

CODE = Symbol(index=1, name="k", kind=2, binding=1, other=0x10, section=7, value=0x40, size=0x200)
SET_ADDRESS = b"\x00\x09\x02" + bytes(8)
END = b"\x00\x01\x01"


def unit(
    program: bytes,
    version: int = 2,
    directories: tuple[bytes, ...] = (b"/src",),
    files: tuple[tuple[bytes, int], ...] = ((b"k.cu", 1), (b"h.cuh", 1)),
) -> bytes:
    """A unit with line base -5, line range 14, opcode base 10 (special opcode = 15 + line change, 0 bytes on)."""
    tables = b"".join(name + b"\0" for name in directories) + b"\0"
    tables += b"".join(name + b"\0" + bytes([folder, 0, 0]) for name, folder in files) + b"\0"
    fixed = bytes([1]) + (b"\x01" if version == 4 else b"") + bytes([1, 0xFB, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1])
    header = fixed + tables
    body = struct.pack("<HI", version, len(header)) + header + program
    return struct.pack("<I", len(body)) + body


def decode(content: bytes, addend: int | None = None) -> list[Sequence]:
    first = next(iter(read_units(content)))
    address_at = content.find(SET_ADDRESS) + 3
    return decode_sequences(content, first, {address_at: (CODE, addend)})


def decode_all(content: bytes) -> None:
    for found in read_units(content):
        decode_sequences(content, found, {})


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_opcode(version: int) -> None:
    program = (
        SET_ADDRESS
        + b"\x03\x09\x01"  # line 10, row
        + b"\x02\x90\x01"  # 144 bytes on
        + b"\x03\x7f\x01"  # line 9, row
        + b"\x04\x02"  # file 2
        + bytes([15 + 2])  # special: line 11, row
        + bytes([15 + 14 * 3 - 4])  # special: 3 bytes on, line 7, row
        + b"\x08"  # (255 - 10) / 14 = 17 bytes on
        + b"\x09\x00\x01"  # 256 bytes on
        + b"\x05\x03\x06\x07"  # column, statement, block: nothing
        + b"\x00\x02\x80\x55"  # an unknown entry of length 2
        + b"\x01"  # row
        + END
    )
    (sequence,) = decode(unit(program, version))
    assert sequence.section == 7
    assert sequence.addresses == [0x40, 0x40 + 144, 0x40 + 144, 0x40 + 147, 0x40 + 420, 0x40 + 420]
    assert sequence.lines == [10, 9, 11, 7, 7, 7]
    assert sequence.files == [1, 1, 2, 2, 2, 2]


def test_nvidias_inlining_entries_with_either_length() -> None:
    program = SET_ADDRESS + b"\x01"
    program += b"\x00\x00\x90\x01\x05" + b"\x01"  # length byte 0
    program += b"\x00\x03\x90\x02\x09" + b"\x01"  # right length
    program += b"\x00\x00\x91\x85\x01" + b"\x01"  # the function alone
    program += b"\x00\x03\x90\x00\x00" + b"\x01" + END
    (sequence,) = decode(unit(program))
    assert sequence.parents == [0, 1, 2, 2, 0, 0]
    assert sequence.functions == [0, 5, 9, 133, 0, 0]


def test_addends_of_rela_tables_replace_the_bytes_in_place() -> None:
    (sequence,) = decode(unit(SET_ADDRESS + b"\x01" + END), addend=0x90)
    assert sequence.addresses == [0xD0, 0xD0]


@pytest.mark.parametrize(
    ("folder", "name", "path"),
    [
        (b"/src", b"k.cu", "/src/k.cu"),
        (b"/src", b"/abs/k.cu", "/abs/k.cu"),
        (b"rel", b"k.cu", "rel/k.cu"),
        # The two bytes of each Cyrillic letter in octal; in the last, ptxas cut the path inside the letter.
        (rb"/\320\274", b"k.cu", "/м/k.cu"),
        (b"/src", rb"\320\274.cu", "/src/м.cu"),
        (rb"/src/\320\274\321", b"204.cuh", "/src/мф.cuh"),
        # A backslash is two in PTX, and ptxas cuts between them: C:\320\k.cu is no letter.
        (rb"C:\\320" + b"\\", b"k.cu", r"C:\320\k.cu"),
        (rb"/odd\\name", b"k.cu", r"/odd\name/k.cu"),
        (b"/\xff", b"k.cu", "/\udcff/k.cu"),
    ],
)
def test_paths(folder: bytes, name: bytes, path: str) -> None:
    content = unit(END, directories=(folder,), files=((name, 1),))
    assert next(iter(read_units(content))).files == ("", path)


def test_file_without_directory() -> None:
    assert next(iter(read_units(unit(END, files=((b"k.cu", 0),))))).files == ("", "k.cu")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (unit(END)[:-1], "past its end"),
        (unit(END, version=5), "version 5"),
        (unit(END, files=((b"k.cu", 3),)), "directory 3 of 1"),
        (unit(SET_ADDRESS + b"\x04\x09\x01" + END), "file 9 of 2"),
        (unit(SET_ADDRESS + b"\x03\x70\x01" + END), "out of range"),
        (unit(SET_ADDRESS + b"\x02" + b"\x80" * 40 + b"\x00" + END), "too long"),
        (unit(SET_ADDRESS + b"\x00\x00\x77\x01"), "unknown entry 0x77"),
        (unit(SET_ADDRESS + b"\x02"), "cut short"),
        (b"\x20\0\0\0\x02\0", "past its end"),
        (struct.pack("<IHI", 6, 2, 4), "cut short"),
    ],
)
def test_damage_is_said(content: bytes, said: str) -> None:
    with pytest.raises(CubinError, match=said):
        decode_all(content)


@given(st.binary(max_size=200))
@settings(max_examples=400, deadline=None)
def test_noise_is_decoded_or_refused(noise: bytes) -> None:
    content = unit(SET_ADDRESS + noise)
    try:
        sequences = decode(content)
    except CubinError:
        return
    for sequence in sequences:
        assert len(sequence.addresses) == len(sequence.lines) == len(sequence.parents) >= 1


def section_lines(sequences: list[Sequence], helpers: tuple[Helper, ...] = ()) -> SectionLines:
    names = _FunctionNames(b"\0_Z1av\0_Z1bv\0")
    columns = _columns([(0, sequence) for sequence in sequences], names)
    return SectionLines(".text.k", *columns, ("", "k.cu", "h.cuh"), tuple(names.names), helpers)


def test_frames_of_chains_gaps_and_helpers() -> None:
    first = Sequence(
        7,
        addresses=[0, 16, 16, 16, 48, 64],
        files=[1, 1, 2, 2, 1, 1],
        lines=[3, 4, 10, 20, 5, 5],
        parents=[0, 0, 2, 3, 0, 0],
        functions=[0, 0, 1, 7, 0, 0],
    )
    # A second stretch of the same section, behind a gap; its rows count from 1 again.
    second = Sequence(7, [128, 128, 160], [1, 2, 2], [8, 30, 30], [0, 1, 1], [0, 7, 7])
    lines = section_lines([second, first], (Helper(48, 64, "__cuda_sm20_div"),))
    assert lines.frames(0) == (Frame("k.cu", 3, None),)
    for pc in (16, 32):
        assert lines.frames(pc) == (
            Frame("h.cuh", 20, "_Z1bv"),
            Frame("h.cuh", 10, "_Z1av"),
            Frame("k.cu", 4, None),
        )
    assert lines.frames(48) == ()
    assert lines.helper_at(48) == "__cuda_sm20_div"
    assert lines.helper_at(47) is None
    assert lines.helper_at(64) is None
    assert lines.frames(64) == lines.frames(96) == ()  # behind the end of the first stretch
    assert lines.frames(144) == (Frame("h.cuh", 30, "_Z1bv"), Frame("k.cu", 8, None))
    assert lines.frames(160) == ()
    assert lines.rows_at(np.array([0, 48, 64])).tolist() == [0, -1, -1]
    assert lines.rows_at(np.array([-16])).tolist() == [-1]


def test_rows_that_call_themselves_end() -> None:
    circle = Sequence(7, [0, 16, 32, 48], [1] * 4, [1, 2, 3, 4], [2, 3, 1, 0], [1] * 4)
    lines = section_lines([circle])
    assert {len(lines.frames(pc)) for pc in (0, 16, 32)} <= {1, 2, 3}
    beyond = Sequence(7, [0, 16], [1] * 2, [1, 2], [99, 0], [1, 0])
    assert len(section_lines([beyond]).frames(0)) == 1


def test_hundred_thousand_rows_of_one_chain() -> None:
    count = 100_000
    chain = Sequence(7, [0] * (count - 1) + [16], [1] * count, [1] * count, list(range(count)), [1] * count)
    assert len(section_lines([chain]).frames(0)) == 1000


def test_columns_cannot_be_written() -> None:
    lines = section_lines([Sequence(7, [0, 16], [1, 1], [1, 1], [0, 0], [0, 0])])
    with pytest.raises(ValueError, match="read-only"):
        lines.line[0] = 5


def test_the_first_numbers_need_neither_numpy_nor_pyelftools() -> None:
    """They stand before the first diagnostic after a start."""
    check = "import sys, kernel_lsp.cubin.binary; sys.exit(' '.join({'numpy', 'elftools'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
