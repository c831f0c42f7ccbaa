"""The protocol class and converter: pygls with the faults that were reproduced in 2.1.1 mended.

Enum numbers that lsprotocol does not know are kept as plain numbers instead of failing `initialize`; a request that
cannot be decoded is answered with InvalidParams instead of with silence; shutdown works on a copy of the requests
under way, which the originals change while it iterates.
"""

from __future__ import annotations

import enum
import inspect
import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

if TYPE_CHECKING:
    from kernel_lsp.lsp.server import KernelLspServer

logger = logging.getLogger(__name__)

_ENUM_CLASSES = tuple(cls for _, cls in inspect.getmembers(types, inspect.isclass) if issubclass(cls, enum.Enum))


def _tolerant(cls: type[enum.Enum]) -> Any:
    known = cls._value2member_map_

    def structure(value: Any, _: Any) -> Any:
        return known.get(value, value) if isinstance(value, (str, int)) else value

    return structure


def tolerant_converter() -> Converter:
    """pygls' converter, with every lsprotocol enum open: an unknown number or word is kept as it came."""
    converter: Converter = default_converter()
    for cls in _ENUM_CLASSES:
        converter.register_structure_hook(cls, _tolerant(cls))
    return converter


class KernelLspProtocol(LanguageServerProtocol):
    """LanguageServerProtocol with answers to malformed requests and a safe shutdown."""

    _server: KernelLspServer
    shutdown_requested = False

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Decode a message; a request that does not fit its type is answered here, then dropped."""
        if "method" in data and self.get_message_type(data["method"]) is None:
            data.setdefault("params", None)  # JSON-RPC lets them be left out, pygls does not for names of our own
        try:
            return super().structure_message(data)
        except JsonRpcException:
            if "method" in data and isinstance(data.get("id"), (str, int)):
                known = self.get_message_type(data["method"]) is not None
                code = types.ErrorCodes.InvalidParams if known else types.ErrorCodes.MethodNotFound
                said = "the parameters do not fit the protocol" if known else "no such method"
                self._send_response(data["id"], error=types.ResponseError(code, f"{data['method']}: {said}"))
            raise

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Generator[Any, Any, None]:
        """End everything that runs, then answer; the exit code is 0 from here on."""
        self.shutdown_requested = True
        if (user_handler := self.fm.features.get(types.SHUTDOWN)) is not None:
            yield user_handler, args, None
        current = self.msg_id
        for msg_id, future in list(self._request_futures.items()):
            if msg_id != current and not future.done():
                future.cancel()
        self._shutdown = True

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """Let the process end: with code 0 after a shutdown request, else 1."""
        exited = self._server.exited
        if not exited.done():
            exited.set_result(None)
        return
        yield  # a generator like the method it replaces
