"""Commands of NVIDIA's tools that would make known what a report does not know."""

from __future__ import annotations

import shlex

from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.report.section import BuildFacts, Command


def ncu(kernel: KernelAnalysis, what: str) -> str:
    """One launch of this kernel under ncu; the user's program is the one thing that cannot be known here."""
    name = kernel.binary.short_name.partition("<")[0].rpartition("::")[2]
    return f"ncu {what} --kernel-name {shlex.quote(name)} --launch-count 1 -o report ./your_program"


def sass(build: BuildFacts) -> Command:
    """Builds the cubin again beside the user, as the analysed one lives in a cache, and prints its instructions."""
    if not build.argv:
        return Command("nvdisasm -c -gi FILE.cubin")
    return Command(f"{shlex.join([*build.argv, '-o', 'kernel.cubin'])} && nvdisasm -c -gi kernel.cubin")
