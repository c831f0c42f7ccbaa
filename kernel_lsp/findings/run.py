"""Asks every rule, then tells each thing once: merges instances, applies severities and suppressions, sorts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import get_args

from kernel_lsp.findings.catalogue import rule_texts
from kernel_lsp.findings.draft import Draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Finding, Severity
from kernel_lsp.findings.rules import RULES, measured_rules
from kernel_lsp.findings.suppression import ignored_codes

SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # the gravest first


def run_rules(
    facts: Facts, text: str, severities: Mapping[str, str], *, heads: Mapping[int, int] | None = None
) -> tuple[Finding, ...]:
    """All findings of one file, sorted by (file, line, code).

    `text` is the source at `facts.path` (for suppression comments). `severities` maps a code or slug to a severity
    or to "off". `heads` maps a kernel's name line to the first line of its declaration, so that a comment above
    `template <...>` is seen too.
    """
    rules = (*RULES, *measured_rules()) if any(kernel.measured for kernel in facts.kernels) else RULES
    drafts = [draft for rule in rules for draft in rule.check(facts, rule_texts()[rule.code])]
    merged = _merge_instances(_without_doubles(drafts))
    ignored = ignored_codes(text)
    # A comment at a kernel speaks of all that is found in it, on whichever line it stands.
    name_lines = {k.binary.name: k.line for k in facts.kernels if k.file == facts.path}
    kept = []
    for finding in merged:
        wanted = severities.get(finding.code, severities.get(finding.slug))
        lines = {finding.line, name_lines.get(finding.kernel or "", finding.line)}
        if wanted == "off" or (finding.file == facts.path and _is_ignored(finding, lines, ignored, heads or {})):
            continue
        kept.append(replace(finding, severity=next((s for s in SEVERITIES if s == wanted), finding.severity)))
    return tuple(sorted(kept, key=lambda f: (f.file, f.line, f.code, f.column or 0, f.message)))


def _is_ignored(
    finding: Finding, lines: Iterable[int], ignored: Mapping[int, frozenset[str]], heads: Mapping[int, int]
) -> bool:
    said = [ignored[at] for line in lines for at in (line, heads.get(line, line)) if at in ignored]
    return any(not codes or finding.code in codes or finding.slug in codes for codes in said)


def _without_doubles(drafts: list[Draft]) -> list[Draft]:
    """Drops a kernel's draft where a rule that says it better (`yields_to`) spoke on the same kernel."""
    said = {(d.finding.code, d.finding.kernel) for d in drafts if d.finding.kernel}
    return [
        draft
        for draft in drafts
        if not any((code, draft.finding.kernel) in said for code in rule_texts()[draft.finding.code].yields_to)
    ]


def _merge_instances(drafts: Iterable[Draft]) -> list[Finding]:
    """One finding per rule and line for all instances of a template: that of the worst, with their number."""
    groups: dict[tuple[object, ...], list[Draft]] = {}
    for order, draft in enumerate(drafts):
        finding = draft.finding
        # Without an instance (build messages, file notes) nothing is ever merged.
        template = draft.instance.partition("<")[0] if draft.instance else ""
        key = (finding.code, finding.file, finding.line, template) if draft.instance else (order,)
        groups.setdefault(key, []).append(draft)
    merged = []
    for group in groups.values():
        worst = max(group, key=lambda draft: (-SEVERITIES.index(draft.finding.severity), draft.badness))
        finding = worst.finding
        if len(group) > 1:
            finding = replace(
                finding,
                message=f"{worst.instance}, worst of {len(group)}: {finding.message}",
                instances=tuple(draft.finding.kernel for draft in group if draft.finding.kernel),
            )
        merged.append(finding)
    return merged
