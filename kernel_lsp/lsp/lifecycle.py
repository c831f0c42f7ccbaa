"""Start and end of a conversation: initialize options, settings, watched files, shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any

from lsprotocol import types

from kernel_lsp.lsp.server import KernelLspServer
from kernel_lsp.session.settings import resolve
from kernel_lsp.session.uris import path_of

logger = logging.getLogger(__name__)

SECTION = "kernelLsp"
_FILES_ID = "kernel-lsp.files"
# Sources and headers, what says how they are built, and reports of Nsight Compute.
WATCHED_FILES = (
    "**/{*.cu,*.cuh,*.h,*.hh,*.hpp,*.hxx,*.inc,*.inl,*.ipp,*.tpp,*.rsp,*.ncu-rep,*.ncu-repz,"
    "compile_commands.json,compile_flags.txt,.clangd,kernel-lsp.yaml,build.ninja}"
)


def plain(value: Any) -> Any:
    """JSON values from what pygls made of an untyped object (nested named tuples)."""
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def use_settings(server: KernelLspServer, section: Any) -> None:
    """Resolve and use a settings section; each problem is logged, and said once."""
    settings, problems = resolve(section)
    for problem in problems:
        logger.warning("%s", problem)
        server.session.say_once(problem)
    server.session.configure(settings)


def register(server: KernelLspServer) -> None:
    """Register the handlers of this module."""

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        options = plain(params.initialization_options)
        if not isinstance(options, dict):
            options = {}
        server.trusted = options.get("trusted", True) is not False
        server.wants_status = options.get("status") is True
        server.opens_sass = options.get("sassView") is True
        server.picks = options.get("pick") is True
        folders = [path_of(folder.uri) for folder in params.workspace_folders or ()]
        if not folders and params.root_uri:
            folders = [path_of(params.root_uri)]
        server.roots = tuple(path for path in folders if path is not None)
        server.pending_settings = options.get("settings")  # plain values: `options` went through plain()
        if server.watch_parent:
            server.in_background(asyncio.get_running_loop().create_task(end_with_parent(params.process_id, server)))

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        use_settings(server, server.pending_settings)
        await _watch_files(server)
        await pull_settings(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration_changed(params: types.DidChangeConfigurationParams) -> None:
        if server.client_can("workspace.configuration"):
            await pull_settings(server)
            return
        pushed = plain(params.settings)
        if isinstance(pushed, dict) and SECTION in pushed:
            use_settings(server, pushed[SECTION])

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        paths = [path for change in params.changes if (path := path_of(change.uri)) is not None]
        server.session.files_changed(paths)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        folders = [path_of(uri) for uri in server.workspace.folders]
        server.roots = tuple(path for path in folders if path is not None)
        server.session.use_roots(server.roots)

    @server.feature(types.SHUTDOWN)
    async def shutdown(*_: Any) -> None:
        await server.end()

    @server.feature(types.SET_TRACE)
    def set_trace(params: types.SetTraceParams) -> None:
        """Accepted; what the server logs is chosen by `-v`."""


async def pull_settings(server: KernelLspServer) -> None:
    """Ask the client for the section, where it can be asked; no answer changes nothing."""
    if not server.client_can("workspace.configuration"):
        return
    try:
        sections = await server.workspace_configuration_async(
            types.ConfigurationParams(items=[types.ConfigurationItem(section=SECTION)])
        )
    except Exception as error:
        logger.warning("the client did not give its settings: %s", error)
        return
    if sections and sections[0] is not None:
        use_settings(server, plain(sections[0]))


async def _watch_files(server: KernelLspServer) -> None:
    registrations = []
    if server.client_can("workspace.did_change_watched_files.dynamic_registration"):
        options = types.DidChangeWatchedFilesRegistrationOptions(
            watchers=[types.FileSystemWatcher(glob_pattern=WATCHED_FILES)]
        )
        registrations.append(
            types.Registration(id=_FILES_ID, method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES, register_options=options)
        )
    if server.client_can("workspace.did_change_configuration.dynamic_registration"):
        registrations.append(
            types.Registration(
                id="kernel-lsp.settings",
                method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                register_options=types.DidChangeConfigurationRegistrationOptions(section=SECTION),
            )
        )
    if not registrations:
        return
    try:
        await server.client_register_capability_async(types.RegistrationParams(registrations=registrations))
        server.session.watches_files = any(each.id == _FILES_ID for each in registrations)
    except Exception as error:
        logger.warning("the client refused to watch files: %s", error)


async def end_with_parent(process_id: int | None, server: KernelLspServer) -> None:
    """End the server when the editor's process has gone (TCP has no end of input to tell)."""
    while process_id is not None and _is_alive(process_id):
        await asyncio.sleep(3)
    if process_id is not None and not server.exited.done():
        server.exited.set_result(None)


def _is_alive(process_id: int) -> bool:
    if os.name != "posix":
        return True
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
