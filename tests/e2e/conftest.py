"""A pytest-lsp client for the real server, once with the abilities of VS Code 1.139 and once with Neovim 0.11's.

`clients/*.json` hold what the real editors sent in `initialize`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, Union

import pytest
import pytest_asyncio
import pytest_lsp
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.protocol import default_converter
from pytest_lsp import ClientServerConfig, LanguageClient
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

HERE = Path(__file__).parent
CLIENTS = HERE / "clients"
SETTINGS = {"gpu": "RTX 3070 Ti"}  # so that the GPU of the machine that runs the tests does not matter
T = TypeVar("T")


class KernelClient(LanguageClient):
    """pytest-lsp's client, with waits that see what came before they began, and the requests that it lacks."""

    root: Path
    encoding = "utf-16"  # of columns, as the server answered

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.edits: list[types.ApplyWorkspaceEditParams] = []
        self.refreshes: list[str] = []
        self.registrations: list[types.Registration] = []
        self.statuses: list[Any] = []  # kernelLsp/status, as it came
        self.published: list[types.PublishDiagnosticsParams] = []  # in the order of arrival
        self.picks: list[tuple[str, list[str]]] = []  # titles and labels of lists that the user was shown
        self.picked: list[int | None] = []  # what the user takes of the next ones; nothing where it is empty
        self._opened: set[str] = set()

    def text_document_did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self._opened.add(params.text_document.uri)
        super().text_document_did_open(params)

    def text_document_did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._opened.discard(params.text_document.uri)
        super().text_document_did_close(params)

    async def begin(self, editor: str, root: Path) -> None:
        """Initialize as an editor does that opens this folder."""
        self.root = root
        options = {"trusted": True, "status": True, "sassView": True, "pick": editor.startswith("vscode")}
        self.set_configuration(SETTINGS, section="kernelLsp")
        answer = await self.initialize_session(
            types.InitializeParams(
                capabilities=capabilities(editor),
                root_uri=root.as_uri(),
                workspace_folders=[types.WorkspaceFolder(uri=root.as_uri(), name="workspace")],
                initialization_options={**options, "settings": SETTINGS},
            )
        )
        if answer.capabilities.position_encoding is not None:
            agreed = answer.capabilities.position_encoding
            self.encoding = str(getattr(agreed, "value", agreed))

    def move_to(self, root: Path) -> None:
        """Close the workspace folder and open another."""
        old, self.root = self.root, root
        event = types.WorkspaceFoldersChangeEvent(
            added=[types.WorkspaceFolder(uri=root.as_uri(), name="workspace")],
            removed=[types.WorkspaceFolder(uri=old.as_uri(), name="workspace")],
        )
        self.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))

    async def forget(self) -> None:
        """Close all documents, and forget what came when the server is done with that."""
        for uri in tuple(self._opened):
            self.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        anywhere = types.TextDocumentIdentifier((self.root / "none.cu").as_uri())
        await self.text_document_code_lens_async(types.CodeLensParams(anywhere))
        for kept in (self.edits, self.refreshes, self.statuses, self.published, self.messages, self.picks, self.picked):
            kept.clear()
        self.diagnostics.clear()

    async def wait_until(self, condition: Callable[[], T | None], what: str, timeout_s: float = 180.0) -> T:
        """The condition's first true value; raises when the server has gone or the time is up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_s
        while not (value := condition()):
            if self.error is not None:
                raise self.error
            if self._server is not None and self._server.returncode is not None:
                raise RuntimeError(f"the server ended with {self._server.returncode} before: {what}")
            if loop.time() > end:
                raise TimeoutError(f"not within {timeout_s} s: {what}")
            await asyncio.sleep(0.01)
        return value

    def open(self, path: Path, text: str | None = None, language_id: str = "cuda-cpp") -> str:
        """Open a file as an editor does; gives its URI. `text`: what the buffer holds, if not what is on disk."""
        uri = path.as_uri()
        content = path.read_text(encoding="utf-8") if text is None else text
        item = types.TextDocumentItem(uri=uri, language_id=language_id, version=1, text=content)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def save(self, path: Path, text: str, version: int) -> None:
        """Change the whole text, write it to disk and say that it was saved."""
        identifier = types.VersionedTextDocumentIdentifier(uri=path.as_uri(), version=version)
        whole = types.TextDocumentContentChangeWholeDocument(text=text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [whole]))
        path.write_text(text, encoding="utf-8")
        self.text_document_did_save(
            types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri=path.as_uri()), text=None)
        )


def capabilities(name: str) -> types.ClientCapabilities:
    """What a captured editor says of itself."""
    captured = json.loads((CLIENTS / f"{name}.json").read_text(encoding="utf-8"))
    return get_converter().structure(captured["capabilities"], types.ClientCapabilities)


def commands_of(actions: Sequence[types.Command | types.CodeAction] | None) -> dict[str, types.Command]:
    """By title what code actions run."""
    commands = {}
    for action in actions or ():
        command = action if isinstance(action, types.Command) else action.command
        assert command is not None, f"{action.title} runs nothing"
        commands[action.title] = command
    return commands


def keep_all_diagnostics(client: KernelClient, params: types.PublishDiagnosticsParams) -> None:
    """pytest-lsp keeps the last ones of each file; their order and versions matter as well."""
    client.published.append(params)
    client.diagnostics[params.uri] = list(params.diagnostics)


def make_client() -> KernelClient:
    """A client that answers all that the server asks."""

    def converter_factory() -> Any:
        # lsprotocol 2025.0.0 decodes a CodeAction that has a command as a Command.
        converter = default_converter()
        converter.register_structure_hook(
            Union[types.Command, types.CodeAction],  # noqa: UP007 - the very object that lsprotocol looks up
            lambda value, _: converter.structure(
                value, types.Command if isinstance(value.get("command"), str) else types.CodeAction
            ),
        )
        return converter

    client = KernelClient(converter_factory=converter_factory)
    features = {**DEFAULT_CLIENT_FEATURES, types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: keep_all_diagnostics}
    register_lsp_features(client, features)

    @client.feature(types.WORKSPACE_APPLY_EDIT)
    def apply_edit(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        client.edits.append(params)
        return types.ApplyWorkspaceEditResult(applied=True)

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register_capability(params: types.RegistrationParams) -> None:
        client.registrations.extend(params.registrations)

    @client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
    def refresh_lenses(*_: Any) -> None:
        client.refreshes.append(types.WORKSPACE_CODE_LENS_REFRESH)

    @client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
    def refresh_hints(*_: Any) -> None:
        client.refreshes.append(types.WORKSPACE_INLAY_HINT_REFRESH)

    @client.feature("kernelLsp/pick")
    def pick(params: Any) -> dict[str, int] | None:
        client.picks.append((params.title, [f"{i.label}, {i.description}, {i.detail}" for i in params.items]))
        index = client.picked.pop(0) if client.picked else None
        return None if index is None else {"index": index}

    @client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
    def show_message_request(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        actions = list(params.actions or [])
        client.picks.append((params.message, [action.title for action in actions]))
        index = client.picked.pop(0) if client.picked else None
        return None if index is None else actions[index]

    @client.feature("kernelLsp/status")
    def status(params: Any) -> None:
        client.statuses.append(params)

    return client


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of the session's own: results of an earlier run must not stand in for builds."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


EDITORS = ["vscode_1.139.1", "neovim_0.11.4"]
CONFIG = ClientServerConfig(server_command=[sys.executable, "-m", "kernel_lsp", "serve"], client_factory=make_client)


# What these tests show hardly depends on the client: each runs with one of the two, in turns.
IN_TURNS = ("test_gpu_commands.py", "test_reports.py", "test_settings.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path.name in IN_TURNS and item.path.parent == HERE and _is_others(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _is_others(item: pytest.Item) -> bool:
    """Whether the test runs with the other client. One that was asked for by its name with a client is left out too."""
    editor = next((each for each in EDITORS if each in item.name), None)
    if editor is None:
        return False
    return EDITORS[zlib.crc32(item.name.replace(editor, "").encode()) % len(EDITORS)] != editor


@pytest_lsp.fixture(params=EDITORS, config=CONFIG)
async def client(
    request: pytest.FixtureRequest, lsp_client: KernelClient, tmp_path: Path
) -> AsyncGenerator[None, None]:
    """An initialised session in a folder of its own (`client.root`); ends with shutdown and exit."""
    await lsp_client.begin(request.param, tmp_path)
    yield
    await lsp_client.shutdown_session()


@pytest_lsp.fixture(scope="module", params=EDITORS, config=CONFIG)
async def module_client(
    request: pytest.FixtureRequest, lsp_client: KernelClient, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[None, None]:
    """One server for a module's tests, which take it as `shared_client`."""
    await lsp_client.begin(request.param, tmp_path_factory.mktemp("workspace"))
    yield
    await lsp_client.shutdown_session()


@pytest_asyncio.fixture(loop_scope="module")
async def shared_client(module_client: KernelClient, tmp_path: Path) -> AsyncGenerator[KernelClient, None]:
    """The module's server in the test's own workspace folder, with nothing left of the tests before.

    For tests (of `asyncio(loop_scope="module")`) that change no settings and expect nothing that is said only once.
    """
    module_client.move_to(tmp_path)
    yield module_client
    await module_client.forget()
