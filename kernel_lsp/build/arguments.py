"""A build command becomes nvcc's arguments and environment, and what of them decides the result (starts nothing)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.shell_hazard import path_hazard, shell_hazard
from kernel_lsp.project.toolchain import Toolchain

# nvcc reads flags from the first two, gcc writes dependency files where the next two say.
_NOT_PASSED_ON = (
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "DEPENDENCIES_OUTPUT",
    "SUNPRO_DEPENDENCIES",
    "GCC_COLORS",
    "LANG",
    "LANGUAGE",
)
_MACHINE_CUDA = 190
# What else decides which headers are read, and so belongs to the recipe.
_DECIDES = (
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH", "NVCC_CCBIN"),
    *("INCLUDE", "CL", "_CL_"),  # of cl.exe
)


def shown_argv(command: BuildCommand, nvcc: Path) -> tuple[str, ...]:
    """The build as a person would repeat it, without what leads the outputs into a run folder."""
    return (*base_argv(command, nvcc), str(command.source.absolute()))


def base_argv(command: BuildCommand, nvcc: Path) -> tuple[str, ...]:
    """Program and flags of the build, without source and outputs."""
    language = () if command.source.suffix == ".cu" or "-x" in command.flags else ("-x", "cu")
    return (str(nvcc), *command.flags, *language, "-cubin", "-lineinfo", *_architecture(command))


def _architecture(command: BuildCommand) -> tuple[str, ...]:
    """`-arch`, or both architectures where the build compiles for one and assembles for another (another program)."""
    if command.virtual_arch in {"", command.arch.replace("sm_", "compute_")}:
        return (f"-arch={command.arch}",)
    return ("-gencode", f"arch={command.virtual_arch},code={command.arch}")


def build_environment(command: BuildCommand, environment: Mapping[str, str]) -> dict[str, str]:
    """The given variables without those that smuggle in flags or outputs, the entry's own, messages in English."""
    variables = {name: value for name, value in environment.items() if name not in _NOT_PASSED_ON}
    variables.update(command.environment)
    variables["LC_ALL"] = "C"
    return variables


def deciding_variables(variables: Mapping[str, str]) -> list[str]:
    """The variables that decide which headers are read, as `NAME=value`."""
    return [f"{name}={variables.get(name, '')}" for name in _DECIDES]


def refusal(arguments: tuple[str, ...], source: Path, cwd: Path) -> str | None:
    """Why nvcc is not started, whoever made the command: it runs its steps through a shell. None: nothing."""
    for argument in arguments:
        if hazard := shell_hazard(argument):
            return f"The argument {argument!r} is refused: {hazard}. Remove it from the flags."
    for path in (source, cwd):
        if hazard := path_hazard(str(path)):
            return f"The path {path} is refused: {hazard}. Rename the file or folder."
    return None


def overlay_copy(text: bytes, source: Path) -> bytes:
    """The text under the source's own name and line numbers."""
    name = os.fsencode(source).replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return b'#line 1 "' + name + b'"\n' + text.removeprefix(b"\xef\xbb\xbf")


def quote_folder(folder: Path) -> tuple[str, ...]:
    """Arguments that let `#include "..."` of the copy look in the original's folder, and `<...>` not."""
    if sys.platform == "win32":  # cl has no such option
        return ("-I", str(folder))
    return ("-Xcompiler", "-iquote", "-Xcompiler", f'"{folder}"')


def is_device_code(data: bytes) -> bool:
    """Whether a compiler's output is an ELF file of NVIDIA's machine code, not of the host's."""
    return data[:4] == b"\x7fELF" and int.from_bytes(data[18:20], "little") == _MACHINE_CUDA


def tool_identity(toolchain: Toolchain, variables: Mapping[str, str]) -> list[str]:
    """What tells one compiler from another without running it: version where known, size and time of the programs."""
    nvcc = toolchain.nvcc
    assert nvcc is not None
    toolkit = toolchain.toolkit or nvcc.path.resolve().parent.parent
    host = variables.get("NVCC_CCBIN") or shutil.which(
        "cl" if sys.platform == "win32" else "gcc", path=variables.get("PATH", "")
    )
    programs = [nvcc.path, *(toolkit / "bin" / name for name in ("ptxas", "nvlink")), toolkit / "nvvm" / "bin" / "cicc"]
    programs += [Path(host)] if host else []
    return [nvcc.version or "", *(program_stamp(program) for program in programs)]


def program_stamp(program: Path) -> str:
    """Path, size and time of a program: another release under the same name is told from it."""
    try:
        status = program.stat()
    except OSError:
        return f"{program} absent"
    return f"{program} {status.st_size} {status.st_mtime_ns}"
