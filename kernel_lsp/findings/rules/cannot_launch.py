"""KL140: a launch found in the sources asks for a block that cannot become resident at all."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.hardware.profile import HwProfile
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis, breaks_required_block, exceeds_cluster


def _reason(kernel: KernelAnalysis, analysis: LaunchAnalysis, profile: HwProfile) -> tuple[str, str]:
    """The variant of the text, and the bound that is broken in words."""
    resources, launch, limits = kernel.binary.resources.in_program, analysis.launch, profile.limits
    if resources.required_block and breaks_required_block(resources, launch):
        return "required", wording.block_size(resources.required_block)
    if launch.threads > limits.max_threads_per_block:
        return "threads", f"{limits.max_threads_per_block:,}"
    if resources.max_threads and launch.threads > resources.max_threads:
        return "bound", wording.launch_bounds(resources) or f"{resources.max_threads} threads"
    if exceeds_cluster(limits, launch):
        return "cluster", f"{limits.max_cluster_blocks}"
    if analysis.occupancy.limit_registers == 0 and kernel.max_launchable_threads:
        return "registers", f"{kernel.max_launchable_threads:,}"
    if analysis.occupancy.limit_shared == 0:
        return "shared", wording.exact_bytes(limits.shared_optin_bytes_per_block)
    return "other", ""


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    if facts.gpu is None:
        return
    profile = facts.gpu.profile
    for kernel in facts.kernels:
        impossible = [analysis for analysis in kernel.launches if analysis.occupancy.blocks_per_sm == 0]
        if not impossible:
            continue
        analysis = max(impossible, key=lambda la: la.launch.threads)
        resources, launch = kernel.binary.resources.in_program, analysis.launch
        variant, bound = _reason(kernel, analysis, profile)
        values = {
            "block": wording.block_size(launch.block) if variant == "required" else f"{launch.threads:,}",
            "threads": launch.threads,
            "board": wording.board(profile),
            "bound": bound,
            "most": bound,
            "cluster": launch.cluster,
            "registers": resources.registers,
            "own": wording.exact_bytes(resources.static_shared_bytes + (launch.dynamic_shared_bytes or 0)),
            "launch": wording.launch_words(launch, facts.path),
        }
        # Only shared memory differs much between boards: against a board nobody chose it is not yet an error.
        by_default = variant == "shared" and facts.gpu.why == "default"
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=f"{text.messages[variant].format(**values)}, {wording.launch_origin(launch, facts.path)}"
            if variant != "other"
            else text.messages[variant].format(**values),
            advice=text.advice[variant].format(**values),
            badness=launch.threads,
            severity="warning" if by_default else None,
            evidence=(
                exact("threads_per_block", launch.threads, "threads", launch.origin),
                exact("registers", resources.registers, "registers per thread", "cubin"),
                exact("blocks_per_sm", 0, "blocks"),
            ),
        )


RULE = Rule("KL140", _check)
