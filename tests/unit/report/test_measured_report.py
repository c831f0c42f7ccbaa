"""The report, the JSON and the instructions of a measured kernel, and two launches side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from kernel_lsp.analysis import FileAnalysis, analyze
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.model.kernel_sass import read_cubin_sass
from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.kernel_code import kernel_code
from kernel_lsp.ncu.kernel_measurement import measurements
from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.placement import BuiltKernel
from kernel_lsp.ncu.raw_report import Metric, RuleResult
from kernel_lsp.report.document import build_report
from kernel_lsp.report.hints import line_hints
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.json_document import report_value
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.report.markdown import report_markdown
from kernel_lsp.report.measured_compare import compare_markdown
from kernel_lsp.report.sass_listing import sass_listing
from kernel_lsp.report.sass_value import instruction_values, sass_document
from kernel_lsp.report.section import BuildFacts
from kernel_lsp.report.values import kernel_value
from kernel_lsp.source.kernels import scan
from tests.unit.kernel_values import PATH, gpu
from tests.unit.ncu.conftest import action
from tests.unit.report.measured_kernel import (
    ALL,
    BASE,
    MADE_AT,
    NOW,
    ROOFLINE,
    SAMPLED,
    SAMPLES,
    TEXT,
    measured_file,
    measurement,
)

BUILD = BuildFacts(("nvcc", "-cubin", PATH), "the default flags", None)
CUBIN = (Path(__file__).parents[2] / "data" / "cubin_recorded" / "ptxas_13.0.sm_86.cubin").read_bytes()
RULE = RuleResult(
    "UncoalescedGlobalAccess",
    "SourceCounters",
    "optimization",
    "Uncoalesced",
    "Look at @section:SourceCounters:Source Counters@ and the @url:Guide:https://x.y/z#a@.",
    40.0,
    "global",
)


def sections(file: FileAnalysis) -> Any:
    return report_value(build_report(file, BUILD))["kernels"][0]["sections"]


def text_of(section: Any) -> str:
    return json.dumps(section["blocks"], ensure_ascii=False)


# --- the report ---


def test_what_was_measured_is_known() -> None:
    found = sections(measured_file(measurement({**ALL, **ROOFLINE}, rules=(RULE, RULE))))
    assert [key for key, section in found.items() if not section["known"]] == ["ratio", "mix"]
    assert "Measured: 1.92 ms, SM 31 %, memory 88 % (DRAM 84 %). DRAM-bound." in text_of(found["summary"])
    # 20 GFLOPS x 1.92 ms = 38.4 MFLOP; 40 GB/s x 1.92 ms = 76.8 MB.
    assert ["fp32 work", "38.4 MFLOP, 20.0 GFLOPS"] in found["baseline"]["blocks"][1]["rows"]
    assert ["DRAM traffic", "76.8 MB"] in found["baseline"]["blocks"][1]["rows"]
    rows = found["roofline"]["blocks"][2]["rows"]
    assert rows == [["fp32", "20.0 GFLOPS", "0.5", "6.25", "memory", "13 %"]]
    assert found["occupancy"]["blocks"][0]["text"].startswith("Measured: 81 % achieved occupancy of 100 % theoretical.")
    assert found["hot_lines"]["blocks"][1]["rows"] == [
        ["l.4", "50 %", "500", "long scoreboard 80 %", "", "8,192"],
        ["l.5", "38 %", "380", "short scoreboard 100 %", "", "8,192"],
        ["l.3", "12 %", "120", "long scoreboard 83 %", "", "8,192"],
    ]
    # 131,072 + 32,768 sectors, 65,536 would do: 60 % in excess.
    bullets, table = found["memory_access"]["blocks"][-2:]
    assert bullets["items"] == [
        "Global memory: 163,840 sectors, 60 % in excess of the ideal.",
        "Shared memory: 65,536 wavefronts, 88 % in excess of the ideal.",
        "Local memory: 4,096 sectors.",
    ]
    assert ["l.3", "16.0", "4.0", "98,304 (75 %)", "", ""] in [
        [cell if at != 4 else "" for at, cell in enumerate(row)] for row in table["rows"]
    ]
    advice = text_of(found["recommendations"])
    assert "Look at Source Counters and the Guide. Estimated global speed-up: 40 %. And 1 more of this rule." in advice
    assert "nothing was measured" not in advice
    assert "`ncu --section WarpStateStats`" in text_of(found["unknown"])


def test_the_chain_of_judgement_is_walked_in_order() -> None:
    (_, _, chain) = sections(measured_file(measurement({**ALL, **ROOFLINE})))["summary"]["blocks"]
    assert chain["items"] == [
        "SM 31 % and memory 88 % of their peaks: memory is the higher side.",
        "Roofline fp32: 20.0 GFLOPS, 0.5 FLOP per DRAM byte against a balance of 6.25: memory side, 13 % of what it "
        "allows. Tensor operations, if there were any, are not counted.",
        "DRAM 84 %.",
        "Most global sectors: l.3 80 %, l.5 20 %.",
        "Most shared-memory wavefronts: l.4 100 %.",
        "Most local-memory sectors: l.5 100 %.",
    ]
    low = {**ALL, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": Metric(40.0, "%")}
    low["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] = Metric(30.0, "%")
    (_, _, chain) = sections(measured_file(measurement(low)))["summary"]["blocks"]
    assert chain["items"] == [
        "SM 31 % and memory 40 % of their peaks: neither side is busy.",
        "The schedulers issue in 35 % of cycles; 0.71 warps are eligible on average, of 10.00 active.",
        "Warps spend their time in long scoreboard 50 %, short scoreboard 38 % and MIO throttle 6 %.",
        "The warps are there and wait: parallelism is not what lacks.",
        "Tail: 13.05 waves, the last one 5 % full; 7 % of the block slots stay empty.",
    ]


def test_a_basic_report_leaves_the_commands_that_tell_the_rest() -> None:
    basic = {name: metric for name, metric in ALL.items() if not name.startswith("smsp__")}
    found = sections(measured_file(measurement(basic, sampled=None)))
    unknown = [key for key, section in found.items() if not section["known"]]
    assert unknown == ["roofline", "ratio", "mix", "hot_lines", "memory_access"]
    assert all(found[key]["commands"] for key in ("roofline", "hot_lines", "memory_access"))


def test_page_reads_as_markdown() -> None:
    page = report_markdown(build_report(measured_file(measurement({**ALL, **ROOFLINE}, rules=(RULE,))), BUILD))
    assert "| l.4  | 50 %  | 500     | long scoreboard 80 %   |" in page
    assert "From gemm.ncu-rep of 2025-11-29 12:02, ncu 2024.1.1, RTX 3070 Ti." in page


# --- JSON ---


def test_json_of_a_measured_kernel() -> None:
    value = kernel_value(measured_file(measurement({**ALL, **ROOFLINE})).kernels[0])
    assert [(line["line"], line["samples"], line["share"]) for line in value["stalls"]["lines"]] == [
        (3, 120, 0.12),
        (4, 500, 0.5),
        (5, 380, 0.38),
    ]
    assert {line["file"] for line in value["stalls"]["lines"]} == {PATH}
    assert value["stalls"]["lines"][1]["by_reason"] == {
        "long_scoreboard": 400,
        "mio_throttle": 60,
        "not_selected": 20,
        "wait": 20,
    }
    roofline = value["roofline"]
    assert (roofline["precision"], roofline["class"]) == ("fp32", "memory-bound")
    assert roofline["flops"] == pytest.approx(38.4e6)
    assert roofline["dram_bytes"] == pytest.approx(76.8e6)
    assert (roofline["intensity"], roofline["balance"]) == (pytest.approx(0.5), pytest.approx(6.25))
    assert roofline["attained"] == pytest.approx(0.125)
    assert (value["measured"]["fit"], value["measured"]["duration_ns"]) == ("exact", 1_920_000.0)
    json.dumps(value)


def test_json_of_what_a_report_lacks() -> None:
    value = kernel_value(measured_file(measurement(ALL, sampled=None)).kernels[0])
    assert value["stalls"] is None
    assert "SourceCounters" in value["stalls_why"]
    assert value["roofline"]["flops"] is None
    assert "SpeedOfLight_RooflineChart" in value["roofline"]["flops_why"]
    few = kernel_value(measured_file(measurement(sampled={4: {"wait": 7}})).kernels[0])
    assert few["stalls"]["few_samples"]
    assert few["stalls"]["lines"][0]["share"] is None


# --- instructions ---


def recorded(same: bool) -> FileAnalysis:
    """A recorded cubin, measured: 70 samples on the second instruction of its first kernel."""
    cubin, sass = read_cubin(CUBIN), read_cubin_sass(CUBIN, "", "no nvdisasm")
    binary = cubin.kernels[0]
    code = kernel_code(CUBIN, binary.mangled)
    assert code is not None
    raw = action(
        binary.mangled, BASE, {SAMPLES + "wait": {BASE + 16: 70.0}, "inst_executed": {BASE: 9.0, BASE + 16: 9.0}}
    )
    profile = read_kernel_profile(raw)
    report = MeasuredReport(NcuReport("r.ncu-rep", "r", None, (profile,), (), ()), (measure(profile, code),), MADE_AT)
    now = code if same else replace(code, content=code.content + b"\0" * 16)
    path = next(iter(sass.sections[binary.mangled].rows.within))[0]
    found = measurements(
        {binary.mangled: binary.name}, lambda _: [BuiltKernel(now, "\n" * 200)], path, "\n" * 200, [report], {}
    )
    return analyze(path, "", cubin, gpu(), scan(""), {}, sass=sass, measured=found)


def test_instructions_have_samples_where_the_code_is_the_profiled_one() -> None:
    file = recorded(same=True)
    kernel = next(each for each in file.kernels if each.measured is not None)
    assert kernel.sass is not None
    values = instruction_values(kernel.sass, kernel.measured)
    assert [(value["samples"], value["by_reason"]) for value in values[:3]] == [(0, {}), (70, {"wait": 70}), (0, {})]
    listing = sass_listing(kernel, file.path).text.splitlines()
    assert "// 70 samples in all, measured: r.ncu-rep" in listing
    head = next(row for row in listing if row.startswith(" samples  "))
    row = next(row for row in listing if "0010  " in row)
    assert row.startswith("      70  0010  ")
    assert head.index("pc") == row.index("0010") + 2
    entry = next(each for each in sass_document(file.kernels)["kernels"] if each["mangled"] == kernel.binary.mangled)
    assert "samples_why" not in entry


def test_instructions_of_other_code_have_none() -> None:
    file = recorded(same=False)
    kernel = next(each for each in file.kernels if each.measured is not None)
    assert kernel.sass is not None
    assert {value["samples"] for value in instruction_values(kernel.sass, kernel.measured)} == {None}
    assert " samples  " not in sass_listing(kernel, file.path).text
    entry = next(each for each in sass_document(file.kernels)["kernels"] if each["mangled"] == kernel.binary.mangled)
    assert entry["samples_why"]


# --- before and after ---


def test_compare() -> None:
    before = measurement({**ALL, "gpu__time_duration.sum": Metric(2_400_000.0, "ns")}, report="/r/before.ncu-rep")
    after = measurement(sampled={4: {"long_scoreboard": 500}, 5: {"wait": 500}}, report="/r/after.ncu-rep")
    page = compare_markdown(before, after)
    assert ": before and after\n\nBefore: before.ncu-rep of 2025-11-29 12:02" in page
    assert "2.40 ms -> 1.92 ms: 20.0 % less time." in page
    assert "| duration              | 2.40 ms | 1.92 ms | -20.0 % |" in page
    assert "| l.5                        | 38 %   | 50 %  |" in page
    assert "| l.3                        | 12 %   |       |" in page
    assert "Launched differently" not in page
    assert "20.0 % less time" in compare_markdown(before.measured, after.measured)


def test_compare_says_what_does_not_compare() -> None:
    other = {**ALL, "launch__grid_dim_x": Metric(512, ""), "device__attribute_display_name": Metric("NVIDIA A40", "")}
    page = compare_markdown(measurement(), measurement(other))
    assert "- Different devices: NVIDIA GeForce RTX 3070 Ti and NVIDIA A40." in page
    assert "- Launched differently: grid 1024x1x1, block 256x1x1 and grid 512x1x1, block 256x1x1." in page


# --- hostile text ---

EVIL = "[a](command:x) <img src=x> `b` **c** |d| \n# e"


def test_text_of_a_report_is_never_markup() -> None:
    rule = RuleResult(EVIL, EVIL, "warning", EVIL, EVIL, 10.0, "global")
    metrics = {**ALL, "device__attribute_display_name": Metric(EVIL, "")}
    file_name = f"/build/{EVIL}.cu"
    found = measurement(metrics, report=f"/reports/{EVIL}.ncu-rep", rules=(rule,), file=file_name)
    file = measured_file(found)
    texts = [
        kernel_hover(file.kernels[0], file, now=NOW),
        *(line_hover(file, line, now=NOW) or "" for line in (3, 4, 5)),
        report_markdown(build_report(file, BUILD)),
        compare_markdown(found, found),
    ]
    assert any("command:x" in text for text in texts)
    parser = MarkdownIt("commonmark").enable("table")
    for text in texts:
        for token in parser.parse(text):
            kinds = {child.type for child in token.children or ()}
            assert not kinds & {"image", "html_inline"}, text
            links = [child.attrs["href"] for child in token.children or () if child.type == "link_open"]
            assert all(str(href).startswith("gemm.cu#") for href in links), text
            assert token.type != "html_block"
            if token.type == "heading_open" and token.tag == "h1":
                assert token.map is not None
                assert "# e" not in text.splitlines()[token.map[0]]


def test_sampled_lines_are_hinted_without_instructions() -> None:
    file = measured_file(measurement())
    assert file.kernels[0].sass is None
    assert {hint.line for hint in line_hints(file, None, NOW)} == set(SAMPLED)
    assert TEXT.splitlines()[3].strip().startswith("t[")
