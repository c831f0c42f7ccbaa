"""Blocks, loops, barrier producers and loop work of small listings, expected by hand."""

from __future__ import annotations

import pytest

from kernel_lsp.cubin.copy_groups import awaited_copies
from kernel_lsp.cubin.flow import Flow, control_flow
from kernel_lsp.cubin.liveness import live_registers
from kernel_lsp.cubin.local_memory import local_accesses
from kernel_lsp.cubin.mix import counted_rows, instruction_mix, loop_work, rows_by_line
from kernel_lsp.cubin.sass import Sass, decode_sass
from kernel_lsp.cubin.scoreboard import barrier_waits
from kernel_lsp.model.ratio import load_ratio
from tests.unit.sass.listing import container, control_word, decode, listing

NESTED = """
    MOV R0, RZ
.L_x_0:
    MOV R1, RZ
.L_x_1:
    IADD3 R1, R1, 0x1, RZ
    ISETP.LT.AND P0, PT, R1, 0x8, PT
@P0 BRA `(.L_x_1)
    IADD3 R0, R0, 0x1, RZ
    ISETP.LT.AND P1, PT, R0, 0x8, PT
@P1 BRA `(.L_x_0)
    EXIT
.L_x_2:
    BRA `(.L_x_2)
"""


def flow_of(text: str, **known: dict[str, int]) -> tuple[Sass, Flow]:
    sass = decode(text, **known)  # type: ignore[arg-type]
    return sass, control_flow(sass, sass.codes[0])


def test_nested_loops_and_no_trap_loop() -> None:
    _, flow = flow_of(NESTED)
    assert [(loop.depth, loop.innermost, loop.reducible) for loop in flow.loops] == [(1, False, True), (2, True, True)]
    assert flow.loop_depth.tolist() == [0, 1, 2, 2, 2, 1, 1, 1, 0, 0]
    assert flow.innermost_loop(3) == 1
    assert flow.innermost_loop(0) is None


def test_a_call_to_a_label_of_the_same_function_is_a_jump() -> None:
    """ptxas leaves a loop so: nothing returns, and what stands at the label is reached from the loop."""
    sass, flow = flow_of("""
    MOV R2, 0x1
.L_x_0:
    IADD3 R3, R3, 0x1, RZ
    ISETP.LT.AND P0, PT, R3, 0x8, PT
@!P0 CALL.REL.NOINC `(.L_x_1)
    BRA `(.L_x_0)
    NOP
.L_x_1:
    STG.E desc[UR4][R4.64], R2
    EXIT
""")
    assert flow.calls == ()
    assert [[flow.starts[each] for each in reached] for reached in flow.successors] == [[1], [6, 4], [1], [6], []]
    assert flow.reachable == (True, True, True, False, True)
    general = live_registers(sass, flow).general
    assert general is not None
    # R2 is needed behind the loop; R4 and R5 are never written. No register of the calling convention is lost.
    assert general.tolist() == [1, 2, 2, 2, 2, 0, 1, 0]


def test_irreducible_loop_is_one_loop_with_two_entries() -> None:
    _, flow = flow_of("""
@P0 BRA `(.L_x_1)
.L_x_0:
    MOV R0, R1
.L_x_1:
    MOV R1, R0
@P1 BRA `(.L_x_0)
    EXIT
""")
    (loop,) = flow.loops
    assert (len(loop.entries), loop.reducible) == (2, False)


def test_conditional_branches_without_guard_fall_through() -> None:
    # sm_75 asks whether the threads are together without an operand.
    text = "BRA P1, `(.L_x_0)\nBRA.DIV UR4, `(.L_x_0)\nBRA.CONV `(.L_x_0)\nMOV R0, R1\n.L_x_0:\nEXIT"
    _, flow = flow_of(text)
    assert flow.successors == ((4, 1), (4, 2), (4, 3), (4,), ())
    assert all(flow.reachable)


def test_collective_goes_on_where_its_warpsync_says() -> None:
    """No thread jumps over the collective: all of it runs, and then what WARPSYNC names."""
    _, flow = flow_of("WARPSYNC.COLLECTIVE R4, `(.L_x_0)\nELECT P0, URZ, PT\nENDCOLLECTIVE\nNOP\n.L_x_0:\nEXIT")
    assert flow.successors == ((2,), (2,), ())
    assert flow.reachable == (True, False, True)


def test_indirect_branch_is_unknown_until_the_attribute_tells() -> None:
    text = "BRX R2 -0x10\n.L_x_0:\nMOV R0, R1\n.L_x_1:\nEXIT"
    sass, flow = flow_of(text)
    assert flow.unknown_branches == (0,)
    liveness = live_registers(sass, flow)
    assert (liveness.general, liveness.peak) == (None, None)
    assert liveness.why == "an indirect branch whose targets are not known"
    known = control_flow(sass, sass.codes[0], {0: (16, 32)})
    assert known.unknown_branches == ()
    assert known.successors[0] == (1, 2)


def test_flow_is_not_whole_where_something_may_branch_unseen() -> None:
    for text, unclear in (
        ("MOV R0, R1\nEXIT", ()),
        ("MOV R0, R1\nFUTURE R0, R1\nEXIT", ()),
        ("MOV R0, R1\nBRFUTURE R0, `(.L_x_0)\n.L_x_0:\nEXIT", (1,)),
    ):
        _, flow = flow_of(text)
        assert (flow.unclear, flow.is_whole) == (unclear, not unclear)
    sass = decode_sass(container(control_word().to_bytes(16, "little") * 3), listing("MOV R0, R1"))
    assert control_flow(sass, sass.codes[0]).unclear == (1, 2)


def test_wait_at_the_top_of_a_loop_finds_the_load_of_the_iteration_before() -> None:
    text = """
    LDG.E R4, desc[UR4][R2.64]
.L_x_0:
    FADD R5, R4, R5
    LDG.E R4, desc[UR4][R2.64+0x10]
    LDG.E R6, desc[UR4][R2.64+0x20]
@P0 BRA `(.L_x_0)
    STG.E desc[UR4][R2.64], R6
    EXIT
"""
    words = {
        0: control_word(write=0), 1: control_word(wait=1), 2: control_word(write=0), 3: control_word(write=1),
        5: control_word(wait=2, read=2),
    }  # fmt: skip
    sass = decode(text, words)
    waits = barrier_waits(sass, control_flow(sass, sass.codes[0]))
    found = {wait.row: [(each.row, each.kind, each.feeds) for each in wait.producers] for wait in waits}
    assert found == {1: [(0, "write", True), (2, "write", True)], 5: [(3, "write", True)]}


PIPELINE = """
    LDGSTS.E [R7], desc[UR4][R2.64]
    LDGDEPBAR
    LDGSTS.E [R7+0x100], desc[UR4][R2.64+0x100]
    LDGDEPBAR
.L_x_0:
    DEPBAR.LE SB0, 0x1
    LDS R4, [R7]
    LDGSTS.E [R7+0x200], desc[UR4][R2.64+0x200]
    LDGSTS.E [R7+0x300], desc[UR4][R2.64+0x300]
    LDGDEPBAR
@P0 BRA `(.L_x_0)
    DEPBAR.LE SB0, 0x0
    EXIT
"""


def test_waits_for_scoreboards_that_operands_name() -> None:
    """As ptxas writes them before a barrier of proxies (all six) and behind copies (0 by count, others by list)."""
    text = """
    LDG.E R4, desc[UR4][R2.64]
    LDS R6, [R8]
    LDG.E R7, desc[UR4][R2.64+0x10]
    DEPBAR.LE SB0, 0x1, {3,2}
    FADD R5, R4, R6
    FADD R5, R5, R7
    DEPBAR {5,4,3,2,1,0}
    FADD R5, R5, R7
    EXIT
"""
    words = {
        0: control_word(write=3), 1: control_word(write=2), 2: control_word(write=0),
        4: control_word(wait=0b1100), 5: control_word(wait=1), 7: control_word(wait=1),
    }  # fmt: skip
    sass = decode(text, words)
    waits = barrier_waits(sass, control_flow(sass, sass.codes[0]))
    found = {wait.row: {(each.row, each.barrier) for each in wait.producers} for wait in waits}
    assert found == {3: {(0, 3), (1, 2), (2, 0)}, 4: set(), 5: {(2, 0)}, 6: set(), 7: set()}


def test_counted_waits_name_the_copies_of_their_groups() -> None:
    """The first turn waits for the first group, the second for the second, later ones for what the loop copied."""
    sass = decode(PIPELINE, dict.fromkeys((1, 3, 8), control_word(write=0)))
    flow = control_flow(sass, sass.codes[0])
    found = {wait.row: {each.row for each in wait.producers if each.feeds} for wait in barrier_waits(sass, flow)}
    assert found == {4: {0, 2, 6, 7}, 10: {2, 6, 7}}
    straight = PIPELINE.replace("@P0 BRA `(.L_x_0)", "NOP")
    sass = decode(straight, dict.fromkeys((1, 3, 8), control_word(write=0)))
    flow = control_flow(sass, sass.codes[0])
    assert awaited_copies(sass, flow) == {4: ((0, 0),), 10: ((2, 0), (6, 0), (7, 0))}


PRODUCTS = """
    WARPGROUP.ARRIVE
    HGMMA.64x128x16.F32 R24, gdesc[UR12], RZ, !UPT
    HGMMA.64x128x16.F32 R24, gdesc[UR12], R24, gsb0
.L_x_0:
    HGMMA.64x128x16.F32 R24, gdesc[UR16], R24
    HGMMA.64x128x16.F32 R24, gdesc[UR16], R24, gsb0
    WARPGROUP.DEPBAR.LE gsb0, 0x1
@P0 BRA `(.L_x_0)
    WARPGROUP.DEPBAR.LE gsb0, 0x0
    FADD R0, R24, R25
    EXIT
"""


def test_a_warpgroups_wait_names_the_products_of_its_groups() -> None:
    """In the loop that is the group of the turn before: in the first turn the one in front of it."""
    sass = decode(PRODUCTS, {})
    flow = control_flow(sass, sass.codes[0])
    found = {wait.row: {each.row for each in wait.producers if each.feeds} for wait in barrier_waits(sass, flow)}
    assert found == {5: {1, 2, 3, 4}, 7: {3, 4}}


def test_local_memory_purposes() -> None:
    sass, flow = flow_of("""
    STL [R1+0x8], R4
    STL.64 [R1+0x10], R6
    STL [R9+0x20], R4
    LDL R4, [R1+0x8]
    LDL R5, [R1+0x14]
@!PT LDL RZ, [R1]
    EXIT
""")
    found = local_accesses(sass, flow, {0, 3 * 16})
    assert [(each.row, each.purpose, each.slot, each.width_bytes) for each in found] == [
        (0, "spill", 8, 4), (1, "array", 16, 8), (2, "array", None, 4), (3, "spill", 8, 4), (4, "array", 20, 4)
    ]  # fmt: skip
    unknown = local_accesses(sass, flow, None)
    assert [each.purpose for each in unknown] == [None, None, "array", None, None]


def test_saves_of_a_callers_registers_are_no_array() -> None:
    """R2 and R16 hold the caller's values until the function writes them; what it stores later is its own."""
    sass = decode(
        """
    CALL.REL.NOINC `(f)
    EXIT
f:
    IADD3 R1, R1, -0x20, RZ
    STL [R1+0x18], R16
    STL [R1+0x14], R2
    IMAD.WIDE R2, R4, R5, RZ
    STL.64 [R1], R2
    LDL R6, [R1+0x4]
    LDL R2, [R1+0x14]
    LDL R16, [R1+0x18]
    RET.REL.NODEC R20 0x0
""",
        functions={"f": 0x20},
    )
    found = local_accesses(sass, control_flow(sass, sass.codes[0]), set())
    assert [(each.row, each.purpose) for each in found] == [
        (3, "convention"), (4, "convention"), (6, "array"), (7, "array"), (8, "convention"), (9, "convention")
    ]  # fmt: skip


def test_arguments_of_a_call_outside_are_no_array() -> None:
    sass, flow = flow_of("STL [R1], R2\nCALL.ABS.NOINC R8\nEXIT")
    assert [each.purpose for each in local_accesses(sass, flow, set())] == ["convention"]


TILE = """
    MOV R0, RZ
    CS2R R12, SRZ
    CS2R R16, SR_CLOCKLO
.L_x_0:
    LDG.E.128 R4, desc[UR4][R2.64]
    LDG.E R8, desc[UR4][R2.64+0x40]
@!PT LDS RZ, [RZ]
    STS.128 [R9], R4
    HFMA2 R10, -RZ, RZ, 0, 1
    IMAD.MOV.U32 R11, RZ, RZ, R10
    IMAD.U32 R18, RZ, RZ, UR6
    IMAD.X R15, RZ, RZ, RZ, P1
    FFMA R12, R4, R5, R12
    FFMA R13, R6, R7, R13
    FADD R14, R12, R14
@P0 BRA `(.L_x_0)
    EXIT
"""


def test_loop_work_and_mix() -> None:
    sass, flow = flow_of(TILE)
    (work,) = loop_work(sass, flow, None)
    # 2 FFMA and 1 FADD over 2 loads of 16 and 4 bytes; the moves and the LDS under @!PT do not count.
    assert (work.compute_ops, work.compute_op, work.load_ops, work.load_bytes) == (3, "FFMA", 2, 20)
    assert (work.async_load_ops, work.shared_stores, work.inner_work) == (0, 1, False)
    mix = instruction_mix(sass, counted_rows(sass, sass.codes[0]))
    # A carry made a number is no move.
    assert mix == {"MOV": 5, "FFMA": 2, "LDG": 2, "BRA": 1, "CS2R": 1, "EXIT": 1, "FADD": 1, "IMAD": 1, "STS": 1}
    ratio = load_ratio(work, "sm_86")
    assert (ratio.ratio, ratio.kind, ratio.cp_async) == (1.5, "low", "pays")
    assert load_ratio(work, "sm_75").cp_async_why == "sm_75 has no asynchronous copy"
    lines = rows_by_line(sass, sass.codes[0], None)
    assert sum(map(len, lines.own.values())) == sum(mix.values()) + 1  # the LDS that never runs has a line too


def test_work_in_an_inner_loop_makes_the_ratio_unknown() -> None:
    sass, flow = flow_of("""
.L_x_0:
    LDG.E R4, desc[UR4][R2.64]
.L_x_1:
    FFMA R5, R4, R4, R5
@P0 BRA `(.L_x_1)
@P1 BRA `(.L_x_0)
    EXIT
""")
    outer, inner = loop_work(sass, flow, None)
    assert (outer.inner_work, inner.inner_work) == (True, False)
    assert load_ratio(outer, "sm_90").ratio is None
    assert load_ratio(inner, "sm_90").why == "the loop loads nothing from global memory"


@pytest.mark.parametrize(
    ("line", "functions", "why"),
    [
        ("TEX.LL RZ, R10, R8, R12, UR6, 2D, 0x1", {}, "the loop loads through textures or surfaces, whose bytes"),
        ("CALL.REL.NOINC `(f)", {"k$f": 16 * 16}, "the loop calls a function"),
        ("CALL.ABS.NOINC R20", {}, "the loop calls a function"),
    ],
)  # fmt: skip
def test_work_that_is_not_counted_makes_the_ratio_unknown(line: str, functions: dict[str, int], why: str) -> None:
    text = TILE.replace("    FADD R14, R12, R14", f"    {line}") + "f:\n    RET.REL.NODEC R20 0x0\n"
    sass = decode(text, functions=functions)
    (work,) = loop_work(sass, control_flow(sass, sass.codes[0]), None)
    ratio = load_ratio(work, "sm_86")
    assert (ratio.ratio, ratio.cp_async) == (None, None)
    assert ratio.why is not None
    assert ratio.why.startswith(why)


def test_the_slow_way_of_a_division_is_no_call_of_the_loop() -> None:
    text = TILE.replace("    FADD R14", "@P3 CALL.REL.NOINC `(f)\n    FADD R14") + "f:\n    RET.REL.NODEC R20 0x0\n"
    sass = decode(text, functions={"$__internal_0_$__cuda_sm20_div_rn_f64_full": 17 * 16})
    (work,) = loop_work(sass, control_flow(sass, sass.codes[0]), None)
    assert (work.calls, load_ratio(work, "sm_86").ratio) == (0, 1.5)


def test_a_bulk_copy_between_blocks_is_no_load_from_global_memory() -> None:
    sass, flow = flow_of(TILE.replace("HFMA2 R10, -RZ, RZ, 0, 1", "UBLKCP.S.S [UR4], [UR6], UR8"))
    (work,) = loop_work(sass, flow, None)
    assert (work.async_load_ops, work.load_bytes) == (0, 20)
    sass, flow = flow_of(TILE.replace("HFMA2 R10, -RZ, RZ, 0, 1", "UBLKCP.S.G [UR4], [UR6], UR8"))
    (work,) = loop_work(sass, flow, None)
    assert (work.async_load_ops, work.load_bytes) == (1, None)


@pytest.mark.parametrize(
    ("compute", "kind", "advice"),
    [(9, "low", "pays"), (10, "medium", "try"), (40, "medium", "try"), (41, "high", "does not pay")],
)  # fmt: skip
def test_ratio_classes_at_their_edges(compute: int, kind: str, advice: str) -> None:
    body = "\n".join(f"FFMA R{20 + at}, R4, R8, R{20 + at}" for at in range(compute))
    sass, flow = flow_of(TILE.replace("FFMA R12, R4, R5, R12\n    FFMA R13, R6, R7, R13\n    FADD R14, R12, R14", body))
    (work,) = loop_work(sass, flow, None)
    ratio = load_ratio(work, "sm_86")
    assert (work.compute_ops, ratio.kind, ratio.cp_async) == (compute, kind, advice)
