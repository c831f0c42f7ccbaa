"""What docs/security.md refuses, tried on the whole way with the real nvcc: nothing that a workspace names is run.

Every program that an attack names is a canary that leaves a mark when it runs. The real compiler is started, since only
it can show what its shell would have done.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings
from tests.cases.editor import Editor, errors

CANARY = '#!/bin/sh\necho "$0 $*" >> "{marks}/ran"\nexit 1\n'
KERNEL = "__global__ void k(float* x) { x[threadIdx.x] = 1.f; }\n"
# Words of an entry, and what the note about them names. @ stands for the workspace, # for the folder of marks.
REFUSED = [
    (["-ccbin", "@/canary"], "-ccbin"),
    (["--compiler-bindir=@/canary"], "--compiler-bindir"),
    (["-arbin", "@/canary"], "-arbin"),
    (["-run"], "-run"),
    (["--run"], "--run"),
    (["--run-args", "x"], "--run-args"),
    (["-ldir", "@/lib"], "-ldir"),
    (["-target-dir", "@/lib"], "-target-dir"),
    (["-Xcompiler", "-B@"], "-B@"),
    (["-Xcompiler", "-fplugin=@/plugin.so"], "-fplugin"),
    (["-Xcompiler=-wrapper,@/canary"], "-wrapper"),
    (["--compiler-options", "-specs=@/specs"], "-specs"),
    (["-Xcompiler", "@@/options"], "@@/options"),
    (["-Xcicc", "-load=@/plugin.so"], "-Xcicc"),
    (["-Xptxas", "--output-file=#/out"], "--output-file"),
    (["-fplugin=@/plugin.so"], "-fplugin"),
    (["--options-file", "#/outside.rsp"], "outside.rsp"),
    (["-DA=$(@/canary)"], "$("),
    (["-DB=`@/canary`"], "`"),
    (['-DD=x\\\\";@/canary;"'], "-DD"),
    (["-I@/x$(@/canary)"], "$("),
    (["-UE$(@/canary)"], "$("),
    (["-Xcompiler", "-DF=1;@/canary"], "-DF"),
    (["-maxrregcount=32;@/canary"], "-maxrregcount"),
    (["-x", "cu;@/canary"], "@/canary"),
    (["-std=c++17;@/canary"], "-std"),
]
VARIABLES = ("PATH=@/bin", "LD_PRELOAD=@/plugin.so", "NVCC_CCBIN=@/canary", "CUDA_HOME=@", "TMPDIR=#")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "bin").mkdir(parents=True)
    marks(root).mkdir()
    for name in ("canary", "gcc", "g++", "cc1plus", "as", "bin/nvcc", "bin/gcc", "bin/g++", "bin/cicc", "bin/ptxas"):
        (root / name).write_text(CANARY.format(marks=marks(root)))
        (root / name).chmod(0o755)
    (root / "options").write_text("-wrapper ./canary\n")
    (marks(root) / "outside.rsp").write_text("-DSECRET_OF_THE_USER\n")
    (root / "k.cu").write_text(KERNEL)
    return root


@pytest.fixture
def ran(workspace: Path) -> Iterator[None]:
    """After the test: no canary has run, and nothing else was written beside the source."""
    before = set(workspace.rglob("*"))
    yield
    assert not (marks(workspace) / "ran").exists(), (marks(workspace) / "ran").read_text()
    assert [path.name for path in marks(workspace).iterdir()] == ["outside.rsp"]
    written = {path for path in workspace.rglob("*") if path not in before}
    assert written <= {workspace / "compile_commands.json"}


def marks(root: Path) -> Path:
    return root.parent / "marks"


def put(root: Path, text: str) -> str:
    return re.sub("@@?|#", lambda m: {"@@": f"@{root}", "@": str(root), "#": str(marks(root))}[m[0]], text)


def write_database(root: Path, words: list[str], as_line: bool) -> None:
    entry: dict[str, object] = {"directory": str(root), "file": "k.cu"}
    if as_line:
        entry["command"] = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    else:
        entry["arguments"] = words
    (root / "compile_commands.json").write_text(json.dumps([entry]))


async def analysed(pipeline: Pipeline, root: Path, trusted: bool, name: str = "k.cu") -> FileOutcome:
    return await pipeline.analyze(
        PipelineRequest(document=root / name, settings=Settings(), roots=(root,), trusted=trusted)
    )


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("as_line", [False, True])
@pytest.mark.usefixtures("ran")
async def test_every_refused_option_at_once(workspace: Path, pipeline: Pipeline, trusted: bool, as_line: bool) -> None:
    words = [put(workspace, word) for given, _ in REFUSED for word in given]
    # Between double quotes a semicolon does nothing: the macro is kept, and nothing is run all the same.
    kept = put(workspace, "-DKEPT=1;@/canary")
    write_database(workspace, ["nvcc", kept, "-arch=sm_90", *words, "-c", "k.cu"], as_line)
    outcome = await analysed(pipeline, workspace, trusted)
    assert outcome.build is not None
    assert outcome.command is not None
    assert (outcome.build.status, outcome.build.arch) == ("ok", "sm_90"), outcome.build.reason
    assert [word for word in outcome.build.argv if "canary" in word] == [kept]
    refused = [note.message for note in outcome.command.notes if note.kind in ("refused", "dropped")]
    for _, named in REFUSED:
        assert [message for message in refused if put(workspace, named) in message], (named, refused)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.usefixtures("ran")
async def test_variables_of_an_entry(workspace: Path, pipeline: Pipeline, trusted: bool) -> None:
    variables = [put(workspace, each) for each in VARIABLES]
    line = f"{' '.join(variables)} NVCC_PREPEND_FLAGS='-ccbin {workspace}/canary -DKEPT' nvcc -arch=sm_90 -c k.cu"
    entry = {"directory": str(workspace), "file": "k.cu", "command": line}
    (workspace / "compile_commands.json").write_text(json.dumps([entry]))
    outcome = await analysed(pipeline, workspace, trusted)
    assert outcome.build is not None
    assert outcome.command is not None
    assert outcome.build.status == "ok", outcome.build.reason
    assert "-DKEPT" in outcome.build.argv
    refused = [note.message for note in outcome.command.notes if note.kind == "refused"]
    for name in [*(each.partition("=")[0] for each in VARIABLES), "-ccbin"]:
        assert [message for message in refused if name in message], (name, refused)


@pytest.mark.usefixtures("ran")
async def test_other_commands_launchers_and_wrappers(workspace: Path, pipeline: Pipeline) -> None:
    line = f"{workspace}/canary && {workspace}/canary {workspace}/bin/nvcc_wrapper -arch=sm_90 -c k.cu; ./canary > out"
    entry = {"directory": str(workspace), "file": "k.cu", "command": line}
    (workspace / "compile_commands.json").write_text(json.dumps([entry]))
    outcome = await analysed(pipeline, workspace, trusted=True)
    assert outcome.build is not None
    assert (outcome.build.status, outcome.build.arch) == ("ok", "sm_90"), outcome.build.reason


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.usefixtures("ran")
async def test_names_that_a_shell_would_act_on(workspace: Path, pipeline: Pipeline, trusted: bool) -> None:
    folder = workspace.parent / "beside"
    folder.mkdir()
    for name in ("a$(..\\canary).cu", "a`x`.cu", 'a".cu'):
        (folder / name).write_text(KERNEL)
        outcome = await analysed(pipeline, folder, trusted, name)
        assert outcome.analysis is None
        assert [finding.code for finding in outcome.findings if "cannot be given to nvcc" in finding.message] == [
            "KL902"
        ]


@pytest.mark.parametrize("trusted", [False, True])
async def test_the_compiler_of_an_entry(workspace: Path, pipeline: Pipeline, trusted: bool, toolkit: Path) -> None:
    """Only a trusted workspace's own nvcc is a candidate; in another it is passed over, and that is said."""
    write_database(workspace, [f"{workspace}/bin/nvcc", "-arch=sm_90", "-c", "k.cu"], as_line=False)
    outcome = await analysed(pipeline, workspace, trusted)
    assert outcome.build is not None
    assert outcome.command is not None
    assert (marks(workspace) / "ran").exists() == trusted
    assert outcome.build.status == ("failed" if trusted else "ok")
    said = [note.message for note in outcome.command.notes if "untrusted" in note.message]
    assert bool(said) == (not trusted)
    expected = workspace / "bin" if trusted else toolkit / "bin"
    assert os.path.realpath(Path(outcome.build.argv[0]).parent) == os.path.realpath(expected)


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize("trusted", [False, True])
async def test_the_projects_own_file(workspace: Path, pipeline: Pipeline, trusted: bool) -> None:
    (workspace / "kernel-lsp.yaml").write_text(
        f"flags: ['-ccbin', '{workspace}/canary', '-DFROM_YAML', '-DX=$({workspace}/canary)']\narch: sm_90\n"
    )
    outcome = await analysed(pipeline, workspace, trusted)
    assert outcome.build is not None
    assert outcome.build.status == "ok"
    assert ("-DFROM_YAML" in outcome.build.argv) == trusted
    (workspace / "kernel-lsp.yaml").unlink()


@pytest.mark.parametrize("trusted", [False, True])
async def test_the_server_does_what_the_client_says_of_trust(workspace: Path, trusted: bool) -> None:
    write_database(workspace, [f"{workspace}/bin/nvcc", "-arch=sm_90", "-c", "k.cu"], as_line=True)
    editor = await Editor.start(workspace, trusted=trusted)
    try:
        editor.open("k.cu")
        found = await editor.diagnostics("k.cu")
        assert bool(errors(found)) == trusted  # the canary is no compiler
        assert (marks(workspace) / "ran").exists() == trusted
    finally:
        await editor.server.kill()
