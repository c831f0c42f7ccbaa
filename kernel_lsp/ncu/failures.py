"""The output of an `ncu` run that gave no report becomes one message: what went wrong and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

_MOST_NAMES = 6
_MOST_LINES = 3
_LINE_LENGTH = 200
_ERROR = re.compile(r"==ERROR==\s*(.+)")
_EXIT_CODE = re.compile(r"==ERROR== The application returned an error code \((\d+)\)")
_STOPPED = "==PROF== Trying to shutdown target application"
_NONE_PROFILED = "No kernels were profiled"
_AVAILABLE = re.compile(r"^ *\d+\. (.+?)\s*$")


@dataclass(frozen=True, slots=True)
class _Known:
    pattern: re.Pattern[str]
    said: str
    advice: str


def failure_message(output: str, code: int | None) -> str:
    """One message for a run that left no report. `output`: both streams; `code`: exit status of what was started."""
    for known in _known():
        if match := known.pattern.search(output):
            words = (match.groupdict().get("words") or "").strip().rstrip(".")
            return f"{known.said.replace('{words}', words)}. {known.advice}"
    stopped_by_ncu = _STOPPED in output
    if (ended := _EXIT_CODE.search(output)) and not stopped_by_ncu:
        last = _last_lines(output)
        return (
            f"The program ended with code {ended[1]} before the kernel was measured{_quoted(last)}. "
            "Run it without ncu first; kernelLsp.profile.program holds its words."
        )
    if _NONE_PROFILED in output and not stopped_by_ncu:
        return _none_profiled(output)
    said = [line.strip()[:_LINE_LENGTH] for line in _ERROR.findall(output)][:_MOST_LINES] or _last_lines(output)
    return f"No report was written (exit code {code}){_quoted(said)}. The whole output is in the log."


def program_ended_badly(output: str) -> str | None:
    """A sentence where there is a report, but the profiled program did not end well; None: it did."""
    ended = _EXIT_CODE.search(output)
    return f"the program ended with code {ended[1]}" if ended else None


def _none_profiled(output: str) -> str:
    available = _available_kernels(output)
    launched = "it launched none at all"
    if available:
        more = f" and {len(available) - _MOST_NAMES} more" if len(available) > _MOST_NAMES else ""
        launched = f"it launched {', '.join(available[:_MOST_NAMES])}{more}"
    return (
        f"The program did not launch this kernel (after the launches that are skipped): {launched}. "
        "Check that it was built from this source, that its arguments reach the kernel, and "
        "kernelLsp.profile.launchSkip."
    )


def _available_kernels(output: str) -> list[str]:
    found: list[str] = []
    lines = iter(output.splitlines())
    for line in lines:
        if line.strip().lower().startswith("available kernels"):
            for named in lines:
                if (match := _AVAILABLE.match(named)) is None:
                    break
                found.append(match[1][:_LINE_LENGTH])
    return found


def _last_lines(output: str) -> list[str]:
    """The last words of the program: ncu's own lines and empty ones left out."""
    lines = [line.strip() for line in output.splitlines()]
    return [line[:_LINE_LENGTH] for line in lines if line and not line.startswith("==")][-_MOST_LINES:]


def _quoted(lines: list[str]) -> str:
    return f": {' / '.join(lines).rstrip('.')}" if lines else ""


@cache
def _known() -> tuple[_Known, ...]:
    table = yaml.safe_load(Path(__file__).with_name("failures.yaml").read_text(encoding="utf-8"))
    return tuple(
        _Known(re.compile(entry["pattern"]), entry["said"], entry["advice"].strip()) for entry in table["failures"]
    )
