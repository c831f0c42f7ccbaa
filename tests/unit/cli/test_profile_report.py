"""`--profile-report`: measurements join what the build says, in `check`, `report` and `sass`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.fake_report import LIBRARY
from tests.fakes.measured_transpose import CONFLICTS, PADDED, TransposeRuns
from tests.unit.cli.test_check import run

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, toolkit: Path) -> tuple[Path, Path]:
    """The example and a report of it."""
    folder = tmp_path_factory.mktemp("measured")
    source = Path(shutil.copy(ROOT / "examples" / "transpose.cu", folder))
    return source, TransposeRuns(source, str(toolkit / "bin" / "nvcc")).write(folder / "transpose.ncu-rep")


@pytest.fixture(autouse=True)
def stand_in_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(LIBRARY))


def _json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Any:
    status, out, err = run(capsys, *arguments, "--format", "json", "--arch", "sm_86")
    assert status == 0, err
    return json.loads(out)


def test_check_has_what_was_measured(measured: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    source, report = measured
    value = _json(capsys, "check", source, "--profile-report", report)
    assert value["gpu"]["name"].endswith("RTX 3070 Ti")
    assert value["gpu"]["why"] == "report"
    (file,) = value["files"]
    conflicts, padded = (next(k for k in file["kernels"] if k["mangled"] == name) for name in (CONFLICTS, PADDED))
    launch = conflicts["launches"][0]
    assert (launch["from"], launch["where"], launch["block"]) == ("profile", report.name, [32, 8, 1])
    assert launch["grid"] == [256, 256, 1]
    lines = conflicts["stalls"]["lines"]
    assert {line["file"] for line in lines} == {str(source)}
    # 175 cycles between two instructions of a warp, 50 samples each; all of them on lines.
    assert sum(line["samples"] for line in lines) == 50 * (83 + 42 + 33 + 13 + 3 + 1)
    assert sum(line["by_reason"].get("short_scoreboard", 0) for line in lines) == 50 * 83
    # 2 x 8192 x 8192 floats, no FLOP: on the memory side with 0 FLOP per byte.
    assert padded["roofline"]["dram_bytes"] == pytest.approx(2 * 8192 * 8192 * 4, rel=1e-6)
    codes = {(finding["code"], finding["kernel"]) for finding in file["findings"]}
    assert ("KL603", conflicts["name"]) in codes
    assert ("KL603", padded["name"]) not in codes


def test_instructions_have_their_samples(measured: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    source, report = measured
    value = _json(capsys, "sass", source, "--profile-report", report)
    for kernel in value["kernels"]:
        by_reason: dict[str, int] = {}
        for row in kernel["instructions"]:
            assert row["samples"] == sum(row["by_reason"].values())
            for reason, count in row["by_reason"].items():
                by_reason[reason] = by_reason.get(reason, 0) + count
        assert by_reason["barrier"] == 50 * (13 if kernel["mangled"] == CONFLICTS else 17)
        barriers = [row["by_reason"] for row in kernel["instructions"] if row["opcode"].startswith("BAR")]
        assert barriers[0]["barrier"] == by_reason["barrier"], "moved back onto the BAR"


def test_the_text_names_time_and_report(measured: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    source, report = measured
    status, out, _ = run(capsys, "check", source, "--arch", "sm_86", "--profile-report", report)
    assert status == 0
    assert "1.24 ms measured" in out
    assert report.name in out
    status, out, _ = run(capsys, "report", source, "--arch", "sm_86", "--profile-report", report)
    assert status == 0
    assert "1.24 ms" in out
    assert "short scoreboard" in out


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"", "empty"), (b"#!/bin/sh\n", "no Nsight Compute report"), (b"NVR\0junk", "")],
)
def test_a_bad_report_is_an_input_error(
    measured: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None, said: str
) -> None:
    bad = tmp_path / "bad.ncu-rep"
    if content is not None:
        bad.write_bytes(content)
    status, out, err = run(capsys, "check", measured[0], "--profile-report", bad)
    assert (status, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert str(bad) in err
    assert said in err
