"""An argument list becomes a finished process with bounded output: the only place that starts processes.

Each run gets null standard input, its own process group, low priority, and an explicit folder and environment.
The group ends as a whole on cancellation, on the time limit and at exit, so that no cicc or ptxas outlives nvcc.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TERM_GRACE_S = 0.3  # between SIGTERM and SIGKILL; nvcc removes its files on SIGTERM, its children just end
PIPE_GRACE_S = 1.0  # for a grandchild that still holds the pipes after the process itself has ended
RUNAWAY_OUTPUT_BYTES = 64 << 20  # more than this is no compiler talking: the run is ended
_CHUNK_BYTES = 64 << 10

Ending = Literal["exited", "not started", "timeout", "runaway output"]

_live_groups: set[int] = set()


@dataclass(frozen=True, slots=True)
class Finished:
    """How a process ended. `code` is negative for a signal; None where it never started.

    `stdout` and `stderr` hold at most the asked number of bytes each (`truncated`: there was more).
    """

    ending: Ending
    code: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    seconds: float
    error: str = ""  # the system's words where it was not started


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    time_limit_s: float,
    output_limit_bytes: int,
    niceness: int = 10,
) -> Finished:
    """Run `argv` to its end. Never raises for what the process does; on cancellation its whole group is ended first."""
    started = time.perf_counter()
    start = asyncio.ensure_future(_start(argv, cwd, environment, niceness))
    try:
        process = await asyncio.shield(start)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            await _end(await start)
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        text = getattr(error, "strerror", None) or str(error)
        return Finished("not started", None, b"", b"", False, time.perf_counter() - started, text)
    outputs = (_Output(output_limit_bytes), _Output(output_limit_bytes))
    assert process.stdout is not None
    assert process.stderr is not None
    readers = [
        asyncio.ensure_future(outputs[0].read(process.stdout)),
        asyncio.ensure_future(outputs[1].read(process.stderr)),
    ]
    waiter = asyncio.ensure_future(process.wait())
    ending: Ending = "exited"
    try:
        deadline = started + time_limit_s
        while not waiter.done():
            left = deadline - time.perf_counter()
            if left <= 0:
                ending = "timeout"
                break
            running = [task for task in readers if not task.done()]
            await asyncio.wait([waiter, *running], timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if any(output.runaway for output in outputs):
                ending = "runaway output"
                break
        if ending == "exited":
            _, held = await asyncio.wait(readers, timeout=PIPE_GRACE_S)
            if held:  # someone of the group still writes; nothing is killed after an ordinary end
                await _end(process)
    finally:
        if not waiter.done():
            await _unhurried(_end(process))
        _live_groups.discard(process.pid)
        for task in (waiter, *readers):
            task.cancel()
        await asyncio.gather(waiter, *readers, return_exceptions=True)
        _close(process)
    return Finished(
        ending,
        process.returncode,
        bytes(outputs[0].kept),
        bytes(outputs[1].kept),
        any(output.truncated for output in outputs),
        time.perf_counter() - started,
    )


def end_all_groups() -> None:
    """Kill every group that still runs (for exit, where the event loop no longer does it)."""
    for pid in tuple(_live_groups):
        _signal_group(pid, hard=True)
    _live_groups.clear()


atexit.register(end_all_groups)


class _Output:
    """One pipe: keeps the first bytes, drains the rest."""

    def __init__(self, limit_bytes: int) -> None:
        self.kept = bytearray()
        self.seen_bytes = 0
        self._limit_bytes = limit_bytes

    @property
    def truncated(self) -> bool:
        return self.seen_bytes > len(self.kept)

    @property
    def runaway(self) -> bool:
        return self.seen_bytes > RUNAWAY_OUTPUT_BYTES

    async def read(self, stream: asyncio.StreamReader) -> None:
        while not self.runaway:
            chunk = await stream.read(_CHUNK_BYTES)
            if not chunk:
                return
            self.seen_bytes += len(chunk)
            self.kept += chunk[: max(0, self._limit_bytes - len(self.kept))]


async def _start(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], niceness: int
) -> asyncio.subprocess.Process:
    flags = 0
    if sys.platform == "win32":  # not tested there
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        if niceness > 0:
            flags |= subprocess.BELOW_NORMAL_PRIORITY_CLASS
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=dict(environment),
        start_new_session=sys.platform != "win32",
        creationflags=flags,
    )
    _live_groups.add(process.pid)
    if niceness > 0 and sys.platform != "win32":
        # Not preexec_fn: that is unsafe with threads and slower. Children started from here on inherit it.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PGRP, process.pid, niceness)
    return process


async def _end(process: asyncio.subprocess.Process) -> None:
    """SIGTERM to the group, SIGKILL shortly after (also to members that outlive the leader), then reap."""
    _signal_group(process.pid, hard=False)
    deadline = time.perf_counter() + TERM_GRACE_S
    while _group_lives(process.pid) and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)
    _signal_group(process.pid, hard=True)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), 1.0)  # a process in an uninterruptible wait cannot be waited for
    _live_groups.discard(process.pid)


async def _unhurried(work: Coroutine[object, object, None]) -> None:
    """Finish `work` although the caller is cancelled (again) meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _signal_group(pid: int, *, hard: bool) -> None:
    if sys.platform == "win32":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(pid)],  # noqa: S607
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=2,
                check=False,
            )
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if hard else signal.SIGTERM)


def _group_lives(pid: int) -> bool:
    if sys.platform == "win32":
        return False
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _close(process: asyncio.subprocess.Process) -> None:
    """Release the pipes now, also those that a grandchild holds open, instead of at garbage collection."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
