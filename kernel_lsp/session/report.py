"""An outcome as the bottleneck report: adds to the analysis how the code was built and how fresh it is."""

from __future__ import annotations

from kernel_lsp.report.document import Report, build_report
from kernel_lsp.report.section import BuildFacts
from kernel_lsp.session.outcome import FileOutcome


def report_of(outcome: FileOutcome, kernel_name: str | None = None, freshness: str | None = None) -> Report:
    """The report of an outcome that has an analysis, of all kernels or those named by any of their names.

    Raises:
        NoSuchKernelError: no kernel has the name.
        ValueError: the outcome has no analysis.
    """
    if outcome.analysis is None:
        raise ValueError(f"{outcome.path} has no analysis: {outcome.summary}")
    return build_report(outcome.analysis, _build_facts(outcome, freshness), kernel_name)


def _build_facts(outcome: FileOutcome, freshness: str | None) -> BuildFacts:
    command, build = outcome.command, outcome.build
    origin = ""
    if command is not None:
        place = ", ".join(filter(None, (command.origin, command.origin_detail)))
        origin = "the default flags" if command.origin == "default" else f"the flags of {place}"
    return BuildFacts(argv=() if build is None else build.argv, origin=origin, freshness=freshness)
