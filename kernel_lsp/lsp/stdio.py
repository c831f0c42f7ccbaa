"""Runs a server over stdio or one TCP connection until shutdown, end of input or a signal; gives the exit code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, BinaryIO

from pygls.io_ import StdoutWriter, run_async

from kernel_lsp.lsp.server import KernelLspServer

logger = logging.getLogger(__name__)


class StdinReader:
    """Reads a blocking stream in one daemon thread, so that a read that never returns does not delay the exit."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._jobs: queue.SimpleQueue[tuple[Callable[[], bytes], Future[bytes]]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="stdin", daemon=True).start()

    def readline(self) -> Awaitable[bytes]:
        """The next line with its end, b"" at end of input."""
        return self._submit(self._stream.readline)

    def readexactly(self, n: int) -> Awaitable[bytes]:
        """The next `n` bytes, fewer at end of input."""
        return self._submit(lambda: self._stream.read(n))

    def _submit(self, read: Callable[[], bytes]) -> Awaitable[bytes]:
        future: Future[bytes] = Future()
        self._jobs.put((read, future))
        return asyncio.wrap_future(future)

    def _serve(self) -> None:
        while True:
            read, future = self._jobs.get()
            try:
                data = read()
            except (OSError, ValueError):  # closed under us: end of input
                data = b""
            with contextlib.suppress(Exception):  # the loop may have gone
                future.set_result(data)


async def _converse(server: KernelLspServer, reader: Any, writer: Any) -> int:
    stop = threading.Event()
    server.protocol.set_writer(writer)
    talk = asyncio.ensure_future(
        run_async(
            stop_event=stop,
            reader=reader,
            protocol=server.protocol,
            logger=logger,
            error_handler=server.report_server_error,
        )
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
            loop.add_signal_handler(number, talk.cancel)
    waiting = {talk, server.exited}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if talk.done() and not talk.cancelled() and talk.exception() is not None:
            logger.error("the connection ended in an error: %s", talk.exception())
    finally:
        await server.end()
        talk.cancel()
        await asyncio.gather(talk, return_exceptions=True)
    return 0 if server.protocol.shutdown_requested else 1


def serve_stdio(server_factory: Callable[[], KernelLspServer]) -> int:
    """Serve over stdin and stdout; 0 after a proper shutdown, 1 when the input ended or a signal came before it."""
    stdout = sys.stdout.buffer
    sys.stdout = sys.stderr  # a stray print must not break the framing

    async def main() -> int:
        return await _converse(server_factory(), StdinReader(sys.stdin.buffer), StdoutWriter(stdout))

    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, BrokenPipeError):
        return 1


def serve_tcp(server_factory: Callable[[], KernelLspServer], host: str, port: int) -> int:
    """Serve one client over TCP, then end. The address is logged once the port is open."""

    async def main() -> int:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if done.done() or listener.sockets == ():
                writer.close()
                return
            listener.close()
            code = await _converse(server_factory(), reader, writer)
            writer.close()
            if not done.done():
                done.set_result(code)

        listener = await asyncio.start_server(connected, host, port)
        logger.warning("listening on %s:%s", *listener.sockets[0].getsockname()[:2])
        return await done

    try:
        return asyncio.run(main())
    except KeyboardInterrupt:
        return 1
