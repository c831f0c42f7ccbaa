"""The findings of `check` for people: one line a kernel, one a finding; in colour where the output is a terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path, PurePath

from rich.console import Console
from rich.text import Text

from kernel_lsp.findings import wording
from kernel_lsp.findings.finding import Finding, Severity
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.report.check_value import CheckedFile, by_place
from kernel_lsp.report.lens import device_function, lens_text, measured_text
from kernel_lsp.session.outcome import FileOutcome

_STYLES: dict[Severity, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "information": "bold blue",
    "hint": "dim",
}


def print_files(files: Sequence[CheckedFile], outcomes: Sequence[FileOutcome]) -> None:
    """Print the files in the order they were given."""
    now = datetime.now().astimezone()
    console = Console(soft_wrap=True, highlight=False, emoji=False, markup=False)
    for number, (file, outcome) in enumerate(zip(files, outcomes, strict=True)):
        if number:
            console.print()
        console.print(_head(file, outcome))
        for kernel in file.analysis.kernels if file.analysis else ():
            name = Text(f"  {_place(kernel, file.path):<6} ", "dim") + Text(kernel.binary.short_name, "bold")
            console.print(name + Text(f"  {lens_text(kernel, file.path)}"))
            if kernel.measured is not None:
                where = Text(f"  {kernel.measured.report_name}", "dim")
                console.print(Text(f"         {measured_text(kernel, now)}") + where)
        for function in file.analysis.device_functions if file.analysis else ():
            console.print(
                Text("         ", "dim") + Text(function.short_name, "bold") + Text(f"  {device_function(function)}")
            )
        for finding in by_place(file.findings):
            console.print(_finding(finding))
            if finding.advice:
                console.print(Text(f"    {finding.advice}", "dim"))
    console.print()
    console.print(_total(files))


def _place(kernel: KernelAnalysis, path: str) -> str:
    """`l.41` in the file itself, else `tile.cuh:41`."""
    line = str(kernel.line or "?")
    return f"l.{line}" if kernel.file in (path, "") else f"{PurePath(kernel.file).name}:{line}"


def _head(file: CheckedFile, outcome: FileOutcome) -> Text:
    head = Text(_short(file.path), "bold")
    said = outcome.summary
    if file.analysis is not None:
        choice = file.analysis.gpu
        why = {"default": " by default", "detected": ", this machine's"}.get(choice.why, "")
        said += f", {wording.board(choice.profile)} ({choice.profile.arch}){why}"
    if outcome.build is not None and outcome.build.status == "ok":
        said += ", from the cache" if outcome.build.cached else f", built in {outcome.build.seconds:.1f} s"
    return head + Text(f": {said}")


def _finding(finding: Finding) -> Text:
    place = f"{_short(finding.file)}:{finding.line}" + (f":{finding.column}" if finding.column else "")
    line = Text(f"{place}: ") + Text(finding.severity, _STYLES[finding.severity])
    line.append(f": {finding.message} ")
    line.append(f"[{finding.code} {finding.slug}]", "dim")
    return line


def _total(files: Sequence[CheckedFile]) -> Text:
    found = [finding.severity for file in files for finding in file.findings]
    if not found:
        return Text("No findings.")
    names: dict[Severity, str] = {"error": "error", "warning": "warning", "information": "note", "hint": "hint"}
    parts = [wording.counted(found.count(s), noun) for s, noun in names.items() if s in found]
    return Text(f"{wording.joined(parts)} in {wording.counted(len(files), 'file')}.")


def _short(path: str) -> str:
    """Relative to the current folder where the file lies in it."""
    try:
        relative = os.path.relpath(path, Path.cwd())
    except ValueError:  # another drive
        return path
    return path if relative.startswith("..") else relative
