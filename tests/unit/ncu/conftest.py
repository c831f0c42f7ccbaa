"""Kernels built and disassembled with the toolkit from PyPI, and stand-ins for what a report says."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.ncu.kernel_code import KernelCode, kernel_code
from kernel_lsp.ncu.raw_report import NO_LINES, Column, Metric, PcLines, RawAction

Build = Callable[[Path, str], bytes]


@pytest.fixture(scope="session")
def build(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """nvcc: source file and architecture -> cubin with a line table."""

    def built(source: Path, arch: str) -> bytes:
        out = tmp_path_factory.mktemp("cubin") / "out.cubin"
        argv = [toolkit / "bin" / "nvcc", "-cubin", "-lineinfo", f"-arch={arch}", source, "-o", out]
        subprocess.run([str(each) for each in argv], check=True, capture_output=True)
        return out.read_bytes()

    return built


@pytest.fixture(scope="session")
def code_of(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes, str], KernelCode]:
    """A kernel of a cubin with its disassembly."""

    def made(cubin: bytes, mangled: str) -> KernelCode:
        path = tmp_path_factory.mktemp("sass") / "kernel.cubin"
        path.write_bytes(cubin)
        argv = [str(toolkit / "bin" / "nvdisasm"), *ARGUMENTS, str(path)]
        text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        code = kernel_code(cubin, mangled, text)
        assert code is not None
        return code

    return made


def column(values: Mapping[int, float]) -> Column:
    """Instances of a metric, by absolute address."""
    pcs = sorted(values)
    return Column(np.array(pcs, np.uint64), np.array([values[pc] for pc in pcs], np.float64))


def action(
    mangled: str,
    base: int,
    columns: Mapping[str, Mapping[int, float]],
    *,
    name: str = "",
    lines: Mapping[int, tuple[str, int]] | None = None,
    sources: Mapping[str, str] | None = None,
    metrics: Mapping[str, Metric] | None = None,
) -> RawAction:
    """A launch as the reader would give it."""
    places = sorted((lines or {}).items())
    files = list(dict.fromkeys(file for _, (file, _) in places))
    return RawAction(
        name=name or mangled,
        mangled=mangled,
        metrics=MappingProxyType(
            {metric: Metric(sum(values.values()), "") for metric, values in columns.items()} | dict(metrics or {})
        ),
        columns=MappingProxyType({metric: column(values) for metric, values in columns.items()}),
        functions=(base,),
        lines=PcLines(
            tuple(files),
            np.array([pc for pc, _ in places], np.uint64),
            np.array([files.index(file) for _, (file, _) in places], np.int32),
            np.array([line for _, (_, line) in places], np.int32),
        )
        if places
        else NO_LINES,
        sources=MappingProxyType(dict(sources or {})),
    )
