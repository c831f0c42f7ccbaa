"""Kernels and files of another machine found again here."""

from __future__ import annotations

import pytest

from kernel_lsp.ncu.kernel_match import match_kernel, name_key, spelled_key
from kernel_lsp.ncu.source_paths import built_path_of, common_end, source_text

# Names that nvcc 13.5 gave to the same three kernels (unnamed namespace, argument of a local type, static with -rdc).
HERE = {
    "_ZN37_GLOBAL__N__fac3b667_7_anon_cu__Z1fPf4anonILi2EEEvPf": "void (anonymous namespace)::anon<2>(float*)",
    "_ZN37_GLOBAL__N__fac3b667_7_anon_cu__Z1fPf4anonILi3EEEvPf": "void (anonymous namespace)::anon<3>(float*)",
    "_Z3tplIN37_GLOBAL__N__fac3b667_7_anon_cu__Z1fPf1SEEvPf": "void tpl<(anonymous namespace)::S>(float*)",
    "_Z4statPf": "stat(float*)",
    "_Z1kILi16ELb1EfEvPT1_i": "void k<16, true, float>(float*, int)",
}


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("_ZN38_GLOBAL__N__cdfef751_8_other_cu__Z1fPf4anonILi2EEEvPf", 0),
        ("__nv_static_27__cdfef751_8_other_cu__Z1fPf__ZN38_GLOBAL__N__cdfef751_8_other_cu__Z1fPf4anonILi3EEEvPf", 1),
        ("__nv_static_27__cdfef751_8_other_cu__Z1fPf__Z3tplIN38_GLOBAL__N__cdfef751_8_other_cu__Z1fPf1SEEvPf", 2),
        ("__nv_static_27__cdfef751_8_other_cu__Z1fPf__Z4statPf", 3),
        ("_Z1kILi16ELb1EfEvPT1_i", 4),
    ],
)
def test_mangled_names_match_whatever_the_hash(there: str, here: int) -> None:
    assert match_kernel(there, "", HERE) == list(HERE)[here]


@pytest.mark.parametrize("there", ["_ZN38_GLOBAL__N__cdfef751_8_other_cu__Z1fPf4anonILi4EEEvPf", "_Z5othersPf"])
def test_other_kernels_do_not_match(there: str) -> None:
    assert match_kernel(there, "", HERE) is None


def test_two_files_with_the_same_kernel_are_ambiguous() -> None:
    two = {"_ZN3_GLOBAL__N_1aE4anonEv": "", "_ZN12_GLOBAL__N_1a4anonEv": "", "_ZN12_GLOBAL__N_1b4anonEv": ""}
    assert match_kernel("_ZN12_GLOBAL__N_1c4anonEv", "", two) is None
    assert match_kernel("_ZN12_GLOBAL__N_1b4anonEv", "", two) == "_ZN12_GLOBAL__N_1b4anonEv"


def test_a_length_past_the_end_is_no_crash() -> None:
    assert name_key("_ZN99_GLOBAL__N_x") == "_ZN_GLOBAL__N_"
    assert name_key("__nv_static_99__x") == ""


@pytest.mark.parametrize(
    ("spelled", "here"),
    [
        ("void k<(int)16, (bool)1, float>(T3 *, int)", 4),
        ("void <unnamed>::anon<(int)2>(float *)", 0),
        ("stat(float *)", 3),
        ("void anon<(int)7>(float *)", None),  # two instances, neither is this one
        ("nobody()", None),
    ],
)
def test_ncus_spelling_matches(spelled: str, here: int | None) -> None:
    assert match_kernel(None, spelled, HERE) == (None if here is None else list(HERE)[here])


def test_spelled_keys() -> None:
    assert spelled_key("void a::b<(int)1, c<(bool)0>>(float *, d(int))") == "a::b<1,c<0>>"
    assert spelled_key("kernel") == "kernel"


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("/home/ci/proj/src/a.cu", "/me/proj/src/a.cu", 3),
        ("C:/Users/x/proj/A.cu", "/me/proj/a.cu", 2),
        ("c:\\users\\x\\proj\\a.cu", "/me/Proj/A.CU", 2),
        ("/x/A.cu", "/y/a.cu", 0),
        ("./int.jl", "/julia/base/int.jl", 1),
        ("a/../b/./c.h", "/x/b/c.h", 2),
        ("/x/a.cu", "/x/b.cu", 0),
        ("", "a.cu", 0),
    ],
)
def test_paths_agree_from_the_end(one: str, other: str, count: int) -> None:
    assert common_end(one, other) == common_end(other, one) == count


def test_the_likelier_of_two_files() -> None:
    built = ["/ci/one/gemm.cu", "/ci/two/gemm.cu", "/ci/util.h"]
    text = "__global__ void gemm() {\n  int i;\n}\n"
    assert built_path_of("/me/two/gemm.cu", text, built, {}) == "/ci/two/gemm.cu"
    assert built_path_of("/me/gemm.cu", text, built, {}) is None
    sources = {"/ci/one/gemm.cu": "something else\n", "/ci/two/gemm.cu": text}
    assert built_path_of("/me/gemm.cu", text, built, sources) == "/ci/two/gemm.cu"
    assert built_path_of("/me/other.cu", text, built, sources) is None


def test_embedded_text_by_the_tables_spelling() -> None:
    sources = {"/ci/proj/b/a.h": "text\n", "/ci/proj/c.h": "  \n\n"}
    assert source_text("/ci/proj/x/../b/./a.h", sources) == "text\n"
    assert source_text("/ci/proj/c.h", sources) == "", "blanks are no text"
    assert source_text("/none.h", sources) == ""
