"""A compile database of 10,000 entries: what its first read costs, and then the choice of the command for one file."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.find_command import ProjectFiles, find_command

N_ENTRIES = 10_000
N_FOLDERS = 100
_FLAGS = (
    "-forward-unknown-to-host-compiler -DBUILD_SHARED -DUSE_FEATURE_{folder}=1 -I{root}/include -I{root}/src/d{folder} "
    "-isystem={root}/third/cutlass/include -isystem={root}/third/cub -O3 -DNDEBUG -std=c++17 "
    '--generate-code=arch=compute_80,code=[sm_80] "--generate-code=arch=compute_90,code=[compute_90,sm_90]" '
    "--expt-relaxed-constexpr --expt-extended-lambda -Xcompiler=-fPIC,-Wall -MD -MT {out} -MF {out}.d -x cu"
)


def write_database(root: Path) -> list[Path]:
    """As CMake writes it; a tenth of the files exist, which is what an editor has open or searches. Gives those."""
    (root / "build").mkdir(parents=True)
    entries, existing = [], []
    for number in range(N_ENTRIES):
        folder = number % N_FOLDERS
        file = root / "src" / f"d{folder}" / f"kernel{number}.cu"
        out = f"CMakeFiles/all.dir/src/d{folder}/kernel{number}.cu.o"
        flags = _FLAGS.format(root=root, folder=folder, out=out)
        command = f"/usr/local/cuda/bin/nvcc {flags} -c {file} -o {out}"
        entries.append({"directory": str(root / "build"), "command": command, "file": str(file), "output": out})
        if number % 10 == 0:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f'#include "own{folder}.cuh"\n__global__ void k{number}() {{}}\n')
            existing.append(file)
    (root / "include").mkdir()
    (root / "include" / "own10.cuh").write_text("#pragma once\n")
    (root / "build" / "compile_commands.json").write_text(json.dumps(entries))
    return existing


def choose(root: Path, file: Path, files: ProjectFiles) -> tuple[float, BuildCommand]:
    """Seconds, and the command."""
    began = time.perf_counter()
    command = find_command(file, files=files, workspace_roots=(root,), trusted=True)
    return time.perf_counter() - began, command


def measure(root: Path, n: int) -> dict[str, float]:
    """Seconds: first read, median and worst choice of a source, and the choice for a header, first and then."""
    existing = write_database(root)
    header = root / "include" / "own10.cuh"
    first, command = choose(root, existing[0], files := ProjectFiles())
    assert command.origin_path == root / "build" / "compile_commands.json"
    took = [choose(root, file, files)[0] for file in existing[1 : 1 + max(n, 20)]]
    header_first, through = choose(root, header, files)
    header_then, _ = choose(root, header, files)
    assert through.source.suffix == ".cu", through.skip_reason
    (root / "build" / "compile_commands.json").touch()
    again, _ = choose(root, existing[0], files)
    return {
        "first": first,
        "median": statistics.median(took),
        "worst": max(took),
        "header first": header_first,
        "header": header_then,
        "touched": again,
    }
