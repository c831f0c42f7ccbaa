"""Runs every benchmark and prints one table: what was measured, against what, and the bound it must keep."""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import database, reports
from benchmarks.client import BARE, KERNEL_LSP, MeasuringClient
from benchmarks.row import SMALL_KERNEL, Row, environment, hover_row
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.model.kernel_sass import read_cubin_lines, read_cubin_sass
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings
from tests.oracle.sass_corpus import built

FLAGS = ("-std=c++17", "-O3", "-arch=sm_86")


async def first_diagnostics(nvcc: Path, folder: Path, n: int) -> Row:
    """didOpen of a new small kernel to its diagnostics, against `nvcc -cubin` alone with the same flags."""
    client = MeasuringClient()
    await client.start(KERNEL_LSP, folder, environment(folder))
    ours: list[float] = []
    alone: list[float] = []
    for i in range(n + 2):  # the first two warm both up
        path = folder / f"first{i}.cu"
        path.write_text(SMALL_KERNEL.format(unique=f"{time.time_ns()}"))
        began = time.perf_counter()
        client.open(path)
        took = await client.next_diagnostics(path, began) - began
        await asyncio.sleep(2)  # the server goes on to read the instructions; nvcc must not run beside that
        other = folder / f"alone{i}.cu"
        other.write_text(SMALL_KERNEL.format(unique=f"{time.time_ns()}"))
        began = time.perf_counter()
        argv = [str(nvcc), *FLAGS, "-cubin", "-lineinfo", "-o", str(folder / "alone.cubin"), str(other)]
        await asyncio.to_thread(subprocess.run, argv, check=True, cwd=folder)
        if i >= 2:
            ours.append(took)
            alone.append(time.perf_counter() - began)
    await client.stop()
    ratio = statistics.median(ours) / statistics.median(alone)
    return Row(
        "first diagnostics",
        f"{statistics.median(ours) * 1e3:.0f} ms = {ratio:.2f}x",
        f"nvcc -cubin {statistics.median(alone) * 1e3:.0f} ms",
        "1.10x",
        ratio <= 1.10,
    )


async def instructions(nvcc: Path, nvdisasm: Path, folder: Path, n: int) -> Row:
    """didOpen of a new tensor-core kernel to its instructions on lines, against nvcc and one nvdisasm run alone."""
    client = MeasuringClient()
    await client.start(KERNEL_LSP, folder, environment(folder))
    text = (Path(__file__).parents[1] / "examples" / "tensor_core_gemm.cu").read_text()
    ours: list[float] = []
    alone: list[float] = []
    for i in range(n + 2):
        path = folder / f"sass{i}.cu"
        path.write_text(f"// {time.time_ns()}\n{text}")
        began = time.perf_counter()
        client.open(path)
        took = await client.next_instructions(path, began) - began
        other, cubin = folder / f"alone_sass{i}.cu", str(folder / "alone.cubin")
        other.write_text(f"// {time.time_ns()}\n{text}")
        began = time.perf_counter()
        argv = [str(nvcc), *FLAGS, "-cubin", "-lineinfo", "-o", cubin, str(other)]
        await asyncio.to_thread(subprocess.run, argv, check=True, cwd=folder)
        argv = [str(nvdisasm), *ARGUMENTS, cubin]
        await asyncio.to_thread(subprocess.run, argv, check=True, cwd=folder, stdout=subprocess.PIPE)
        if i >= 2:
            ours.append(took)
            alone.append(time.perf_counter() - began)
    await client.stop()
    ratio = statistics.median(ours) / statistics.median(alone)
    return Row(
        "instructions on lines",
        f"{statistics.median(ours) * 1e3:.0f} ms = {ratio:.2f}x",
        f"nvcc and nvdisasm {statistics.median(alone) * 1e3:.0f} ms",
        "1.15x",
        ratio <= 1.15,
    )


async def unchanged_save(folder: Path, n: int) -> Row:
    """didSave of an unchanged file to its diagnostics."""
    client = MeasuringClient()
    await client.start(KERNEL_LSP, folder, environment(folder))
    path = folder / "unchanged.cu"
    path.write_text(SMALL_KERNEL.format(unique="unchanged"))
    began = time.perf_counter()
    client.open(path)
    await client.next_diagnostics(path, began)
    took = []
    for _ in range(n):
        await asyncio.sleep(0.5)  # saves far enough apart not to be one burst
        began = time.perf_counter()
        client.save(path)
        took.append(await client.next_diagnostics(path, began) - began)
    await client.stop()
    worst = max(took) * 1e3
    return Row(
        "unchanged save",
        f"median {statistics.median(took) * 1e3:.1f} ms, worst {worst:.1f} ms",
        "-",
        "50 ms",
        worst < 50,
    )


async def hover_during_build(folder: Path, n: int) -> Row:
    """Hover on one file while another is being built."""
    client = MeasuringClient()
    await client.start(KERNEL_LSP, folder, environment(folder))
    path = folder / "hovered.cu"
    path.write_text(SMALL_KERNEL.format(unique="hovered"))
    began = time.perf_counter()
    client.open(path)
    await client.next_diagnostics(path, began)
    took: list[float] = []
    build = 0
    while len(took) < n:
        build += 1
        busy = folder / f"busy{build}.cu"
        busy.write_text(SMALL_KERNEL.format(unique=f"{time.time_ns()}"))
        started = time.perf_counter()
        client.open(busy)
        done = asyncio.create_task(client.next_diagnostics(busy, started))
        took += await client.hovers_until(done, path)
    await client.stop()
    return hover_row("hover while a build runs", took, "-")


async def initialize(folder: Path, n: int) -> Row:
    """Process start to the answer of `initialize`, against a bare pygls server, in turns."""
    ours: list[float] = []
    bare: list[float] = []
    for i in range(n + 1):
        for command, into in ((KERNEL_LSP, ours), (BARE, bare)):
            client = MeasuringClient()
            took = await client.start(command, folder, environment(folder))
            await client.stop()
            if i:
                into.append(took)
    ratio = statistics.median(ours) / statistics.median(bare)
    return Row(
        "initialize",
        f"{statistics.median(ours) * 1e3:.0f} ms = {ratio:.2f}x",
        f"bare pygls {statistics.median(bare) * 1e3:.0f} ms",
        "1.30x",
        ratio <= 1.30,
    )


def command_of_10000(folder: Path, n: int) -> list[Row]:
    """A compile database of 10,000 entries: its first read with the choice for one file, and later choices."""
    took = {name: seconds * 1e3 for name, seconds in database.measure(folder / "large", n).items()}
    first, worst = took["first"], max(took["worst"], took["header"])
    return [
        Row(
            "10,000 entries, first read",
            f"{first:.0f} ms, again when touched {took['touched']:.0f} ms",
            "-",
            "1 s",
            first < 1000,
        ),
        Row(
            "10,000 entries, choice",
            f"median {took['median']:.1f} ms, worst {took['worst']:.1f} ms, header {took['header']:.1f} ms "
            f"(its first {took['header first']:.0f} ms)",
            "-",
            "50 ms",
            worst < 50,
        ),
    ]


def after_nvdisasm(nvdisasm: Path, n: int) -> Row:
    """A CUTLASS cubin's instructions with all that a save works out of them, against nvdisasm, in turns.

    Both run on one core: processor times are compared, so that a busy machine tells the same. The line table needs no
    disassembly: a save reads it while nvdisasm runs, so it is not counted.
    """
    toolkit = nvdisasm.parent.parent  # complete: the nvcc found first may be one without its disassembler
    path = built("cutlass_80", "sm_86", toolkit).path
    data = path.read_bytes()
    command = [str(nvdisasm), *ARGUMENTS, str(path)]
    ours, alone = [], []
    for i in range(n + 1):
        began = _children_s()
        done = subprocess.run(command, capture_output=True, check=True)
        took = _children_s() - began
        text = done.stdout.decode("utf-8", "replace")
        lines = read_cubin_lines(data)
        began = time.process_time()
        kernels = read_cubin_sass(data, text, "", lines).sections.values()
        if i:
            ours.append(time.process_time() - began)
            alone.append(took)
    ratio = statistics.median(ours) / statistics.median(alone)
    count = sum(kernel.instruction_count for kernel in kernels)
    return Row(
        f"{count:,} instructions of CUTLASS",
        f"{statistics.median(ours) * 1e3:.0f} ms = {ratio:.2f}x",
        f"nvdisasm {statistics.median(alone) * 1e3:.0f} ms",
        "0.50x",
        ratio <= 0.50,
    )


def _children_s() -> float:
    """Processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _main(n: int) -> int:
    tools = await Pipeline().toolchain(Settings())
    nvcc, nvdisasm = tools.nvcc, tools.nvdisasm
    if nvcc is None or nvdisasm is None:
        raise SystemExit("nvcc or nvdisasm not found: pip install 'kernel-lsp[cuda]'")
    with tempfile.TemporaryDirectory(prefix="kernel-lsp-bench-") as name:
        folder = Path(name)
        rows = [
            await first_diagnostics(nvcc.path, folder, n),
            await instructions(nvcc.path, nvdisasm.path, folder, n),
            await unchanged_save(folder, n),
            await hover_during_build(folder, 20 * n),
            await initialize(folder, n),
            *command_of_10000(folder, n),
            after_nvdisasm(nvdisasm.path, n),
        ]
        if reports.reports():
            rows += [await reports.hover_during_load(folder, 20 * n), *await reports.reading(folder, n)]
        else:
            print(reports.LEFT_OUT)
    widths = [max(len(row.name) for row in rows), max(len(row.measured) for row in rows)]
    for row in rows:
        verdict = "ok  " if row.holds else "MISS"
        print(f"{verdict}  {row.name:<{widths[0]}}  {row.measured:<{widths[1]}}  {row.against}  (bound {row.bound})")
    return 0 if all(row.holds for row in rows) else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("-n", type=int, default=15, help="repetitions of each measurement")
    return asyncio.run(_main(parser.parse_args().n))


if __name__ == "__main__":
    sys.exit(main())
