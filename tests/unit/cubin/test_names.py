"""Names against c++filt, the short form by hand, and names made to blow up."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.cubin.demangle import demangled, function_prefix
from kernel_lsp.cubin.elf import read_elf
from kernel_lsp.cubin.names import function_name, short_names
from tests.oracle.cubin_corpus import CORPUS, build

UNIQUE = "_GLOBAL__N__89c59697_8_names_cu_1efa1a85"
UNNAMED = f"{len(UNIQUE)}{UNIQUE}"


@pytest.mark.parametrize(
    ("mangled", "full", "short"),
    [
        (
            "_Z4axpyIfLi1EEvT_PKS0_PS0_i",
            "void axpy<float, 1>(float, float const*, float*, int)",
            "axpy<float, 1>",
        ),
        ("_Z5tiledILi16EEvPKfPfi", "void tiled<16>(float const*, float*, int)", "tiled<16>"),
        (f"_ZN{UNNAMED}5tightEPf", "(anonymous namespace)::tight(float*)", "(anonymous namespace)::tight"),
        (
            f"_ZN{UNNAMED}6hiddenINS_5LocalEEEvPT_",
            "void (anonymous namespace)::hidden<(anonymous namespace)::Local>((anonymous namespace)::Local*)",
            "(anonymous namespace)::hidden<(anonymous namespace)::Local>",
        ),
        (
            "_Z5applyIZ6launchPfPiEUlfE0_EvT_S0_",
            "void apply<launch(float*, int*)::'lambda0'(float)>(launch(float*, int*)::'lambda0'(float), float*)",
            "apply<launch::lambda#2>",
        ),
        ("_Z4packIJEEvPfDpT_", "void pack<>(float*)", "pack<>"),
        ("_ZNK6Matrix3RowILi3EEixEi", "Matrix::Row<3>::operator[](int) const", "Matrix::Row<3>::operator[]"),
        ("_ZN1AclEi", "A::operator()(int)", "A::operator()"),
        ("_ZlsR1AS0_", "operator<<(A&, A&)", "operator<<"),
        ("_ZgtR1AS0_", "operator>(A&, A&)", "operator>"),
        ("_ZN1AcvfEv", "A::operator float()", "A::operator float"),
        ("_ZN1AptEv", "A::operator->()", "A::operator->"),
        ("_Z3mixILi48EEfPKfi", "float mix<48>(float const*, int)", "mix<48>"),
        ("_Z1fPFvPFivEE", "f(void (*)(int (*)()))", "f"),
        ("plain_c", "plain_c", "plain_c"),
        ("_Zqqq", "_Zqqq", "_Zqqq"),
        ("_Z", "_Z", "_Z"),
        ("", "", ""),
        (
            "_ZN3cub23CUB_300001_SM_860_NS_XX6detail4scanIiEEvT_",
            "void cub::CUB_300001_SM_860_NS_XX::detail::scan<int>(int)",
            "cub::detail::scan<int>",
        ),
    ],
)
def test_full_and_short(mangled: str, full: str, short: str) -> None:
    name = function_name(mangled)
    assert name.full == full
    assert name.short == short


def test_long_template_arguments_are_left_out_from_the_inside() -> None:
    name = function_name(f"_Z6kernelI3BoxI70{'A' * 70}ELi7EEvv")
    assert name.full == f"void kernel<Box<{'A' * 70}>, 7>()"
    assert name.short == "kernel<Box<\N{HORIZONTAL ELLIPSIS}>, 7>"
    deeper = function_name(f"_Z6kernelI3BoxI3BoxI70{'A' * 70}EELi7EEvv")
    assert deeper.short == "kernel<Box<Box<\N{HORIZONTAL ELLIPSIS}>>, 7>"


def long_kernel(rows: int, columns: int, element: str, stage: str) -> str:
    """`gemm<Kernel<Tile<rows, columns, element>, library::collective::..., ...>>`, far too long for a lens."""
    parts = f"4TileILi{rows}ELi{columns}E{element}E"
    long = f"N7library10collective{len(stage) + 17}{stage}_with_a_long_nameE"
    return f"_Z4gemmI6KernelI{parts}{long}N7library8epilogue24AnotherPartWithALongNameEEEvT_"


def test_instances_that_are_short_alike_are_set_apart() -> None:
    names = [long_kernel(128, 64, "f", "Pipelined"), long_kernel(128, 256, "Dh", "Pipelined")]
    shorts = short_names(names)
    assert function_name(names[0]).short == function_name(names[1]).short  # what a message says of one alone
    assert [shorts[name] for name in names] == ["gemm<Kernel<… 64, float …>>", "gemm<Kernel<… 256, half …>>"]


def test_names_that_differ_alone_stay_short() -> None:
    names = ["_Z4axpyIfLi1EEvT_PKS0_PS0_i", "_Z4axpyIdLi4EEvT_PKS0_PS0_i", "_Z1kPf", "_Z1kPd"]
    assert list(short_names(names).values()) == ["axpy<float, 1>", "axpy<double, 4>", "k", "k"]


def test_too_many_to_compare_are_numbered() -> None:
    names = [long_kernel(number, 64, "f", "Pipelined") for number in range(1, 41)]
    shorts = short_names(names)
    assert len(set(shorts.values())) == 40
    assert shorts[sorted(names)[0]] == "gemm<Kernel<…>> #1"


def test_hundreds_of_names_equal_c_plus_plus_filt(toolkit: Path) -> None:
    filt = shutil.which("c++filt")
    if filt is None:
        pytest.fail("no c++filt: apt-get install binutils")
    names = {
        symbol.name
        for source in ("names", "calls", "shared", "lines")
        for symbol in read_elf(build(CORPUS / f"{source}.cu", "sm_86", toolkit).data).symbols
        if symbol.name.startswith("_Z") and symbol.is_function
    }
    library = subprocess.run([filt.replace("c++filt", "nm"), "-D", _libstdcxx()], capture_output=True, text=True).stdout
    names |= set(sorted(set(re.findall(r" [TW] (_Z(?!GT)\w+)", library)))[::7])
    assert len(names) > 400
    said = subprocess.run([filt], input="\n".join(sorted(names)), capture_output=True, text=True, check=True).stdout
    different = [
        (mangled, demangled(mangled), expected)
        for mangled, expected in zip(sorted(names), said.splitlines(), strict=True)
        if normal(demangled(mangled)) != normal(expected)
    ]
    assert not different


def _libstdcxx() -> str:
    return subprocess.run(
        ["g++", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=True
    ).stdout.strip()


def normal(name: str) -> str:
    """GNU's and LLVM's spelling of the same thing made one."""
    for short, long in (("string", "string<char"), ("istream", "istream<char"), ("ostream", "ostream<char"),
                        ("iostream", "iostream<char")):  # fmt: skip
        arguments = f"{long}, std::char_traits<char>" + (", std::allocator<char>>" if short == "string" else ">")
        name = name.replace("> >", ">>").replace("> >", ">>").replace(f"std::basic_{arguments}", f"std::{short}")
    name = re.sub(r"\{lambda(\([^()]*\))#1\}", r"'lambda'\1", name)
    name = re.sub(r"\{lambda(\([^()]*\))#2\}", r"'lambda0'\1", name)
    name = re.sub(r"(?<=[<, ])&\(([\w:]+\([^()]*\))\)", r"&\1", name)
    name = name.replace("operator<< <", "operator<<<")
    # The constructor of a typedef is spelled by either name.
    return name.replace("~basic_", "~").replace("::basic_", "::")


def reference(index: int) -> str:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if index == 0:
        return "S_"
    text, index = "", index - 1
    while True:
        text, index = digits[index % 36] + text, index // 36
        if not index:
            return f"S{text}_"


def doubling(levels: int, fan: int = 2) -> str:
    """f(A<int, int>, A<the one before, the one before>, ...): fan ** levels long."""
    return "_Z1f1AIiiE" + "".join(f"S_I{reference(level + 1) * fan}E" for level in range(levels))


def test_references_expand_as_far_as_they_are_reasonable() -> None:
    expected = ["A<int, int>"]
    for _ in range(9):
        expected.append(f"A<{expected[-1]}, {expected[-1]}>")
    assert demangled(doubling(9)) == f"f({', '.join(expected)})"


@pytest.mark.parametrize(
    "mangled",
    [doubling(20), doubling(60), doubling(500), doubling(12, 30), doubling(3, 390), doubling(9, 12), doubling(2, 700)],
)
def test_a_short_name_for_gigabytes_is_given_up(mangled: str) -> None:
    started = time.process_time()
    name = function_name(mangled)
    assert time.process_time() - started < 2
    assert name.full == mangled
    assert name.short == "f"


@pytest.mark.parametrize(
    "mangled",
    [
        "_Z1f" + "P" * 5900 + "i",
        "_Z1f" + "N1a" * 1900 + "E",
        "_Z1f" + "I" * 5900,
        "_Z1fIX" + "ad" * 2900 + "EE",
        "_Z1f" + "P" * 1_000_000 + "i",
        "_ZN" + "1a" * 3000,
        "_Z999999999999999999999999",
        "_Z1f" + "S_" * 3000,
    ],
)
def test_deep_and_broken_names_end(mangled: str) -> None:
    assert function_name(mangled).short


@given(st.text(alphabet="_ZNIEST0123PKRvifabL", max_size=60))
@settings(max_examples=500, deadline=None)
def test_noise_is_a_name_too(noise: str) -> None:
    name = function_name("_Z" + noise)
    assert name.full
    assert name.short


def test_prefix() -> None:
    assert function_prefix("_ZN7cutlass6KernelI4GemmEEvNT_6ParamsE") == "cutlass::Kernel<\N{HORIZONTAL ELLIPSIS}>"
    assert function_prefix("_Z5tight1A") == "tight"
    assert function_prefix("tight") == ""
