"""The VS Code manifest declares exactly the server's settings, as `session/settings.py` declares them."""

from __future__ import annotations

import json
from pathlib import Path

from kernel_lsp.session.settings import json_schema

REPOSITORY = Path(__file__).parents[2]
# Of the client alone: how it finds and talks to the server.
CLIENT_ONLY = {"kernelLsp.interpreter", "kernelLsp.trace.server"}


def test_the_manifest_holds_the_servers_settings() -> None:
    manifest = json.loads((REPOSITORY / "vscode-extension" / "package.json").read_text("utf-8"))
    declared = manifest["contributes"]["configuration"]["properties"]
    assert set(declared) - set(json_schema()) <= CLIENT_ONLY
    assert {name: declared.get(name) for name in json_schema()} == json_schema()


def test_the_configuration_page_names_every_setting() -> None:
    page = (REPOSITORY / "docs" / "configuration.md").read_text("utf-8")
    assert [name for name in json_schema() if f"`{name}`" not in page] == []
