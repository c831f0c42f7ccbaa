"""ncu's CSV pages, written here by hand in every shape they are known to have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.ncu.counters import read_kernel_profile
from kernel_lsp.ncu.csv_numbers import number_format
from kernel_lsp.ncu.csv_pages import read_csv_page
from kernel_lsp.ncu.raw_report import NcuError, RawReport

FIXED = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC"'
)
SASS_HEADER = (
    '"Address","Source","# Samples","Instructions Executed","Instructions Executed","stall_long_sb",'
    '"stall_sleeping (Not Issued)","Access Size"'
)
LAUNCH = (
    '"0","7","a.out","127.0.0.1","void k<(int)16, float>(float *, int)","1","7","(256, 1, 1)","(1024, 2, 1)","0","8.6"'
)
DETAILS = f'{FIXED},"Section Name","Metric Name","Metric Unit","Metric Value"'


def page(*lines: str) -> RawReport:
    return read_csv_page("\n".join(lines).encode(), "page.csv", "digest")


def test_raw_page_with_its_row_of_units() -> None:
    report = page(
        "==PROF== Connected to process 7",
        'the program says "hello", 1,5',
        f'{FIXED},"gpu__time_duration.sum","launch__registers_per_thread","dram__bytes_read.sum","note"',
        '"","","","","","","","","","","","us","register/thread","Mbyte",""',
        f'{LAUNCH},"22.592000","36","2.330000","CachePreferNone"',
        LAUNCH.replace('"0","7"', '"1","7"') + ',"11.296000","36","2.330000","CachePreferNone"',
    )
    first, second = (read_kernel_profile(action) for action in report.actions)
    assert first.duration_ns == 22592
    assert second.duration_ns == 11296
    assert first.launch.registers == 36
    assert first.launch.grid == (1024, 2, 1)
    assert first.launch.block == (256, 1, 1)
    assert first.device.arch == "sm_86"
    assert first.mangled is None
    assert first.name == "void k<(int)16, float>(float *, int)"
    assert report.actions[0].metrics["dram__bytes_read.sum"] == (2.33, "Mbyte")
    assert report.actions[0].metrics["note"].value == "CachePreferNone"


def test_details_page_is_ragged_and_has_rules() -> None:
    header = f'{DETAILS},"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"'
    report = page(
        header,
        f'{LAUNCH},"GPU Speed Of Light Throughput","Memory Throughput","%","61.84",',
        f'{LAUNCH},"GPU Speed Of Light Throughput","Duration","ms","21.06",',
        f'{LAUNCH},"Memory Workload Analysis","Memory Throughput","Gbyte/s","196.46",',
        f'{LAUNCH},"Occupancy","Theoretical Occupancy","%","100",',
        f'{LAUNCH},"SpeedOfLight","","","","SOLBottleneck","OPT","Memory, ""heavily"" used","global","9.741"',
        f'{LAUNCH},"SpeedOfLight","","","","Other","INF","words","",""',
    )
    (profile,) = (read_kernel_profile(action) for action in report.actions)
    assert profile.sol.memory == 61.84
    assert profile.duration_ns == 21_060_000
    assert report.actions[0].metrics["dram__bytes.sum.per_second"] == (196.46, "Gbyte/s")
    assert profile.occupancy.theoretical == 1.0
    first, second = profile.rules
    assert (first.rule, first.kind, first.speedup_pct, first.speedup_scope) == (
        "SOLBottleneck",
        "optimization",
        9.741,
        "global",
    )
    assert first.message == 'Memory, "heavily" used'
    assert second.speedup_pct is None


def test_metrics_by_name_and_body_items() -> None:
    live = page(DETAILS, f'{LAUNCH},"Command line profiler metrics","dram__bytes.sum","byte","32,746,880"')
    assert live.actions[0].metrics["dram__bytes.sum"].value == 32_746_880
    items = DETAILS.replace('"Metric Name"', '"Body Item Label","Metric Name"')
    report = page(
        items,
        f'{LAUNCH},"GPU Speed Of Light Roofline Chart","Single Precision Roofline","DRAM Frequency","Ghz","13.72"',
        f'{LAUNCH},"GPU Speed Of Light Roofline Chart","",'
        '"Predicated-On FFMA Thread Instructions Executed Per Cycle","inst/cycle","79.06"',
    )
    assert report.actions[0].metrics["dram__cycles_elapsed.avg.per_second"] == (13.72, "Ghz")
    assert (
        report.actions[0].metrics["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"].value
        == 79.06
    )


def test_an_older_header_has_no_shapes() -> None:
    header = (
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream",'
        '"Section Name","Metric Name","Metric Unit","Metric Value"'
    )
    report = page(header, '"0","7","a","h","k(int)","2020-Jan-01","1","7","GPU Speed Of Light","SOL SM","%","31.5"')
    profile = read_kernel_profile(report.actions[0])
    assert profile.sol.sm == 31.5
    assert profile.launch.grid is None


def test_source_page_by_instruction() -> None:
    report = page(
        '"Kernel Name","void k(float *, int)",',
        SASS_HEADER,
        '"0x7fc48541d900","      LDG.E R1, [R2] ","0","3632","3632","0","0","32",',
        '"0x7fc48541d910","  @P0 FADD R3, R1, R1 ","1,042","3632","3632","1,000","0","-",',
        '"Kernel Name","second(int)",',
        SASS_HEADER,
        '"0x7fc48541e000","      EXIT ","3","1","1","2","0","-",',
    )
    first, second = (read_kernel_profile(action) for action in report.actions)
    assert first.name == "void k(float *, int)"
    assert first.instructions is not None
    assert first.instructions.pc.tolist() == [0, 16]
    assert first.instructions.executed is not None
    assert first.instructions.executed.tolist() == [3632, 3632]
    assert first.samples is not None
    assert first.samples.by_reason == {"long_scoreboard": 1000}
    assert second.samples is not None
    assert second.samples.total == 2
    assert report.actions[0].sass is not None
    assert report.actions[0].sass[0x7FC48541D910] == "  @P0 FADD R3, R1, R1 "


def test_source_page_with_lines_counts_instructions_once() -> None:
    header = '"Line No","Source","Address","Source","# Samples","Instructions Executed"'
    report = page(
        '"File Path","/home/ci/a.cu"',
        '"Function Name","k(float *)"',
        header,
        '"1","__global__ void k(float *x) {","-","-","0","0"',
        '"2","  printf("a, "b", 3);","-","-","30","128"',  # quotes of the source are not escaped
        '"","","0x10","LDG.E R1, [R2]","10","64"',
        '"","","0x20","FADD R1, R1, R1","20","64"',
        '"File Path","/usr/include/h.hpp"',
        '"Function Name","k(float *)"',
        header,
        '"77","inline float f()","-","-","5","64"',
        '"","","0x30","FMUL R1, R1, R1","5","64"',
    )
    (action,) = report.actions
    assert action.columns["smsp__pcsamp_sample_count"].values.tolist() == [10, 20, 5]
    assert action.metrics["inst_executed"].value == 192
    places = [(action.lines.files[f], int(n)) for f, n in zip(action.lines.file, action.lines.line, strict=True)]
    assert places == [("/home/ci/a.cu", 2), ("/home/ci/a.cu", 2), ("/usr/include/h.hpp", 77)]
    assert action.sources["/home/ci/a.cu"].startswith("__global__ void k(float *x) {\n  printf(")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"  \n\n", "empty"),
        (b"NVR\0\x02\0\0\0", "not CSV"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0", "binary data"),
        (b"==ERROR== Option '--section X' did not match any section.\n", "only errors"),
        (b"hello\nworld\n", "no table of ncu's"),
        (b"\xff\xfe\x22", "UTF-16"),
        (b'"File Path","a.cu"\n"Function Name","k()"\n"Line No","Source"\n"1","x"\n', "no instructions"),
    ],
)
def test_what_is_no_page_is_one_message(data: bytes, words: str) -> None:
    with pytest.raises(NcuError, match=r"^page\.csv: ") as found:
        read_csv_page(data, "page.csv", "digest")
    assert words in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-8"])
def test_encodings(encoding: str) -> None:
    text = f'{DETAILS}\r\n{LAUNCH},"Occupancy","Achieved Occupancy","%","41.5"\r\n'
    data = text.encode(encoding)
    if encoding == "utf-16-le":
        data = b"\xff\xfe" + data
    profile = read_kernel_profile(read_csv_page(data, "page.csv", "d").actions[0])
    assert profile.occupancy.achieved == 0.415


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["134221952", "22.592000"], [134221952, 22.592]),
        (["32,746,880", "1,234"], [32746880, 1234]),
        (["4,963,609,951.19", "1.30"], [4963609951.19, 1.3]),
        (["117.344", "65,77"], [117344, 65.77]),  # de_DE
        (["1\u00a0234\u00a0567", "3,5"], [1234567, 3.5]),  # ru_RU
        (["0.123", "1.5"], [0.123, 1.5]),
        (["1e+09", "2"], [1e9, 2]),
        (["1.2.3", "12.5", "12,34,567"], [None, 12.5, None]),
        (["1.234"], [None]),
        (["1,234"], [None]),
        (["-", "nan", "n/a", "CachePreferNone", "(256, 1, 1)"], [None] * 5),
    ],
)
def test_numbers_by_the_pages_own_locale(cells: list[str], expected: list[float | None]) -> None:
    found = number_format(cells)
    assert found.contradiction is None
    assert [found.number(cell) for cell in cells] == expected


def test_ambiguous_numbers_are_said_not_guessed() -> None:
    report = page(DETAILS, f'{LAUNCH},"Command line profiler metrics","dram__bytes.sum","byte","1.234"')
    assert "dram__bytes.sum" not in report.actions[0].metrics
    assert "1.234" in report.notes[0]
    assert "LC_ALL=C" in report.notes[0]


def test_numbers_of_two_locales_are_refused() -> None:
    with pytest.raises(NcuError, match="two ways"):
        page(
            DETAILS,
            f'{LAUNCH},"Command line profiler metrics","a__b.sum","byte","1,234,567.5"',
            f'{LAUNCH},"Command line profiler metrics","a__c.sum","byte","1.234.567,5"',
        )


@given(st.integers(0, 10**12), st.sampled_from([",", ".", "\u00a0", ""]), st.integers(0, 99))
def test_grouped_numbers_come_back(whole: int, sign: str, cents: int) -> None:
    decimal = "," if sign == "." else "."
    grouped = f"{whole:,}".replace(",", sign)
    text = f"{grouped}{decimal}{cents:02d}"
    assert number_format([text]).number(text) == pytest.approx(whole + cents / 100)


@given(st.binary(max_size=400))
def test_any_bytes_end_in_launches_or_one_error(data: bytes) -> None:
    said = ""
    try:
        read_csv_page(data, "page.csv", "d")
    except NcuError as error:
        said = str(error)
    assert not said or said.startswith("page.csv: ")


@given(
    st.lists(st.text(alphabet='"0123456789.,-abc\n x', max_size=40), max_size=12),
    st.sampled_from(
        [DETAILS, FIXED, '"Address","Source","# Samples"', '"Line No","Source","Address","Source","# Samples"']
    ),
)
def test_any_rows_behind_a_header_end_in_launches_or_one_error(rows: list[str], header: str) -> None:
    said = ""
    try:
        for action in page(header, *rows).actions:
            read_kernel_profile(action)
    except NcuError as error:
        said = str(error)
    assert not said or said.startswith("page.csv: ")
