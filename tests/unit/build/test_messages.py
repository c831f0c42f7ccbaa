"""Texts of nvcc 13.0.88 and 13.5.37, recorded from the sources beside them, become messages (expected by hand)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.build.messages import compiler_messages, failure_reason
from kernel_lsp.build.process import Finished
from kernel_lsp.source.message import CompilerMessage, MessageNote


def read(said: str, ptx: str | None = None) -> tuple[CompilerMessage, ...]:
    return compiler_messages(said, cwd="/p", source="/p/main.cu", ptx=ptx)


def one(said: str, ptx: str | None = None) -> CompilerMessage:
    (message,) = read(said, ptx)
    return message


def test_front_end_errors_and_warnings_with_codes() -> None:
    said = """inc/helper.cuh(3): error: identifier "FACTOR" is undefined
    return x * FACTOR;
               ^

inc/helper.cuh(2): warning #177-D: variable "unused_here" was declared but never referenced
    int unused_here = 3;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

main.cu(5): error #20: identifier "missing" is undefined
                      p[i] = missing(p[i]);
                             ^

3 errors detected in the compilation of "main.cu".
"""
    messages = read(said)
    assert [(m.severity, m.file, m.line, m.code, m.text) for m in messages] == [
        ("error", "/p/inc/helper.cuh", 3, None, 'identifier "FACTOR" is undefined'),
        ("warning", "/p/inc/helper.cuh", 2, "177-D", 'variable "unused_here" was declared but never referenced'),
        ("error", "/p/main.cu", 5, "20", 'identifier "missing" is undefined'),
    ]
    # The caret stands in a line with comments blanked and macros expanded, so no column is given.
    assert {m.column for m in messages} == {None}


def test_back_trace_of_templates_across_files() -> None:
    said = """inc/a.cuh(1): error: expression must have class type but it has type "int"
  template<class T> __attribute__((device)) void a(T t){ t.nope(); }
                                                         ^
          detected during:
            instantiation of "void a(T) [with T=int]" at line 2 of inc/b.cuh
            [ 20 instantiation contexts not shown ]
            instantiation of "void c(T) [with T=int]" at line 3 of main.cu
            instantiation of class "A<T> [with T=int]" at line 9

template_error.cu(1): error: expression must have class type but it has type "float"
  template <typename T> __attribute__((device)) T twice(T v) { return v.nothing(); }
                                                                      ^
          detected during instantiation of "T twice(T) [with T=float]" at line 2

"""
    first, second = read(said)
    assert first.notes == (
        MessageNote("/p/inc/b.cuh", 2, 'instantiation of "void a(T) [with T=int]"'),
        MessageNote("/p/main.cu", 3, 'instantiation of "void c(T) [with T=int]"'),
        MessageNote("/p/inc/a.cuh", 9, 'instantiation of class "A<T> [with T=int]"'),
    )
    assert first.text == 'expression must have class type but it has type "int"'
    assert second.notes == (MessageNote("/p/template_error.cu", 2, 'instantiation of "T twice(T) [with T=float]"'),)


def test_lines_before_the_echo_join_the_text_and_notes_follow() -> None:
    said = """main.cu(4): error: no instance of overloaded function "f" matches the argument list
            argument types are: (const char [2])
  __attribute__((global)) void k(int*p){ *p=f("a"); g<int>(p); h(3);
                                            ^
main.cu(3): note #3322-D: number of parameters of function template "f(T, T, T)" does not match the call
  template<class T> __attribute__((device)) int f(T, T, T);
                                                ^
main.cu(2): note #3322-D: number of parameters of function "f(int, float *)" does not match the call
  __attribute__((device)) int f(int, float*);
                              ^

"""
    message = one(said)
    assert message.text == (
        'no instance of overloaded function "f" matches the argument list; argument types are: (const char [2])'
    )
    assert [(note.line, note.text.split(" of function")[0]) for note in message.notes] == [
        (3, "number of parameters"),
        (2, "number of parameters"),
    ]


def test_preprocessor_errors_with_the_way_they_were_included() -> None:
    said = """In file included from inc/b.cuh:7,
                 from main.cu:1:
a.cuh:1:10: fatal error: nothere.h: No such file or directory
    1 | #include "nothere.h"
      |          ^~~~~~~~~~~
compilation terminated.
m3.cu:2:2: warning: #warning hmm [-Wcpp]
    2 | #warning hmm
      |  ^~~~~~~
"""
    error, warning = read(said)
    assert (error.tool, error.severity, error.file, error.line) == ("gcc", "error", "/p/a.cuh", 1)
    assert error.text == "nothere.h: No such file or directory"
    assert error.notes == (
        MessageNote("/p/inc/b.cuh", 7, "included from here"),
        MessageNote("/p/main.cu", 1, "included from here"),
    )
    assert (warning.severity, warning.code, warning.text) == ("warning", "-Wcpp", "#warning hmm")


def test_parentheses_and_letters_in_file_names() -> None:
    assert one('fü(1) x.cu(2): error: identifier "u" is undefined\n').file == "/p/fü(1) x.cu"
    assert one("/a/b:c.cu:12:3: error: x\n").line == 12


def test_end_of_source_and_tools_without_a_place() -> None:
    end, fatal = read(
        "At end of source: error: expected a \")\"\n\nnvcc fatal   : Unsupported gpu architecture 'sm_35'\n"
    )
    assert (end.file, end.line, end.text) == ("/p/main.cu", 0, 'expected a ")"')
    assert (fatal.tool, fatal.severity, fatal.line) == ("nvcc", "error", 0)
    assert fatal.text == "Unsupported gpu architecture 'sm_35'"


def test_our_own_ways_are_not_reported() -> None:
    said = """nvcc warning : '--device-debug (-G)' overrides '--generate-line-info (-lineinfo)'
x.cuh:1:9: warning: #pragma once in main file
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1kPf' for 'sm_86'
"""
    assert read(said) == ()


PTX = """.version 8.8
.target sm_90a
.visible .entry _Z7touchedPfmmi(
	.param .u64 a
)
{
	.reg .b32 %r<3>;
	.loc	1 15 0
	add.s32 %r1, %r1, 1;
	.loc	1 3 3, function_name $L__info_string0, inlined_at 1 19 5
	bogus;
	.loc	1 0 3
	add.s32 %r1, %r1, 1;
	.loc	1 20 5
	call.uni _Z1fv, ();
	ret;
}
.visible .entry _Z4goodPf()
{
	add.s32 %r1, %r1, 1;
	.loc	2 7 0
	ret;
}
	.file	1 "/p/\\320\\274 x.cu"
	.file	2 "/p/b.cuh"
"""


def test_ptx_lines_become_source_lines() -> None:
    said = """ptxas /tmp/tmpxft_1.ptx, line 11; error   : Not a name of any known instruction: 'bogus'
ptxas /tmp/tmpxft_1.ptx, line 13; error   : Unknown modifier '.x'
ptxas /tmp/tmpxft_1.ptx, line 20; error   : Unknown modifier '.y'
ptxas fatal   : Ptx assembly aborted due to errors
"""
    inlined, line_zero, before_any = read(said, PTX)
    assert (inlined.file, inlined.line) == ("/p/м x.cu", 3)
    assert inlined.notes == (MessageNote("/p/м x.cu", 19, "inlined here"),)
    assert (line_zero.line, before_any.line) == (3, 0)  # .loc 0 is no place; the second function has none yet
    assert before_any.file == "/p/main.cu"
    assert one("ptxas fatal   : Ptx assembly aborted due to errors\n").severity == "error"


def test_shared_memory_in_decimal_on_the_kernel_with_the_way_out() -> None:
    message = one(
        "ptxas error   : Entry function '_Z4goodPf' uses too much shared data (0xc400 bytes, 0xc000 max)\n", PTX
    )
    assert (message.file, message.line, message.kernel) == ("/p/b.cuh", 7, "_Z4goodPf")
    for part in ("50176 bytes", "49152 max", "cudaFuncAttributeMaxDynamicSharedMemorySize"):  # 0xc400, 0xc000
        assert part in message.text


def test_an_unknown_stack_stands_on_its_kernel() -> None:
    text = "Stack size for entry function '_Z4goodPf' cannot be statically determined"
    message = one(f"ptxas warning : {text}\n", PTX)
    assert (message.file, message.line, message.kernel, message.text) == ("/p/b.cuh", 7, "_Z4goodPf", text)


def test_performance_loss_gathers_its_injections() -> None:
    function = "in function '_Z7touchedPfmmi'"
    said = f"""ptxas info    : (C7519) warpgroup.arrive is injected in around line 11 by compiler {function}
ptxas info    : (C7517) warpgroup.wait is injected in around line 15 by compiler {function}
ptxas info    : (C7517) warpgroup.wait is injected in around line 16 by compiler {function}
ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized {function}
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.
"""
    serialized, ignored = read(said, PTX)
    assert (serialized.severity, serialized.code, serialized.line) == ("warning", "C7511", 15)
    assert serialized.kernel == "_Z7touchedPfmmi"
    assert [note.line for note in serialized.notes] == [19, 20]
    assert not any(word in serialized.text for word in ("line 11", "line 15"))
    assert (ignored.code, ignored.severity, ignored.line, ignored.notes) == ("C7508", "warning", 0, ())


def test_releases_that_clash_and_undefined_functions_say_what_to_do() -> None:
    clash = one(
        "ptxas v.ptx, line 9; fatal   : Unsupported .version 9.5; current version is '9.0'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )
    assert "different CUDA releases" in clash.text
    assert "pip install 'kernel-lsp[cuda]'" in clash.text
    undefined = one("ptxas fatal   : Unresolved extern function '_Z1fv'\n", PTX)
    assert (undefined.line, undefined.kernel) == (20, None)
    assert "-rdc=true" in undefined.text


def test_equal_messages_come_once() -> None:
    assert len(read("a.cu(1): error: x\n\na.cu(1): error: x\n\n")) == 1


@pytest.mark.parametrize(
    ("ending", "code", "error", "parts"),
    [
        ("not started", None, "Permission denied", ["could not be started", "Permission denied"]),
        ("timeout", -15, "", ["longer than 30 s", "kernelLsp.build.timeLimit"]),
        ("runaway output", -9, "", ["printed without end"]),
        ("exited", -11, "", ["SIGSEGV"]),
        ("exited", 7, "", ["exit status 7", "It said nothing"]),
        ("exited", 0, "", ["wrote no cubin"]),
    ],
)
def test_reasons_without_messages(ending: str, code: int | None, error: str, parts: list[str]) -> None:
    finished = Finished(ending, code, b"", b"", False, 1.0, error)  # type: ignore[arg-type]
    reason = failure_reason(finished, (), "/opt/nvcc", 30.0)
    for part in parts:
        assert part in reason


def test_reason_quotes_garbage_harmlessly() -> None:
    finished = Finished("exited", 1, b"", b"\x1b[31m\x00\xff\xfe boom\n" + b"y" * 9999, False, 1.0)
    reason = failure_reason(finished, (), "nvcc", 30.0)
    assert "boom" in reason
    assert reason.isprintable()
    assert len(reason) < 400


FRAGMENTS = st.sampled_from(
    [
        "a.cu(1): error: x",
        "a.cu(99999999999999999999): error #20-D: x",
        "a.cu:1:2: error: y",
        "In file included from a.cu:1:",
        "          detected during:",
        '            instantiation of "x" at line 4 of b.cu',
        "ptxas x.ptx, line 11; error   : bad '_Z4goodPf'",
        "ptxas info    : (C7510) Potential Performance Loss: in function 'f' in line 5",
        "ptxas info    : (C7517) x is injected in around line 3 in function 'f'",
        "nvlink error   : Undefined reference to 'f' in 'x'",
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        "    ^",
        "",
        "   | ",
    ]
)


@given(st.lists(FRAGMENTS | st.text(max_size=60), max_size=30), st.none() | st.just(PTX) | st.text(max_size=200))
def test_any_text_gives_messages_with_possible_places(lines: list[str], ptx: str | None) -> None:
    for message in read("\n".join(lines), ptx):
        assert message.line >= 0
        assert message.file
        assert message.text.isprintable() or message.text == ""
        assert all(note.line >= 0 for note in message.notes)


def test_an_error_behind_a_thousand_warnings_is_kept() -> None:
    warnings = "".join(f"/p/a.h({n}): warning #20013-D: calling a constexpr function\n\n" for n in range(1, 1001))
    found = compiler_messages(warnings + "/p/a.cu(3): error: it is this\n\n" + warnings, cwd="/p", source="/p/a.cu")
    assert len(found) == 500
    assert [(m.file, m.line, m.text) for m in found if m.severity == "error"] == [("/p/a.cu", 3, "it is this")]
    assert [m.line for m in found if m.severity == "warning"] == list(range(1, 500))
