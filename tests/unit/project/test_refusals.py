"""One test for each refusal of docs/security.md: what an untrusted workspace names is neither run nor passed on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.find_command import CommandPreferences, ProjectFiles, find_command
from kernel_lsp.project.nvcc_flags import read_nvcc_words


def command_for(root: Path, command: str | list[str], *, trusted: bool = False, **options: object) -> BuildCommand:
    """The command of root/a.cu, built by one entry."""
    (root / "a.cu").write_text("__global__ void k(float* p) { p[0] = 1; }\n")
    entry: dict[str, object] = {"directory": str(root), "file": "a.cu"}
    entry["command" if isinstance(command, str) else "arguments"] = command
    (root / "compile_commands.json").write_text(json.dumps([entry]))
    return find_command(
        root / "a.cu",
        files=ProjectFiles(),
        workspace_roots=(root,),
        trusted=trusted,
        **options,  # type: ignore[arg-type]
    )


def refused(command: BuildCommand) -> str:
    return "\n".join(note.message for note in command.notes if note.kind == "refused")


@pytest.mark.parametrize(
    "words",
    [
        ["-ccbin", "./evil"],
        ["-ccbin=./evil"],
        ["--compiler-bindir", "./evil"],
        ["--compiler-bindir=./evil"],
        ["-arbin", "./evil"],
        ["--archiver-binary=./evil"],
        ["-ldir", "./evil"],
        ["--libdevice-directory=./evil"],
        ["-target-dir", "../evil"],
        ["--apply-controls=evil.ctl"],
        ["--run"],
        ["-run"],
        ["--run-args", "x"],
        ["-Xcicc", "-load=evil.so"],
        ["-Xcompiler", "-B./evil"],
        ["-Xcompiler", "-B,./evil"],
        ["-Xcompiler=-fplugin=./evil.so"],
        ["-Xcompiler", "-O2,-fplugin=./evil.so"],
        ["-Xcompiler", "-O2 -fplugin=./evil.so"],
        ["--compiler-options", "-wrapper,./evil"],
        ["-Xcompiler", "-specs=evil.specs"],
        ["-Xcompiler", "--specs=evil.specs"],
        ["-Xcompiler", "-Xclang,-load,-Xclang,evil.so"],
        ["-Xcompiler", "-fpass-plugin=evil.so"],
        ["-Xcompiler", "-iplugindir=evil"],
        ["-Xcompiler", "-Wp\\,-MD\\,evil"],
        ["-Xcompiler", "@evil.rsp"],
        ["-Xcompiler", "-no-canonical-prefixes,-fuse-ld=./evil"],
        ["-forward-unknown-to-host-compiler", "-B./evil"],
        ["-forward-unknown-to-host-compiler", "-fplugin=./evil.so"],
        ["-forward-unknown-to-host-compiler", "-wrapper"],
        ["-forward-unknown-opts", "-specs=evil.specs"],
        ["-Xptxas", "-o,evil"],
        ["-Xptxas=--output-file=evil"],
        ["-Xptxas", "--options-file,evil"],
        ["-Xptxas", "--apply-controls=evil"],
        ["-Xptxas", "-O3 --input-as-string evil"],
    ],
)
def test_options_that_run_or_load_something(words: list[str], tmp_path: Path) -> None:
    command = command_for(tmp_path, ["nvcc", "-O3", *words, "-arch=sm_90", "-c", "a.cu"])
    assert not [flag for flag in command.flags if "evil" in flag or "run" in flag or "plugin" in flag]
    assert refused(command)
    assert "-O3" in command.flags


@pytest.mark.parametrize(
    "value",
    [
        "$(touch pwned)",
        "`touch pwned`",
        "$HOME",
        "a\\\\",
        'a\\\\";touch pwned;#',
        'a\\\\\\";touch pwned;#',
        "a\\\\,B=;touch pwned;#",
        "a\ntouch pwned\n",
        "a\0b",
    ],
)
def test_values_that_a_shell_would_act_on(value: str, tmp_path: Path) -> None:
    for words in (
        [f"-DX={value}"],
        ["-D", f"X={value}"],
        [f"-UX{value}"],
        [f"-I{value}"],
        ["-isystem", value],
        [f"--system-include={value}"],
        ["-include", value],
        ["-e", value],
        [f"-std={value}"],
        [f"-frandom-seed={value}"],
        ["-Xptxas", value],
        ["-Xcompiler", f"-DX={value}"],
        ["-Xcudafe", f"--diag_suppress={value}"],
    ):
        flags = read_nvcc_words(("-O3", *words))
        assert not [flag for flag in flags.flags if set(flag) & set("$`\\\0\n;")], words
        assert flags.notes


QUOTED = ("-DX=", "-UX", "-I", "-isystem=", "-include=")
QUOTED_VALUES = (
    "$(touch pwned)",
    "`touch pwned`",
    ";touch pwned;#",
    '";touch pwned;#',
    "';touch pwned;#",
    "|touch pwned",
    "&touch pwned&",
    '\\";touch pwned;#',
    '\\\\";touch pwned;#',
    '\\\\\\";touch pwned;#',
    "q\\",
    "q\\\\",
    "q\\\\\\",
    "\ntouch pwned\n",
    "\\\\,Y=;touch pwned;#",
)
BARE = ("-Xcompiler=", "-Xptxas=", "-Xcudafe=", "-e=", "-std=", "-frandom-seed=", "-maxrregcount=")
BARE_VALUES = (
    "$(touch pwned)",
    ";touch pwned;",
    "-O2;touch pwned",
    "-DX=1;touch pwned;",
    "-O2 -DX=`touch pwned`",
    "x|touch pwned",
)
HOSTILE = [
    head + value
    for heads, values in ((QUOTED, QUOTED_VALUES), (BARE, BARE_VALUES))
    for head in heads
    for value in values
]


def test_what_is_kept_runs_nothing_in_the_real_nvcc(tmp_path: Path, toolkit: Path) -> None:
    """The compiler is called with whatever of a hostile command is kept: alone, and each in front of another one."""
    (tmp_path / "a.cu").write_text("__global__ void k(float* p) { p[0] = 1; }\n")
    kept = [word for word in HOSTILE if word in read_nvcc_words((word,)).flags]
    assert len(kept) >= 20  # quotes, semicolons and the like in macros and paths are no danger and are kept
    calls = [*([word] for word in kept), kept, kept[::-1]]
    includes = [word for word in kept if word.startswith("-include")]
    calls = [[word for word in call if word not in includes] for call in calls] + [[word] for word in includes]
    for call in calls:
        if call:
            words = [str(toolkit / "bin" / "nvcc"), "-E", "a.cu", "-arch=sm_90", *call]
            subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=60)
            assert [path.name for path in tmp_path.iterdir()] == ["a.cu"], call


@pytest.mark.parametrize("name", ["b$(touch pwned).cu", "b`touch pwned`.cu", 'b"c.cu', "b\\.cu", "$HOME.cu", "b\nc.cu"])
def test_source_paths_that_a_shell_would_act_on(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    command = find_command(tmp_path / name, files=ProjectFiles(), workspace_roots=(tmp_path,))
    assert command.skip_reason
    assert "shell" in command.skip_reason


def test_working_folders_that_a_shell_would_act_on(tmp_path: Path) -> None:
    folder = tmp_path / "b$(touch pwned)"
    folder.mkdir()
    (tmp_path / "a.cu").write_text("")
    entry = {"directory": str(folder), "file": str(tmp_path / "a.cu"), "arguments": ["nvcc", "-c", "../a.cu"]}
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    command = find_command(tmp_path / "a.cu", files=ProjectFiles(), workspace_roots=(tmp_path,))
    assert command.skip_reason
    assert "shell" in command.skip_reason


@pytest.mark.parametrize(
    "variable",
    [
        "PATH=.:$PATH",
        "LD_PRELOAD=./evil.so",
        "LD_LIBRARY_PATH=.",
        "NVCC_CCBIN=./evil",
        "CUDA_HOME=./evil",
        "TMPDIR=.",
        "CUDA_PATH=.",
        "GCC_EXEC_PREFIX=./",
        "COMPILER_PATH=.",
        "CICC_PATH=.",
        "NVVMIR_LIBRARY_DIR=.",
        "DEPENDENCIES_OUTPUT=x",
    ],
)
@pytest.mark.parametrize(
    "form", ["{} nvcc -O3 -c a.cu", "env {} nvcc -O3 -c a.cu", "cmake -E env {} -- nvcc -O3 -c a.cu"]
)
def test_environment_of_an_entry(variable: str, form: str, tmp_path: Path) -> None:
    command = command_for(tmp_path, form.format(variable))
    assert command.environment == ()
    assert variable.partition("=")[0] in refused(command)
    assert command.flags == ("-O3",)


def test_header_folders_of_an_entry_are_passed_on(tmp_path: Path) -> None:
    command = command_for(tmp_path, "CPATH=/opt/inc nvcc -O3 -c a.cu")
    assert command.environment == (("CPATH", "/opt/inc"),)
    assert command_for(tmp_path, ["env", "CPATH=$(x)", "nvcc", "a.cu"]).environment == ()


@pytest.mark.parametrize("variable", ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"])
def test_flag_variables_go_through_the_same_list(variable: str, tmp_path: Path) -> None:
    command = command_for(tmp_path, f"{variable}='-ccbin ./evil -DKEPT=1' nvcc -O3 -c a.cu")
    assert sorted(command.flags) == ["-DKEPT=1", "-O3"]
    assert "-ccbin ./evil" in refused(command)
    users = command_for(tmp_path, "nvcc -O3 -c a.cu", environment={variable: "-G --run -DMINE"})
    assert sorted(users.flags) == ["-DMINE", "-O3"]
    assert "--run" in refused(users)


def test_response_file_outside_the_workspace(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (tmp_path / "outside.rsp").write_text("-DSECRET=1")
    (root / "inside.rsp").write_text("-DINSIDE=1")
    (root / "link.rsp").symlink_to(tmp_path / "outside.rsp")
    for name in ("../outside.rsp", str(tmp_path / "outside.rsp"), "link.rsp"):
        for words in (["--options-file", name], [f"-optf={name}"], [f"@{name}"]):
            command = command_for(root, ["nvcc", "-O3", *words, "-c", "a.cu"])
            assert command.flags == ("-O3",)
            assert "outside the workspace" in refused(command)
    assert "-DINSIDE=1" in command_for(root, ["nvcc", "--options-file", "inside.rsp", "a.cu"]).flags


def test_response_file_outside_is_refused_wherever_the_entry_says_it_is_built(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "a.cu").write_text("")
    (tmp_path / "outside.rsp").write_text("-DSECRET=1")
    entry = {"directory": str(tmp_path), "file": str(root / "a.cu"), "command": "nvcc --options-file outside.rsp a.cu"}
    (root / "compile_commands.json").write_text(json.dumps([entry]))
    command = find_command(root / "a.cu", files=ProjectFiles(), workspace_roots=(root,))
    assert command.flags == ()
    assert "outside the workspace" in refused(command)


def test_response_files_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "loop.rsp").write_text("-DX --options-file loop.rsp --options-file loop.rsp")
    command = command_for(tmp_path, ["nvcc", "--options-file", "loop.rsp", "a.cu"])
    assert len(command.flags) <= 64
    assert "more than 64 response files" in refused(command)
    (tmp_path / "large.rsp").write_text("-DX " * 400_000)
    assert "larger than" in refused(command_for(tmp_path, ["nvcc", "--options-file", "large.rsp", "a.cu"]))
    missing = command_for(tmp_path, ["nvcc", "--options-file", "missing.rsp", "-O3", "a.cu"])
    assert missing.flags == ("-O3",)
    assert any("missing.rsp cannot be read" in note.message for note in missing.notes)


def test_options_inside_a_response_file_go_through_the_same_list(tmp_path: Path) -> None:
    (tmp_path / "flags.rsp").write_text("-ccbin ./evil -Xcompiler -fplugin=./evil.so -DKEPT")
    command = command_for(tmp_path, ["nvcc", "--options-file", "flags.rsp", "a.cu"])
    assert command.flags == ("-DKEPT",)
    assert "-fplugin" in refused(command)


def test_the_entrys_compiler_is_a_candidate_only_with_trust(tmp_path: Path) -> None:
    line = f"{tmp_path}/nvcc -O3 -c a.cu"
    assert command_for(tmp_path, line).compiler is None
    assert "not run in an untrusted workspace" in refused(command_for(tmp_path, line))
    assert command_for(tmp_path, line, trusted=True).compiler == f"{tmp_path}/nvcc"
    assert command_for(tmp_path, "./nvcc -c a.cu", trusted=True).compiler == f"{tmp_path}/nvcc"
    assert command_for(tmp_path, "./my_nvcc_wrapper -c a.cu", trusted=True).compiler is None
    assert command_for(tmp_path, "nvcc -c a.cu", trusted=True).compiler is None


@pytest.mark.parametrize(
    "line",
    [
        "touch pwned && nvcc -O3 -c a.cu",
        "nvcc -O3 -c a.cu; touch pwned",
        "nvcc -O3 -c a.cu > pwned",
        "sh -c 'touch pwned; nvcc -O3 -c a.cu'",
        "./ccache nvcc -O3 -c a.cu",
        'python3 -c \'open("pwned","w")\' nvcc -O3 -c a.cu',
    ],
)
def test_nothing_else_of_a_line_is_run(line: str, tmp_path: Path) -> None:
    command = command_for(tmp_path, line)
    assert command.flags == ("-O3",)
    assert not (tmp_path / "pwned").exists()
    assert not [flag for flag in command.flags if "pwned" in flag]


def test_clang_entries_go_through_the_same_list(tmp_path: Path) -> None:
    words = "clang++ -x cuda --cuda-gpu-arch=sm_90 -O3 -fplugin=./evil.so -Xclang -load -B./evil --config=evil.cfg a.cu"
    command = command_for(tmp_path, words)
    assert not [flag for flag in command.flags if "evil" in flag]
    assert "-fplugin=./evil.so" in refused(command)


def test_flags_typed_by_the_user_may_name_the_host_compiler(tmp_path: Path) -> None:
    typed = CommandPreferences(explicit_flags=("-ccbin", "/usr/bin/g++-13", "-O3"))
    assert command_for(tmp_path, "nvcc a.cu", preferences=typed).flags == ("-ccbin", "/usr/bin/g++-13", "-O3")
    settings = CommandPreferences(fallback_flags=("-ccbin=x", "-O2"))
    (tmp_path / "b.cu").write_text("")
    (tmp_path / "compile_commands.json").unlink()
    for trusted, flags in ((True, ("-ccbin=x", "-O2")), (False, ("-O2",))):
        found = find_command(
            tmp_path / "b.cu", files=ProjectFiles(), preferences=settings, workspace_roots=(tmp_path,), trusted=trusted
        )
        assert found.flags == flags
