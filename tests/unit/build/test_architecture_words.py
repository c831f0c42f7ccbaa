"""The architecture words of a build: one virtual and one real architecture, as the project's build pairs them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernel_lsp.build.arguments import base_argv
from kernel_lsp.project.command import BuildCommand

# Compiles only for the virtual architecture that the build names.
SOURCE = """
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != WANTED
#error another program
#endif
__global__ void k(float* p) { p[0] = 1; }
"""


@pytest.mark.parametrize(
    ("virtual", "arch", "wanted"),
    [("compute_80", "sm_86", 800), ("compute_86", "sm_86", 860), ("", "sm_86", 860), ("compute_90a", "sm_90a", 900)],
)
def test_device_code_sees_the_builds_virtual_architecture(
    virtual: str, arch: str, wanted: int, tmp_path: Path, toolkit: Path
) -> None:
    source = tmp_path / "a.cu"
    source.write_text(SOURCE)
    command = BuildCommand(
        source=source,
        document=source,
        flags=(f"-DWANTED={wanted}",),
        arch=arch,
        arch_why="",
        cwd=tmp_path,
        origin="default",
        origin_path=None,
        origin_detail="",
        compiler=None,
        environment=(),
        notes=(),
        skip_reason=None,
        virtual_arch=virtual,
    )
    argv = [*base_argv(command, toolkit / "bin" / "nvcc"), str(source), "-o", str(tmp_path / "a.cubin")]
    run = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    listed = subprocess.run(
        [toolkit / "bin" / "cuobjdump", "-lelf", tmp_path / "a.cubin"], capture_output=True, text=True, check=True
    ).stdout
    assert f".{arch}.cubin" in listed
