"""Found tools are asked what they are: versions, architectures, the folder nvcc works from; and the machine its GPU.

Answers are kept in the cache folder by the program's path, size and time, so that only the first start ever pays for
them. A script of its own making is asked each time, since what it starts may change without it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_lsp.build import process
from kernel_lsp.build.store import BuildStore
from kernel_lsp.project.toolchain import INSTALL_COMMAND, Tool, Toolchain, tool_in
from kernel_lsp.source.digest import recipe_digest

_TIME_LIMIT_S = 10.0
_OUTPUT_BYTES = 64 << 10
_FORMAT = 1
_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)\b")
_RELEASE = re.compile(r"\brelease (\d+\.\d+)")
_TOOLKIT = re.compile(r"^#\$ TOP=(.*)$", re.MULTILINE)
_GPU_CODE = re.compile(r"\bsm_\d+[a-z]?\b")
_WHEELS = {"nvcc": "nvidia_cuda_nvcc", "cicc": "nvidia_nvvm", "headers": "nvidia_cuda_crt"}


@dataclass(frozen=True, slots=True)
class Gpu:
    """The machine's first GPU, as nvidia-smi names it; `arch` is "sm_86"."""

    name: str
    arch: str


@dataclass(frozen=True, slots=True)
class _Answers:
    version: str | None
    toolkit: str | None = None
    gpu_code: tuple[str, ...] = ()


async def probe(toolchain: Toolchain, store: BuildStore, environment: Mapping[str, str]) -> Toolchain:
    """The toolchain with versions, architectures and clashes filled in; what a tool would not say stays None.

    ptxas becomes the one that nvcc itself starts, where that can be told.
    """
    toolkit: Path | None = None
    gpu_code: tuple[str, ...] = ()
    nvcc = toolchain.nvcc
    problems = list(toolchain.problems)
    if nvcc is not None:
        answers = await _ask(nvcc, store, environment)
        if answers.version is None:
            problems.append(f"{nvcc.path} ({nvcc.where}) does not answer --version like nvcc does.")
        nvcc = replace(nvcc, version=answers.version)
        toolkit = Path(answers.toolkit) if answers.toolkit else None
        gpu_code = answers.gpu_code
    own_ptxas = tool_in(toolkit / "bin", "ptxas", "the one that nvcc starts") if toolkit else None
    others = [own_ptxas or toolchain.ptxas, toolchain.nvdisasm, toolchain.cuobjdump]
    asked = await asyncio.gather(*(_ask(tool, store, environment) for tool in others if tool is not None))
    answered = iter(asked)
    ptxas, nvdisasm, cuobjdump = (
        replace(tool, version=next(answered).version) if tool is not None else None for tool in others
    )
    missing = tuple(m for m in toolchain.missing if m.name != "ptxas" or ptxas is None)
    probed = replace(
        toolchain,
        nvcc=nvcc,
        ptxas=ptxas,
        nvdisasm=nvdisasm,
        cuobjdump=cuobjdump,
        missing=missing,
        toolkit=toolkit,
        gpu_code=gpu_code,
    )
    return replace(probed, problems=(*problems, *clashes(probed)))


def clashes(toolchain: Toolchain) -> tuple[str, ...]:
    """Parts of different CUDA releases that cannot work together, one sentence each."""
    found: list[str] = []
    nvcc, ptxas, nvdisasm = toolchain.nvcc, toolchain.ptxas, toolchain.nvdisasm
    releases = {"nvcc": _release(nvcc.version if nvcc else None), "ptxas": _release(ptxas.version if ptxas else None)}
    if toolchain.toolkit is not None:
        for part, package in _WHEELS.items():
            version = _wheel_version(toolchain.toolkit, package)
            if version is not None and part != "nvcc":
                releases[part] = _release(version)
    known = {part: release for part, release in releases.items() if release is not None}
    if len(set(known.values())) > 1:
        parts = ", ".join(f"{part} {release[0]}.{release[1]}" for part, release in known.items())
        found.append(
            f"Parts of different CUDA releases are installed together ({parts}); ptxas refuses PTX of a newer "
            f"release. Install one release: {INSTALL_COMMAND}"
        )
    reader = _release(nvdisasm.version if nvdisasm else None)
    compiler = known.get("nvcc")
    if nvdisasm is not None and reader is not None and compiler is not None and reader < compiler:
        found.append(
            f"nvdisasm {nvdisasm.version} ({nvdisasm.path}) is older than nvcc {nvcc.version if nvcc else ''} and may "
            f"not read its cubins. Install a newer one: {INSTALL_COMMAND}"
        )
    return tuple(found)


async def detect_gpu(environment: Mapping[str, str], *, program: Path | None = None) -> Gpu | None:
    """The first GPU by nvidia-smi; None where there is none or it does not answer in 3 s. Ask once per session."""
    found = program or _nvidia_smi(environment)
    if found is None:
        return None
    argv = [str(found), "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    ended = await _run(argv, environment, time_limit_s=3.0)
    for line in ended.stdout.decode("utf-8", "replace").splitlines():
        name, _, capability = line.rpartition(",")
        if match := re.fullmatch(r"\s*(\d+)\.(\d+)\s*", capability):
            return Gpu(name.strip(), f"sm_{match[1]}{match[2]}")
    return None


async def _ask(tool: Tool, store: BuildStore, environment: Mapping[str, str]) -> _Answers:
    kept = None if store.folder is None or _is_script(tool.path) else _kept_path(store.folder, tool.path)
    if kept is not None and (known := _read(kept)) is not None:
        return known
    path = str(tool.path)
    if tool.name != "nvcc":
        ended = await _run([path, "--version"], environment)
        answers = _Answers(_version(ended))
    else:
        with tempfile.TemporaryDirectory(prefix="kernel-lsp-") as folder:
            empty = Path(folder, "empty.cu")
            empty.write_bytes(b"")
            version, codes, dryrun = await asyncio.gather(
                _run([path, "--version"], environment),
                _run([path, "--list-gpu-code"], environment),
                _run([path, "--dryrun", "-cubin", "-o", str(Path(folder, "o")), str(empty)], environment),
            )
        top = _TOOLKIT.search(dryrun.stderr.decode("utf-8", "surrogateescape"))
        toolkit = str(Path(top[1]).resolve()) if top and Path(top[1]).is_dir() else None
        listed = _GPU_CODE.findall(codes.stdout.decode("utf-8", "replace")) if codes.code == 0 else []
        answers = _Answers(_version(version), toolkit, tuple(dict.fromkeys(listed)))
    if kept is not None and answers.version is not None:
        _write(kept, answers)
    return answers


async def _run(argv: list[str], environment: Mapping[str, str], time_limit_s: float | None = None) -> process.Finished:
    return await process.run(
        argv,
        cwd=Path(tempfile.gettempdir()),
        environment=environment,
        time_limit_s=_TIME_LIMIT_S if time_limit_s is None else time_limit_s,
        output_limit_bytes=_OUTPUT_BYTES,
        niceness=0,
    )


def _version(ended: process.Finished) -> str | None:
    said = ended.stdout.decode("utf-8", "replace")
    match = _VERSION.search(said) or _RELEASE.search(said)
    return match[1] if match and ended.code == 0 else None


def _release(version: str | None) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(match[1]), int(match[2])) if match else None


def _wheel_version(toolkit: Path, package: str) -> str | None:
    """Version of a PyPI package that shares `toolkit` (site-packages/nvidia/cu13), from its own record."""
    if toolkit.parent.name != "nvidia":
        return None
    for folder in toolkit.parent.parent.glob(f"{package}-*.dist-info"):
        return folder.name[len(package) + 1 : -len(".dist-info")]
    return None


def _nvidia_smi(environment: Mapping[str, str]) -> Path | None:
    folders = [entry for entry in environment.get("PATH", "").split(os.pathsep) if Path(entry).is_absolute()]
    folders += [] if sys.platform == "win32" else ["/usr/bin", "/usr/lib/wsl/lib"]
    found = shutil.which("nvidia-smi", path=os.pathsep.join(folders))
    return Path(found) if found else None


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def _kept_path(folder: Path, tool: Path) -> Path | None:
    try:
        status = tool.stat()
    except OSError:
        return None
    key = recipe_digest([f"format {_FORMAT}", str(tool), str(status.st_size), str(status.st_mtime_ns)])
    return folder / "tools" / f"{key}.json"


def _read(path: Path) -> _Answers | None:
    try:
        kept = json.loads(path.read_bytes())
        toolkit = kept["toolkit"]
        if toolkit is not None and not Path(toolkit).is_dir():
            return None
        return _Answers(str(kept["version"]), toolkit, tuple(str(code) for code in kept["gpu_code"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, answers: _Answers) -> None:
    text = json.dumps({"version": answers.version, "toolkit": answers.toolkit, "gpu_code": answers.gpu_code})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        Path(file.name).replace(path)
    except OSError:  # asked again next time
        return
