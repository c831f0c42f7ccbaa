"""Reads `rules.yaml`, the texts and thresholds of all rules, into frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import yaml

from kernel_lsp.findings.finding import Severity


@dataclass(frozen=True, slots=True)
class RuleText:
    """One rule's data. `messages` and `advice` are format strings by variant; `thresholds` carry their unit."""

    code: str
    slug: str
    category: str
    severity: Severity
    title: str
    messages: Mapping[str, str]
    advice: Mapping[str, str]
    thresholds: Mapping[str, float]
    yields_to: tuple[str, ...]  # codes that, on the same kernel, already say it better

    @property
    def page(self) -> str:
        """Path of the documentation page, from the root of the repository."""
        return f"docs/rules/{self.code}.md"


def _rule(code: str, entry: Mapping[str, Any]) -> RuleText:
    return RuleText(
        code=code,
        slug=entry["slug"],
        category=entry["category"],
        severity=entry["severity"],
        title=entry["title"],
        messages=MappingProxyType(dict(entry.get("messages", {}))),
        advice=MappingProxyType(dict(entry.get("advice", {}))),
        thresholds=MappingProxyType({k: v["value"] for k, v in entry.get("thresholds", {}).items()}),
        yields_to=tuple(entry.get("yields_to", ())),
    )


@cache
def rule_texts() -> Mapping[str, RuleText]:
    """Every rule of `rules.yaml` by code."""
    text = resources.files(__package__).joinpath("rules.yaml").read_text(encoding="utf-8")
    return MappingProxyType({code: _rule(code, entry) for code, entry in yaml.safe_load(text).items()})
