"""`kernel-lsp occupancy`: what if a kernel took so many registers, threads and bytes; one launch, or a CSV of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kernel_lsp.cli.argument_types import block, whole
from kernel_lsp.cli.errors import CliError
from kernel_lsp.cli.machine import add_machine_options, chosen_machine
from kernel_lsp.cli.occupancy_batch import run_batch
from kernel_lsp.findings import wording
from kernel_lsp.hardware.profile import GpuChoice, SmLimits
from kernel_lsp.model.cliffs import block_size_rows, cliffs, largest_launchable_block
from kernel_lsp.model.occupancy import LaunchShape, LaunchShapeError, Occupancy, occupancy
from kernel_lsp.report.machine_words import machine_words
from kernel_lsp.report.occupancy_table import block_size_lines, limit_lines


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `occupancy`."""
    parser = subparsers.add_parser("occupancy", help="occupancy of a launch, no file needed", allow_abbrev=False)
    add_machine_options(parser, "limits")
    parser.add_argument("--registers", metavar="N", type=whole, help="registers per thread, as ptxas reports them")
    parser.add_argument("--block", metavar="N", type=block, help="threads per block, as 256 or 16x16")
    parser.add_argument("--static-shared", metavar="B", type=whole, help="static shared memory per block, bytes")
    parser.add_argument("--dynamic-shared", metavar="B", type=whole, help="dynamic shared memory per block, bytes")
    parser.add_argument("--cluster", metavar="N", type=whole, help="blocks per cluster")
    parser.add_argument("--batch", metavar="IN.csv", type=Path, help="launches to answer, one a row")
    parser.add_argument("-o", "--output", metavar="OUT.csv", type=Path, help="where --batch writes")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the occupancy of one launch or of a batch.

    Raises:
        CliError: options that do not fit together, an unknown machine, a launch or a row that makes no sense.
    """
    single = ("gpu", "arch", "registers", "block", "static_shared", "dynamic_shared", "cluster")
    if options.batch is not None:
        given = [name for name in single if getattr(options, name) is not None]
        if given:
            raise CliError(f"--batch takes launches from its file: leave out --{given[0].replace('_', '-')}")
        run_batch(options.batch, options.output)
        return 0
    if options.output is not None:
        raise CliError("-o needs --batch IN.csv")
    if options.registers is None:
        raise CliError("occupancy needs --registers N (per thread, as ptxas reports them), or --batch IN.csv")
    try:
        gpu = chosen_machine(options)
        lines = _launch_lines(gpu, options) if options.block else _size_lines(gpu, _shape(options, 1))
    except LaunchShapeError as error:
        raise CliError(str(error)) from error
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _shape(options: argparse.Namespace, threads: int) -> LaunchShape:
    return LaunchShape(
        threads_per_block=threads,
        registers_per_thread=options.registers,
        static_shared_bytes=options.static_shared or 0,
        dynamic_shared_bytes=options.dynamic_shared or 0,
        cluster_blocks=options.cluster,
    )


def _launch_lines(gpu: GpuChoice, options: argparse.Namespace) -> list[str]:
    x, y, z = options.block
    shape, limits = _shape(options, x * y * z), gpu.profile.limits
    found = occupancy(limits, shape)
    own = shape.static_shared_bytes + shape.dynamic_shared_bytes
    reserve = limits.shared_reserved_bytes_per_block
    lines = [f"{machine_words(gpu)} · block {wording.block_size(options.block)}", ""]
    if found.blocks_per_sm:
        lines.append(_sentence(found))
    else:
        lines.append(f"This launch cannot start: {_refusal(limits, shape, found)}.")
    lines += [
        "",
        *limit_lines(
            found,
            {
                "registers": f"{shape.registers_per_thread} per thread",
                "warps": f"{-(-shape.threads_per_block // limits.warp_size)} per block",
                "blocks": "",
                "shared": wording.kilobytes(own) + (f" + {wording.kilobytes(reserve)}" if reserve else ""),
            },
        ),
        "",
        *_steps(limits, shape, found),
    ]
    if found.is_upper_bound:
        lines += ["", *_cluster_lines(gpu, shape, found)]
    return lines


def _size_lines(gpu: GpuChoice, shape: LaunchShape) -> list[str]:
    limits = gpu.profile.limits
    largest = largest_launchable_block(limits, shape)
    lines = [f"{machine_words(gpu)} · {shape.registers_per_thread} registers per thread", ""]
    lines += block_size_lines(block_size_rows(limits, shape))
    lines.append("")
    if largest == 0:
        lines.append("No block can start with so much shared memory or so many registers.")
    elif largest < limits.max_threads_per_block:
        lines.append(f"The largest block that can start has {largest} threads.")
    lines.append("--block N shows one size with its limits and steps.")
    return lines


def _sentence(found: Occupancy) -> str:
    most = "At most " if found.is_upper_bound else ""
    return (
        f"{most}{wording.percent(found.theoretical)} theoretical occupancy: "
        f"{wording.counted(found.blocks_per_sm, 'block')}/SM, {found.active_warps} of {found.max_warps} warps. "
        f"Limited by {wording.limiters(found)}."
    )


def _refusal(limits: SmLimits, shape: LaunchShape, found: Occupancy) -> str:
    if shape.threads_per_block > limits.max_threads_per_block:
        return f"a block has at most {limits.max_threads_per_block:,} threads"
    if found.limit_shared == 0:
        return f"a block has at most {wording.exact_bytes(limits.shared_optin_bytes_per_block)} of shared memory"
    if shape.registers_per_thread > limits.max_registers_per_thread:
        return f"a thread has at most {limits.max_registers_per_thread} registers"
    largest = largest_launchable_block(limits, shape)
    return f"with {shape.registers_per_thread} registers the largest block has {largest} threads"


def _steps(limits: SmLimits, shape: LaunchShape, found: Occupancy) -> list[str]:
    steps = cliffs(limits, shape)
    ups = [wording.step(step) for step in steps if step.direction == "up"]
    downs = [wording.step(step) for step in steps if step.direction == "down"]
    none_up = "none, the warps are full" if found.active_warps == limits.max_warps else "none by one resource alone"
    return [
        f"Next step up: {', or '.join(ups) or none_up}.",
        f"Next step down: {', or '.join(downs) or 'none'}.",
    ]


def _cluster_lines(gpu: GpuChoice, shape: LaunchShape, found: Occupancy) -> list[str]:
    limits, size = gpu.profile.limits, shape.cluster_blocks or 1
    lines = [f"Clusters of {size}: an upper bound, since how many SMs share a GPC is known to the driver alone."]
    if gpu.profile.sm_count is not None:
        most = found.blocks_per_sm * gpu.profile.sm_count // size
        lines.append(f"At most {wording.counted(most, 'cluster')} at a time on {gpu.profile.sm_count} SMs.")
    portable = limits.max_cluster_blocks_portable or 0
    if size > portable:
        lines.append(f"More than {portable} blocks per cluster need the kernel's non-portable attribute.")
    return lines
