"""Relocatable cubins become a linked one, whose registers and stack are final, or the names that are missing.

With -rdc=true ptxas leaves out what the called functions take; nvlink adds it. A file that needs no other is linked by
itself as a part of its build; which others one needs, only the project knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kernel_lsp.build import process
from kernel_lsp.project.toolchain import Toolchain, tool_in

_TIME_LIMIT_S = 20.0
_OUTPUT_BYTES = 64 << 10
_FLAGS = ("-rdc=true", "--relocatable-device-code=true")
_UNDEFINED = re.compile(r"Undefined reference to '([^']+)'")
_ERROR = re.compile(r"nvlink (?:error|fatal)\s*: *(.+)")
# The device runtime (kernels that launch kernels), which nvcc links always; as toolkits and PyPI's packages have it.
_RUNTIMES = (
    *(f"{folder}/libcudadevrt.a" for folder in ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")),
    "lib/x64/cudadevrt.lib",
)


@dataclass(frozen=True, slots=True)
class DeviceLink:
    """`linked` None: `undefined` names what no file defines (mangled), else `reason` is the linker's word."""

    linked: bytes | None
    undefined: tuple[str, ...] = ()
    reason: str = ""


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


async def device_link(
    nvlink: Path, arch: str, cubins: Sequence[Path], folder: Path, environment: Mapping[str, str]
) -> DeviceLink:
    """Link these cubins; `folder` takes the result. Code without a kernel is dropped by nvlink, and gives None."""
    output = folder / "linked.cubin"
    ended = await process.run(
        [str(nvlink), f"-arch={arch}", *map(str, cubins), *_runtime(nvlink), "-o", str(output)],
        cwd=folder,
        environment=environment,
        time_limit_s=_TIME_LIMIT_S,
        output_limit_bytes=_OUTPUT_BYTES,
    )
    said = (ended.stdout + ended.stderr).decode("utf-8", "replace")
    try:
        linked = output.read_bytes() if ended.code == 0 else b""
    except OSError:
        linked = b""
    if b".text." in linked:
        return DeviceLink(linked)
    if undefined := tuple(dict.fromkeys(_UNDEFINED.findall(said))):
        return DeviceLink(None, undefined)
    error = _ERROR.search(said)
    return DeviceLink(None, reason=error[1].strip() if error else f"nvlink gave no code ({ended.ending}, {ended.code})")


def _runtime(nvlink: Path) -> tuple[str, ...]:
    toolkit = nvlink.resolve().parent.parent
    library = next((path for name in _RUNTIMES if (path := toolkit / name).is_file()), None)
    return ("-L", str(library.parent), "-lcudadevrt") if library else ()
