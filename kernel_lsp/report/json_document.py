"""The report as JSON values: the kernels of `check --format json` with their report's sections beside them."""

from __future__ import annotations

from kernel_lsp import __version__
from kernel_lsp.report.document import Report
from kernel_lsp.report.section import Block, Bullets, Command, Paragraph, Section
from kernel_lsp.report.values import SCHEMA_VERSION, Json, finding_value, gpu_value, kernel_value


def report_value(report: Report) -> Json:
    """`report --format json`; a section that is not known has `known: false` and the commands that would tell."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kernel_lsp_version": __version__,
        "path": report.analysis.path,
        "gpu": gpu_value(report.analysis.gpu),
        "build": {
            "argv": list(report.build.argv),
            "from": report.build.origin or None,
            "freshness": report.build.freshness,
        },
        "kernels": [
            kernel_value(part.kernel)
            | {
                "findings": [finding_value(finding) for finding in part.findings],
                "sections": {section.key: _section(section) for section in part.sections},
            }
            for part in report.kernels
        ],
        "findings": [finding_value(finding) for finding in report.file_findings],
        "not_compiled": [
            {"line": span.line, "column": span.column, "why": why} for span, why in report.analysis.not_compiled
        ],
    }


def _section(section: Section) -> Json:
    commands = [block.line for block in section.blocks if isinstance(block, Command)]
    return {
        "title": section.title,
        "known": section.known,
        "commands": commands,
        "blocks": [_block(block) for block in section.blocks],
    }


def _block(block: Block) -> Json:
    if isinstance(block, Paragraph):
        return {"kind": "paragraph", "text": block.text}
    if isinstance(block, Bullets):
        return {"kind": "list", "ordered": block.ordered, "items": list(block.items)}
    if isinstance(block, Command):
        return {"kind": "command", "line": block.line}
    return {"kind": "table", "header": list(block.header), "rows": [list(row) for row in block.rows]}
