"""`kernel-lsp occupancy`: what one launch prints, what a batch writes, and what bad input says."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

import pytest

from kernel_lsp.cli import occupancy
from kernel_lsp.cli.errors import CliError

VECTORS = Path(__file__).parents[2] / "data" / "occ_vectors.csv"
HEADER = "id,cc,threads_per_block,regs_per_thread,static_smem_bytes,dyn_smem_bytes,carveout_percent,barriers"
ANSWERS = "status,blocks_per_sm,active_warps_per_sm,limiting_factors"


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    occupancy.add_parser(parser.add_subparsers())
    options = parser.parse_args(["occupancy", *arguments])
    status = options.run(options)
    assert isinstance(status, int)
    return status


def answered(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    launches = tmp_path / "in.csv"
    launches.write_bytes(text.encode())
    assert run("--batch", str(launches)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def refused(tmp_path: Path, content: bytes) -> str:
    launches = tmp_path / "in.csv"
    launches.write_bytes(content)
    with pytest.raises(CliError) as caught:
        run("--batch", str(launches))
    assert caught.value.exit_status == 2
    message = str(caught.value)
    assert message.startswith(str(launches))
    assert "\n" not in message
    return message.removeprefix(str(launches))


def test_one_launch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--registers", "36", "--block", "16x16", "--static-shared", "2048") == 0
    assert capsys.readouterr().out == (
        "RTX 3070 Ti, sm_86 (by default) · block 16x16\n"
        "\n"
        "100 % theoretical occupancy: 6 blocks/SM, 48 of 48 warps. Limited by registers and warps.\n"
        "\n"
        "limit      uses             blocks/SM\n"
        "registers  36 per thread            6   <- limit\n"
        "warps      8 per block              6   <- limit\n"
        "blocks                             16\n"
        "shared     2.0 KB + 1.0 KB         33\n"
        "\n"
        "Next step up: none, the warps are full.\n"
        "Next step down: 41 registers -> 5 blocks, or 16,001 B shared -> 5 blocks.\n"
    )


def test_block_not_given_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--registers", "96", "--arch", "sm_90") == 0
    out = capsys.readouterr().out
    assert out.startswith("H100 SXM5 80GB, sm_90 · 96 registers per thread\n")
    assert "    256          2  16 of 64       25 %  registers\n" in out
    assert "   1024          0  cannot start\n" in out
    assert "The largest block that can start has 640 threads.\n" in out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["--registers", "96", "--block", "672", "--arch", "sm_90"],
            "with 96 registers the largest block has 640 threads",
        ),
        (["--registers", "32", "--block", "2048"], "a block has at most 1,024 threads"),
        (["--registers", "32", "--block", "64", "--dynamic-shared", "120000"], "at most 101,376 B of shared memory"),
        (["--registers", "300", "--block", "64"], "a thread has at most 255 registers"),
    ],
)
def test_launch_that_cannot_start_says_why(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 0
    out = capsys.readouterr().out
    assert "This launch cannot start: " in out
    assert reason in out
    assert "%" not in out


def test_cluster_is_shown_as_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--registers", "32", "--block", "256", "--cluster", "16", "--gpu", "h100 sxm") == 0
    out = capsys.readouterr().out
    assert "At most 100 % theoretical occupancy: 8 blocks/SM" in out
    assert "At most 66 clusters at a time on 132 SMs." in out  # 8 x 132 / 16
    assert "More than 8 blocks per cluster need the kernel's non-portable attribute." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--registers N"),
        (["-o", "out.csv"], "-o needs --batch"),
        (["--batch", "in.csv", "--registers", "3"], "leave out --registers"),
        (["--batch", "in.csv", "--static-shared", "0"], "leave out --static-shared"),
        (["--registers", "32", "--gpu", "A100"], "A100 PCIe 40GB"),
        (["--registers", "32", "--gpu", "RTX 3070"], "nearest: GeForce RTX 3070 Ti"),
        (["--registers", "32", "--arch", "sm_130"], "no limits are known"),
        (["--registers", "32", "--arch", "sm_86", "--block", "64", "--cluster", "2"], "sm_86 has no clusters"),
    ],
)
def test_bad_options_are_one_clear_line(arguments: list[str], message: str) -> None:
    with pytest.raises(CliError) as caught:
        run(*arguments)
    assert message in str(caught.value)
    assert caught.value.exit_status == 2


def test_batch_answers_every_recorded_launch(tmp_path: Path) -> None:
    with VECTORS.open(encoding="utf-8", newline="") as lines:
        expected = list(csv.DictReader(lines))
    columns = [*HEADER.split(","), "max_dyn_smem_bytes"]
    launches, answers = tmp_path / "in.csv", tmp_path / "out.csv"
    with launches.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(expected)
    assert run("--batch", str(launches), "-o", str(answers)) == 0
    with answers.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        found = list(reader)
    assert reader.fieldnames == [*columns, *ANSWERS.split(",")]
    assert found == [{name: row[name] for name in reader.fieldnames} for row in expected]
    assert len(found) == 6531
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_batch_takes_the_recorded_file_itself(capsys: pytest.CaptureFixture[str]) -> None:
    # Columns that nobody needs are passed through; answers of an earlier run give way to the new ones.
    assert run("--batch", str(VECTORS)) == 0
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    with VECTORS.open(encoding="utf-8", newline="") as lines:
        assert found == list(csv.DictReader(lines))


def test_batch_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = answered(
        tmp_path,
        f"\ufeff{HEADER}\r\n"
        "a,8.6,256,42,0,0,-1,1\r\n"
        '"b, quoted",8.6,128,64,0, 50177 ,-1,0\r\n'
        "\r\n"
        "c,13.0,128,64,0,0,-1,0\r\n"
        "d,8.6,0,64,0,0,-1,0\r\n"
        "e,8.6,128,64,0,-4,-1,0\r\n"
        "f,9.0,672,96,0,0,-1,0\r\n",
        capsys,
    )
    assert lines == [
        f"{HEADER},{ANSWERS}",
        "a,8.6,256,42,0,0,-1,1,ok,5,40,registers",
        '"b, quoted",8.6,128,64,0, 50177 ,-1,0,ok,1,4,shared_memory',
        "c,13.0,128,64,0,0,-1,0,unknown_device,,,",
        "d,8.6,0,64,0,0,-1,0,invalid_input,,,",
        "e,8.6,128,64,0,-4,-1,0,invalid_input,,,",
        "f,9.0,672,96,0,0,-1,0,ok,0,0,registers",
    ]


def test_batch_largest_dynamic_shared_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Not given (empty, -1): opted in to what is launched. Given: a launch above it cannot start.
    lines = answered(
        tmp_path,
        f"max_dyn_smem_bytes,{HEADER}\n"
        ",a,8.6,128,32,0,60000,-1,0\n"
        "-1,b,8.6,128,32,0,60000,-1,0\n"
        "60000,c,8.6,128,32,0,60000,-1,0\n"
        "59999,d,8.6,128,32,0,60000,-1,0\n",
        capsys,
    )
    assert [line.split(",")[-3] for line in lines[1:]] == ["1", "1", "1", "0"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: column id is missing; needed are id,cc,"),
        ("id,cc\n", ":1: column threads_per_block is missing"),
        (HEADER + ",cc\n", ":1: column cc is given twice"),
        (HEADER + "\na,8.6,many,42,0,0,-1,1\n", ":2: column threads_per_block: expected a whole number, got 'many'"),
        (HEADER + "\na,8.6,256,42.5,0,0,-1,1\n", ":2: column regs_per_thread: expected a whole number, got '42.5'"),
        (HEADER + "\na,8.6,256,4_2,0,0,-1,1\n", ":2: column regs_per_thread: expected a whole number, got '4_2'"),
        (HEADER + "\na,8.6,256,٤٢,0,0,-1,1\n", ":2: column regs_per_thread: expected a whole number, got '٤٢'"),
        (HEADER + "\na,8.6,256,42,0,0,-1,\n", ":2: column barriers: expected a whole number, got ''"),
        (HEADER + "\na,8.6,256,42,0,0,-1,1\nb,sm_86,256,42,0,0,-1,1\n", ":3: column cc: expected a compute capability"),
        (HEADER + "\na,8.6,256,42,0,0,-1\n", ":2: 7 cells, but the header has 8 columns"),
        (HEADER + '\n"a,8.6,256,42,0,0,-1,1\n', ":2: not CSV: "),
        (HEADER + "\na," + "9" * 5000 + ",256,42,0,0,-1,1\n", ":2: column cc: expected a compute capability"),
        (HEADER + "\na,8.6," + "9" * 5000 + ",42,0,0,-1,1\n", ":2: a number has too many digits"),
    ],
)
def test_bad_batch_names_file_line_and_column(tmp_path: Path, content: str, message: str) -> None:
    assert refused(tmp_path, content.encode()).startswith(message)


def test_batch_that_is_no_text(tmp_path: Path) -> None:
    assert "not UTF-8 text" in refused(tmp_path, HEADER.encode() + b"\na,\xff\xfe\n")
    assert ":1: column id is missing" in refused(tmp_path, b"\x00" * 100)


def test_bad_row_leaves_the_old_output_in_place(tmp_path: Path) -> None:
    launches, answers = tmp_path / "in.csv", tmp_path / "out.csv"
    launches.write_text(f"{HEADER}\na,8.6,256,42,0,0,-1,1\nb,8.6,x,42,0,0,-1,1\n", encoding="utf-8")
    answers.write_text("old", encoding="utf-8")
    with pytest.raises(CliError, match=":3: column threads_per_block"):
        run("--batch", str(launches), "-o", str(answers))
    assert answers.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"nope\.csv: No such file"):
        run("--batch", str(tmp_path / "nope.csv"))
    launches = tmp_path / "in.csv"
    launches.write_text(f"{HEADER}\n", encoding="utf-8")
    with pytest.raises(CliError, match=r"no/out\.csv: No such file"):
        run("--batch", str(launches), "-o", str(tmp_path / "no" / "out.csv"))
    with pytest.raises(CliError, match="Is a directory"):
        run("--batch", str(launches), "-o", str(tmp_path))


def test_batch_can_answer_in_place(tmp_path: Path) -> None:
    launches = tmp_path / "in.csv"
    launches.write_text(f"{HEADER}\na,8.6,256,42,0,0,-1,1\n", encoding="utf-8")
    assert run("--batch", str(launches), "-o", str(launches)) == 0
    assert launches.read_text(encoding="utf-8").splitlines()[1] == "a,8.6,256,42,0,0,-1,1,ok,5,40,registers"
