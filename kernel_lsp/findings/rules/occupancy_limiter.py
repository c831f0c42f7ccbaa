"""KL101: a resource holds theoretical occupancy below the point where more of it seldom pays."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Evidence
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis


def _worst_launch(kernel: KernelAnalysis) -> LaunchAnalysis | None:
    known = [la for la in kernel.launches if not wording.is_conditional(la, kernel.binary.resources)]
    return min(known, key=lambda la: la.occupancy.theoretical, default=None)


def _step_up(analysis: LaunchAnalysis, resource: str) -> str:
    cliff = wording.nearest(analysis.cliffs, resource, "up")
    return f"Next step up: {wording.step(cliff)}. " if cliff else ""


def _draft(facts: Facts, text: RuleText, kernel: KernelAnalysis, analysis: LaunchAnalysis) -> Draft:
    occupancy, launch = analysis.occupancy, analysis.launch
    warp_size = facts.gpu.profile.limits.warp_size if facts.gpu else 32
    values = {
        "occupancy": wording.percent(occupancy.theoretical),
        "limiters": wording.limiters(occupancy),
        "blocks": wording.blocks_per_sm(occupancy),
        "warps": occupancy.active_warps,
        "max_warps": occupancy.max_warps,
        "launch": wording.launch_words(launch, facts.path),
        "block": launch.threads,
        "times": "once" if occupancy.blocks_per_sm == 1 else f"{occupancy.blocks_per_sm} times",
        "step_up": "",
        "fill": 0,
    }
    warps_per_block = -(-launch.threads // warp_size)
    resources = [name for name in ("registers", "shared", "barriers") if name in occupancy.limiters]
    if resources:
        variant = "resource"
        advised: str = resources[0]
        values["step_up"] = _step_up(analysis, advised)
    elif "blocks" in occupancy.limiters:
        variant = advised = "blocks"
        values["fill"] = -(-occupancy.max_warps // occupancy.limit_blocks) * warp_size
    else:
        variant = advised = "warps"
        divisors = [w for w in range(1, warps_per_block) if occupancy.max_warps % w == 0]
        values["fill"] = max(divisors, default=1) * warp_size
    advice = text.advice[advised].format(**values)
    evidence: tuple[Evidence, ...] = (
        exact("blocks_per_sm", occupancy.blocks_per_sm, "blocks"),
        exact("active_warps", occupancy.active_warps, "warps"),
        exact("theoretical_occupancy", round(occupancy.theoretical, 4), "fraction"),
        exact("limiters", ",".join(occupancy.limiters), "resources"),
        exact("registers", kernel.binary.resources.registers, "registers per thread", "cubin"),
    )
    rule_of_thumb = facts.gpu.profile.warps_to_hide_latency if facts.gpu else None
    if rule_of_thumb and occupancy.active_warps < rule_of_thumb:
        advice += text.advice["few_warps"].format(rule_of_thumb=rule_of_thumb)
        evidence += (Evidence("warps_to_hide_latency", rule_of_thumb, "warps", "estimated", "hardware profile"),)
    return kernel_draft(
        text,
        facts,
        kernel,
        message=text.messages[variant].format(**values),
        advice=advice,
        badness=1 - occupancy.theoretical,
        evidence=evidence,
    )


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel in facts.kernels:
        if kernel.binary.resources.relocatable:
            continue  # registers may still rise: neither the limiter nor the number is final
        worst = _worst_launch(kernel)
        if worst is None or not 0 < worst.occupancy.theoretical < text.thresholds["quiet_from_fraction"]:
            continue
        yield _draft(facts, text, kernel, worst)


RULE = Rule("KL101", _check)
