"""Rules about occupancy and launches. Block counts are worked out beside each case, from the published limits:
sm_86 has 65,536 registers, 48 warps, 16 blocks and 102,400 B of shared memory per SM, 1,024 B of it for each block."""

from __future__ import annotations

from kernel_lsp.findings.finding import Finding
from kernel_lsp.model.launch import Launch
from tests.unit.kernel_values import analysed, gpu, kernel, launch


def only(findings: tuple[Finding, ...], code: str) -> Finding:
    assert [f.code for f in findings] == [code], findings
    return findings[0]


def evidence(finding: Finding) -> dict[str, object]:
    return {e.name: e.value for e in finding.evidence}


def test_registers_hold_occupancy_down() -> None:
    # 96 registers: 96 * 32 = 3,072 a warp; 16,384 / 3,072 = 5 warps a partition, 20 an SM, 2 blocks of 8 warps.
    # The next block needs 24 warps = 6 a partition: 16,384 / 6 = 2,730 a warp -> 2,560 = 80 registers (16 away).
    file = analysed([kernel(registers=96)], {"gemm": [launch(256)]})
    found = only(file.findings, "KL101")
    assert found.message == "33 % occupancy: registers hold it at 2 blocks/SM, 16 of 48 warps (block 256 from l.41)"
    assert found.severity == "information"
    assert found.advice.startswith("Next step up: 80 registers -> 3 blocks.")
    assert evidence(found) | {"limiters": "registers", "blocks_per_sm": 2, "active_warps": 16} == evidence(found)


def test_three_quarters_is_not_worth_a_word() -> None:
    # 48 registers: 1,536 a warp, 10 a partition, 40 warps = 5 blocks: 83 %. The sixth block is 8 registers away.
    assert analysed([kernel(registers=48)], {"gemm": [launch(256)]}).findings == ()


def test_full_occupancy_is_silent() -> None:
    # 40 registers: 1,280 a warp, 12 a partition, 48 warps: full.
    assert analysed([kernel(registers=40)], {"gemm": [launch(256)]}).findings == ()


def test_small_blocks_leave_warps_empty() -> None:
    # 16 blocks of 1 warp: 16 of 48 warps; 48 / 16 = 3 warps = 96 threads would fill it.
    found = only(analysed([kernel(registers=32)], {"gemm": [launch(32)]}).findings, "KL101")
    assert found.message == "33 % occupancy, limited by blocks: 16 blocks/SM of 32 threads, 16 of 48 warps"
    assert "blocks of 96 threads would reach 48 of 48 warps" in found.advice


def test_a_block_that_does_not_divide_the_warps() -> None:
    # 32 warps fit once into 48; 24 warps (768 threads) would fit twice.
    found = only(analysed([kernel(registers=16)], {"gemm": [launch(1024)]}).findings, "KL101")
    assert found.message == "67 % occupancy, limited by warps: a block of 1024 fits once, 32 of 48 warps"
    assert "blocks of 768 threads would reach 48 of 48 warps" in found.advice


def test_few_warps_are_said_to_be_few_by_a_rule_of_thumb() -> None:
    # 255 registers -> 8,192 a warp, 2 a partition, 8 warps an SM: 1 block of 4 warps fits twice, 8 warps: not few.
    # 102 KB: one block of 4 warps: 4 < 8.
    found = only(
        analysed([kernel(uses_dynamic_shared=True)], {"gemm": [launch(128, dynamic=90_000)]}).findings, "KL101"
    )
    assert "rule of thumb" in found.advice
    assert [e.kind for e in found.evidence if e.name == "warps_to_hide_latency"] == ["estimated"]


def test_register_step_replaces_the_limiter() -> None:
    # 72 registers: 2,304 a warp, 7 a partition, 28 warps, 3 blocks of 8; 64: 2,048, 8, 32 warps, 4 blocks.
    found = only(analysed([kernel(registers=72)], {"gemm": [launch(256)]}).findings, "KL120")
    assert found.message == "registers (72) hold it at 3 blocks/SM; at 64 it would be 4 (block 256 from l.41)"
    assert "__launch_bounds__(256, 4)" in found.advice


def test_register_step_of_the_worked_example() -> None:
    # 42 registers allocate 48: 5 blocks; at 40 there are 6.
    found = only(analysed([kernel(registers=42)], {"gemm": [launch(256)]}).findings, "KL120")
    assert "(42) hold it at 5 blocks/SM; at 40 it would be 6" in found.message


def test_no_register_step_for_a_kernel_that_spills() -> None:
    spilling = kernel(registers=72, spill_store_bytes=8, spill_load_bytes=8)
    codes = [f.code for f in analysed([spilling], {"gemm": [launch(256)]}).findings]
    assert codes == ["KL101", "KL201"]  # 50 %: 24 of 48 warps


def test_past_the_edge_of_shared_memory() -> None:
    # 102,400 / 2 = 51,200, less the system's 1,024: 50,176.
    dynamic = kernel(uses_dynamic_shared=True)
    found = only(analysed([dynamic], {"gemm": [launch(128, dynamic=52_224)]}).findings, "KL110")
    assert found.message == "52,224 B of shared memory leaves 1 block/SM; 50,176 B would give 2 (RTX 3070 Ti)"
    assert found.severity == "warning"
    assert "Remove 2,048 B" in found.advice


def test_the_edge_itself_is_before_it() -> None:
    dynamic = kernel(uses_dynamic_shared=True)
    at_edge = analysed([dynamic], {"gemm": [launch(128, dynamic=50_176)]}).findings
    assert {f.severity for f in at_edge if f.code == "KL110"} == {"hint"}
    past = analysed([dynamic], {"gemm": [launch(128, dynamic=50_177)]}).findings
    assert {f.severity for f in past if f.code == "KL110"} == {"warning"}


def test_a_smaller_loss_is_information() -> None:
    # 102,400 / 6 = 17,066 -> 17,024 (133 * 128), less 1,024 = 16,000 for 6 blocks; 17,000 gives 5.
    dynamic = kernel(uses_dynamic_shared=True)
    found = only(analysed([dynamic], {"gemm": [launch(256, dynamic=17_000)]}).findings, "KL110")
    assert found.severity == "information"
    assert "16,000 B would give 6" in found.message


def test_no_edge_near_by() -> None:
    # 60,000 - 50,176 = 9,824, more than an eighth.
    dynamic = kernel(uses_dynamic_shared=True)
    only(analysed([dynamic], {"gemm": [launch(128, dynamic=60_000)]}).findings, "KL101")


def test_largest_block_where_none_is_known() -> None:
    # 96 registers: 3,072 a warp; a block's warps, rounded up to 4, must fit 65,536: 21 -> 20 warps = 640 threads.
    found = only(analysed([kernel(registers=96)]).findings, "KL130")
    assert found.message == "96 registers: a block of more than 640 threads cannot start"
    assert analysed([kernel(registers=64)]).findings == ()  # 64 * 1024 = 65,536: all blocks can start
    assert analysed([kernel(registers=96, max_block=(512, 1, 1))]).findings == ()  # the bound says it already


def test_launch_with_more_registers_than_there_are() -> None:
    found = only(analysed([kernel(registers=96)], {"gemm": [launch(1024)]}).findings, "KL140")
    assert found.message == ("96 registers x 1,024 threads cannot start: at most 640 threads per block, from l.41")
    assert found.severity == "error"


def test_launch_above_the_kernels_own_bound() -> None:
    bound = kernel(max_block=(256, 1, 1))
    found = only(analysed([bound], {"gemm": [launch(512)]}).findings, "KL140")
    assert "the kernel is bound to __launch_bounds__(256)" in found.message


def test_launch_other_than_the_required_block() -> None:
    fixed = kernel(max_block=(128, 1, 1), required_block=(128, 1, 1))
    assert "the kernel requires 128" in only(analysed([fixed], {"gemm": [launch(64)]}).findings, "KL140").message


def test_shared_memory_of_another_board_is_an_error_only_where_the_board_was_chosen() -> None:
    dynamic = kernel(uses_dynamic_shared=True)
    launches = {"gemm": [launch(256, dynamic=200_000)]}
    chosen = only(analysed([dynamic], launches).findings, "KL140")
    assert (chosen.severity, "101,376 B" in chosen.message) == ("error", True)
    default = only(analysed([dynamic], launches, choice=gpu(why="default")).findings, "KL140")
    assert default.severity == "warning"


def test_unknown_dynamic_shared_memory_is_a_condition() -> None:
    # sm_90 has 233,472 B: a quarter, less 1,024, is 57,344 = 56 KB for 4 blocks of 512 (32 registers: 4 blocks).
    scan = kernel("scan", registers=32, arch="sm_90", uses_dynamic_shared=True, barriers=1, max_block=(512, 1, 1))
    file = analysed([scan], {"scan": [launch(512, None, "launch_bounds", "gemm.cu:3")]}, choice=gpu("H100 SXM"))
    found = only(file.findings, "KL150")
    assert found.message == (
        "dynamic shared memory unknown: 4 blocks/SM (100 %) up to 56 KB (block 512 from __launch_bounds__)"
    )
    assert (found.severity, found.advice) == ("hint", "State it above the kernel: // kernel-lsp: smem=BYTES.")


def test_an_unlinked_kernel_gets_no_verdict_on_its_registers() -> None:
    unlinked = kernel(registers=96, relocatable=True)
    file = analysed([unlinked], {"gemm": [launch(256)]})
    assert file.findings == ()
    assert file.kernels[0].launches[0].occupancy.is_upper_bound


def test_the_worst_of_several_launches_is_told_once() -> None:
    file = analysed([kernel(registers=96)], {"gemm": [launch(256), launch(64, where="gemm.cu:50")]})
    # 64 threads: 2 warps; 20 warps hold 10 blocks = 42 %; 256 threads: 16 warps = 33 %.
    assert "33 % occupancy" in only(file.findings, "KL101").message


def test_a_measured_launch_of_the_required_size_did_start_in_another_shape() -> None:
    fixed = kernel(max_block=(768, 1, 1), required_block=(768, 1, 1))
    ran = Launch((32, 24, 1), None, 0, None, "profile", "report.ncu-rep")
    assert analysed([fixed], {"gemm": [ran]}).findings == ()  # two blocks of 24 warps: full
    planned = Launch((32, 24, 1), None, 0, None, "source", "gemm.cu:41")
    assert [f.code for f in analysed([fixed], {"gemm": [planned]}).findings] == ["KL140"]
