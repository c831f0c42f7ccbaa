"""Decoded instructions against NVIDIA's own tools, over kernels of all families built for sm_75 to sm_120.

Oracles: `nvdisasm -plr` (which registers every instruction reads and writes, and which are live), `cuobjdump -sass`
(texts, numeric branch targets, raw words), and our second decoder of the line table. Where nvdisasm's life ranges are
known to be off, the reason stands beside the exception:

* P2R and R2P move predicates in bulk; the life ranges do not show these predicates.
* From sm_100 on they leave out registers of textures: the last of a result (a following 128-bit store reads it), the
  offset and the reference value beside each other, half of a handle that is loaded as a pair.
* P2R's counterparts for uniform predicates are not shown at all.
* LDGSTS's predicate is printed as if it were also written.
* Every call is given the ABI's registers, though functions placed behind a kernel have conventions of their own; and
  a CALL to a label inside its function, which is a jump.
* Guarded writes: see `nvdisasm_kills`. In kernels full of them (warp-specialised CUTLASS for sm_100a, with calls) its
  ranges contradict themselves: a value that is live before and behind a block is not inside it.

What is right there, test_live_paths.py shows by running.

The CUTLASS files take minutes to compile: `make test-cutlass` runs them, on all architectures.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernel_lsp.cubin.flow import Flow
from kernel_lsp.cubin.linemap import read_line_table
from kernel_lsp.cubin.liveness import occupied_registers
from kernel_lsp.cubin.mix import counted_rows, instruction_mix, rows_by_line
from kernel_lsp.cubin.operands import ALL_REGISTERS, PREDICATE_MASK
from kernel_lsp.cubin.register_flow import BlockFlow, CallEffect, CallModel, Transfer
from kernel_lsp.cubin.sass import ALWAYS_GUARD, NEVER_GUARD, NO_GUARD, Code, guard_bit
from tests.oracle.line_table_oracle import oracle_sections
from tests.oracle.sass_corpus import Built, LifeRow, built

BUILDS = [
    *(("families", arch) for arch in ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")),
    *(("rare", arch) for arch in ("sm_86", "sm_90a", "sm_120a")),
]
if os.environ.get("KERNEL_LSP_TEST_CUTLASS") == "all":
    BUILDS += [("cutlass_80", arch) for arch in ("sm_80", "sm_86", "sm_90a", "sm_100a", "sm_120a")]
    BUILDS += [("cutlass_90", arch) for arch in ("sm_90a", "sm_100a")]
    BUILDS += [("families", "sm_86"), ("families", "sm_89"), ("rare", "sm_100a")]
# Addresses in two halves; cuobjdump prints a number where the section has no symbol to name.
LEFT_TO_THE_LINKER = re.compile(r"\b32@(?:lo|hi)\((?:\([^()]*\)|[^()]*)\)")


@pytest.fixture(params=BUILDS, ids=lambda build: f"{build[0]}-{build[1]}", scope="module")
def cubin(request: pytest.FixtureRequest, toolkit: Path) -> Built:
    return built(*request.param, toolkit)


def families(cubin: Built, code: Code) -> set[str]:
    return {cubin.sass.opcode(row).family for row in range(code.start, code.padding)}


def instructions(cubin: Built) -> int:
    return sum(code.padding - code.start for code in cubin.sass.codes)


def test_every_instruction_is_known(cubin: Built) -> None:
    assert cubin.sass.unknown_rows == 0
    assert {form.text for form in cubin.sass.forms[1:] if form.registers.reason} == set()
    if cubin.path.name.startswith("cutlass_80"):
        assert instructions(cubin) >= 8000


def test_texts_equal_nvdisasm(cubin: Built) -> None:
    codes = {code.name: code for code in cubin.sass.codes}
    seen = set()
    for line in cubin.life_ranges:
        row = codes[line.section].start + line.pc // 16
        assert " ".join(cubin.sass.text(row).split()) == " ".join(line.text.split())
        seen.add(row)
    assert {row for code in codes.values() for row in range(code.start, code.padding)} <= seen


def test_texts_words_and_targets_equal_cuobjdump(cubin: Built) -> None:
    """cuobjdump prints where a branch goes as a number; ours is put in for the label."""
    control = cubin.sass.control
    assert control is not None
    codes = {code.name: code for code in cubin.sass.codes}
    seen = set()
    for line in cubin.dump:
        code = codes[line.section]
        row = code.start + line.pc // 16
        text = cubin.sass.text(row)
        if label := re.search(r"`\(([^)]*)\)", text):
            text = text.replace(label[0], address_of(label[1], cubin, code, row))
        text, theirs = (LEFT_TO_THE_LINKER.sub("0x0", each) for each in (text, line.text))
        assert " ".join(text.split()) == " ".join(theirs.split())
        stall, yields, write, read, wait, reuse = (
            line.word >> 105 & 15, 1 - (line.word >> 109 & 1), line.word >> 110 & 7, line.word >> 113 & 7,
            line.word >> 116 & 63, line.word >> 122,
        )  # fmt: skip
        assert (control.stall[row], control.yields[row], control.write_barrier[row]) == (stall, yields, write)
        assert (control.read_barrier[row], control.wait_mask[row], control.reuse[row]) == (read, wait, reuse)
        assert reuse < 16
        seen.add(row)
    assert {row for code in codes.values() for row in range(code.start, code.padding)} <= seen


def address_of(label: str, cubin: Built, code: Code, row: int) -> str:
    """What cuobjdump prints for a label; functions outside the section are left to the linker and print as 0."""
    target = int(cubin.sass.target[row])
    if cubin.sass.opcode(row).family == "LEPC":
        target = row + 2  # where the call behind it returns to
    if not code.start <= target < code.stop:
        target = next((each.start for each in code.functions if each.name == label), code.start)
    return f"{16 * (target - code.start):#x}"


def without_predicates(masks: tuple[int, int]) -> tuple[int, int]:
    reads, writes = masks
    return reads & ~PREDICATE_MASK, writes & ~PREDICATE_MASK


def test_registers_equal_life_ranges(cubin: Built) -> None:
    codes = {code.name: code for code in cubin.sass.codes}
    compared, wrong = 0, []
    is_late = int(re.findall(r"\d+", cubin.arch)[0]) >= 100
    for line in cubin.life_ranges:
        row = codes[line.section].start + line.pc // 16
        opcode = cubin.sass.opcode(row)
        if opcode.family in ("CALL", "UP2UR", "UR2UP"):
            continue
        registers = cubin.sass.forms[int(cubin.sass.form[row])].registers
        assert registers.defines is not None
        assert registers.uses is not None
        guard = int(cubin.sass.guard[row])
        ours = (0, 0) if guard == NEVER_GUARD else (registers.uses | guard_bit(guard), registers.defines)
        theirs = (line.reads, line.writes)
        if opcode.family in ("P2R", "R2P", "LDGSTS"):
            ours, theirs = without_predicates(ours), without_predicates(theirs)
        if is_late and opcode.kind == "texture":
            theirs = (theirs[0] | ours[0] & ~PREDICATE_MASK, theirs[1] | ours[1] & ~PREDICATE_MASK)
        compared += 1
        if ours != theirs:
            wrong.append((line.section, hex(line.pc), cubin.sass.text(row), *map(hex, (*ours, *theirs))))
    assert wrong == []
    assert compared > 100


def nvdisasm_kills(work: Transfer, flow: Flow) -> list[int]:
    """Where nvdisasm lets a guarded write end the value before it; found from its life ranges, to a row in fifty.

    A write under a uniform predicate always; any other where nothing behind it in the block reads the register before
    it is written again. Neither is what the hardware does: a value that is skipped over may be read in a later block,
    and a value is dead where all its readers have the writer's guard.
    """
    kills = work.kills[:]
    for block in range(len(flow)):
        read_behind = 0
        for row in reversed(flow.rows(block)):
            at = row - work.first
            if work.guards[at] not in (NO_GUARD, ALWAYS_GUARD, NEVER_GUARD):
                is_uniform = guard_bit(work.guards[at]) > PREDICATE_MASK
                kills[at] = work.writes[at] & ~(0 if is_uniform else read_behind)
            read_behind = work.reads[at] | read_behind & ~kills[at]
    return kills


def no_calls(row: int) -> CallEffect:
    pytest.fail(f"a call in row {row}")


def occupied_by(
    work: Transfer, flow: Flow, calls: CallModel = no_calls, behind_returns: Mapping[int, int] | None = None
) -> list[int]:
    """Registers occupied at each row, with what the calls do and what is live behind each RET."""
    behind_returns = behind_returns or {}
    blocks = BlockFlow(work, flow, behind_returns)
    live_in = blocks.solve(calls, behind_returns)
    found = [0] * (flow.code.padding - flow.code.start)
    for block in range(len(flow)):
        for row, live in enumerate(blocks.live_behind(block, live_in, calls, behind_returns), flow.starts[block]):
            at = row - work.first
            if row in work.call_rows:
                live |= calls(row).reads | calls(row).writes
            else:
                live |= work.reads[at] | work.writes[at] | behind_returns.get(row, 0)
            found[at] = live
    return found


def test_live_registers_equal_life_ranges_where_there_are_no_calls(cubin: Built) -> None:
    if cubin.path.name.startswith("rare"):
        return
    rows = {(line.section, line.pc): line.occupied for line in cubin.life_ranges}
    compared = equal = 0
    for code in cubin.sass.codes:
        present = families(cubin, code)
        if present & {"CALL", "RET", "TEX"}:
            continue
        flow = cubin.flow(code)
        work = Transfer.of(cubin.sass, flow)
        ours = occupied_registers(cubin.sass, flow)
        assert isinstance(work, Transfer)
        assert not isinstance(ours, str)
        like_nvdisasm = occupied_by(replace(work, kills=nvdisasm_kills(work, flow)), flow)
        no_guarded_ends = occupied_by(work, flow)
        shown = ALL_REGISTERS & ~(PREDICATE_MASK if present & {"P2R", "R2P"} else 0)
        for at, exists in enumerate(ours[1]):
            # Registers that nothing has written yet hold no value; the life ranges show some from the entry on.
            theirs = rows[code.name, 16 * at] & exists & shown
            compared += 1
            equal += like_nvdisasm[at] & exists & shown == theirs
            assert ours[0][at] & ~no_guarded_ends[at] == 0
    assert equal >= (0.997 if cubin.path.name.startswith("cutlass") else 0.975) * compared


def test_live_registers_equal_life_ranges_with_calls_as_nvdisasm_takes_them(cubin: Built) -> None:
    """nvdisasm gives every call the convention's registers, called functions of the section too. With the registers
    that it prints at calls and returns, all other rows are compared (the rest differs in guarded writes, see above).
    CUTLASS has calls only in kernels full of guarded writes."""
    if not cubin.path.name.startswith("families"):
        return
    rows = {(line.section, line.pc): line for line in cubin.life_ranges}
    compared = equal = 0
    for code in cubin.sass.codes:
        present = families(cubin, code)
        if not present & {"CALL", "RET"} or "TEX" in present:
            continue
        flow = cubin.flow(code)
        calls = [row for row in range(code.start, code.padding) if cubin.sass.opcode(row).family == "CALL"]
        if len(calls) > len(flow.calls):
            continue  # jumps, which nvdisasm takes for calls
        work, ours = Transfer.of(cubin.sass, flow), occupied_registers(cubin.sass, flow)
        assert isinstance(work, Transfer)
        assert not isinstance(ours, str)
        lines = {row: rows[code.name, 16 * (row - code.start)] for row in range(code.start, code.padding)}

        def as_printed(row: int, lines: Mapping[int, LifeRow] = lines) -> CallEffect:
            return CallEffect(lines[row].reads, ALL_REGISTERS & ~lines[row].writes, lines[row].writes, 0)

        returns = {row: line.occupied for row, line in lines.items() if cubin.sass.opcode(row).family == "RET"}
        like_nvdisasm = occupied_by(replace(work, kills=nvdisasm_kills(work, flow)), flow, as_printed, returns)
        shown = ALL_REGISTERS & ~(PREDICATE_MASK if present & {"P2R", "R2P"} else 0)
        others = [(row, line) for row, line in lines.items() if row not in work.call_rows and row not in returns]
        compared += len(others)
        for row, line in others:
            written = ours[1][row - code.start] & shown
            equal += line.occupied & written == like_nvdisasm[row - code.start] & written
    assert equal >= 0.96 * compared
    assert compared > 1000


def test_each_instruction_stands_on_one_line(cubin: Built) -> None:
    data = cubin.path.read_bytes()
    table, expected = read_line_table(data), oracle_sections(data)
    for code in cubin.sass.codes:
        lines = table.sections[f".text.{code.name}"]
        oracle = expected[f".text.{code.name}"]
        grouped = rows_by_line(cubin.sass, code, lines)
        key_of = {row: key for key, rows in grouped.own.items() for row in rows.tolist()}
        assert sorted(key_of) == list(range(code.start, code.padding))
        assert sum(map(len, grouped.own.values())) == len(key_of)
        table_rows = lines.rows_at(cubin.sass.pc[code.start : code.padding].astype(np.int64)).tolist()
        for row, table_row in enumerate(table_rows, code.start):
            answer = oracle.answer(16 * (row - code.start))
            chain = [] if isinstance(answer, str) else answer
            frames = lines.frames_of_row(table_row)
            assert [(frame.file.rsplit("/", 1)[-1], frame.line, frame.function or "") for frame in frames] == chain
            key = key_of[row]
            assert key == ((frames[0].file, frames[0].line) if frames and frames[0].line else None)
            for frame in frames if key else ():
                within = grouped.within.get((frame.file, frame.line))
                assert (within is not None and row in within) == bool(frame.line)
        never = int((cubin.sass.guard[code.start : code.padding] == NEVER_GUARD).sum())
        mix = instruction_mix(cubin.sass, counted_rows(cubin.sass, code))
        assert sum(mix.values()) == code.padding - code.start - never
