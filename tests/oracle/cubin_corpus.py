"""Builds the test kernels for an architecture, once, and reads what NVIDIA's tools say of the result."""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "data" / "cubin_corpus"
EXAMPLES = ROOT / "examples"
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
# Assembled from one PTX of nvcc, as a driver or a fat binary's maker does: the compiler before ptxas takes ten times as
# long, and runs for sm_86 and sm_120a.
ASSEMBLED = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a")
_VIRTUAL = "compute_75"


@dataclass(frozen=True)
class BuiltCubin:
    """A cubin and the `ptxas -v` text of its build."""

    source: Path
    path: Path
    ptxas_text: str

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()


def sources_for(arch: str) -> list[Path]:
    """The corpus and the examples that are built for the architecture."""
    chosen = []
    for source in (*sorted(CORPUS.glob("*.cu")), *sorted(EXAMPLES.glob("*.cu"))):
        only = re.search(r"^//@ arch: (.*)$", source.read_text("utf-8"), re.MULTILINE)
        if arch in (only[1].split() if only else ARCHS):
            chosen.append(source)
    return chosen


def build(source: Path, arch: str, toolkit: Path, more_flags: Sequence[str] = ()) -> BuiltCubin:
    """Compiles a file; results are kept in the temporary folder by content, for all test processes."""
    nvcc = [*_nvcc(source, toolkit), *more_flags]
    return _made(source, arch, toolkit, [*nvcc, "-cubin", f"-arch={arch}", "-Xptxas", "-v", str(source)], "cubin")


def assembled(source: Path, arch: str, toolkit: Path) -> BuiltCubin:
    """As `build` of a file of `sources_for`, faster for some architectures."""
    if arch not in ASSEMBLED or "//@ arch:" in source.read_text("utf-8"):
        return build(source, arch, toolkit)
    nvcc = _nvcc(source, toolkit)
    ptx = _made(source, _VIRTUAL, toolkit, [*nvcc, "-ptx", f"-arch={_VIRTUAL}", str(source)], "ptx").path
    later = ["-c"] if "-rdc=true" in nvcc else []
    ptxas = [str(toolkit / "bin" / "ptxas"), "-lineinfo", "-v", *later, f"-arch={arch}", str(ptx)]
    return _made(source, arch, toolkit, ptxas, "cubin")


def _nvcc(source: Path, toolkit: Path) -> list[str]:
    """nvcc with what every build has, and what the file asks for."""
    flags = re.search(r"^//@ flags: (.*)$", source.read_text("utf-8"), re.MULTILINE)
    words = ["-std=c++17", "--extended-lambda", "-lineinfo", *(flags[1].split() if flags else ())]
    return [str(toolkit / "bin" / "nvcc"), *words]


def _made(source: Path, arch: str, toolkit: Path, command: list[str], kind: str) -> BuiltCubin:
    nvcc = toolkit / "bin" / "nvcc"
    recipe = hashlib.sha256(" ".join(command).encode())
    recipe.update(version(nvcc).encode())
    included = re.findall(r'^#include "(.*)"', source.read_text("utf-8"), re.MULTILINE)
    parts = {source.parent / name for name in included} | set(source.parent.glob("*.cuh"))
    for file in (source, *sorted(parts)):
        recipe.update(file.read_bytes())
    folder = Path(tempfile.gettempdir()) / "kernel-lsp-test-cubins"
    folder.mkdir(exist_ok=True)
    path = folder / f"{source.stem}.{arch}.{recipe.hexdigest()[:24]}.{kind}"
    text = path.with_suffix(".txt")
    with _one_process(path):
        if not (path.is_file() and text.is_file()):
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = Path(scratch) / "made.cubin"
                done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr
                said = Path(scratch) / "said.txt"
                said.write_text(done.stderr, "utf-8")
                said.replace(text)
                made.replace(path)
    return BuiltCubin(source, path, text.read_text("utf-8"))


@cache
def version(tool: Path) -> str:
    """What a tool says of its version."""
    return subprocess.run([str(tool), "--version"], capture_output=True, text=True, check=True).stdout


def tool_text(toolkit: Path, cubin: Path, name: str, *arguments: str) -> str:
    """What an NVIDIA tool prints about a cubin of `build`, kept beside it."""
    tool = toolkit / "bin" / name
    recipe = f"{name} {arguments} {version(tool)}"
    kept = cubin.with_suffix(f".{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.z")
    with _one_process(kept):
        if not kept.is_file():
            done = subprocess.run([str(tool), *arguments, str(cubin)], capture_output=True, check=True, timeout=200)
            made = kept.with_suffix(".new")
            made.write_bytes(zlib.compress(done.stdout, 1))
            made.replace(kept)
    return zlib.decompress(kept.read_bytes()).decode("utf-8", "backslashreplace")


@contextmanager
def _one_process(path: Path) -> Iterator[None]:
    """Lets one test process at a time make a file."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass
class PtxasFunction:
    """What `ptxas -v` printed of one function; None: not printed."""

    frame: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    registers: int | None = None
    barriers: int | None = None
    stack: int = 0
    shared: int = 0
    local: int = 0
    constants: int | None = None


def ptxas_functions(text: str) -> tuple[dict[str, PtxasFunction], dict[tuple[str, str], PtxasFunction]]:
    """Kernels by mangled name, and device functions by (kernel before them, mangled name)."""
    kernels: dict[str, PtxasFunction] = {}
    functions: dict[tuple[str, str], PtxasFunction] = {}
    kernel = ""
    current = PtxasFunction()
    for line in text.splitlines():
        if entry := re.search(r"Compiling entry function '(\S+)'", line):
            kernel = entry[1]
            kernels[kernel] = PtxasFunction()
        elif named := re.search(r"Function properties for (\S+)", line):
            current = (
                kernels[kernel] if named[1] == kernel else functions.setdefault((kernel, named[1]), PtxasFunction())
            )
        elif frame := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            current.frame, current.spill_stores, current.spill_loads = map(int, frame.groups())
        elif "Used " in line:
            found = kernels[kernel]
            found.registers = _number(r"Used (\d+) registers", line)
            found.barriers = _number(r"used (\d+) barriers", line)
            found.stack = _number(r"(\d+) bytes cumulative stack size", line) or 0
            found.shared = _number(r"(\d+) bytes smem", line) or 0
            found.local = _number(r"(\d+) bytes lmem", line) or 0
            found.constants = _number(r"(\d+) bytes cmem\[0\]", line)
    return kernels, functions


def _number(pattern: str, line: str) -> int | None:
    found = re.search(pattern, line)
    return int(found[1]) if found else None


def resource_usage(path: Path, toolkit: Path) -> dict[str, dict[str, str]]:
    """`cuobjdump -res-usage`: mangled name -> "REG", "STACK", "SHARED", "LOCAL", "CONSTANT[0]" -> value."""
    said = tool_text(toolkit, path, "cuobjdump", "-res-usage")
    return {
        name: dict(pair.rsplit(":", 1) for pair in values.split())
        for name, values in re.findall(r"Function (\S+):\n\s+(.*)", said)
    }
