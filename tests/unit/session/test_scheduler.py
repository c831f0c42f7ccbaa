"""The scheduler: latest wins, bursts end in two runs, a few at once, nothing left after close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kernel_lsp.session.scheduler import Scheduler


@dataclass
class Runs:
    """Runs that take until they are released; records what started, ended and was stopped."""

    started: list[tuple[str, int]] = field(default_factory=list)
    finished: list[tuple[str, int]] = field(default_factory=list)
    stopped: list[tuple[str, int]] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, key: str, request: int, generation: int) -> None:
        self.started.append((key, request))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await self._tell()
        try:
            await self.release.wait()
            self.finished.append((key, request))
        except asyncio.CancelledError:
            self.stopped.append((key, request))
            raise
        finally:
            self.running -= 1
            await self._tell()

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(condition), 10)


async def test_a_lone_request_starts_at_once() -> None:
    runs = Runs()
    scheduler = Scheduler(runs.run, quiet_s=60)  # would time out if it waited for quiet
    scheduler.request("a", 1)
    await runs.until(lambda: runs.started == [("a", 1)])
    runs.release.set()
    await runs.until(lambda: runs.finished == [("a", 1)])
    await scheduler.close()


async def test_a_burst_ends_in_two_runs_and_the_last_one_wins() -> None:
    runs = Runs()
    scheduler = Scheduler(runs.run, quiet_s=0.05)
    scheduler.request("a", 1)
    await runs.until(lambda: runs.started == [("a", 1)])
    for number in range(2, 6):
        scheduler.request("a", number)
    await runs.until(lambda: len(runs.started) == 2)
    runs.release.set()
    await runs.until(lambda: runs.finished == [("a", 5)])
    assert runs.started == [("a", 1), ("a", 5)]
    assert runs.stopped == [("a", 1)]
    assert not scheduler.busy("b")
    await scheduler.close()


async def test_a_run_that_has_come_far_is_let_finish() -> None:
    runs = Runs()
    scheduler = Scheduler(runs.run, quiet_s=0.01)
    scheduler.request("a", 1)
    await runs.until(lambda: len(runs.started) == 1)
    slot = scheduler._slots["a"]
    slot.run_started_at -= 100  # as if it had been running for long
    scheduler.request("a", 2)
    runs.release.set()
    await runs.until(lambda: len(runs.finished) == 2)
    assert runs.finished == [("a", 1), ("a", 2)]
    assert runs.stopped == []
    await scheduler.close()


async def test_at_most_so_many_at_once_and_everyone_gets_a_turn() -> None:
    runs = Runs()
    scheduler = Scheduler(runs.run, max_parallel=2)
    for key in "abcde":
        scheduler.request(key, 1)
    await runs.until(lambda: runs.running == 2)
    runs.release.set()
    await runs.until(lambda: len(runs.finished) == 5)
    assert runs.most_running == 2
    await scheduler.close()


async def test_cancel_stops_the_run_and_forgets_what_waits() -> None:
    runs = Runs()
    scheduler = Scheduler(runs.run, quiet_s=0.01)
    scheduler.request("a", 1)
    await runs.until(lambda: len(runs.started) == 1)
    scheduler.request("b", 1)  # waits for its turn
    before = scheduler.generation("a")
    scheduler.cancel("b")
    scheduler.cancel("a")
    assert scheduler.generation("a") > before  # a result of the stopped run is of an older generation
    await runs.until(lambda: runs.stopped == [("a", 1)])
    scheduler.request("b", 2)  # comes right behind its own cancellation and must not be lost
    runs.release.set()
    await runs.until(lambda: runs.finished == [("b", 2)])
    assert ("b", 1) not in runs.started
    await scheduler.close()


async def test_close_stops_everything_and_takes_no_more() -> None:
    runs = Runs()
    scheduler = Scheduler(runs.run, max_parallel=3)
    for key in "abc":
        scheduler.request(key, 1)
    await runs.until(lambda: runs.running == 3)
    await scheduler.close()
    assert runs.running == 0
    assert len(runs.stopped) == 3
    assert scheduler.request("a", 2) == 0
    assert len(runs.started) == 3


async def test_an_error_in_a_run_leaves_the_scheduler_working(caplog: pytest.LogCaptureFixture) -> None:
    done = asyncio.Event()

    async def run(key: str, request: int, generation: int) -> None:
        if request == 1:
            raise RuntimeError("boom")
        done.set()

    scheduler = Scheduler(run, quiet_s=0.01)
    scheduler.request("a", 1)
    scheduler.request("b", 2)
    await asyncio.wait_for(done.wait(), 10)
    assert "unexpected error" in caplog.text
    await scheduler.close()
