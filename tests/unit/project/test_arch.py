"""The rule: setting before the machine's GPU where it is named before the newest named; `a` before `f` before plain."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.project.arch import ArchChoice, Target, arch_number, choose_arch, is_supported, real_arch
from kernel_lsp.project.nvcc_flags import read_nvcc_words

SUPPORTED = tuple(f"sm_{number}" for number in (75, 80, 86, 87, 88, 89, 90, 100, 110, 103, 120, 121))


def choose(*words: str, **options: object) -> ArchChoice:
    arguments = {"supported": SUPPORTED, "toolkit": "13.0", **options}
    return choose_arch(read_nvcc_words(words).targets, **arguments)  # type: ignore[arg-type]


def gencode(*pairs: str) -> list[str]:
    return [f"-gencode=arch=compute_{pair.split(':')[0]},code={pair.split(':')[1]}" for pair in pairs]


def test_setting_wins() -> None:
    choice = choose(*gencode("80:sm_80", "90:sm_90"), setting="sm_86", setting_why="--arch", machine_arch="sm_80")
    assert (choice.arch, choice.virtual, choice.why) == ("sm_86", "compute_86", "--arch")


def test_setting_takes_the_suffix_of_the_build() -> None:
    choice = choose(*gencode("90a:sm_90a"), setting="sm_90", setting_why="H100")
    assert choice.arch == "sm_90a"
    assert "H100" in choice.why
    assert choose(*gencode("90a:sm_90a"), setting="sm_80").arch == "sm_80"


def test_machine_gpu_only_where_named() -> None:
    words = gencode("80:sm_80", "86:sm_86", "90a:sm_90a")
    assert choose(*words, machine_arch="sm_86").arch == "sm_86"
    assert choose(*words, machine_arch="sm_90").arch == "sm_90a"
    assert choose(*words, machine_arch="sm_89").arch == "sm_90a"  # not named: the newest
    assert "machine" in choose(*words, machine_arch="sm_86").why


def test_the_gpu_that_runs_the_code_is_named_in_the_reason() -> None:
    report = {"machine_arch": "sm_80", "machine_why": "the device of run.ncu-rep"}
    named = choose(*gencode("80:sm_80", "86:sm_86"), **report)
    assert (named.arch, named.why) == ("sm_80", "the device of run.ncu-rep, named by the build")
    free = choose(**report)
    assert (free.arch, free.why) == ("sm_80", "the device of run.ncu-rep; the build names no architecture")


def test_newest_is_by_number_not_by_text() -> None:
    assert choose(*gencode("90:sm_90", "100:sm_100", "86:sm_86")).arch == "sm_100"


@pytest.mark.parametrize("names", [("100", "100f", "100a"), ("100a", "100", "100f"), ("100f", "100a", "100")])
def test_suffix_order(names: tuple[str, ...]) -> None:
    assert choose(*gencode(*(f"{name}:sm_{name}" for name in names))).arch == "sm_100a"
    without = [name for name in names if name != "100a"]
    assert choose(*gencode(*(f"{name}:sm_{name}" for name in without))).arch == "sm_100f"


def test_bracket_lists_and_code_options() -> None:
    assert choose("--generate-code=arch=compute_80,code=[compute_80,sm_80]").arch == "sm_80"
    assert choose('-gencode=arch=compute_90,code="sm_90,compute_90"').arch == "sm_90"
    assert choose("-gencode", "arch=compute_90,code=[sm_90,compute_90]").arch == "sm_90"
    choice = choose("-arch=compute_80", "-code=sm_86,compute_80")
    assert (choice.arch, choice.virtual) == ("sm_86", "compute_80")


def test_virtual_architecture_of_the_build_is_kept() -> None:
    """Device code sees __CUDA_ARCH__ of the virtual architecture: compute_80 for SASS of sm_86 is another program."""
    choice = choose(*gencode("80:sm_86"))
    assert (choice.arch, choice.virtual) == ("sm_86", "compute_80")
    assert choose(*gencode("50:sm_80")).virtual == "compute_80"  # compute_50 is gone from this toolkit


def test_ptx_only() -> None:
    choice = choose(*gencode("90:compute_90"))
    assert (choice.arch, choice.virtual) == ("sm_90", "compute_90")
    assert any("PTX only (compute_90); analysed as sm_90" in note.message for note in choice.notes)
    # PTX beside SASS does not count as an architecture of the build.
    assert choose(*gencode("80:sm_80", "90:compute_90")).arch == "sm_80"
    assert choose("-arch=compute_86").arch == "sm_86"


def test_all_and_all_major() -> None:
    assert choose("-arch=all").arch == "sm_121"
    assert choose("-arch=all-major").arch == "sm_121"
    assert choose("-arch=all", machine_arch="sm_86").arch == "sm_86"
    assert choose("-arch=all-major", machine_arch="sm_86").arch == "sm_121"  # all-major builds no sm_86
    assert choose("-arch=all-major", setting="sm_89").arch == "sm_89"
    assert any("'-arch=all-major' in the build" in note.message for note in choose("-arch=all-major").notes)


def test_native() -> None:
    assert choose("-arch=native", machine_arch="sm_89").arch == "sm_89"
    without = choose("-arch=native")
    assert without.arch == "sm_86"
    assert "native" in without.why


def test_no_architecture_named() -> None:
    assert choose().arch == "sm_86"
    assert choose(default_arch="sm_75").arch == "sm_75"
    assert choose(machine_arch="sm_120").arch == "sm_120"


def test_dropped_by_the_toolkit() -> None:
    choice = choose(*gencode("50:sm_50", "70:sm_70", "80:sm_80"))
    assert choice.arch == "sm_80"
    assert any("not supported by nvcc 13.0: sm_50, sm_70" in note.message for note in choice.notes)
    none_left = choose("-arch=sm_61")
    assert none_left.arch == ""
    assert none_left.skip_reason
    assert "sm_61 is not supported by nvcc 13.0 (it knows sm_75 and up)" in none_left.skip_reason
    too_new = choose("-arch=sm_150")
    assert too_new.skip_reason
    assert "sm_75 to sm_121" in too_new.skip_reason
    assert choose("-arch=sm_61", setting="sm_80").arch == "sm_80"
    assert choose(setting="sm_61").skip_reason


def test_toolkit_that_is_not_known_refuses_nothing() -> None:
    assert choose("-arch=sm_61", supported=None).arch == "sm_61"


def test_supported_names_are_those_that_nvcc_takes(toolkit: Path, tmp_path: Path) -> None:
    nvcc = toolkit / "bin" / "nvcc"
    printed = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, check=True).stdout
    supported = tuple(printed.split())
    (tmp_path / "a.cu").write_text("")
    names = [f"sm_{number}{suffix}" for number in (70, 80, 90, 100, 121) for suffix in ("", "a", "f")]
    for name in names:
        run = subprocess.run(
            [nvcc, "--dryrun", "-cubin", f"-arch={name}", "a.cu", "-o", "a.cubin"], cwd=tmp_path, capture_output=True
        )
        assert (run.returncode == 0) == is_supported(name, supported), name


def test_names() -> None:
    assert arch_number("sm_90a") == (90, "a")
    assert arch_number("gfx90a") is None
    for spelled in ("sm_90a", "compute_90a", "90a", "9.0a", "SM_90a", "lto_90a"):
        assert real_arch(spelled) == "sm_90a"
    for spelled in ("", "hopper", "sm_", "9", "sm_90b"):
        assert real_arch(spelled) is None


@given(
    st.lists(
        st.builds(
            Target,
            st.sampled_from(["", "compute_80", "compute_90a", "compute_50"]),
            st.sampled_from([None, "sm_80", "sm_90", "sm_90a", "sm_50", "all", "all-major", "native"]),
            st.just("-arch"),
        )
    ),
    st.sampled_from([None, "sm_86", "sm_50"]),
    st.sampled_from([None, "sm_90", "sm_70"]),
    st.sampled_from([None, (), SUPPORTED]),
)
def test_always_one_supported_architecture_or_a_reason(
    targets: list[Target], setting: str | None, machine: str | None, supported: tuple[str, ...] | None
) -> None:
    choice = choose_arch(targets, setting=setting, machine_arch=machine, supported=supported)
    assert (choice.arch == "") == (choice.skip_reason is not None)
    if choice.arch:
        assert is_supported(choice.arch, supported)
        assert choice.why
        assert arch_number(choice.virtual)
