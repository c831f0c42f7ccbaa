"""Where a file's flags come from, in which order, and how each way of building is recognised."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.config import parse_config
from kernel_lsp.project.find_command import CommandPreferences, ProjectFiles, ToolkitFacts, find_command


def find(root: Path, name: str = "a.cu", **options: object) -> BuildCommand:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    if not (root / name).exists():
        (root / name).write_text("")
    arguments: dict[str, object] = {"files": ProjectFiles(), "workspace_roots": (root,), "trusted": True, **options}
    return find_command(root / name, **arguments)  # type: ignore[arg-type]


def entry(root: Path, command: str | list[str], file: str = "a.cu", **fields: object) -> dict[str, object]:
    key = "command" if isinstance(command, str) else "arguments"
    return {"directory": str(root), key: command, "file": file, **fields}


def write_database(root: Path, *entries: dict[str, object]) -> None:
    (root / "compile_commands.json").write_text(json.dumps(entries))


def said(command: BuildCommand) -> str:
    return "\n".join(note.message for note in command.notes)


def test_the_order_of_origins(tmp_path: Path) -> None:
    """Each place that is added goes before those that were there."""
    (tmp_path / "kernel-lsp.yaml").write_text("")
    assert find(tmp_path).origin == "default"
    assert find(tmp_path).flags == ("-std=c++17", "-O3")
    settings = CommandPreferences(fallback_flags=("-O1",))
    assert find(tmp_path, preferences=settings).flags == ("-O1",)
    (tmp_path / ".clangd").write_text("CompileFlags:\n  Add: [-DCLANGD, --cuda-gpu-arch=sm_80]\n")
    assert (find(tmp_path).origin, find(tmp_path).flags, find(tmp_path).arch) == (".clangd", ("-DCLANGD",), "sm_80")
    (tmp_path / "compile_flags.txt").write_text("-DTXT\n\n-I\ninc\n")
    assert (find(tmp_path).origin, find(tmp_path).flags) == ("compile_flags.txt", ("-DTXT", "-I", "inc"))
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "build.ninja").write_text("rule r\n  command = nvcc -DNINJA $in\nbuild o: r ../a.cu\n")
    assert (find(tmp_path).origin, find(tmp_path).flags) == ("build.ninja", ("-DNINJA",))
    write_database(tmp_path, entry(tmp_path, "nvcc -DDATABASE -arch=sm_80 a.cu"))
    assert (find(tmp_path).origin, find(tmp_path).flags) == ("compile_commands.json", ("-DDATABASE",))
    config = parse_config("flags: [-DYAML]\narch: sm_89\n", tmp_path / "kernel-lsp.yaml")
    from_yaml = find(tmp_path, config=config)
    assert (from_yaml.origin, from_yaml.flags, from_yaml.arch) == ("kernel-lsp.yaml", ("-DYAML",), "sm_89")
    assert from_yaml.arch_why == "kernel-lsp.yaml"
    typed = CommandPreferences(explicit_flags=("-DTYPED",), arch="sm_90", arch_why="--arch")
    command = find(tmp_path, config=config, preferences=typed)
    assert (command.origin, command.flags, command.arch, command.arch_why) == (
        "command line", ("-DTYPED",), "sm_90", "--arch",
    )  # fmt: skip


def test_a_named_database(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    write_database(tmp_path / "elsewhere", entry(tmp_path, "nvcc -DELSEWHERE a.cu"))
    write_database(tmp_path, entry(tmp_path, "nvcc -DNEAR a.cu"))
    for path in (tmp_path / "elsewhere", tmp_path / "elsewhere" / "compile_commands.json"):
        assert find(tmp_path, preferences=CommandPreferences(compile_commands=path)).flags == ("-DELSEWHERE",)
    config = parse_config("compile_commands: elsewhere\n", tmp_path / "kernel-lsp.yaml")
    assert find(tmp_path, config=config).flags == ("-DELSEWHERE",)
    relative = CommandPreferences(compile_commands=Path("elsewhere"))
    assert find(tmp_path, preferences=relative).flags == ("-DELSEWHERE",)
    missing = find(tmp_path, preferences=CommandPreferences(compile_commands=tmp_path / "none.json"))
    assert missing.origin == "default"
    assert "none.json: cannot be read" in said(missing)


def test_a_database_further_up_where_the_nearest_has_no_entry(tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, "nvcc -DTOP sub/a.cu", "sub/a.cu"))
    (tmp_path / "sub").mkdir()
    write_database(tmp_path / "sub", entry(tmp_path / "sub", "nvcc -DSUB other.cu", "other.cu"))
    assert find(tmp_path, "sub/a.cu").flags == ("-DTOP",)


def test_changes_are_seen(tmp_path: Path) -> None:
    files = ProjectFiles()
    assert find(tmp_path, files=files).origin == "default"
    write_database(tmp_path, entry(tmp_path, "nvcc -DFIRST a.cu"))
    assert find(tmp_path, files=files).flags == ("-DFIRST",)
    write_database(tmp_path, entry(tmp_path, "nvcc -DOTHER a.cu"))
    os.utime(tmp_path / "compile_commands.json", ns=(5, 5))
    assert find(tmp_path, files=files).flags == ("-DOTHER",)
    (tmp_path / "compile_commands.json").unlink()
    assert find(tmp_path, files=files).origin == "default"


def test_a_broken_database_is_said_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "compile_commands.json").write_text('[{"file": }]')
    command = find(tmp_path)
    assert command.origin == "default"
    warnings = [note for note in command.notes if note.severity == "warning"]
    assert len(warnings) == 1
    assert "compile_commands.json:1:11: not JSON" in warnings[0].message


@pytest.mark.parametrize(
    ("line", "compiler"),
    [
        ("ccache nvcc -DX a.cu", None),
        ("/usr/bin/ccache /opt/cuda/bin/nvcc -DX a.cu", "/opt/cuda/bin/nvcc"),
        ("sccache /opt/cuda/bin/nvcc-12.4 -DX a.cu", "/opt/cuda/bin/nvcc-12.4"),
        ("distcc nvcc -DX a.cu", None),
        ("icecc nice -n 10 nvcc -DX a.cu", None),
        ("A=1 B='x y' nvcc -DX a.cu", None),
        ("env -i -u HOME A=1 nvcc -DX a.cu", None),
        ("cmake -E env --unset=B A=1 -- nvcc -DX a.cu", None),
        ("cmake -E time nvcc -DX a.cu", None),
        ("time -p nvcc -DX a.cu", None),
        ("sh -c 'cd . && ccache nvcc -DX a.cu'", None),
        ('bash -ec "nvcc -DX a.cu"', None),
        ("/kokkos/bin/nvcc_wrapper -DX a.cu", None),
        ("python3 tools/nvcc_wrap.py -DX a.cu", None),
        ("./tools/my-compiler -DX --expt-relaxed-constexpr a.cu", None),
        ("external/cuda/bin/crosstool_wrapper_driver_is_not_gcc -x cuda -DX a.cu", None),
        ("mkdir -p o && cd . && nvcc -DX a.cu -o o/a.o 2>err | tee log ; true", None),
    ],
)
def test_launchers_and_wrappers(line: str, compiler: str | None, tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, line))
    command = find(tmp_path)
    assert command.origin == "compile_commands.json"
    assert "-DX" in command.flags
    assert not [flag for flag in command.flags if "nvcc" in flag or flag == "a.cu"]
    assert command.compiler == compiler


def test_a_change_of_folder_in_front(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write_database(tmp_path, entry(tmp_path, "cd sub && nvcc -I../inc ../a.cu"))
    assert find(tmp_path).cwd == tmp_path / "sub"


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path / "gone", "nvcc -O2 ../a.cu", "../a.cu"))
    command = find(tmp_path)
    assert command.cwd == tmp_path
    assert f"{tmp_path / 'gone'}: no such folder" in said(command)


def test_optimised_before_debug_whatever_the_order(tmp_path: Path) -> None:
    debug, device_debug = entry(tmp_path, "nvcc -g -DHOST a.cu"), entry(tmp_path, "nvcc -g -G -O3 -DDEVICE a.cu")
    release, second = entry(tmp_path, "nvcc -O3 -DONE a.cu"), entry(tmp_path, "nvcc -O2 -DTWO a.cu")
    for entries, expected, detail in (
        ((device_debug, debug, release, second), "-DONE", "entry 3 of 4"),
        ((device_debug, debug), "-DHOST", "entry 2 of 2"),
        ((second, release, debug), "-DTWO", "entry 1 of 3"),
        ((device_debug,), "-DDEVICE", ""),
    ):
        write_database(tmp_path, *entries)
        command = find(tmp_path)
        assert expected in command.flags
        assert command.origin_detail == detail
        assert ("`database_entry`" in said(command)) == bool(detail)


def test_picking_an_entry(tmp_path: Path) -> None:
    write_database(
        tmp_path,
        entry(tmp_path, 'nvcc -DCMAKE_INTDIR=\\"Debug\\" -g a.cu'),
        entry(tmp_path, "nvcc -O3 a.cu -o CMakeFiles/app.dir/a.o"),
        entry(tmp_path, "nvcc -O3 a.cu -o CMakeFiles/app.dir/MinSizeRel/a.o"),
    )

    def picked(wanted: str) -> BuildCommand:
        config = parse_config(f"database_entry: {wanted}\n", tmp_path / "kernel-lsp.yaml")
        return find(tmp_path, config=config)

    assert picked("1").origin_detail == "Debug (entry 1 of 3)"
    assert picked("debug").origin_detail == "Debug (entry 1 of 3)"
    assert picked("app").origin_detail == "target app (entry 2 of 3)"
    assert picked("MinSizeRel").origin_detail == "MinSizeRel (entry 3 of 3)"
    wrong = picked("Profile")
    assert wrong.origin_detail == "target app (entry 2 of 3)"
    assert "database_entry Profile: no such entry; there are 1 (Debug), 2 (target app), 3 (MinSizeRel)" in said(wrong)
    write_database(tmp_path, entry(tmp_path, "nvcc -DONLY a.cu"))
    assert not [note for note in picked("2").notes if note.severity == "warning"]
    assert picked("2").flags == ("-DONLY",)


def test_clang_entry(tmp_path: Path) -> None:
    words = (
        "clang++-18 -x cuda --cuda-path=/opt/cuda --offload-arch=sm_80,sm_90a --cuda-gpu-arch=sm_86 -std=gnu++20 -O3 "
        "-fgpu-flush-denormals-to-zero -ffp-contract=off -Xcuda-ptxas -O2 -fgpu-rdc -isystem/opt/inc -I inc -DX -UY "
        "-include pre.h -march=native -fopenmp -Wall -MD -MF a.d -mllvm -x "
        "-Xclang -fcuda-allow-variadic-functions a.cu -o a.o"
    )
    write_database(tmp_path, entry(tmp_path, words))
    command = find(tmp_path)
    assert command.flags == (
        "-x", "cu", "-std=c++20", "-O3", "-ftz=true", "-fmad=false", "-Xptxas=-O2", "-rdc=true", "-isystem=/opt/inc",
        "-I", "inc", "-DX", "-UY", "-include", "pre.h", "-Xcompiler=-march=native", "-Xcompiler=-fopenmp",
    )  # fmt: skip
    assert command.arch == "sm_90a"
    shown = [note.message for note in command.notes if note.severity == "information"]
    assert shown == ["built with clang++-18, analysed with nvcc: numbers can differ"]
    assert command.compiler is None


def test_nvhpc_entry(tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, "nvc++ -cuda -gpu=cc80,cc90,fastmath,lineinfo -std=c++17 -fast -DX a.cu"))
    command = find(tmp_path)
    assert command.flags == ("-use_fast_math", "-std=c++17", "-O2", "-DX")
    assert command.arch == "sm_90"


@pytest.mark.parametrize(
    "line",
    [
        "hipcc --offload-arch=gfx90a -c a.cu",
        "/opt/rocm/bin/hipcc -c a.cu --amdgpu-target=gfx90a",
        "clang++ -x hip --offload-arch=gfx90a -c a.cu",
        "/opt/rocm/llvm/bin/amdclang++ -x hip --offload-arch=gfx90a a.cu",
    ],
)
def test_hip_entry(line: str, tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, line))
    command = find(tmp_path)
    assert command.skip_reason == "built for gfx90a (HIP), nothing to analyse"
    assert command.arch == ""


def test_cuda_entry_beside_a_hip_entry(tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, "hipcc --offload-arch=gfx90a a.cu"), entry(tmp_path, "nvcc -DCUDA a.cu"))
    command = find(tmp_path)
    assert command.flags == ("-DCUDA",)
    assert command.skip_reason is None


def test_host_entry_for_a_cuda_file_is_not_used(tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, "g++ -DHOST -c a.cu"))
    command = find(tmp_path)
    assert command.origin == "default"
    assert "built with g++" in said(command)


def test_bazel_entry(tmp_path: Path) -> None:
    """hedronvision's extractor: arguments, a file relative to the workspace, folders of the execution root."""
    (tmp_path / "bazel-out" / "inc").mkdir(parents=True)
    words = [
        "external/local_cuda/cuda/bin/nvcc", "-x", "cu", "-iquote", ".", "-iquote", "bazel-out/k8-opt/bin",
        "-isystem", "external/eigen", "-gencode", "arch=compute_80,code=sm_80", "-DBAZEL",
        "-frandom-seed=bazel-out/a.o",
        "-Xcompiler", "-fPIC", "-MD", "-MF", "bazel-out/a.d", "-c", "kernels/a.cu", "-o", "bazel-out/a.o",
    ]  # fmt: skip
    write_database(tmp_path, entry(tmp_path, words, "kernels/a.cu"))
    command = find(tmp_path, "kernels/a.cu")
    assert command.source == tmp_path / "kernels" / "a.cu"
    assert command.cwd == tmp_path
    assert command.flags[command.flags.index("-isystem") :][:2] == ("-isystem", "external/eigen")
    assert "-Xcompiler=-iquote" in command.flags
    assert not [flag for flag in command.flags if flag.endswith((".o", ".d")) and "seed" not in flag]


def test_meson_entry(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    line = (
        "nvcc -Iapp.p -I. -I.. --std=c++17 -O3 -gencode arch=compute_86,code=sm_86 -Xcompiler=-Wall,-Winvalid-pch "
        "-MD -MQ app.p/a.cu.o -MF app.p/a.cu.o.d -o app.p/a.cu.o -c ../a.cu"
    )
    row = {"directory": str(tmp_path / "build"), "command": line, "file": "../a.cu", "output": "app.p/a.cu.o"}
    (tmp_path / "build" / "compile_commands.json").write_text(json.dumps([row]))
    command = find(tmp_path)
    assert command.flags == ("-Iapp.p", "-I.", "-I..", "--std=c++17", "-O3")
    assert (command.arch, command.cwd) == ("sm_86", tmp_path / "build")


def test_clangd_conditions(tmp_path: Path) -> None:
    (tmp_path / ".clangd").write_text(
        "If: {PathMatch: .*\\.cpp}\nCompileFlags: {Add: [-DCPP]}\n---\n"
        "If: {PathMatch: [src/.*\\.cu], PathExclude: .*skip.*}\nCompileFlags: {Add: -DCU}\n---\n"
        "CompileFlags: {Remove: [-x], Compiler: ./evil}\n"
    )
    assert find(tmp_path, "src/a.cu").flags == ("-DCU",)
    assert find(tmp_path, "src/skip.cu").origin == "default"
    assert find(tmp_path, "a.cu").origin == "default"
    (tmp_path / ".clangd").write_text("If: {PathMatch: '(a+)+b'}\nCompileFlags: {Add: [-DX]}\n")
    assert "too involved" in said(find(tmp_path, "a.cu"))


def test_registers_and_link_options(tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, "nvcc -maxrregcount=64 -dc -lcudart -Xlinker -x -shared a.cu"))
    assert find(tmp_path).flags == ("-maxrregcount=64", "-rdc=true")


def test_unsupported_architecture_is_one_warning(tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, "nvcc -arch=sm_35 a.cu"))
    command = find(tmp_path, toolkit=ToolkitFacts(("sm_75", "sm_80"), "13.0"))
    assert command.skip_reason
    assert [note.message for note in command.notes if note.severity == "warning"] == [command.skip_reason]


def test_a_file_outside_every_workspace(tmp_path: Path) -> None:
    write_database(tmp_path, entry(tmp_path, "nvcc -DX a.cu"))
    (tmp_path / "other").mkdir()
    assert find(tmp_path, workspace_roots=(tmp_path / "other",)).flags == ("-DX",)
    assert find(tmp_path, workspace_roots=()).flags == ("-DX",)
