"""Live registers of small listings, expected by hand, and against what random runs of random code read."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.cubin.flow import control_flow
from kernel_lsp.cubin.liveness import live_registers, occupied_registers
from kernel_lsp.cubin.operands import BANK_START
from kernel_lsp.cubin.sass import Sass
from tests.unit.sass.listing import decode


def general(text: str, **known: dict[str, int]) -> list[int]:
    sass = decode(text, **known)  # type: ignore[arg-type]
    counts = live_registers(sass, control_flow(sass, sass.codes[0])).general
    assert counts is not None
    return [int(count) for count in counts]


def test_by_hand() -> None:
    # R2 | R2 R4 R5 (R3 is never written) | R2 R4 R5 R6 | R2 R6 R9 (R9 is unused but written) | R2 R6 | none but R1,
    # which this listing never writes.
    assert general("""
    S2R R2, SR_TID.X
    LDG.E.64 R4, desc[UR4][R2.64]
    FADD R6, R4, R5
    MOV R9, R6
    STG.E desc[UR4][R2.64], R6
    EXIT
""") == [1, 3, 4, 3, 2, 0]  # fmt: skip


@pytest.mark.parametrize("guard", ["@P0", "@!UP0"])
def test_guarded_write_keeps_the_value_it_may_replace(guard: str) -> None:
    counts = general(f"MOV R2, 0x1\nMOV R3, 0x2\n{guard} MOV R2, 0x3\nFADD R4, R2, R3\nEXIT")
    assert counts[:4] == [1, 2, 2, 3]


def test_guarded_write_ends_the_value_that_only_runs_with_it_read() -> None:
    # R2's first value is read by the FADD; behind it R2 is written and read under @P0 alone.
    text = "MOV R2, 0x1\nFADD R3, R2, R2\n{middle}\n@P0 MOV R2, 0x3\n{behind}\n@P0 FADD R3, R2, R2\n{end}\nEXIT"
    dead = general(text.format(middle="NOP", behind="NOP", end="NOP"))
    assert dead[2] == 0
    for middle, behind, end in (
        ("NOP", "ISETP.NE.AND P0, PT, R9, RZ, PT", "NOP"),  # the second @P0 may hold where the first did not
        ("NOP", "NOP", "FADD R3, R2, R2"),  # read by all
        ("NOP", "@!P0 FADD R3, R2, R2", "NOP"),  # read where it was not written
        ("NOP", "@P1 FADD R3, R2, R2", "NOP"),
    ):
        assert general(text.format(middle=middle, behind=behind, end=end))[2] == 1


def test_writes_under_opposite_guards_end_a_value() -> None:
    counts = general("MOV R2, 0x1\nFADD R3, R2, R2\nNOP\n@P0 MOV R2, 0x3\n@!P0 MOV R2, 0x4\nFADD R3, R2, R2\nEXIT")
    assert counts[2] == 0


def test_guarded_value_of_a_loop_does_not_live_around_it() -> None:
    """R2 is written and read under @!P1, which is decided anew in each turn: nothing is carried to the next one."""
    counts = general("""
.L_x_0:
    ISETP.NE.AND P1, PT, R0, RZ, PT
@!P1 MOV R2, 0x1
    BAR.SYNC 0x0
@P2 BRA `(.L_x_1)
    NOP
.L_x_1:
@!P1 STS [R9], R2
    NOP
@P0 BRA `(.L_x_0)
    EXIT
""")
    assert counts == [0, 1, 1, 1, 1, 1, 0, 0, 0]


def test_a_predicate_that_guards_its_own_write_is_needed() -> None:
    sass = decode("ISETP.NE.AND P0, PT, R0, RZ, PT\nNOP\n@!P0 ISETP.NE.AND P0, PT, R1, RZ, PT\nNOP\n@P0 EXIT\nEXIT")
    counts = live_registers(sass, control_flow(sass, sass.codes[0])).predicates
    assert counts is not None
    assert counts.tolist() == [1, 1, 1, 1, 1, 0]


def test_calls_inside_the_section_are_followed() -> None:
    """R7 is needed across the call and left alone by it, R8 and R9 are its argument and result, R5 is not needed."""
    counts = general(
        """
    MOV R7, 0x1
    MOV R8, 0x2
    CALL.REL.NOINC `(callee)
    FADD R5, R7, R9
    EXIT
callee:
    FADD R9, R8, R8
    RET.REL.NODEC R20 `(k)
""",
        functions={"callee": 5 * 16},
    )
    assert counts[:4] == [1, 2, 3, 3]  # R7 | R7 R8 | R7 R8 R9 | R7 R9 R5


def test_unknown_opcode_makes_pressure_unknown() -> None:
    sass = decode("MOV R2, 0x1\nFUTURE R3, R2\nEXIT")
    liveness = live_registers(sass, control_flow(sass, sass.codes[0]))
    assert (liveness.peak, liveness.why) == (None, "the operands of FUTURE are not known")
    assert sass.unknown_rows == 1


GUARDS = st.sampled_from(["", "", "@P0 ", "@!P0 ", "@P1 ", "@!P1 "])
REGISTERS = st.sampled_from(["R2", "R3", "R4"])
INSTRUCTIONS = st.one_of(
    st.builds("{}FADD {}, {}, {}".format, GUARDS, REGISTERS, REGISTERS, REGISTERS),
    st.builds("{}MOV {}, 0x1".format, GUARDS, REGISTERS),
    st.builds("{}STS [R9], {}".format, GUARDS, REGISTERS),
    st.builds("{}ISETP.NE.AND P{}, PT, {}, RZ, PT".format, GUARDS, st.integers(0, 1), REGISTERS),
    st.builds("{}BRA `(.L_x_{})".format, GUARDS, st.integers(0, 11)),
)


def run(sass: Sass, steps: int, chance: Random) -> list[tuple[int, list[int]]]:
    """One random run: for each value that was read, its register bit and the rows while it was needed."""
    values = {BANK_START["P"]: chance.random() < 0.5, BANK_START["P"] + 1: chance.random() < 0.5}
    passed: dict[int, list[int]] = {}  # bit -> rows since its value was written
    needed: list[tuple[int, list[int]]] = []
    row = 0
    for _ in range(steps):
        registers = sass.forms[int(sass.form[row])].registers
        assert registers.defines is not None
        assert registers.uses is not None
        guard = int(sass.guard[row])
        runs = guard < 0 or values[BANK_START["P"] + (guard & 7)] != bool(guard & 8)
        reads = (registers.uses if runs else 0) | (1 << BANK_START["P"] + (guard & 7) if guard >= 0 else 0)
        for bit, rows in passed.items():
            rows.append(row)
            if reads >> bit & 1:
                needed.append((bit, rows[:]))
        family = sass.opcode(row).family
        if family == "EXIT":
            break
        for bit in range(544) if runs else ():
            if registers.defines >> bit & 1:
                values[bit] = chance.random() < 0.5
                passed[bit] = [row]
        row = int(sass.target[row]) if family == "BRA" and runs else row + 1
    return needed


@settings(max_examples=200, deadline=None)
@given(st.lists(INSTRUCTIONS, min_size=12, max_size=12), st.integers(0, 1 << 30))
def test_no_run_reads_a_value_that_is_said_to_be_dead(lines: list[str], seed: int) -> None:
    sass = decode("\n".join(f".L_x_{at}:\n{line}" for at, line in enumerate(lines)) + "\nEXIT\nEXIT")
    found = occupied_registers(sass, control_flow(sass, sass.codes[0]))
    assert not isinstance(found, str)
    occupied, _ = found
    chance = Random(seed)
    for _ in range(8):
        for bit, rows in run(sass, 60, chance):
            assert all(occupied[row] >> bit & 1 for row in rows), (bit, rows)
