"""The report's first form: what is known stands in it, what is not says how to learn it."""

from __future__ import annotations

import pytest

from kernel_lsp.report.document import build_report
from kernel_lsp.report.json_document import report_value
from kernel_lsp.report.kernel_choice import NoSuchKernelError
from kernel_lsp.report.markdown import report_markdown
from kernel_lsp.report.section import BuildFacts
from tests.unit.kernel_values import PATH, analysed, gpu, kernel, launch

BUILD = BuildFacts(("nvcc", "-cubin", "-arch=sm_86", PATH), "the default flags", None)
ORDER = [
    "summary",
    "baseline",
    "roofline",
    "occupancy",
    "cliffs",
    "ratio",
    "mix",
    "hot_lines",
    "memory_access",
    "recommendations",
    "unknown",
]


def test_sections_come_in_the_order_of_a_colleagues_mail() -> None:
    file = analysed([kernel(registers=96)], {"gemm": [launch(256)]})
    value = report_value(build_report(file, BUILD))
    sections = value["kernels"][0]["sections"]
    assert list(sections) == ORDER
    assert [key for key in ORDER if not sections[key]["known"]] == [
        "baseline", "roofline", "ratio", "mix", "hot_lines", "memory_access",
    ]  # fmt: skip
    # What is not known names the command that tells.
    assert all(section["commands"] for key, section in sections.items() if not section["known"])


def test_the_boards_roofs_are_known_before_anything_is_measured() -> None:
    # 21.7 TFLOPS over 608 GB/s = 35.7; fp16 with fp32 accumulate 43.5 -> 71.5; int8 174 -> 286.2.
    rows = report_value(build_report(analysed([kernel()]), BUILD))["kernels"][0]["sections"]["roofline"]["blocks"][1]
    by_precision = {row[0]: row[1:3] for row in rows["rows"]}
    assert by_precision["fp32"] == ["21.7", "35.7"]
    assert by_precision["fp16 tensor, fp32 accumulate"] == ["43.5", "71.5"]
    assert by_precision["int8 tensor"] == ["174", "286.2"]


def test_double_buffers_that_cross_the_cliff() -> None:
    # 30 KB: 102,400 / (30,720 + 1,024) = 3 blocks; 60 KB: 1.
    file = analysed([kernel(static_shared_bytes=30_720)], {"gemm": [launch(128)]})
    page = report_markdown(build_report(file, BUILD))
    assert "If all 30,720 B are tile buffers (assumed), a second stage takes 61,440 B: 3 -> 1 blocks/SM." in page


def test_the_trade_of_launch_bounds_is_stated() -> None:
    # Case: 2 x 1024 threads share 65,536 registers.
    tight = kernel(registers=32, arch="sm_90", max_block=(1024, 1, 1), min_blocks_per_sm=2)
    page = report_markdown(build_report(analysed([tight], choice=gpu("H100 SXM")), BUILD))
    assert (
        "`__launch_bounds__(1024, 2)`: 2 blocks of 1,024 threads allow 32 registers a thread; "
        "without the second bound the limit is 64."
    ) in page


def test_figures_lead_back_to_their_line() -> None:
    page = report_markdown(build_report(analysed([kernel(line=5)]), BUILD), folder="/project/reports")
    assert "[gemm.cu:5](../gemm.cu#L5)" in page


def test_a_path_cannot_become_a_command() -> None:
    odd = analysed([kernel()])
    assert "](command:" not in report_markdown(build_report(odd, BUILD), folder="/project/command:x")


@pytest.mark.parametrize("name", ["tiled<16>", "tiled", "void tiled<16>(float*)", "_Z_tiled<16>"])
def test_a_kernel_is_chosen_by_any_of_its_names(name: str) -> None:
    file = analysed([kernel("tiled<16>"), kernel("other", line=9)])
    report = build_report(file, BUILD, name)
    assert [part.kernel.binary.short_name for part in report.kernels] == ["tiled<16>"]


def test_an_unknown_kernel_names_those_there_are() -> None:
    with pytest.raises(NoSuchKernelError, match="there are: gemm"):
        build_report(analysed([kernel()]), BUILD, "gemv")


def test_a_file_without_kernels_says_so() -> None:
    assert "No kernels in this file." in report_markdown(build_report(analysed([]), BUILD))


def test_a_finding_of_a_sister_instance_is_not_this_ones() -> None:
    both = [kernel("t<1>", registers=32), kernel("t<2>", registers=96)]
    file = analysed(both, {"t<1>": [launch(256)], "t<2>": [launch(256)]})
    parts = {part.kernel.binary.short_name: part.findings for part in build_report(file, BUILD).kernels}
    assert [f.code for f in parts["t<2>"]] == ["KL101"]
    assert parts["t<1>"] == ()
