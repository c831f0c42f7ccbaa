"""Headers through sources that really read them, and headers that are not found: what the compiler says decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_lsp.project.toolchain import Tool
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings

HEADER = "#pragma once\ntemplate <int N> __global__ void scale(float* x) { x[threadIdx.x] *= N; }\n"
USE = "template __global__ void scale<2>(float*);\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def database(root: Path, commands: Sequence[str]) -> None:
    rows = [{"directory": str(root), "command": command, "file": command.split()[-1]} for command in commands]
    write(root, {"compile_commands.json": json.dumps(rows)})


async def analysed(pipeline: Pipeline, root: Path, name: str, **values: object) -> FileOutcome:
    settings = values.pop("settings", Settings(arch="sm_86"))
    request = PipelineRequest(document=root / name, settings=settings, roots=(root,), **values)  # type: ignore[arg-type]
    return await pipeline.analyze(request)


def kernels_of(outcome: FileOutcome) -> list[str]:
    assert outcome.analysis is not None, [finding.message for finding in outcome.findings]
    return [kernel.binary.short_name for kernel in outcome.analysis.kernels]


def said(outcome: FileOutcome) -> list[tuple[str, str, str]]:
    return [(finding.code, finding.severity, finding.message) for finding in outcome.findings]


# --- sources that leave the #include out ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left_out",
    [
        '#if 0\n#include "scale.cuh"\n#endif\n',
        '#ifdef WITH_SCALE\n#include "scale.cuh"\n#endif\n',
        '/*\n#include "scale.cuh"\n*/\n',
        '#if __has_include(<no/such/header>)\n#include "scale.cuh"\n#endif\n',
    ],
)
async def test_a_source_that_does_not_read_it_is_passed_over(left_out: str, tmp_path: Path, pipeline: Pipeline) -> None:
    files = {"scale.cuh": HEADER, "a.cu": left_out, "b/b.cu": f'#include "../scale.cuh"\n{USE}'}
    write(tmp_path, files)
    database(tmp_path, ["nvcc -DFROM_A -c a.cu", "nvcc -DFROM_B -c b/b.cu"])
    outcome = await analysed(pipeline, tmp_path, "scale.cuh")
    assert outcome.command is not None
    assert outcome.command.source == tmp_path / "b/b.cu"
    assert "-DFROM_B" in outcome.command.flags
    assert kernels_of(outcome) == ["scale<2>"]
    assert said(outcome) == []
    # A flag that lets the nearer source read it makes that the one.
    database(tmp_path, ["nvcc -DWITH_SCALE -c a.cu", "nvcc -c b/b.cu"])
    again = await analysed(pipeline, tmp_path, "scale.cuh")
    assert again.command is not None
    assert (again.command.source == tmp_path / "a.cu") == ("WITH_SCALE" in left_out)


async def test_a_header_that_every_source_leaves_out(tmp_path: Path, pipeline: Pipeline) -> None:
    names = [f"s{number}.cu" for number in range(6)]
    write(tmp_path, {"scale.cuh": HEADER, **dict.fromkeys(names, '#if 0\n#include "scale.cuh"\n#endif\n')})
    database(tmp_path, [f"nvcc -c {name}" for name in names])
    outcome = await analysed(pipeline, tmp_path, "scale.cuh")
    assert outcome.analysis is None
    [(code, severity, message)] = said(outcome)
    assert (code, severity) == ("KL902", "warning")
    assert "scale.cuh is not read by s0.cu, s1.cu, s2.cu, s3.cu (2 more not tried)" in message
    # A change of one of them, or of the header, is told to it.
    assert {str(tmp_path / name) for name in ("scale.cuh", *names[:4])} <= outcome.reads


async def test_unsaved_text_goes_through_the_source_that_reads_it(tmp_path: Path, pipeline: Pipeline) -> None:
    files = {
        "scale.cuh": HEADER,
        "a.cu": '#if 0\n#include "scale.cuh"\n#endif\n',
        "b.cu": f'#include "scale.cuh"\n{USE}',
    }
    write(tmp_path, files)
    unsaved = HEADER.replace("*= N", "+= N") + "template __global__ void scale<7>(float*);\n"
    outcome = await analysed(pipeline, tmp_path, "scale.cuh", unsaved_text=unsaved)
    assert sorted(kernels_of(outcome)) == ["scale<2>", "scale<7>"]
    assert (tmp_path / "scale.cuh").read_text() == HEADER


async def test_an_error_in_the_header_is_shown_though_a_source_leaves_it_out(
    tmp_path: Path, pipeline: Pipeline
) -> None:
    broken = HEADER.replace("*= N", "*= missing")
    files = {"a.cu": '#if 0\n#include "scale.cuh"\n#endif\n', "b.cu": f'#include "scale.cuh"\n{USE}'}
    write(tmp_path, {"scale.cuh": broken, **files})
    database(tmp_path, ["nvcc -c a.cu", "nvcc -c b.cu"])
    outcome = await analysed(pipeline, tmp_path, "scale.cuh")
    [(code, severity, message)] = said(outcome)
    assert (code, severity) == ("KL901", "error")
    assert "missing" in message
    assert [finding.file for finding in outcome.findings] == [str(tmp_path / "scale.cuh")]


async def test_a_source_that_breaks_before_the_include_is_not_the_last_word(tmp_path: Path, pipeline: Pipeline) -> None:
    files = {
        "scale.cuh": HEADER,
        "a.cu": '#include "gone.h"\n#include "scale.cuh"\n',
        "b/b.cu": f'#include "../scale.cuh"\n{USE}',
    }
    write(tmp_path, files)
    database(tmp_path, ["nvcc -c a.cu", "nvcc -c b/b.cu"])
    assert kernels_of(await analysed(pipeline, tmp_path, "scale.cuh")) == ["scale<2>"]
    (tmp_path / "b/b.cu").write_text('#include "gone.h"\n#include "../scale.cuh"\n')
    outcome = await analysed(pipeline, tmp_path, "scale.cuh")
    [finding] = outcome.findings
    assert (finding.file, finding.line) == (str(tmp_path / "a.cu"), 1)


# --- headers that are not found ------------------------------------------------------------------------------------

NEEDS = '#include "help/own.h"\n__global__ void k(float* x) { x[0] = OWN; }\n'


async def test_the_only_folder_that_has_it_where_flags_are_a_guess(tmp_path: Path, pipeline: Pipeline) -> None:
    write(
        tmp_path,
        {
            "samples/one/k.cu": NEEDS,
            "Common/inc/help/own.h": '#include <other.h>\n#define OWN OTHER\n',
            "third party/other.h": "#define OTHER 3\n",
            "samples/two/unrelated.h": "",
        },
    )  # fmt: skip
    outcome = await analysed(pipeline, tmp_path, "samples/one/k.cu")
    assert kernels_of(outcome) == ["k"]
    assert outcome.build is not None
    argv = outcome.build.argv
    added = [argv[index + 1] for index, word in enumerate(argv) if word == "-I"]
    assert added == [str(tmp_path / "Common/inc"), str(tmp_path / "third party")]
    assert outcome.command is not None
    assert [note.message for note in outcome.command.notes if note.kind == "chosen"] == [
        f"-I {added[0]}: the only folder of the workspace with help/own.h",
        f"-I {added[1]}: the only folder of the workspace with other.h",
    ]
    assert said(outcome) == []
    # The next save starts with them, and changes of what was found are told to it.
    again = await analysed(pipeline, tmp_path, "samples/one/k.cu")
    assert again.build is not None
    assert (again.build.argv, again.build.cached) == (argv, True)
    assert str(tmp_path / "third party/other.h") in again.reads


async def test_copies_of_one_header_are_one(tmp_path: Path, pipeline: Pipeline) -> None:
    write(tmp_path, {"src/k.cu": NEEDS, **{f"{at}/help/own.h": "#define OWN 1\n" for at in ("far/away/copy", "near")}})
    outcome = await analysed(pipeline, tmp_path, "src/k.cu")
    assert outcome.build is not None
    assert str(tmp_path / "near") in outcome.build.argv


@pytest.mark.parametrize(
    ("files", "flags", "note"),
    [
        (
            {"a/help/own.h": "#define OWN 1\n", "b/help/own.h": "#define OWN 2\n"},
            None,
            "several folders have it (a, b)",
        ),
        ({"a/help/own.h": "#define OWN 1\n"}, "nvcc -c src/k.cu", "the build's flags do not name its folder (a)"),
        ({"a/own.h": "#define OWN 1\n", ".hidden/help/own.h": "", "node_modules/help/own.h": ""}, None, None),
        ({"a$(touch x)/help/own.h": "#define OWN 1\n"}, None, None),
    ],
    ids=["two", "recorded", "none", "hostile"],
)
async def test_no_folder_is_taken_where_there_is_a_doubt(
    files: dict[str, str], flags: str | None, note: str | None, tmp_path: Path, pipeline: Pipeline
) -> None:
    write(tmp_path, {"src/k.cu": NEEDS, **files})
    if flags:
        database(tmp_path, [flags])
    outcome = await analysed(pipeline, tmp_path, "src/k.cu")
    assert outcome.build is not None
    assert "-I" not in outcome.build.argv
    found = {code: message for code, _, message in said(outcome)}
    assert "help/own.h: No such file or directory" in found["KL901"]
    assert ("KL903" in found) == (note is not None)
    assert note is None or f"help/own.h: {note}" in found["KL903"]


async def test_a_missing_header_beside_the_source_is_not_searched_for(tmp_path: Path, pipeline: Pipeline) -> None:
    write(tmp_path, {"src/k.cu": '#include "../own.h"\n', "other/own.h": "", "own.h.txt": ""})
    outcome = await analysed(pipeline, tmp_path, "src/k.cu")
    assert [code for code, _, _ in said(outcome)] == ["KL901"]


async def test_packages_beside_the_compilers(tmp_path: Path, pipeline: Pipeline, toolkit: Path) -> None:
    """cuDNN and NCCL have folders of their own beside the compiler's package, whatever named the flags."""
    packages = tmp_path / "site-packages" / "nvidia"
    write(packages, {"nccl/include/nccl.h": "#define OWN 5\n"})
    (packages / toolkit.name).symlink_to(toolkit)
    source = tmp_path / "project" / "k.cu"
    write(tmp_path / "project", {"k.cu": "#include <nccl.h>\n__global__ void k(float* x) { x[0] = OWN; }\n"})
    database(tmp_path / "project", ["nvcc -c k.cu"])
    found = Pipeline._toolchain

    async def from_packages(self: Pipeline, *arguments: object) -> object:
        tools = await found(self, *arguments)  # type: ignore[arg-type]
        nvcc = Tool("nvcc", packages / toolkit.name / "bin" / "nvcc", "the test's", "13.5.37")
        return replace(tools, nvcc=nvcc, toolkit=packages / toolkit.name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pipeline, "_toolchain", from_packages)
        outcome = await analysed(pipeline, source.parent, "k.cu")
    assert kernels_of(outcome) == ["k"]
    assert outcome.build is not None
    assert str(packages / "nccl" / "include") in outcome.build.argv


# --- flags that the compiler asks for ------------------------------------------------------------------------------

LAMBDA = """template <class F> __global__ void apply(F f, float* x) { x[0] = f(x[1]); }
void go(float* x) { auto f = [] __device__(float a) { return a + 1; }; apply<<<1, 1>>>(f, x); }
"""
LAUNCH = "__global__ void child() {}\n__global__ void parent() { child<<<1, 1>>>(); }\n"
CONSTEXPR = "constexpr int twice(int a) { return 2 * a; }\n__global__ void c(int* x) { x[0] = twice(x[1]); }\n"


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (LAMBDA, ("--extended-lambda", "--expt-relaxed-constexpr")),
        (CONSTEXPR, ("--expt-relaxed-constexpr",)),
        (LAUNCH, ("-rdc=true",)),
        ('#include "own.h"\n' + CONSTEXPR, ("-I", "--expt-relaxed-constexpr")),
        ("__global__ void k() { missing; }\n" + CONSTEXPR, None),
    ],
)
async def test_flags_that_the_compiler_names(
    text: str, flags: tuple[str, ...] | None, tmp_path: Path, pipeline: Pipeline
) -> None:
    write(tmp_path, {"src/k.cu": text, "inc/own.h": ""})
    outcome = await analysed(pipeline, tmp_path, "src/k.cu")
    assert outcome.build is not None
    if flags is None:
        assert outcome.build.status == "failed"
        return
    assert kernels_of(outcome)
    assert outcome.command is not None
    assert outcome.command.flags == ("-std=c++17", "-O3", *(w for flag in flags for w in _words(flag, tmp_path)))
    # A project's own flags are the project's business: the compiler's advice is shown.
    database(tmp_path, ["nvcc -Iinc -c src/k.cu"])
    recorded = await analysed(pipeline, tmp_path, "src/k.cu")
    assert recorded.build is not None
    assert recorded.build.status == "failed"
    assert {code for code, _, _ in said(recorded)} == {"KL901"}


def _words(flag: str, root: Path) -> list[str]:
    return [flag, str(root / "inc")] if flag == "-I" else [flag]
