"""KL201: ptxas spilled registers; one finding a kernel, with the bytes and what held the registers down."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.local_places import access_places
from kernel_lsp.findings.measured import leaves_local_memory_alone
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.model.line_sass import local_lines
from kernel_lsp.model.register_budget import largest_register_count

ADDRESSABLE_REGISTERS = 255  # per thread, by the instruction set
LOWEST_LIMIT = 24  # "adjusting per thread register count of 16 to lower bound of 24" (ptxas 13.5)


def _variant(facts: Facts, kernel: KernelAnalysis) -> str:
    if wording.launch_bounds(kernel.binary.resources):
        return "bound"
    # ptxas raises a limit to what the architecture needs at least, and says so itself.
    if facts.register_limit is not None and kernel.binary.resources.registers <= max(
        facts.register_limit, LOWEST_LIMIT
    ):
        return "flag"
    return "full" if kernel.binary.resources.registers >= ADDRESSABLE_REGISTERS else "plain"


def _advice(facts: Facts, text: RuleText, kernel: KernelAnalysis, variant: str) -> str:
    resources = kernel.binary.resources
    blocks, threads = resources.min_blocks_per_sm, resources.max_threads
    if variant == "bound" and facts.gpu and blocks and blocks > 1 and threads:
        limits = facts.gpu.profile.limits
        fits = blocks * -(-threads // limits.warp_size) <= limits.max_warps
        return text.advice["bound_budget" if fits else "bound_void"].format(
            min_blocks=blocks,
            threads=f"{threads:,}",
            max_warps=limits.max_warps,
            budget=largest_register_count(limits, threads, blocks),
            budget_one=largest_register_count(limits, threads, 1),
        )
    return text.advice[variant]


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel in facts.kernels:
        resources = kernel.binary.resources
        stores, loads = resources.spill_store_bytes or 0, resources.spill_load_bytes or 0
        if not stores and not loads:
            continue
        variant = _variant(facts, kernel)
        is_idle = leaves_local_memory_alone(kernel)
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages[variant].format(
                stores=f"{stores:,}",
                loads=f"{loads:,}",
                registers=resources.registers,
                bound=wording.launch_bounds(resources) or f"-maxrregcount={facts.register_limit}",
            ),
            advice=text.advice["untouched"] if is_idle else _advice(facts, text, kernel, variant),
            badness=stores + loads,
            severity="hint" if is_idle else None,
            evidence=(
                exact("spill_store_bytes", stores, "bytes", "cubin"),
                exact("spill_load_bytes", loads, "bytes", "cubin"),
                exact("registers", resources.registers, "registers per thread", "cubin"),
            ),
            related=access_places(local_lines(kernel.sass, "spill"), facts.path) if kernel.sass else (),
        )


RULE = Rule("KL201", _check)
