"""Launches that no GPU has: what asks for too much is said to be that, what is no launch is left out, nothing fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.model.launch import Launch
from kernel_lsp.report.document import build_report
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.lens import lenses
from kernel_lsp.report.markdown import report_markdown
from kernel_lsp.report.section import BuildFacts
from tests.unit.kernel_values import PATH, analysed, gpu, kernel, launch

BUILD = BuildFacts(("nvcc", PATH), "the default flags", None)
H100 = gpu("H100 SXM5 80GB")
NUMBERS = st.one_of(st.integers(-3, 40), st.integers(), st.sampled_from([1 << 31, 1 << 32, (1 << 64) - 5]))
LAUNCHES = st.builds(
    Launch,
    block=st.tuples(NUMBERS, NUMBERS, NUMBERS),
    grid=st.none() | st.tuples(NUMBERS, NUMBERS, NUMBERS),
    dynamic_shared_bytes=st.none() | NUMBERS,
    cluster=st.none() | NUMBERS,
    origin=st.sampled_from(["override", "profile", "config", "comment", "launch_bounds", "source"]),
    where=st.just("gemm.cu:41"),
)


@given(st.lists(LAUNCHES, max_size=4), st.sampled_from(["RTX 3070 Ti", "H100 SXM5 80GB", "Tesla T4"]))
def test_every_page_is_written_whatever_a_launch_says(launches: list[Launch], board: str) -> None:
    binary = kernel(registers=255, uses_dynamic_shared=None, barriers=16)
    file = analysed([binary], {"gemm": launches}, choice=gpu(board))
    for found in file.kernels[0].launches:
        assert min(found.launch.block) > 0
        assert 0 <= found.occupancy.active_warps <= found.occupancy.max_warps
    assert lenses(file.kernels, PATH)
    assert kernel_hover(file.kernels[0], file)
    assert report_markdown(build_report(file, BUILD))


@pytest.mark.parametrize(
    ("cluster", "blocks", "said"),
    [(16, 16, []), (17, 0, ["a cluster of 17 blocks cannot start: H100 SXM5 80GB allows 16, from l.41"])],
)
def test_a_cluster_of_more_than_16_blocks(cluster: int, blocks: int, said: list[str]) -> None:
    # 128 threads with 32 registers: 64 warps of 4 -> 16 blocks; sm_90 runs at most 16 blocks as one cluster.
    asked = Launch((128, 1, 1), None, 0, cluster, "source", "gemm.cu:41")
    file = analysed([kernel(arch="sm_90")], {"gemm": [asked]}, choice=H100)
    [found] = file.kernels[0].launches
    assert found.occupancy.blocks_per_sm == blocks
    assert [finding.message for finding in file.findings if finding.code == "KL140"] == said


def test_sizes_that_no_launch_has_are_left_out() -> None:
    file = analysed([kernel(uses_dynamic_shared=True)], {"gemm": [launch(128, -5), launch(0), launch(-32, 16)]})
    assert file.kernels[0].launches == ()
    assert [row.threads for row in file.kernels[0].block_sizes][:2] == [64, 128]
