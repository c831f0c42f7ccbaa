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
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TERM_GRACE_S = 0.3  # between SIGTERM and SIGKILL; nvcc removes its files on SIGTERM, its children just end
REAP_LIMIT_S = 1.0  # a process in an uninterruptible wait cannot be waited for
PIPE_GRACE_S = 1.0  # for a grandchild that still holds the pipes after the process itself has ended
RUNAWAY_OUTPUT_BYTES = 64 << 20  # more than this and the limit is no compiler talking: the run is ended
RUN_VARIABLE = "KERNEL_LSP_RUN"  # names the run folder to programs whose TMPDIR is the user's own

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
    keep_end: bool = False,
) -> Finished:
    """Run `argv` to its end. Never raises for what the process does; on cancellation its whole group is ended first.

    `keep_end`: of more output than the limit the first and the last half are kept, with an empty line between them.
    """
    started = time.perf_counter()
    talk = _Talk(output_limit_bytes, niceness, keep_end)
    start = asyncio.ensure_future(_start(talk, argv, cwd, environment, niceness))
    try:
        transport = await asyncio.shield(start)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            await _unhurried(_end_started(start, talk))
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        text = getattr(error, "strerror", None) or str(error)
        return Finished("not started", None, b"", b"", False, time.perf_counter() - started, text)
    try:
        left_s = time_limit_s - (time.perf_counter() - started)
        await asyncio.wait([talk.ended], timeout=max(0.0, left_s))
        ending: Ending = talk.ended.result() if talk.ended.done() else "timeout"
        if ending == "exited":
            # Not longer: a grandchild may hold the pipes. Nothing is killed after an ordinary end.
            await asyncio.wait([talk.closed], timeout=PIPE_GRACE_S)
            if not talk.closed.done():
                await _end(transport)
    finally:
        if transport.get_returncode() is None:
            await _unhurried(_end(transport))
        _live_groups.discard(transport.get_pid())
        transport.close()
    return Finished(
        ending,
        transport.get_returncode(),
        talk.said(1),
        talk.said(2),
        any(talk.seen_bytes[pipe] > output_limit_bytes for pipe in (1, 2)),
        time.perf_counter() - started,
    )


def end_left_over(folder: Path) -> int:
    """Kill what a server that was itself killed left running in its run folders below `folder` (Linux only).

    Returns how many. The environment is what tells them apart (TMPDIR of a compiler, RUN_VARIABLE of the user's
    programs): numbers of processes are used again.
    """
    n_killed = 0
    marks = [f"\0{name}=".encode() + os.fsencode(folder) + os.sep.encode() for name in ("TMPDIR", RUN_VARIABLE)]
    for entry in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        with contextlib.suppress(OSError):  # another user's, or gone
            environment = b"\0" + (entry / "environ").read_bytes()
            if any(mark in environment for mark in marks):
                os.kill(int(entry.name), signal.SIGKILL)
                n_killed += 1
    return n_killed


def end_all_groups() -> None:
    """Kill every group that still runs (for exit, where the event loop no longer does it)."""
    for pid in tuple(_live_groups):
        _signal_group(pid, hard=True)
    _live_groups.clear()


atexit.register(end_all_groups)


class _Talk(asyncio.SubprocessProtocol):
    """Keeps the first bytes (or both ends) of what each pipe brings, and tells the end of the process from its pipes'.

    (asyncio's own streams wait for the pipes before they say that the process has ended.)
    """

    def __init__(self, limit_bytes: int, niceness: int, keep_end: bool) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Ending] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.transport: asyncio.SubprocessTransport | None = None
        self.seen_bytes = {1: 0, 2: 0}
        self._first = {1: bytearray(), 2: bytearray()}
        self._last = {1: bytearray(), 2: bytearray()}
        self._last_bytes = limit_bytes // 2 if keep_end else 0
        self._first_bytes = limit_bytes - self._last_bytes
        self._runaway_bytes = max(RUNAWAY_OUTPUT_BYTES, limit_bytes)
        self._niceness = niceness
        self._open = {1, 2}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        _live_groups.add(transport.get_pid())
        if self._niceness > 0 and sys.platform != "win32":
            # Not preexec_fn: that is unsafe with threads and slower. Children started from here on inherit it.
            with contextlib.suppress(OSError):
                own = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PGRP, transport.get_pid(), min(19, own + self._niceness))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.seen_bytes[fd] += len(data)
        fits = max(0, self._first_bytes - len(self._first[fd]))
        self._first[fd] += data[:fits]
        if self._last_bytes and len(data) > fits:
            self._last[fd] += data[fits:]
            if len(self._last[fd]) > 2 * self._last_bytes:
                del self._last[fd][: -self._last_bytes]
        if self.seen_bytes[fd] > self._runaway_bytes and not self.ended.done():
            self.ended.set_result("runaway output")

    def said(self, fd: int) -> bytes:
        """What is kept of a pipe's bytes."""
        first, last = bytes(self._first[fd]), bytes(self._last[fd])
        if self.seen_bytes[fd] <= len(first) + len(last) and len(last) <= self._last_bytes:
            return first + last
        return first + b"\n\n" + last[-self._last_bytes :] if last else first

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open and not self.closed.done():
            self.closed.set_result(None)

    def process_exited(self) -> None:
        if not self.ended.done():
            self.ended.set_result("exited")


async def _start(
    talk: _Talk, argv: Sequence[str], cwd: Path, environment: Mapping[str, str], niceness: int
) -> asyncio.SubprocessTransport:
    flags = 0
    if sys.platform == "win32":  # not tested there
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        if niceness > 0:
            flags |= subprocess.BELOW_NORMAL_PRIORITY_CLASS
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: talk,
        *argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=dict(environment),
        start_new_session=sys.platform != "win32",
        creationflags=flags,
    )
    return transport


async def _end_started(start: asyncio.Task[asyncio.SubprocessTransport], talk: _Talk) -> None:
    """End a process whose start was going on when the run was cancelled."""
    try:
        transport = await start
    except asyncio.CancelledError:  # the whole loop is being shut down
        if talk.transport is not None:
            _signal_group(talk.transport.get_pid(), hard=True)
        raise
    await _end(transport)
    transport.close()


async def _end(transport: asyncio.SubprocessTransport) -> None:
    """SIGTERM to the group, SIGKILL shortly after (also to members that outlive the leader), then reap."""
    pid = transport.get_pid()
    _signal_group(pid, hard=False)
    await _until(lambda: not _group_lives(pid), TERM_GRACE_S)
    _signal_group(pid, hard=True)
    await _until(lambda: transport.get_returncode() is not None, REAP_LIMIT_S)
    _live_groups.discard(pid)


async def _until(condition: Callable[[], bool], limit_s: float) -> None:
    deadline = time.perf_counter() + limit_s
    while not condition() and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)


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
