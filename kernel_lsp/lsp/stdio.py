"""Runs a server over stdio or one TCP connection until shutdown, end of input or a signal; gives the exit code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from pygls.io_ import StdoutWriter, run_async

from kernel_lsp.lsp.server import KernelLspServer

logger = logging.getLogger(__name__)


def _stdin_stream() -> asyncio.StreamReader:
    """Standard input as a stream, fed by a daemon thread that reads the descriptor itself.

    A read that never returns then neither delays the exit nor holds the lock of a buffered reader at its end.
    """
    loop = asyncio.get_running_loop()
    stream = asyncio.StreamReader()
    descriptor = sys.stdin.fileno()

    def pump() -> None:
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:
                data = b""
            with contextlib.suppress(RuntimeError):  # the loop has gone
                loop.call_soon_threadsafe(*((stream.feed_data, data) if data else (stream.feed_eof,)))
            if not data:
                return

    threading.Thread(target=pump, name="stdin", daemon=True).start()
    return stream


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
        return await _converse(server_factory(), _stdin_stream(), StdoutWriter(stdout))

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
