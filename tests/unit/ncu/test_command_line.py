"""Options for ncu: accepted by a stand-in as strict as ncu, one kernel and no other, all that the views read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.ncu.command_line import kernel_filter, profile_options, report_named
from kernel_lsp.ncu.kernel_match import name_key
from kernel_lsp.ncu.metric_names import metric_names
from tests.fakes import fake_ncu

# Two kernels that differ in the namespace alone, instances of a template, a name that another one starts with.
SOURCE = """
namespace { __global__ void hidden(float* x) { *x = 1.f; }
            template <int N> __global__ void tile(float* x) { *x = N; }
            namespace inner { __global__ void hidden(float* x) { *x = 7.f; } } }
namespace open { __global__ void hidden(float* x) { *x = 2.f; }
                 namespace { __global__ void veiled(float* x) { *x = 8.f; } } }
static __global__ void fixed(float* x) { *x = 3.f; }
template <int N> __global__ void tile2(float* x) { *x = N; }
extern "C" __global__ void plain(float* x) { *x = 5.f; }
extern "C" __global__ void plain_too(float* x) { *x = 6.f; }
void launch(float* x) {
  hidden<<<1, 1>>>(x); tile<1><<<1, 1>>>(x); tile<16><<<1, 1>>>(x); open::hidden<<<1, 1>>>(x); fixed<<<1, 1>>>(x);
  tile2<1><<<1, 1>>>(x); tile2<16><<<1, 1>>>(x); inner::hidden<<<1, 1>>>(x); open::veiled<<<1, 1>>>(x);
}
"""


def options_of(mangled: str, **launches: int) -> dict[str, list[str]]:
    words = profile_options(mangled, "/cache/x", **{"launch_skip": 0, "launch_count": 1, **launches})
    options, program = fake_ncu.parse([*words, "./app", "--set", "7"])
    assert program == ["./app", "--set", "7"]
    return options


def names_in(folder: Path, toolkit: Path, *flags: str) -> list[str]:
    """Mangled names that nvcc gives the kernels of SOURCE, when it stands in a folder."""
    folder.mkdir()
    source = folder / "k.cu"
    source.write_text(SOURCE)
    argv = [toolkit / "bin" / "nvcc", "-cubin", "-arch=sm_86", *flags, source, "-o", folder / "k.cubin"]
    subprocess.run([str(word) for word in argv], check=True, capture_output=True)
    return [kernel.mangled for kernel in read_cubin((folder / "k.cubin").read_bytes()).kernels]


def test_what_ncu_is_asked_for() -> None:
    options = options_of("_Z5scalePfi", launch_skip=3, launch_count=2)
    assert options["--kernel-name-base"] == ["mangled"]
    assert options["--kernel-name"] == ["_Z5scalePfi"]
    assert (options["--launch-skip"], options["--launch-count"]) == (["3"], ["2"])
    assert options["--import-source"] == ["yes"]
    assert options["--export"] == ["/cache/x"]
    assert "--force-overwrite" in options
    assert "--set" not in options  # that word is the program's


def test_every_section_that_a_view_reads_is_asked_for() -> None:
    table = metric_names()
    sections = set(options_of("_Z1k")["--section"])
    facts = [*table.facts.values(), *table.columns.values()]
    assert {fact.section for fact in facts if fact.section and not fact.optional} <= sections
    # By name, as the table could forget one: the scheduler before the stalls, the samples, both rooflines, the pipes.
    assert {"SchedulerStats", "WarpStateStats", "SourceCounters", "SpeedOfLight"} <= sections
    assert {"SpeedOfLight_RooflineChart", "ComputeWorkloadAnalysis", "Occupancy", "LaunchStats"} <= sections
    assert len(sections) == len(options_of("_Z1k")["--section"])


@pytest.mark.parametrize(("flags", "n_unique"), [((), 5), (("-rdc=true",), 6)])
def test_each_kernel_is_told_from_all_others(
    toolkit: Path, tmp_path: Path, flags: tuple[str, ...], n_unique: int
) -> None:
    """nvcc's own names, and those that it gives the same source elsewhere: the hash in some of them is another."""
    here, there = names_in(tmp_path / "a", toolkit, *flags), names_in(tmp_path / "b", toolkit, *flags)
    assert len(here) == len(there) == 11
    # Those of unnamed namespaces; in code to be linked the static one too.
    assert sum(a != b for a, b in zip(here, there, strict=True)) == n_unique
    for mine, same in zip(here, there, strict=True):
        assert fake_ncu.chosen(options_of(mine, launch_count=99), here) == [mine]
        assert fake_ncu.chosen(options_of(mine, launch_count=99), there) == [same]


def test_letters_that_mean_something_in_an_expression() -> None:
    [*_, name] = kernel_filter("_ZN13_GLOBAL__N_ab5f$o.oEv")  # "ab" is what makes it unique: 13 letters with the tag
    assert name == r"regex:^(__nv_static_.*_)?_ZN13_GLOBAL__N_.{2}5f\$o\.oEv$"
    assert re.search(name[6:], "_ZN13_GLOBAL__N_cd5f$o.oEv")
    assert not re.search(name[6:], "_ZN13_GLOBAL__N_cd5f$oxoEv")


def test_a_percent_sign_in_the_path_is_no_macro() -> None:
    with pytest.raises(ValueError, match="reads the % in this path as a macro"):
        profile_options("_Z1k", "/cache/50%p/x", launch_skip=0, launch_count=1)


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ("==PROF== Report: /tmp/kl-1.ncu-rep\n", "/tmp/kl-1.ncu-rep"),
        ("==PROF== Report: /tmp/kl-1.ncu-repz\r\n", "/tmp/kl-1.ncu-repz"),
        ("==PROF== Report: D:\\a b\\kl-1.ncu-rep\n", "D:\\a b\\kl-1.ncu-rep"),
        # The program's own words: they name other files, or stand within a line.
        ("==PROF== Report: /etc/passwd\n==PROF== Report: /tmp/kl-1.ncu-rep\n", "/tmp/kl-1.ncu-rep"),
        ("==PROF== Report: /etc/passwd\n", None),
        ("x ==PROF== Report: /tmp/kl-1.ncu-rep\n", None),
        ("==WARNING== No kernels were profiled.\n", None),
    ],
)
def test_the_report_that_ncu_names(output: str, path: str | None) -> None:
    assert report_named(output, "kl-1") == path


def test_one_expression_for_code_to_be_linked_and_other_code(toolkit: Path, tmp_path: Path) -> None:
    """The program may be built with -rdc=true although the analysed code was not, and the other way round."""
    plain, linked = names_in(tmp_path / "a", toolkit), names_in(tmp_path / "b", toolkit, "-rdc=true")
    hidden = [name for name in plain if "_GLOBAL__N_" in name]
    assert len(hidden) == 5
    for names, others in ((hidden, linked), ([name for name in linked if "_GLOBAL__N_" in name], plain)):
        for name in names:
            [found] = fake_ncu.chosen(options_of(name, launch_count=99), others)
            assert name_key(found) == name_key(name)
