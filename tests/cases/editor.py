"""An editor for the cases: opens, changes and saves files of a folder, and asks for what is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.raw_server import RawServer

PROGRESS = {"window": {"workDoneProgress": True}}


class Editor:
    """One server and the documents open in it. Lines are 1-based here, characters in the client's units."""

    def __init__(self, server: RawServer, root: Path) -> None:
        self.server = server
        self.root = root
        self._versions: dict[str, int] = {}

    @classmethod
    async def start(
        cls,
        root: Path,
        settings: dict[str, Any] | None = None,
        *,
        trusted: bool = True,
        capabilities: dict[str, Any] | None = None,
        argv: tuple[str, ...] = ("-m", "kernel_lsp", "serve"),
        **env: str,
    ) -> Editor:
        server = await RawServer.start(argv=argv, **env)
        await server.initialize(
            rootUri=root.as_uri(),
            capabilities=capabilities or {},
            initializationOptions={"settings": settings or {}, "trusted": trusted},
        )
        return cls(server, root)

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, name: str) -> str:
        uri = self.uri(name)
        self._versions[uri] = 1
        self.server.open(uri, (self.root / name).read_text("utf-8"))
        return uri

    def change(self, name: str, text: str) -> int:
        """The whole text anew, not saved; the version."""
        uri = self.uri(name)
        self._versions[uri] += 1
        identifier = {"uri": uri, "version": self._versions[uri]}
        self.server.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": text}]})
        return self._versions[uri]

    def save(self, name: str, text: str) -> int:
        version = self.change(name, text)
        (self.root / name).write_text(text, "utf-8")
        self.server.notify("textDocument/didSave", {"textDocument": {"uri": self.uri(name)}})
        return version

    def close(self, name: str) -> None:
        self.server.notify("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})

    def configure(self, settings: dict[str, Any]) -> None:
        self.server.notify("workspace/didChangeConfiguration", {"settings": {"kernelLsp": settings}})

    async def diagnostics(self, name: str, version: int | None = None) -> list[dict[str, Any]]:
        """What is published for a file (of that version), past or coming; the first that comes."""
        params = await self.server.published(self.uri(name), lambda p: version is None or p.get("version") == version)
        return list(params["diagnostics"])

    def published(self, name: str | None = None) -> list[dict[str, Any]]:
        """All that was published so far."""
        of = [m["params"] for m in self.server.messages if m.get("method") == "textDocument/publishDiagnostics"]
        return [params for params in of if name is None or params["uri"] == self.uri(name)]

    def said(self) -> list[str]:
        """Messages shown to the user."""
        return [m["params"]["message"] for m in self.server.messages if m.get("method") == "window/showMessage"]

    async def hover(self, name: str, line: int, character: int) -> dict[str, Any] | None:
        answer = await self.server.request(
            "textDocument/hover",
            {"textDocument": {"uri": self.uri(name)}, "position": {"line": line - 1, "character": character}},
        )
        hover: dict[str, Any] | None = answer["result"]
        return hover

    async def lenses(self, name: str) -> list[tuple[int, str]]:
        """Line and text of each lens."""
        answer = await self.server.request("textDocument/codeLens", {"textDocument": {"uri": self.uri(name)}})
        return [(lens["range"]["start"]["line"] + 1, lens["command"]["title"]) for lens in answer["result"]]


def errors(diagnostics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [diagnostic for diagnostic in diagnostics if diagnostic["severity"] == 1]
