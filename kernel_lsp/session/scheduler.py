"""Turns requests to analyse documents into runs: one at a time per document, the latest wins, a few at once.

A lone request starts at once. A request that follows another closely, or finds its document's run under way,
waits until requests have been quiet for a moment, so that five saves in a second end in at most two builds.
A young run is stopped for a newer request; one that has come far is let finish, so that frequent saves of a file
that builds slowly still give results.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)
Request = TypeVar("Request")

QUIET_S = 0.4  # requests closer together than this are one burst
YOUNG_S = 2.0  # a run of this age or less is stopped for a newer request
FAR_FRACTION = 0.5  # of the last run's duration: from here on a run is let finish


@dataclass(slots=True)
class _Slot(Generic[Request]):
    generation: int = 0
    pending: Request | None = None
    worker: asyncio.Task[None] | None = None
    run: asyncio.Task[None] | None = None
    run_started_at: float = 0.0
    last_request_at: float = float("-inf")
    last_duration_s: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Scheduler(Generic[Key, Request]):
    """Runs `run(key, request, generation)`; at most `max_parallel` at the same time. Belongs to one event loop."""

    def __init__(
        self,
        run: Callable[[Key, Request, int], Awaitable[None]],
        max_parallel: int = 1,
        quiet_s: float = QUIET_S,
        at_rest: Callable[[Key], None] | None = None,
    ) -> None:
        self._run = run
        self._at_rest = at_rest  # called when a key has no run waiting or under way any more
        self._quiet_s = quiet_s
        self._slots: dict[Key, _Slot[Request]] = {}
        self._max_parallel = max_parallel
        self._n_running = 0
        self._free = asyncio.Condition()
        self._closed = False

    def set_max_parallel(self, max_parallel: int) -> None:
        """Change the limit; runs under way are left alone."""
        self._max_parallel = max_parallel

    def generation(self, key: Key) -> int:
        """Number of the latest accepted request for `key`; 0: none."""
        slot = self._slots.get(key)
        return slot.generation if slot else 0

    def busy(self, key: Key) -> bool:
        """Whether a run for `key` is waiting or under way."""
        slot = self._slots.get(key)
        return slot is not None and slot.worker is not None

    def request(self, key: Key, request: Request) -> int:
        """Accept a request; returns its generation. It replaces one that has not started yet."""
        if self._closed:
            return 0
        slot = self._slots.setdefault(key, _Slot())
        loop = asyncio.get_running_loop()
        now = loop.time()
        slot.generation += 1
        slot.pending = request
        burst = now - slot.last_request_at < self._quiet_s
        slot.last_request_at = now
        slot.changed.set()
        if slot.worker is None:
            slot.worker = loop.create_task(self._work(key, slot, quiet_first=burst))
        elif slot.run is not None and self._stoppable(slot, now):
            slot.run.cancel()
        return slot.generation

    def cancel(self, key: Key) -> None:
        """Stop the run for `key` and forget what is waiting; a run of an older generation never publishes."""
        slot = self._slots.get(key)
        if slot is None:
            return
        slot.generation += 1
        slot.pending = None
        if slot.run is not None:
            slot.run.cancel()
        elif slot.worker is not None:
            slot.worker.cancel()
            slot.worker = None  # a request that comes before it has ended starts a new one

    async def close(self) -> None:
        """Stop everything and wait until it has stopped."""
        self._closed = True
        workers = [slot.worker for slot in self._slots.values() if slot.worker is not None]
        for key in list(self._slots):
            self.cancel(key)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _stoppable(self, slot: _Slot[Request], now: float) -> bool:
        age = now - slot.run_started_at
        return age <= max(YOUNG_S, FAR_FRACTION * slot.last_duration_s)

    async def _work(self, key: Key, slot: _Slot[Request], quiet_first: bool) -> None:
        loop = asyncio.get_running_loop()
        try:
            if quiet_first:
                await self._quiet(slot)
            while slot.pending is not None:
                async with self._free:
                    await self._free.wait_for(lambda: self._n_running < self._max_parallel)
                    self._n_running += 1
                try:
                    request, slot.pending = slot.pending, None
                    if request is None:  # cancelled while waiting for its turn
                        break
                    slot.run_started_at = loop.time()
                    slot.run = loop.create_task(self._guarded(key, request, slot.generation))
                    stopped = False
                    try:
                        await slot.run
                        slot.last_duration_s = loop.time() - slot.run_started_at
                    except asyncio.CancelledError:
                        stopped = True
                        if not slot.run.done():  # the worker itself was cancelled
                            slot.run.cancel()
                            await asyncio.gather(slot.run, return_exceptions=True)
                            raise
                    finally:
                        slot.run = None
                finally:
                    self._n_running -= 1
                    async with self._free:
                        self._free.notify_all()
                if slot.pending is not None or stopped:
                    await self._quiet(slot)
        finally:
            if slot.worker is asyncio.current_task():
                slot.worker = None
                if self._at_rest is not None and not self._closed:
                    self._at_rest(key)

    async def _quiet(self, slot: _Slot[Request]) -> None:
        """Wait until no request has come for the quiet time."""
        loop = asyncio.get_running_loop()
        while slot.pending is not None and (left := slot.last_request_at + self._quiet_s - loop.time()) > 0:
            slot.changed.clear()
            try:
                await asyncio.wait_for(slot.changed.wait(), left)
            except asyncio.TimeoutError:
                return

    async def _guarded(self, key: Key, request: Request, generation: int) -> None:
        try:
            await self._run(key, request, generation)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("analysis of %s ended in an unexpected error", key)
