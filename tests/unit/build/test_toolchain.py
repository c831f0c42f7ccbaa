"""Where tools are looked for, in which order, and what is passed over. No real tool is run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kernel_lsp.build.probe import clashes
from kernel_lsp.project.toolchain import Place, Tool, Toolchain, find_launcher, find_toolchain, own_wheel_places

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs without a suffix")


def program(path: Path, text: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def search(
    environment: dict[str, str] | None = None,
    *,
    settings: dict[str, str] | None = None,
    usual: tuple[Path, ...] = (),
    wheels: tuple[Path, ...] = (),
    workspace: tuple[Path, ...] = (),
    entry: str | None = None,
    trusted: bool = False,
) -> Toolchain:
    return find_toolchain(
        settings=settings or {},
        environment=environment or {},
        usual_places=[Place(folder, str(folder)) for folder in usual],
        wheel_places=[Place(folder, "PyPI packages") for folder in wheels],
        workspace_folders=workspace,
        entry_compiler=entry,
        trusted=trusted,
    )


def test_order_of_the_places(tmp_path: Path) -> None:
    names = ["setting", "entry", "home/bin", "cuda_path/bin", "path", "usual", "wheel"]
    programs = [program(tmp_path / name / "nvcc") for name in names]
    environment = {
        "CUDA_HOME": str(tmp_path / "home"),
        "CUDA_PATH": str(tmp_path / "cuda_path"),
        "PATH": os.pathsep.join([str(tmp_path / "path"), "/nowhere"]),
    }
    said = ["setting kernelLsp.tools.nvcc", "compiler of the compile database", "CUDA_HOME", "CUDA_PATH", "PATH"]
    said += [str(tmp_path / "usual"), "PyPI packages"]
    for path, where in zip(programs, said, strict=True):
        found = search(
            environment,
            settings={"nvcc": str(tmp_path / "setting" / "nvcc")},
            usual=(tmp_path / "usual",),
            wheels=(tmp_path / "wheel",),
            entry=str(tmp_path / "entry" / "nvcc"),
            trusted=True,
        ).nvcc
        assert found == Tool("nvcc", path, where)
        path.unlink()


def test_a_folder_or_a_bad_path_as_setting(tmp_path: Path) -> None:
    nvcc = program(tmp_path / "bin" / "nvcc")
    assert search(settings={"nvcc": str(tmp_path / "bin")}).nvcc == Tool("nvcc", nvcc, "setting kernelLsp.tools.nvcc")
    for bad in (str(tmp_path / "absent"), "bin/nvcc", "nvcc"):
        found = search({"PATH": str(tmp_path / "bin")}, settings={"nvcc": bad})
        assert found.nvcc == Tool("nvcc", nvcc, "PATH")
        (problem,) = found.problems
        assert "kernelLsp.tools.nvcc" in problem
        assert bad in problem


def test_a_workspace_names_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "workspace"
    program(workspace / "bin" / "nvcc")
    (tmp_path / "link").symlink_to(workspace)
    monkeypatch.chdir(workspace / "bin")
    for path in ("", ".", "bin", str(workspace / "bin"), str(tmp_path / "link" / "bin")):
        found = search({"PATH": os.pathsep.join([path, "/nowhere"])}, workspace=(workspace,))
        assert found.nvcc is None, path
    untrusted = search(entry=str(workspace / "bin" / "nvcc"), trusted=False)
    assert untrusted.nvcc is None
    host = program(tmp_path / "g++")
    assert search(entry=str(host), trusted=True).nvcc is None  # no nvcc by name: not a candidate


def test_other_tools_come_from_beside_the_nvcc_first(tmp_path: Path) -> None:
    program(tmp_path / "toolkit" / "nvcc")
    beside = program(tmp_path / "toolkit" / "nvdisasm")
    on_path = program(tmp_path / "path" / "cuobjdump")
    program(tmp_path / "path" / "nvdisasm")
    found = search({"PATH": str(tmp_path / "path")}, settings={"nvcc": str(tmp_path / "toolkit" / "nvcc")})
    assert found.nvdisasm == Tool("nvdisasm", beside, f"next to {tmp_path / 'toolkit' / 'nvcc'}")
    assert found.cuobjdump == Tool("cuobjdump", on_path, "PATH")
    assert [missing.name for missing in found.missing] == ["ptxas"]


def test_a_forwarding_script_is_looked_through_and_no_other(tmp_path: Path) -> None:
    real = program(tmp_path / "real" / "bin" / "nvcc")
    plain = program(tmp_path / "bin" / "nvcc", f'#!/bin/sh\n# Debian\nexec {real} "$@"\n')
    found = search({"PATH": str(tmp_path / "bin")}).nvcc
    assert found is not None
    assert found.path == real
    assert found.where == f"PATH, by way of {plain}"
    for text in (
        f'#!/bin/sh\nlog\nexec {real} "$@"\n',
        f'#!/bin/sh\nexec {real} -O0 "$@"\n',
        '#!/bin/sh\nexec nvcc "$@"\n',
    ):
        program(plain, text)
        assert search({"PATH": str(tmp_path / "bin")}).nvcc == Tool("nvcc", plain, "PATH")


def test_missing_says_where_and_one_command(tmp_path: Path) -> None:
    found = search(
        {"CUDA_HOME": "/nowhere/cuda", "PATH": "/nowhere/bin"},
        usual=(tmp_path / "usual",),
        wheels=(tmp_path / "wheel",),
    )
    nvcc = found.missing[0]
    assert nvcc.looked_in == (
        "setting kernelLsp.tools.nvcc",
        "CUDA_HOME (/nowhere/cuda/bin)",
        "PATH",
        str(tmp_path / "usual"),
        "PyPI packages",
    )
    for part in (*nvcc.looked_in, "pip install 'kernel-lsp[cuda]'"):
        assert part in nvcc.message
    assert len(found.missing) == 4


def test_a_file_that_is_no_program_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "nvcc").write_text("x")
    (tmp_path / "folder" / "nvcc").mkdir(parents=True)
    assert search({"PATH": os.pathsep.join([str(tmp_path), str(tmp_path / "folder")])}).nvcc is None


def test_wheels_come_from_the_environment_not_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "lib" / "site-packages"
    for release in ("cu9", "cu13"):
        (site / "nvidia" / release / "bin").mkdir(parents=True)
    (tmp_path / "nvidia" / "cu13" / "bin").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), "site-packages", str(site)])
    mine = [place.folder for place in own_wheel_places() if tmp_path in place.folder.parents]
    assert mine == [site / "nvidia" / "cu13" / "bin", site / "nvidia" / "cu9" / "bin"]


def chain(nvcc: str, ptxas: str, nvdisasm: str, toolkit: Path | None = None) -> Toolchain:
    tools = [
        Tool(name, Path("/x") / name, "PATH", version)
        for name, version in (("nvcc", nvcc), ("ptxas", ptxas), ("nvdisasm", nvdisasm))
    ]
    return Toolchain(tools[0], tools[1], tools[2], None, toolkit=toolkit)


def test_releases_that_clash_are_named(tmp_path: Path) -> None:
    assert clashes(chain("13.0.88", "13.0.48", "13.5.37")) == ()  # a newer reader is fine
    (problem,) = clashes(chain("13.5.37", "13.0.88", "13.5.37"))
    assert "nvcc 13.5, ptxas 13.0" in problem
    assert "pip install 'kernel-lsp[cuda]'" in problem
    (old_reader,) = clashes(chain("13.0.88", "13.0.88", "12.4.127"))
    assert "nvdisasm 12.4.127" in old_reader
    # nvidia-cuda-nvcc pinned, nvidia-nvvm not: cicc is of another release than the nvcc that starts it.
    site = tmp_path / "site-packages"
    (site / "nvidia" / "cu13").mkdir(parents=True)
    (site / "nvidia_nvvm-13.5.37.dist-info").mkdir()
    (trap,) = clashes(chain("13.0.88", "13.0.88", "13.5.37", site / "nvidia" / "cu13"))
    assert "cicc 13.5" in trap


def test_the_users_launcher(tmp_path: Path) -> None:
    outside, workspace = tmp_path / "bin", tmp_path / "workspace"
    for folder in (outside, workspace):
        folder.mkdir()
        (folder / "sccache").write_text("#!/bin/sh\n")
        (folder / "sccache").chmod(0o755)
    environment = {"PATH": f"{workspace}:.:{outside}"}
    assert find_launcher([], environment) == ((), None)
    assert find_launcher(["sccache", "-v"], environment, [workspace]) == ((str(outside / "sccache"), "-v"), None)
    assert find_launcher([str(outside / "sccache")], {}) == ((str(outside / "sccache"),), None)
    for named in ("absent", "./sccache", "../workspace/sccache"):
        found, problem = find_launcher([named], environment, [workspace])
        assert found == ()
        assert problem
        assert named in problem
