"""`kernel-lsp profile`: the contract of its JSON, its text, its comparison and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.cli.main import main

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "ncu"
FIXED = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed","launch__registers_per_thread"'
)
ROW = (
    '"{id}","7","a","h","void k<(int)16>(float *)","1","7","(256, 1, 1)","(1024, 1, 1)","0","8.6",'
    '"{us}","31.50","{memory}","{regs}"'
)


@pytest.fixture
def raw_page(tmp_path: Path) -> Path:
    return write_page(tmp_path / "before.csv", us="70.50", memory="88.10", regs=40)


def write_page(path: Path, *, us: str, memory: str, regs: int) -> Path:
    units = '"","","","","","","","","","","","us","%","%","register/thread"'
    path.write_text("\n".join([FIXED, units, ROW.format(id=0, us=us, memory=memory, regs=regs)]) + "\n", "utf-8")
    return path


def real(name: str) -> Path:
    """A measured report; the test is left out where the data are not there."""
    path = DATA / f"{name}.ncu-rep"
    if not path.is_file():
        pytest.skip(f"left out: there are no measured reports at {DATA}")
    return path


def value_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["profile", "--format", "json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


KEYS = {
    "name",
    "mangled",
    "grid",
    "block",
    "registers",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "duration_ns",
    "sol",
    "occupancy",
    "waves_per_sm",
    "issue_active",
    "eligible_warps",
    "stalls",
    "roofline",
    "lines",
    "missing",
}


def test_json_of_a_csv_page(raw_page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = value_of(capsys, str(raw_page))
    assert value["schema_version"] == 1
    (report,) = value["reports"]
    assert {"path", "ncu_version", "device", "arch", "actions"} <= report.keys()
    assert report["arch"] == "sm_86"
    (action,) = report["actions"]
    assert action.keys() >= KEYS
    assert action["duration_ns"] == 70500
    assert action["grid"] == [1024, 1, 1]
    assert action["sol"] == {"sm": 31.5, "memory": 88.1, "l1tex": None, "l2": None, "dram": None}
    assert action["mangled"] is None
    assert action["stalls"] is None
    assert action["lines"] == []
    assert "inst_executed" in action["missing"]
    assert "--section SourceCounters" in action["missing_options"]


def test_json_of_a_report_with_lines(capsys: pytest.CaptureFixture[str]) -> None:
    path = real("a100_cutlass_lines")
    (report,) = value_of(capsys, str(path))["reports"]
    assert (report["ncu_version"], report["device"], report["arch"]) == ("2024.1.1.0", "NVIDIA A100 80GB PCIe", "sm_80")
    (action,) = report["actions"]
    assert action.keys() >= KEYS
    assert action["sol"].keys() == {"sm", "memory", "l1tex", "l2", "dram"}
    assert action["occupancy"]["theoretical"] == 0.125
    assert sum(action["stalls"].values()) == 123  # smsp__pcsamp_sample_count of the report
    lines = action["lines"]
    assert lines == sorted(lines, key=lambda line: (line["file"], line["line"]))
    assert sum(line["samples"] for line in lines) == 123
    hottest = max(lines, key=lambda line: line["samples"])
    assert hottest["file"].endswith("cutlass/arch/memory_sm80.h")
    assert hottest["line"] == 453  # cp_async_wait
    assert {wait["producer"].split(".")[0].split(" ")[-1] for wait in hottest["waits_for"]} == {"LDGSTS"}
    assert hottest["share"] == pytest.approx(hottest["samples"] / 123)
    callers = [line for line in lines if line["samples_with_inlined"] > line["samples"]]
    assert callers, "lines of calls hold what was inlined there"


def test_source_root_maps_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = real("a100_cutlass_lines")
    here = tmp_path / "work" / "cutlass" / "arch" / "memory_sm80.h"
    here.parent.mkdir(parents=True)
    here.write_text("// here\n", "utf-8")
    (report,) = value_of(capsys, "--source-root", str(tmp_path), str(path))["reports"]
    files = {line["file"] for line in report["actions"][0]["lines"]}
    assert str(here) in files
    assert len(files) > 5


def test_text_names_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    path = real("a40_julia_lines")
    assert main(["profile", str(path)]) == 0
    text = capsys.readouterr().out
    assert "NVIDIA A40, sm_86, ncu 2022.4.0.0, 5 launches" in text
    assert "DRAM-bound" in text
    assert "SM 18 %, memory 91 % (L1/TEX 34 %, L2 35 %, DRAM 91 %)" in text
    assert "6 blocks/SM by warps; 78.00 waves" in text
    assert "drain                  52 %" in text
    assert all(len(line) < 200 for line in text.splitlines())


def test_compare(raw_page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = write_page(tmp_path / "after.csv", us="35.25", memory="44.00", regs=48)
    assert main(["profile", "--compare", str(raw_page), str(after)]) == 0
    text = capsys.readouterr().out
    assert "k<16>" in text
    duration = next(line for line in text.splitlines() if "duration" in line)
    assert "70.5 -> 35.25" in duration
    assert "-50.0%" in duration
    assert any("registers" in line and "+20.0%" in line for line in text.splitlines())
    assert main(["profile", "--compare", str(raw_page)]) == 2
    assert "two reports" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("none.ncu-rep", None, "No such file"),
        ("empty.ncu-rep", b"", "empty"),
        ("text.ncu-rep", b"hello", "no Nsight Compute report"),
        ("binary.csv", b"NVR\0\0", "not CSV"),
        ("errors.csv", b"==ERROR== No kernels were profiled.\n", "No kernels were profiled"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, name: str, data: bytes | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    assert main(["profile", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert str(path) in said.err
    assert words in said.err


def test_no_such_source_root(raw_page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--source-root", "/nowhere/at/all", str(raw_page)]) == 2
    assert "no such folder" in capsys.readouterr().err
