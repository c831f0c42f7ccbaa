"""The report as Markdown: one page a person reads from the top, figures linked back to their lines."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import PurePath
from urllib.parse import quote

from kernel_lsp.findings import wording
from kernel_lsp.findings.finding import Finding
from kernel_lsp.report.document import KernelReport, Report
from kernel_lsp.report.lens import device_function
from kernel_lsp.report.markdown_text import code_span, escaped, escaped_around_code, fenced, name
from kernel_lsp.report.section import Block, Bullets, Command, Paragraph, Table


def report_markdown(report: Report, folder: str | None = None) -> str:
    """The whole page. Links are relative to `folder`, where the page will lie; None: beside the source."""
    analysis, build = report.analysis, report.build
    base = folder if folder is not None else str(PurePath(analysis.path).parent)
    profile = analysis.gpu.profile
    lines = [f"# Bottleneck report: {escaped(PurePath(analysis.path).name)}", ""]
    lines.append(f"{escaped(profile.name)}, {profile.arch} ({escaped(analysis.gpu.detail)}).")
    if build.origin:
        lines.append(f"Built with {escaped(build.origin)}.")
    if build.freshness:
        lines.append(f"Numbers are {escaped(build.freshness)}.")
    lines.append("")
    if not report.kernels:
        lines += [_no_kernels(report), ""]
    functions = report.analysis.device_functions
    if functions:
        lines += [*(f"- {code_span(function.name)}: {device_function(function)}" for function in functions), ""]
    for kernel in report.kernels:
        lines += [*_kernel(kernel, analysis.path, base), ""]
    rest = [_finding_line(finding, base) for finding in report.file_findings]
    if rest:
        lines += ["## The file", "", *rest, ""]
    if build.argv:
        lines += ["## How it was built", "", fenced([shlex.join(build.argv)], "sh"), ""]
    return "\n".join(lines).rstrip() + "\n"


def _no_kernels(report: Report) -> str:
    if report.analysis.device_functions:
        return "No kernels in this file; its device functions are linked into others:"
    if report.analysis.not_compiled:
        return "No kernel of this file was compiled."
    return "No kernels in this file."


def _kernel(report: KernelReport, path: str, base: str) -> Iterable[str]:
    kernel = report.kernel
    yield f"## {name(kernel.binary.short_name)}"
    yield ""
    place = link(kernel.file, kernel.line, base) if kernel.file and kernel.line else "place unknown"
    yield f"{code_span(kernel.binary.name)}, {place}"
    for section in report.sections:
        yield ""
        if section.key != "summary":
            yield f"### {section.title}"
            yield ""
        yield "\n\n".join(_block(block) for block in section.blocks)


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return escaped_around_code(block.text)
    if isinstance(block, Command):
        return fenced([block.line], "sh")
    if isinstance(block, Bullets):
        return "\n".join(
            f"{f'{number}.' if block.ordered else '-'} {escaped_around_code(item)}"
            for number, item in enumerate(block.items, start=1)
        )
    return table_lines(block)


def table_lines(table: Table) -> str:
    """A table with its columns aligned in the raw text too."""
    rows = [[_cell(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(table.header))]

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)) + " |"

    rule = "| " + " | ".join("-" * width for width in widths) + " |"
    return "\n".join([line(rows[0]), rule, *(line(row) for row in rows[1:])])


def _cell(text: str) -> str:
    """No line begins in a cell: a minus there is no list."""
    return escaped(f" {text}").strip()


def _finding_line(finding: Finding, base: str) -> str:
    return (
        f"- {finding.severity}, {link(finding.file, finding.line, base)}: {escaped(finding.message)} ({finding.code})"
    )


def link(file: str, line: int, base: str) -> str:
    """`[gemm.cu:41](gemm.cu#L41)`, relative to the folder `base`."""
    try:
        target = os.path.relpath(file, base)
    except ValueError:  # another drive
        target = file
    # A path that looks like a scheme ("command:x") must stay a path.
    target = quote(target.replace(os.sep, "/"), safe="/.-_~")
    return f"[{escaped(wording.place(f'{file}:{line}', ''))}]({target}#L{line})"
