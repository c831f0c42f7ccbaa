"""Nsight Compute's command line without a GPU: as strict about its options, and with its words, by a plan.

`install(folder, ...)` writes an executable `ncu` into a folder; the plan lies beside it in `plan.json`:
launches    mangled names of the kernels that the program launches, in order (the filters are applied to them)
report      a file that is copied to where `--export` says; without it, four bytes that start like a report
extension   of the report: .ncu-rep, or .ncu-repz as from release 2026.3 on
unknown     options and sections that this release does not have
says        printed in place of all that
exit        exit status then
hang        start a child that ignores SIGTERM and stay for a minute; their ids go to `marks`
marks       a folder: a file `PID` for each process, and `argv` with the arguments as JSON
run         whether the program itself is run (its exit status counts as ncu counts it)

Options and their values: `ncu --help` of release 2024.3. Messages: as users of 2020.3 to 2026.3 printed them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

ON_OFF = {"on", "off", "yes", "no", "1", "0"}
ANY = None
# option -> the values that it takes; () for one without
OPTIONS: dict[str, Any] = {
    "--target-processes": {"all", "application-only"},
    "--import-source": ON_OFF,
    "--kernel-name-base": {"function", "demangled", "mangled"},
    "--kernel-name": ANY,
    "--launch-skip": int,
    "--launch-count": int,
    "--section": {
        *("ComputeWorkloadAnalysis", "InstructionStats", "LaunchStats", "MemoryWorkloadAnalysis"),
        *("MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables", "NumaAffinity", "Nvlink", "Nvlink_Tables"),
        *("Nvlink_Topology", "Occupancy", "PmSampling", "PmSampling_WarpStates", "SchedulerStats", "SourceCounters"),
        *("SpeedOfLight", "SpeedOfLight_HierarchicalDoubleRooflineChart"),
        *("SpeedOfLight_HierarchicalHalfRooflineChart", "SpeedOfLight_HierarchicalSingleRooflineChart"),
        *("SpeedOfLight_HierarchicalTensorRooflineChart", "SpeedOfLight_RooflineChart", "WarpStateStats"),
        "WorkloadDistribution",
    },
    "--set": {"basic", "detailed", "full", "nvlink", "pmsampling", "roofline"},
    "--clock-control": {"base", "none", "reset"},
    "--cache-control": {"all", "none"},
    "--replay-mode": {"kernel", "application", "range", "app-range"},
    "--kill": ON_OFF,
    "--force-overwrite": (),
    "--export": ANY,
}
SHORT = {
    "-k": "--kernel-name",
    "-c": "--launch-count",
    "-s": "--launch-skip",
    "-f": "--force-overwrite",
    "-o": "--export",
}


def install(folder: Path, **plan: Any) -> Path:
    """Make `folder/ncu` follow `plan`; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    program = folder / "ncu"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{__file__}" "{folder}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program


def parse(arguments: list[str], unknown: frozenset[str] = frozenset()) -> tuple[dict[str, list[str]], list[str]]:
    """The options with their values, and the program with its arguments; ends as ncu does on what it does not know."""
    options: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        given = rest.pop(0)
        name = SHORT.get(given, given)
        if name not in OPTIONS or name in unknown:
            _fail(f"unrecognised option '{given}'. Use --help for further details.")
        values = OPTIONS[name]
        if values == ():
            options[name] = []
            continue
        if not rest:
            _fail(f"the required argument for option '{name}' is missing.")
        value = rest.pop(0)
        if name == "--section" and (value not in values or value in unknown):
            _fail(f"Option '--section {value}' did not match any section.")
        if values is int and not value.isdigit():
            _fail(f"the argument ('{value}') for option '{name}' is invalid.")
        if isinstance(values, set) and value not in values:
            _fail(f"the argument ('{value}') for option '{name}' is invalid.")
        options.setdefault(name, []).append(value)
    if not rest:
        _fail("No target application was given.")
    return options, rest


def chosen(options: dict[str, list[str]], launches: list[str]) -> list[str]:
    """The launches that the filters leave (by mangled name: the only base that this stands in for)."""
    assert options.get("--kernel-name-base") == ["mangled"]
    [wanted] = options["--kernel-name"]
    if wanted.startswith("regex:"):
        found = [name for name in launches if re.search(wanted.removeprefix("regex:"), name)]
    else:
        found = [name for name in launches if name == wanted]
    skip = int(options.get("--launch-skip", ["0"])[0])
    count = int(options.get("--launch-count", [str(len(found))])[0])
    return found[skip : skip + count]


def _fail(text: str) -> NoReturn:
    sys.stdout.write(f"==ERROR== {text}\n")
    sys.exit(1)


def _export_path(value: str, extension: str) -> Path:
    if re.search(r"%(?![hpi%]|q\{)", value):
        macro = re.search(r"%.?", value)
        _fail(f"Unknown macro '{macro[0] if macro else '%'}'")
    return Path(value if re.search(r"\.ncu-repz?$", value) else value + extension)


def _main(folder: Path, arguments: list[str]) -> int:
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    if marks := plan.get("marks"):
        Path(marks, "argv").write_text(json.dumps(arguments), encoding="utf-8")
    options, program = parse(arguments, frozenset(plan.get("unknown", ())))
    if plan.get("hang"):
        _hang(Path(plan["marks"]))
    if "says" in plan:
        sys.stdout.write(plan["says"])
        return int(plan.get("exit", 9))
    sys.stdout.write(f"==PROF== Connected to process {os.getpid()} ({program[0]})\n")
    sys.stdout.flush()
    code = subprocess.run(program, check=False).returncode if plan.get("run") else 0
    found = chosen(options, plan.get("launches", []))
    for number, name in enumerate(found):
        sys.stdout.write(f'==PROF== Profiling "{name}" - {number}: 0%....50%....100% - 12 passes\n')
    sys.stdout.write(f"==PROF== Disconnected from process {os.getpid()}\n")
    if code:
        sys.stdout.write(f"==ERROR== The application returned an error code ({code}).\n")
    if not found:
        sys.stdout.write("==WARNING== No kernels were profiled.\n")
        if names := list(dict.fromkeys(plan.get("launches", []))):
            sys.stdout.write("Available Kernels:\n" + "".join(f"{n}. {name}\n" for n, name in enumerate(names, 1)))
        return code
    target = _export_path(options["--export"][0], plan.get("extension", ".ncu-rep"))
    if target.exists() and "--force-overwrite" not in options:
        _fail(f"{target} already exists. Use --force-overwrite to overwrite it.")
    if report := plan.get("report"):
        shutil.copyfile(report, target)
    else:
        target.write_bytes(b"NVR\0")
    sys.stdout.write(f"==PROF== Report: {target.resolve()}\n")
    return code


def _hang(marks: Path) -> None:
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (marks / str(os.getpid())).touch()
        time.sleep(60)
        os._exit(0)
    (marks / str(os.getpid())).touch()
    time.sleep(60)


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), sys.argv[2:]))
