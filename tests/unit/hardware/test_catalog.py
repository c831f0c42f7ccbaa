"""Which board a name, a device or an architecture gives, and what a bad profile says."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.hardware import catalog
from kernel_lsp.hardware.catalog import UnknownArchError, UnknownGpuError
from kernel_lsp.hardware.profile_yaml import parse_board, parse_identity, parse_limits
from kernel_lsp.hardware.yaml_fields import HardwareDataError, parse_fields


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("3070 ti", "rtx-3070-ti"),
        ("RTX 3070 Ti", "rtx-3070-ti"),
        ("rtx3070ti", "rtx-3070-ti"),
        ("rtx-3070-ti", "rtx-3070-ti"),
        ("NVIDIA GeForce RTX 3070 Ti", "rtx-3070-ti"),
        ("A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("a100 sxm4 80 GB", "a100-sxm4-80gb"),
        ("h100 sxm", "h100-sxm5-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2"),
        ("2080 ti", "rtx-2080-ti"),
        ("2080 ti founders", "rtx-2080-ti-founders-edition"),
        ("A10", "a10"),
        ("L4", "l4"),
        ("GB10", "dgx-spark-gb10"),
        ("thor", "jetson-agx-thor-t5000"),
        ("sm_90a", "h100-sxm5-80gb"),
    ],
)
def test_by_name_is_forgiving(name: str, slug: str) -> None:
    assert catalog.by_name(name).slug == slug


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("A100 80GB", ["A100 PCIe 80GB", "A100 SXM4 80GB"]),
        ("H100", ["H100 NVL 94GB", "H100 PCIe 80GB", "H100 SXM5 80GB"]),
        ("rtx 6000", ["RTX 6000 Ada", "RTX PRO 6000 Blackwell Workstation"]),
        ("orin", ["Jetson AGX Orin 32GB", "Jetson AGX Orin 64GB"]),
    ],
)
def test_ambiguous_name_lists_the_candidates(name: str, candidates: list[str]) -> None:
    with pytest.raises(UnknownGpuError) as caught:
        catalog.by_name(name)
    assert all(candidate in str(caught.value) for candidate in candidates)
    assert "say which" in str(caught.value)


@pytest.mark.parametrize("name", ["3070", "RTX 3080 Ti", "4070 super", "RTX 3070 Ti Laptop GPU", "a1", "", "  ", "??"])
def test_another_board_is_not_taken_for_a_near_one(name: str) -> None:
    with pytest.raises(UnknownGpuError) as caught:
        catalog.by_name(name)
    assert "no GPU is called" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownGpuError, match="nearest: GeForce RTX 3070 Ti"):
        catalog.by_name("3070")


WORDS = st.sampled_from(["NVIDIA", "RTX", "3070", "Ti", "A100", "80", "GB", "SXM", "sm_86", "sm_999", "{}", "%s", "-"])


@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join)))
def test_any_text_is_a_board_or_one_line(name: str) -> None:
    try:
        said = catalog.by_name(name).name
    except (UnknownGpuError, UnknownArchError) as error:
        said = str(error)
    assert len(said.splitlines()) == 1
    assert catalog.choose(detected=name, report=name).profile.limits.max_warps > 0


def test_setting_wins_over_everything() -> None:
    choice = catalog.choose("l4", detected="NVIDIA GeForce RTX 4090", arch="sm_90", report="NVIDIA A30")
    assert (choice.profile.slug, choice.why, choice.detail) == ("l4", "setting", "L4 as chosen")


def test_report_wins_over_machine_and_flags() -> None:
    choice = catalog.choose(detected="NVIDIA GeForce RTX 4090", arch="sm_80", report="NVIDIA A30")
    assert (choice.profile.slug, choice.why) == ("a30", "report")


@pytest.mark.parametrize("arch", ["sm_86", "sm_90a", "sm_75"])
def test_a_report_of_a_device_that_does_not_run_the_build_does_not_choose(arch: str) -> None:
    choice = catalog.choose(arch=arch, report="NVIDIA A30")
    assert (choice.profile.arch, choice.why) == (arch.rstrip("a"), "flags")


@pytest.mark.parametrize("arch", [None, "sm_89", "sm_80", "sm_86", "compute_86"])
def test_machine_wins_where_the_build_runs_on_it(arch: str | None) -> None:
    choice = catalog.choose(detected="NVIDIA GeForce RTX 4090", arch=arch)
    assert (choice.profile.slug, choice.why) == ("rtx-4090", "detected")


@pytest.mark.parametrize(
    ("device", "arch", "slug"),
    [
        ("NVIDIA GeForce RTX 4090", "sm_90a", "h100-sxm5-80gb"),  # another generation
        ("NVIDIA GeForce RTX 3090", "sm_89", "rtx-4090"),  # newer than the machine
        ("NVIDIA GeForce RTX 4090", "sm_87", "jetson-agx-orin-64gb"),  # a Jetson's code
        ("NVIDIA GB10", "sm_120a", "rtx-5090"),  # code for one compute capability only
    ],
)
def test_flags_win_where_the_build_does_not_run_on_the_machine(device: str, arch: str, slug: str) -> None:
    choice = catalog.choose(detected=device, arch=arch)
    assert (choice.profile.slug, choice.why) == (slug, "flags")


def test_unknown_machine_falls_through_and_is_named() -> None:
    choice = catalog.choose(detected="NVIDIA GeForce RTX 3070", arch="sm_86")
    assert (choice.profile.slug, choice.why) == ("rtx-3070-ti", "flags")
    assert "NVIDIA GeForce RTX 3070, has no profile" in choice.detail


def test_default_is_said_to_be_one() -> None:
    choice = catalog.choose()
    assert (choice.profile.slug, choice.why, choice.detail) == ("rtx-3070-ti", "default", "RTX 3070 Ti by default")


REPRESENTATIVES = {
    "sm_70": "v100-sxm2",
    "sm_75": "t4",
    "sm_80": "a100-sxm4-80gb",
    "sm_86": "rtx-3070-ti",
    "sm_87": "jetson-agx-orin-64gb",
    "sm_89": "rtx-4090",
    "sm_90": "h100-sxm5-80gb",
    "sm_100": "b200-sxm",
    "sm_103": "b300-sxm",
    "sm_110": "jetson-agx-thor-t5000",
    "sm_120": "rtx-5090",
    "sm_121": "dgx-spark-gb10",
}


def test_every_architecture_with_boards_has_one_representative() -> None:
    archs = {board.arch for board in catalog.boards()}
    assert {arch: catalog.representative(arch).slug for arch in archs} == REPRESENTATIVES
    marked = [identity.arch for identity in catalog._identities() if identity.representative]
    assert sorted(marked) == sorted(archs)


@pytest.mark.parametrize("arch", ["sm_107", "sm_88", "sm_60", "sm_72"])
def test_architecture_without_board_has_limits_only(arch: str) -> None:
    choice = catalog.choose(arch=arch)
    assert choice.profile.name == choice.profile.limits.arch == arch
    assert choice.profile.limits.max_warps > 0
    assert choice.profile.chip is None
    assert choice.profile.sm_count is None
    assert choice.profile.dram_gb_per_s is None
    assert dict(choice.profile.peaks) == {}
    assert choice.detail == f"{arch} of the build flags, no board"


@pytest.mark.parametrize(
    ("arch", "compute_capability"),
    [("sm_90a", "9.0"), ("sm_100f", "10.0"), ("compute_86", "8.6"), ("SM_75", "7.5"), ("lto_121a", "12.1")],
)
def test_limits_for_arch_strips_what_does_not_matter(arch: str, compute_capability: str) -> None:
    assert catalog.limits_for_arch(arch) is catalog.limits_for_cc(compute_capability)


@pytest.mark.parametrize("arch", ["sm_130", "sm_9", "86", "sm_86x", "native", ""])
def test_unknown_arch_is_one_clear_line(arch: str) -> None:
    with pytest.raises(UnknownArchError) as caught:
        catalog.limits_for_arch(arch)
    assert "known are" in str(caught.value) or "write it like sm_86" in str(caught.value)


def test_default_profile_reads_one_board_only() -> None:
    # What a server does at start-up: the catalogue's import brings no YAML reader, the default no other board.
    code = (
        "import sys; from pathlib import Path; read = []; whole = Path.read_text\n"
        "import kernel_lsp.hardware.catalog as catalog\n"
        "assert 'yaml' not in sys.modules and 'importlib.resources' not in sys.modules\n"
        "Path.read_text = lambda self, *a, **k: (read.append(self.name), whole(self, *a, **k))[1]\n"
        "catalog.choose(); assert sorted(read) == ['limits.yaml', 'rtx-3070-ti.yaml'], read\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert ran.returncode == 0, ran.stderr


GOOD = """\
name: Test board
arch: sm_86
device_names: [NVIDIA Test]

chip: GA1
confidence: high
sources: {sheet: a sheet}
sm_count: {value: 10, provenance: published, source: sheet}
peaks:
  fp32: {dense: 1.5, computed: 1.5, provenance: computed, source: computed}
notes: []
"""


def parse(text: str) -> object:
    identity = parse_identity("hw_profiles/x.yaml", "x", text)
    return parse_board("hw_profiles/x.yaml", identity, catalog.limits_for_arch(identity.arch), text)


def test_good_board_parses() -> None:
    assert parse(GOOD).sm_count == 10  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dense: 1.5", "dense: abc", "hw_profiles/x.yaml: peaks.fp32.dense: expected a number, got 'abc'"),
        ("dense: 1.5", "dense: true", "hw_profiles/x.yaml: peaks.fp32.dense: expected a number, got True"),
        ("dense: 1.5, ", "", "hw_profiles/x.yaml: peaks.fp32.dense: missing"),
        ("fp32:", "fp33:", "hw_profiles/x.yaml: peaks.fp33.precision: unknown"),
        ("value: 10", "value: 10.5", "hw_profiles/x.yaml: sm_count.value: expected a whole number, got 10.5"),
        ("value: 10", "value: -1", "hw_profiles/x.yaml: sm_count.value: expected a whole number, got -1"),
        ("confidence: high", "confidence: sure", "hw_profiles/x.yaml: confidence: expected one of high, medium, low"),
        ("chip: GA1", "chips: GA1", "hw_profiles/x.yaml: chips: unknown field"),
        ("chip: GA1", "chip: [1]", "hw_profiles/x.yaml: chip: expected a text, got [1]"),
        ("source: computed}", "source: rumour}", "hw_profiles/x.yaml: peaks.fp32.source: expected one of"),
        ("provenance: computed", "provenance: maybe", "hw_profiles/x.yaml: peaks.fp32.provenance: expected one of"),
        ("notes: []", "notes: 3", "hw_profiles/x.yaml: notes: expected a list of texts, got 3"),
        ("peaks:", "peaks: [", "hw_profiles/x.yaml: line "),
        ("name: Test board", "nome: Test board", "hw_profiles/x.yaml: name: missing"),
        ("sources: {sheet: a sheet}", "sources: none", "hw_profiles/x.yaml: sources: expected named fields"),
    ],
)
def test_bad_board_names_file_and_field(old: str, new: str, message: str) -> None:
    with pytest.raises(HardwareDataError) as caught:
        parse(GOOD.replace(old, new))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "3", "1: 2", "!!python/object/apply:os.system ['true']"])
def test_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(HardwareDataError, match=r"x\.yaml: "):
        parse_fields("x.yaml", text)


def test_bad_limits_name_the_compute_capability() -> None:
    table = parse_fields("l.yaml", "common: {warp_size: 32}\ncompute_capabilities: {'8.6': {max_warps: many}}")
    with pytest.raises(HardwareDataError, match=r"l\.yaml: compute_capabilities\.8\.6\.schedulers: missing"):
        parse_limits(table, "8.6")
