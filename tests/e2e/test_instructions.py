"""What a user sees of the machine code: hovers of lines, hints at their ends, the SASS view, also while editing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.e2e.conftest import KernelClient, commands_of
from tests.e2e.test_documents import EXAMPLES, hover_text, insert

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def client(shared_client: KernelClient) -> KernelClient:
    """The module's server."""
    return shared_client


TWO_LOADS = """#include "load.cuh"

__global__ void __launch_bounds__(256) pair(const float* x, const int* at, float* y)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = load(x, at[i]);
    y[i] = v * v + 1.0f;
}
"""
HEADER = """#pragma once
__device__ __forceinline__ float load(const float* x, int i)
{
    return x[i];
}
"""
LOAD_TWICE = """
__device__ __forceinline__ float twice(const float* x, int i)
{
    return 2.0f * load(x, i);
}
"""


async def hints_of(client: KernelClient, uri: str, last_line: int = 10_000) -> dict[int, types.InlayHint]:
    whole = types.Range(types.Position(0, 0), types.Position(last_line, 0))
    params = types.InlayHintParams(types.TextDocumentIdentifier(uri), whole)
    found = await client.text_document_inlay_hint_async(params)
    return {hint.position.line + 1: hint for hint in found or []}


async def instructions(client: KernelClient, uri: str) -> None:
    """Wait until the server says that it has read the instructions of a document's latest build."""
    await client.wait_until(
        lambda: any(_field(s, "uri") == uri and _field(s, "instructions") for s in client.statuses),
        f"instructions of {uri}",
    )


def _field(status: Any, name: str) -> Any:
    return status.get(name) if isinstance(status, dict) else getattr(status, name, None)


async def test_hover_on_a_line_tells_its_instructions_and_where_they_come_from(
    client: KernelClient, tmp_path: Path
) -> None:
    (tmp_path / "load.cuh").write_text(HEADER)
    source = tmp_path / "pair.cu"
    source.write_text(TWO_LOADS)
    uri = client.open(source)
    await instructions(client, uri)
    call = await hover_text(client, uri, 6, 4)
    assert "l.6** in pair" in call
    assert "load.cuh:4 (load)" in call
    assert call.count("LDG.E") >= 2  # at[i] of the line itself, x[i] of the header
    user = await hover_text(client, uri, 7, 4)
    assert "Waits for LDG.E of l.6 (load.cuh:4)." in user
    assert "FFMA" in user
    assert await hover_text(client, uri, 2, 0) == ""

    # A line above moves all; a touched line says nothing; the age is told.
    insert(client, uri, 2, 1, "// one more\n")
    moved = await hover_text(client, uri, 8, 4)
    assert "**l.8** in pair" in moved
    assert "1 line edited since" in moved
    insert(client, uri, 3, 8, "    y[i] = v * v + 2.0f;\n", until=(8, 0))
    assert await hover_text(client, uri, 8, 4) == ""


LONG_STATEMENT = """__global__ void scale(const float* x, float* y, int n)
{
    float factor = 2.0f;
    y[threadIdx.x] =
        x[threadIdx.x] *
        factor
        ;
}
"""


async def test_every_line_of_a_statement_shows_its_instructions(client: KernelClient, tmp_path: Path) -> None:
    """The compiler gives them to one line of it."""
    source = tmp_path / "scale.cu"
    source.write_text(LONG_STATEMENT)
    uri = client.open(source)
    await instructions(client, uri)
    texts = {line: await hover_text(client, uri, line, 8) for line in (4, 5, 6, 7)}
    assert all("STG.E" in text or "LDG.E" in text for text in texts.values())
    others = [line for line, text in texts.items() if "*The statement on l.4-7 has its instructions there.*" in text]
    assert 7 in others
    assert all(texts[line].startswith(("**l.4** in scale", "**l.5** in scale")) for line in others)
    assert await hover_text(client, uri, 3, 8) == ""
    # Where it was edited nothing is known of the line, nor of the statement through it.
    insert(client, uri, 2, 7, "        * 1.0f;\n", until=(7, 0))
    assert await hover_text(client, uri, 7, 10) == ""


async def test_hover_in_a_header_is_that_of_the_file_that_includes_it(client: KernelClient, tmp_path: Path) -> None:
    header = tmp_path / "load.cuh"
    header.write_text(HEADER)
    source = tmp_path / "pair.cu"
    source.write_text(TWO_LOADS)
    client.open(source)
    uri = client.open(header)
    await instructions(client, uri)
    text = await hover_text(client, uri, 4, 4)
    assert "**l.4** in pair" in text
    assert "inlined into pair.cu:6" in text


@pytest.mark.parametrize("name", ["load.cuh", "load.h", "load.hpp", "load.inl"])
async def test_a_header_alone_shows_its_instructions(client: KernelClient, tmp_path: Path, name: str) -> None:
    """Its own, and those of functions inlined into it; through the source on disk that includes it."""
    header = tmp_path / name
    header.write_text(HEADER + LOAD_TWICE)
    (tmp_path / "pair.cu").write_text(TWO_LOADS.replace("load.cuh", name).replace("load(x, at[i])", "twice(x, at[i])"))
    uri = client.open(header)
    await instructions(client, uri)
    own = await hover_text(client, uri, 4, 4)
    assert "**l.4** in pair: " in own
    assert "1 LDG.E" in own
    assert "inlined into l.9 <- pair.cu:6" in own
    caller = await hover_text(client, uri, 9, 4)
    assert "l.4 (load)" in caller
    assert "inlined into pair.cu:6" in caller
    assert await hover_text(client, uri, 1, 0) == ""


async def test_a_header_that_only_the_compiler_finds(client: KernelClient, tmp_path: Path) -> None:
    """Its name stands in a macro: nothing includes it as far as the texts tell, until a build has read it."""
    header, source = tmp_path / "load.cuh", tmp_path / "pair.cu"
    header.write_text(HEADER)
    source.write_text(TWO_LOADS.replace('#include "load.cuh"', '#define LOAD "load.cuh"\n#include LOAD'))
    uri = client.open(header)
    await client.wait_until(lambda: "KL902" in [d.code for d in client.diagnostics.get(uri, ())], "no source is found")
    client.open(source)
    await instructions(client, uri)
    assert "inlined into pair.cu:7" in await hover_text(client, uri, 4, 4)
    assert "KL902" not in [d.code for d in client.diagnostics[uri]]


async def test_generated_code_shows_on_the_lines_it_was_made_from(client: KernelClient, tmp_path: Path) -> None:
    """`#line` names another file, by a path as generators write it: from the folder of the build.

    (On another line than the one before it: ptxas leaves out a change of the file alone.)
    """
    template, source = tmp_path / "templates" / "scale.cuh", tmp_path / "scale.cu"
    template.parent.mkdir()
    template.write_text("// The kernel's body.\n\n\n\n\n\n    x[i] = x[i] * 3.0f;\n")
    source.write_text(
        "__global__ void scale(float* x)\n{\n    int i = threadIdx.x;\n"
        '#line 7 "templates/scale.cuh"\n    x[i] = x[i] * 3.0f;\n#line 6 "scale.cu"\n}\n'
    )
    uri = client.open(template)
    client.open(source)
    await instructions(client, uri)
    text = await hover_text(client, uri, 7, 4)
    assert "**l.7** in scale: " in text
    assert "1 LDG.E  1 STG.E" in text


async def test_a_kernel_of_a_header_is_told_where_it_is_used(client: KernelClient, tmp_path: Path) -> None:
    """As with CUTLASS: the file instantiates and launches, its lines hold no instructions."""
    (tmp_path / "scale.cuh").write_text(
        "#pragma once\nnamespace lib {\ntemplate <int N>\n__global__ void scale(float* x)\n{\n"
        "    x[threadIdx.x] *= N;\n}\n}\n"
    )
    source = tmp_path / "use.cu"
    source.write_text(
        '#include "scale.cuh"\ntemplate __global__ void lib::scale<4>(float*);\n'
        "void run(float* x) { lib::scale<4> <<<1, 256>>>(x); int scale = 3; (void)scale; }\n"
    )
    uri = client.open(source)
    await instructions(client, uri)
    for line, column in ((2, 30), (3, 27)):
        text = await hover_text(client, uri, line, column)
        assert text.startswith(("**lib::scale<4>**", "**scale<4>**")), text
        assert "registers" in text
    assert await hover_text(client, uri, 3, 55) == ""


async def test_spills_end_their_lines_with_a_hint_that_follows_edits(client: KernelClient, tmp_path: Path) -> None:
    source = tmp_path / "spilling.cu"
    shutil.copy(EXAMPLES / "spilling.cu", source)
    uri = client.open(source)
    await instructions(client, uri)
    hints = await hints_of(client, uri)
    labels = {line: str(hint.label) for line, hint in hints.items()}
    spilled = {line for line, label in labels.items() if "spill" in label}
    assert spilled
    # The lines' bytes are the kernel's: 472 B stored and 476 B loaded, by ptxas.
    whole = [hint.tooltip for hint in hints.values() if "spill" in str(hint.label)]
    assert all("472 B spill stores, 476 B spill loads" in str(tip) for tip in whole)
    lines = source.read_text().splitlines()
    for line, hint in hints.items():
        assert hint.position.character == len(lines[line - 1].rstrip()), "at the end of its line"

    insert(client, uri, 2, 1, "// one more\n")
    assert {line - 1 for line in await hints_of(client, uri)} == set(labels)
    touched = min(spilled)
    insert(client, uri, 3, touched + 1, "    ")
    assert {line - 1 for line in await hints_of(client, uri)} == set(labels) - {touched}


async def test_the_spill_names_its_lines_as_related(client: KernelClient, tmp_path: Path) -> None:
    source = tmp_path / "spilling.cu"
    shutil.copy(EXAMPLES / "spilling.cu", source)
    uri = client.open(source)
    await instructions(client, uri)
    spill = next(d for d in client.diagnostics[uri] if d.code == "KL201")
    assert spill.related_information
    assert all(place.location.uri == uri and "STL" in place.message for place in spill.related_information[:1])
    assert [d.code for d in client.diagnostics[uri]].count("KL201") == 1


async def test_views_are_refreshed_once_for_a_build(client: KernelClient, tmp_path: Path) -> None:
    (tmp_path / "load.cuh").write_text(HEADER)
    source = tmp_path / "pair.cu"
    source.write_text(TWO_LOADS)
    uri = client.open(source)
    await instructions(client, uri)
    assert client.capabilities is not None
    refreshable = client.capabilities.workspace.inlay_hint if client.capabilities.workspace else None
    if refreshable is not None and refreshable.refresh_support:
        await client.wait_until(lambda: types.WORKSPACE_INLAY_HINT_REFRESH in client.refreshes, "a refresh of hints")
        assert client.refreshes.count(types.WORKSPACE_INLAY_HINT_REFRESH) == 1
    assert client.refreshes.count(types.WORKSPACE_CODE_LENS_REFRESH) <= 1


async def test_the_sass_view_links_rows_to_lines(client: KernelClient, tmp_path: Path) -> None:
    (tmp_path / "load.cuh").write_text(HEADER)
    source = tmp_path / "pair.cu"
    source.write_text(TWO_LOADS)
    uri = client.open(source)
    await instructions(client, uri)
    here = types.Range(types.Position(5, 4), types.Position(5, 4))
    asked = types.CodeActionParams(types.TextDocumentIdentifier(uri), here, types.CodeActionContext(diagnostics=[]))
    command = commands_of(await client.text_document_code_action_async(asked))["Open SASS of pair"]
    assert command.command == "kernelLsp.openSass"
    assert command.arguments is not None
    view = await client.protocol.send_request_async("kernelLsp/sass", {"uri": uri, "kernel": command.arguments[1]})
    rows = view.text.split("\n")
    load = next(link for link in view.links if "LDG.E" in rows[link.row] and len(link.lines) == 2)
    assert [(place.uri, place.line) for place in load.lines] == [((tmp_path / "load.cuh").as_uri(), 3), (uri, 5)]
    assert [kernel.name for kernel in view.kernels] == ["pair"]
    nothing = await client.protocol.send_request_async("kernelLsp/sass", {"uri": uri, "kernel": "absent"})
    assert nothing.text.startswith("// No instructions: no kernel named 'absent'")
