"""Has the user pick one of several things: in a list of the editor's own, else among the buttons of a message."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from kernel_lsp.lsp.lifecycle import plain
from kernel_lsp.lsp.names import PICK
from kernel_lsp.lsp.server import KernelLspServer

logger = logging.getLogger(__name__)

MOST_BUTTONS = 12  # a message with more is a wall


@dataclass(frozen=True, slots=True)
class PickItem:
    """One line of the list: what it is, what tells it apart, and more where there is room for it."""

    label: str
    description: str = ""
    detail: str = ""

    @property
    def title(self) -> str:
        """All in one line, for a button."""
        return ", ".join(part for part in (self.label, self.description, self.detail) if part)


async def pick(server: KernelLspServer, title: str, items: Sequence[PickItem]) -> int | None:
    """The index of the item that the user picked; None: none, or the client cannot ask."""
    try:
        if server.picks:
            answer = await server.protocol.send_request_async(PICK, _request(title, items))
            return _index(plain(answer), len(items))
        # Buttons are told apart by their titles alone.
        titles = {item.title: index for index, item in reversed(list(enumerate(items[:MOST_BUTTONS])))}
        buttons = [types.MessageActionItem(title=each) for each in dict.fromkeys(item.title for item in items)]
        chosen = await server.window_show_message_request_async(
            types.ShowMessageRequestParams(
                type=types.MessageType.Info, message=title, actions=[each for each in buttons if each.title in titles]
            )
        )
        return None if chosen is None else titles.get(chosen.title)
    except Exception as error:  # a client that cannot ask answers with an error
        logger.warning("the client could not ask (%s): %s", title, error)
        return None


def _request(title: str, items: Sequence[PickItem]) -> dict[str, Any]:
    return {
        "title": title,
        "items": [{"label": each.label, "description": each.description, "detail": each.detail} for each in items],
    }


def _index(answer: Any, count: int) -> int | None:
    index = answer.get("index") if isinstance(answer, dict) else None
    return index if isinstance(index, int) and not isinstance(index, bool) and 0 <= index < count else None
