"""What a rule yields: a finding with how bad it is, so that instances of one template can become one finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Evidence, Finding, Related, Severity
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.source.position import Span


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding before merging; of the drafts of one rule on one line the one with the most `badness` is told."""

    finding: Finding
    badness: float = 0.0
    instance: str | None = None  # the kernel's short name


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its code in `rules.yaml` and the pure function that looks for it."""

    code: str
    check: Callable[[Facts, RuleText], Iterator[Draft]]


def kernel_draft(
    text: RuleText,
    facts: Facts,
    kernel: KernelAnalysis,
    *,
    message: str,
    advice: str,
    badness: float = 0.0,
    severity: Severity | None = None,
    evidence: tuple[Evidence, ...] = (),
    related: tuple[Related, ...] = (),
    at: Span | None = None,
    at_line: int | None = None,
) -> Draft:
    """A finding on the kernel's name; on line 1 of the analysed file where the definition's place is unknown.

    `at` or `at_line` is a better place for it in the analysed file.
    """
    placed = at is not None or at_line is not None
    known = placed or (bool(kernel.file) and kernel.line > 0)
    line = (at_line or (at.line if at else kernel.line)) if known else 1
    span = at if placed else kernel.span if known else None
    finding = Finding(
        code=text.code,
        slug=text.slug,
        severity=severity or text.severity,
        file=kernel.file if known and not placed else facts.path,
        line=span.line if span else line,
        end_line=span.line if span else line,
        column=span.column if span else None,
        end_column=span.end_column if span else None,
        kernel=kernel.binary.name,
        message=message if known else f"{kernel.binary.short_name}: {message}",
        advice=advice,
        evidence=evidence,
        related=related,
    )
    return Draft(finding, badness, kernel.binary.short_name)


def exact(name: str, value: float | int | str, unit: str, source: str = "model") -> Evidence:
    """An exact number: read from the cubin, or computed by a published formula from exact inputs."""
    return Evidence(name, value, unit, "exact", source)


def file_draft(
    text: RuleText,
    facts: Facts,
    *,
    message: str,
    advice: str,
    severity: Severity | None = None,
    span: Span | None = None,
) -> Draft:
    """A finding on a part of the analysed file, or on its first line where it is about the file as a whole."""
    line = span.line if span else 1
    return Draft(
        Finding(
            code=text.code,
            slug=text.slug,
            severity=severity or text.severity,
            file=facts.path,
            line=line,
            end_line=line,
            column=span.column if span else None,
            end_column=span.end_column if span else None,
            kernel=None,
            message=message,
            advice=advice,
        )
    )
