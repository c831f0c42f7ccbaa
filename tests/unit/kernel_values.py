"""Kernels, launches and sources made by hand, for tests of what is said about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernel_lsp.analysis import FileAnalysis, analyze
from kernel_lsp.cubin.kernel import Cubin, KernelBinary, Resources
from kernel_lsp.hardware.catalog import by_name
from kernel_lsp.hardware.profile import GpuChoice
from kernel_lsp.model.launch import Launch, LaunchOrigin
from kernel_lsp.source.kernels import scan
from kernel_lsp.source.position import SourceLine

PATH = "/project/gemm.cu"


def gpu(name: str = "RTX 3070 Ti", why: Any = "setting") -> GpuChoice:
    return GpuChoice(by_name(name), why, f"{name} as chosen")


def resources(registers: int = 32, **values: Any) -> Resources:
    given: dict[str, Any] = {
        "static_shared_bytes": 0,
        "local_bytes": 0,
        "frame_bytes": 0,
        "stack_bytes": 0,
        "spill_store_bytes": 0,
        "spill_load_bytes": 0,
        "spill_why": None,
        "barriers": 0,
        "constant_bytes": 384,
        "max_block": None,
        "required_block": None,
        "min_blocks_per_sm": None,
        "uses_dynamic_shared": False,
        "relocatable": False,
    }
    return Resources(registers=registers, **(given | values))


def kernel(
    short_name: str = "gemm", line: int | None = 5, registers: int = 32, arch: str = "sm_86", **values: Any
) -> KernelBinary:
    return KernelBinary(
        mangled=f"_Z_{short_name}",
        name=f"void {short_name}(float*)",
        short_name=short_name,
        arch=arch,
        definition=None if line is None else SourceLine(PATH, line),
        resources=resources(registers, **values),
        code_bytes=1024,
    )


def launch(
    threads: int = 256, dynamic: int | None = 0, origin: LaunchOrigin = "source", where: str = "gemm.cu:41"
) -> Launch:
    return Launch((threads, 1, 1), None, dynamic, None, origin, where)


def analysed(
    kernels: Sequence[KernelBinary],
    launches: dict[str, list[Launch]] | None = None,
    text: str = "",
    choice: GpuChoice | None = None,
    **more: Any,
) -> FileAnalysis:
    """`analyze` over hand-made kernels; `launches` by short name."""
    cubin = Cubin(kernels[0].arch if kernels else "sm_86", tuple(kernels), (), "13.0.88", False)
    by_mangled = {f"_Z_{name}": tuple(found) for name, found in (launches or {}).items()}
    return analyze(PATH, text, cubin, choice or gpu(), scan(text), by_mangled, **more)
