"""KL101: a resource holds theoretical occupancy below the point where more of it seldom pays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Evidence
from kernel_lsp.findings.measured import occupancy_is_fine
from kernel_lsp.hardware.profile import HwProfile, SmLimits
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis, launch_shape
from kernel_lsp.model.occupancy import occupancy


def _worst_launch(kernel: KernelAnalysis) -> LaunchAnalysis | None:
    known = [la for la in kernel.judged_launches if not wording.is_conditional(la, kernel.binary.resources)]
    return min(known, key=lambda la: la.occupancy.theoretical, default=None)


def _step_up(analysis: LaunchAnalysis, resource: str) -> str:
    cliff = wording.nearest(analysis.cliffs, resource, "up")
    return f"Next step up: {wording.step(cliff)}. " if cliff else ""


def _better_block(limits: SmLimits, kernel: KernelAnalysis, analysis: LaunchAnalysis) -> tuple[int, int] | None:
    """The block size (nearest to the launch's own) that lets the most warps reside, and their number."""
    shape = launch_shape(kernel.binary.resources, analysis.launch)
    sizes = range(limits.warp_size, limits.max_threads_per_block + 1, limits.warp_size)
    warps = {threads: occupancy(limits, replace(shape, threads_per_block=threads)).active_warps for threads in sizes}
    most = max(warps.values())
    if most <= analysis.occupancy.active_warps:
        return None
    return min(
        (size for size in sizes if warps[size] == most), key=lambda size: abs(size - shape.threads_per_block)
    ), most


def _draft(facts: Facts, text: RuleText, kernel: KernelAnalysis, analysis: LaunchAnalysis, gpu: HwProfile) -> Draft:
    found, launch = analysis.occupancy, analysis.launch
    values = {
        "occupancy": wording.percent(found.theoretical),
        "limiters": wording.limiters(found),
        "blocks": wording.blocks_per_sm(found),
        "warps": found.active_warps,
        "max_warps": found.max_warps,
        "launch": wording.launch_words(launch, facts.path),
        "block": launch.threads,
        "times": "once" if found.blocks_per_sm == 1 else f"{found.blocks_per_sm} times",
    }
    if "warps" in found.limiters or "blocks" in found.limiters:
        # Only another block size helps: the other resources could be freed without letting one more block in.
        variant = "warps" if "warps" in found.limiters else "blocks"
        better = _better_block(gpu.limits, kernel, analysis)
        advice = text.advice["block" if better else "no_block"]
        values |= {"fill": better[0], "filled": better[1]} if better else {}
    else:
        variant = "resource"
        freed = found.limiters[0]
        advice = text.advice[freed]
        values["step_up"] = _step_up(analysis, freed)
    advice = advice.format(**values)
    evidence: tuple[Evidence, ...] = (
        exact("blocks_per_sm", found.blocks_per_sm, "blocks"),
        exact("active_warps", found.active_warps, "warps"),
        exact("theoretical_occupancy", round(found.theoretical, 4), "fraction"),
        exact("limiters", ",".join(found.limiters), "resources"),
        exact("registers", kernel.binary.resources.registers, "registers per thread", "cubin"),
    )
    rule_of_thumb = gpu.warps_to_hide_latency
    if rule_of_thumb and found.active_warps < rule_of_thumb:
        advice += text.advice["few_warps"].format(rule_of_thumb=rule_of_thumb)
        evidence += (Evidence("warps_to_hide_latency", rule_of_thumb, "warps", "estimated", "hardware profile"),)
    return kernel_draft(
        text,
        facts,
        kernel,
        message=text.messages[variant].format(**values),
        advice=advice,
        badness=1 - found.theoretical,
        evidence=evidence,
    )


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    if facts.gpu is None:
        return
    for kernel in facts.kernels:
        if kernel.binary.resources.relocatable:
            continue  # registers may still rise: neither the limiter nor the number is final
        worst = _worst_launch(kernel)
        if worst is None or not 0 < worst.occupancy.theoretical < text.thresholds["quiet_from_fraction"]:
            continue
        if occupancy_is_fine(kernel, worst):
            continue
        yield _draft(facts, text, kernel, worst, facts.gpu.profile)


RULE = Rule("KL101", _check)
