"""One kernel becomes the options of an `ncu` run that measures it: which launches, which sections, where to.

Option names and meanings: NVIDIA's Nsight Compute CLI manual (filter, profile and file options).
"""

from __future__ import annotations

import re

from kernel_lsp.ncu.kernel_match import name_pattern
from kernel_lsp.ncu.metric_names import metric_names

REPORT_LINE = re.compile(r"^==PROF== Report: (.+?)\s*$", re.MULTILINE)


def profile_options(mangled: str, output: str, *, launch_skip: int, launch_count: int) -> tuple[str, ...]:
    """Options for `ncu`; the program to run and its own arguments follow them.

    `output` has no extension: ncu adds `.ncu-rep`, from 2026.3 on `.ncu-repz`. It reads `%` in it as a macro, so that
    one must not stand there (`ValueError`).

    Sections rather than a set: `detailed` lacks the scheduler and the warp states, without which stalls must not be
    read, and `full` runs the kernel more often, for tables that nothing here shows.
    """
    if "%" in output:
        raise ValueError(f"{output}: ncu reads the % in this path as a macro")
    return (
        *("--target-processes", "all"),  # the program may be a script that starts another; the default before 2022
        *("--import-source", "yes"),  # the text that was profiled, so that counters follow lines that move later
        *kernel_filter(mangled),
        *("--launch-skip", str(launch_skip), "--launch-count", str(launch_count)),
        *(word for section in metric_names().sections() for word in ("--section", section)),
        *("--force-overwrite", "--export", output),
    )


def kernel_filter(mangled: str) -> tuple[str, ...]:
    """Options that choose one kernel, and of a template one instance.

    The mangled name is the one that is unique and that no release prints differently. It is compared in full; a
    regular expression stands in only where the compiler put in a hash that another build need not repeat.
    """
    pattern = name_pattern(mangled)
    return ("--kernel-name-base", "mangled", "--kernel-name", mangled if pattern is None else f"regex:{pattern}")


def report_named(output_text: str, stem: str) -> str | None:
    """The path of the report that ncu says it has written under the name `stem`; None: it says of none.

    The profiled program's own words stand in the same text, and cannot name another file.
    """
    for path in REPORT_LINE.findall(output_text):
        name = re.split(r"[/\\]", path)[-1]
        if name.partition(".")[0] == stem:
            return str(path)
    return None
