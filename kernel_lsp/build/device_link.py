"""A relocatable cubin that needs no other file becomes a linked one, whose registers and stack are final.

With -rdc=true ptxas leaves out what the called functions take; nvlink adds it. Where a file calls functions of other
files nvlink refuses, and the numbers before linking stay a lower bound: which of the project's files it would be linked
with stands in no compile command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from kernel_lsp.build import process
from kernel_lsp.project.toolchain import Toolchain, tool_in

_TIME_LIMIT_S = 20.0
_OUTPUT_BYTES = 64 << 10
_FLAGS = ("-rdc=true", "--relocatable-device-code=true")


def is_relocatable(flags: Sequence[str]) -> bool:
    """Whether these flags leave the device code to be linked (the last word counts)."""
    said = [flag for flag in flags if flag.startswith(("-rdc=", "--relocatable-device-code="))]
    said += [f"-rdc={value}" for flag, value in pairwise(flags) if flag in ("-rdc", "--relocatable-device-code")]
    return bool(said) and said[-1] in _FLAGS


def nvlink_of(toolchain: Toolchain) -> Path | None:
    """nvlink of the toolkit that nvcc works from."""
    nvcc = toolchain.nvcc
    if nvcc is None:
        return None
    toolkit = toolchain.toolkit or nvcc.path.resolve().parent.parent
    found = tool_in(toolkit / "bin", "nvlink", "next to nvcc")
    return found.path if found else None


async def device_link(nvlink: Path, arch: str, cubin: Path, cwd: Path, environment: Mapping[str, str]) -> bytes | None:
    """The linked cubin; None where the file needs others, or holds no kernel (nvlink drops what no kernel calls)."""
    output = cubin.with_suffix(".linked")
    ended = await process.run(
        [str(nvlink), f"-arch={arch}", str(cubin), "-o", str(output)],
        cwd=cwd,
        environment=environment,
        time_limit_s=_TIME_LIMIT_S,
        output_limit_bytes=_OUTPUT_BYTES,
    )
    try:
        linked = output.read_bytes() if ended.code == 0 else b""
    except OSError:
        return None
    return linked if b".text." in linked else None
