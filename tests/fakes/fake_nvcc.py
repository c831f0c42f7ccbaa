"""A program that behaves as a compiler never should, by a plan: for what the real nvcc cannot be made to do.

`install(folder, ...)` writes an executable `nvcc` into a folder; the plan lies beside it in `plan.json`:
stdout, stderr   text printed at once (stdout_hex for bytes that are no text)
flood_bytes      so many bytes of `x` on standard error, -1 without end
children         so many children that ignore SIGTERM and outlive the parent for a minute
children_hold    whether those children keep the pipes open (else they close them)
hang             stay for a minute (and ignore SIGTERM with `stubborn`)
signal           end by this signal
cubin_hex        write these bytes to the path behind -o
exit             exit status
real             start this nvcc with the same arguments instead of all that
version          what --version prints; null: the plan applies to --version too
log              a file that gets a line `start PID` and `end PID` for every build
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

VERSION = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.5, V13.5.37\n"


def install(folder: Path, **plan: Any) -> Path:
    """Make `folder/nvcc` follow `plan`; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    program = folder / "nvcc"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{__file__}" "{folder}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program


def _main(folder: Path, arguments: list[str]) -> int:
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    version = plan.get("version", VERSION)
    if "--version" in arguments and version is not None:
        sys.stdout.write(version)
        return 0
    is_build = "-cubin" in arguments and "--dryrun" not in arguments
    if is_build:
        _log(plan, "start")
    try:
        return _follow(plan, arguments)
    finally:
        if is_build:
            _log(plan, "end")


def _follow(plan: dict[str, Any], arguments: list[str]) -> int:
    if real := plan.get("real"):
        return subprocess.run([real, *arguments], check=False).returncode
    sys.stdout.buffer.write(plan.get("stdout", "").encode() + bytes.fromhex(plan.get("stdout_hex", "")))
    sys.stdout.flush()
    sys.stderr.write(plan.get("stderr", ""))
    sys.stderr.flush()
    _flood(plan.get("flood_bytes", 0))
    for _ in range(plan.get("children", 0)):
        _child(plan.get("children_hold", True))
    if plan.get("hang"):
        if plan.get("stubborn"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
    if number := plan.get("signal"):
        os.kill(os.getpid(), number)
    if cubin := plan.get("cubin_hex"):
        Path(arguments[arguments.index("-o") + 1]).write_bytes(bytes.fromhex(cubin))
    return int(plan.get("exit", 0))


def _child(hold: bool) -> None:
    if os.fork():
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not hold:
        for descriptor in (1, 2):
            os.close(descriptor)
    Path(os.environ["TMPDIR"], f"tmpxft_{os.getpid()}").write_text("left over", encoding="utf-8")
    time.sleep(60)
    os._exit(0)


def _flood(n_bytes: int) -> None:
    chunk = b"x" * 65536
    while n_bytes:
        part = chunk if n_bytes < 0 else chunk[:n_bytes]
        sys.stderr.buffer.write(part)
        n_bytes -= 0 if n_bytes < 0 else len(part)
    sys.stderr.flush()


def _log(plan: dict[str, Any], word: str) -> None:
    if path := plan.get("log"):
        with contextlib.suppress(OSError), Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{word} {os.getpid()}\n")


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), sys.argv[2:]))
