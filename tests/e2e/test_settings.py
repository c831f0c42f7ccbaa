"""Settings in the running server: what is wrong with them is said once, and what they switch off goes."""

from __future__ import annotations

import shutil
from pathlib import Path

from lsprotocol import types

from tests.e2e.conftest import KernelClient
from tests.e2e.test_documents import EXAMPLES, first_result, hover_text, lenses_of

BAD_SETTINGS = [
    ({"gpu": 3070}, "kernelLsp.gpu: expected a string"),
    ({"severity": {"KL201": "loud"}}, "kernelLsp.severity: KL201"),
    ({"build": {"maxParallel": -1}}, "kernelLsp.build.maxParallel"),
    ({"gpu": "RTX 9999"}, "RTX 9999"),
    ("nonsense", "kernelLsp: expected an object"),
]


async def until_told(client: KernelClient, words: str) -> None:
    await client.wait_until(lambda: any(words in message.message for message in client.messages), words)


async def test_bad_settings_cost_one_message(client: KernelClient, tmp_path: Path) -> None:
    source = tmp_path / "spilling.cu"
    shutil.copy(EXAMPLES / "spilling.cu", source)
    uri = client.open(source)
    assert [d.code for d in await first_result(client, uri)].count("KL201") == 1
    for section, told in BAD_SETTINGS:
        client.set_configuration(section, section="kernelLsp")
        client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
        await until_told(client, told)
        client.published.clear()
        client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
        await client.wait_until(lambda: client.published, "the save's result")
        assert [d.code for d in client.diagnostics[uri]].count("KL201") == 1
    assert [len([m for m in client.messages if told in m.message]) for _, told in BAD_SETTINGS] == [1] * 5


async def test_findings_can_be_switched_off(client: KernelClient, tmp_path: Path) -> None:
    source = tmp_path / "spilling.cu"
    shutil.copy(EXAMPLES / "spilling.cu", source)
    uri = client.open(source)
    assert "KL201" in [d.code for d in await first_result(client, uri)]
    client.set_configuration({"severity": {"KL201": "off"}}, section="kernelLsp")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    await client.wait_until(lambda: "KL201" not in [d.code for d in client.diagnostics[uri]], "KL201 to go")
    client.set_configuration(
        {"diagnostics": {"enable": False}, "codeLens": {"enable": False}, "hover": {"enable": False}},
        section="kernelLsp",
    )
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))
    await client.wait_until(lambda: client.diagnostics[uri] == [], "all to go")
    assert not await lenses_of(client, uri)
    assert await hover_text(client, uri, 6, 45) == ""
