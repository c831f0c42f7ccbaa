"""Lens, hover and hints of a measured document as a client gets them: after edits, and without instructions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from kernel_lsp.analysis import FileAnalysis, analyze
from kernel_lsp.cubin.kernel import Cubin
from kernel_lsp.lsp.code_lens import code_lens
from kernel_lsp.lsp.hover import hover
from kernel_lsp.lsp.inlay_hints import inlay_hints
from kernel_lsp.lsp.names import CHOOSE_REPORT, WRITE_REPORT
from kernel_lsp.session.documents import OpenDocument
from kernel_lsp.session.outcome import FileOutcome
from kernel_lsp.session.settings import Settings
from kernel_lsp.source.kernels import scan
from tests.unit.kernel_values import PATH, gpu, kernel
from tests.unit.report.measured_kernel import TEXT, measurement

URI = "file:///project/gemm.cu"
ALL_LINES = types.Range(types.Position(0, 0), types.Position(99, 0))


@dataclass
class Server:
    """What the three features ask of a server."""

    document: OpenDocument
    encoding: str = "utf-16"

    @property
    def session(self) -> Any:
        return SimpleNamespace(document=lambda uri: self.document, settings=Settings())


def analysis() -> FileAnalysis:
    cubin = Cubin("sm_86", (kernel("gemm", line=1),), (), "13.0.88", False)
    return analyze(PATH, TEXT, cubin, gpu(), scan(TEXT), {}, measured={"_Z_gemm": measurement()})


@pytest.fixture
def server() -> Server:
    """A document that was built, whose instructions are not known."""
    outcome = FileOutcome(
        path=PATH,
        text=TEXT,
        command=None,
        build=None,
        toolchain=None,
        gpu=gpu(),
        analysis=analysis(),
        findings=(),
        notices=(),
        ended_at=datetime.now(timezone.utc),
        reads=frozenset(),
    )
    return Server(OpenDocument(URI, Path(PATH), 1, TEXT, good=outcome, last=outcome))


def hints(server: Any) -> list[tuple[int, str]]:
    params = types.InlayHintParams(types.TextDocumentIdentifier(URI), ALL_LINES)
    return [(hint.position.line + 1, str(hint.label)) for hint in inlay_hints(server, params)]


def hover_text(server: Any, line: int, column: int) -> str:
    params = types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(line - 1, column))
    found = hover(server, params)
    assert found is not None
    assert isinstance(found.contents, types.MarkupContent)
    return found.contents.value


def lenses(server: Any) -> list[types.Command]:
    found = code_lens(server, types.CodeLensParams(types.TextDocumentIdentifier(URI)))
    return [lens.command for lens in found if lens.command is not None]


def test_hints_and_hover_before_instructions_are_known(server: Server) -> None:
    assert hints(server) == [
        (3, "12 % stalls: long scoreboard"),
        (4, "50 % stalls: long scoreboard"),
        (5, "38 % stalls: short scoreboard"),
    ]
    assert "50 % of the kernel's stall samples (measured, 500 of 1,000, report of" in hover_text(server, 4, 2)
    assert "1.92 ms measured: SM 31 %" in hover_text(server, 1, TEXT.index("gemm") + 1)


def test_lines_move_with_the_edits_and_edited_ones_go(server: Server) -> None:
    lines = TEXT.splitlines(keepends=True)
    lines.insert(1, "    // new\n")
    lines[5] = "    x[threadIdx.x] = 0;\n"
    server.document.text = "".join(lines)
    assert hints(server) == [(4, "12 % stalls: long scoreboard"), (5, "50 % stalls: long scoreboard")]
    assert "**l.5** in gemm" in hover_text(server, 5, 2)
    assert "- l.5: 50 %" in hover_text(server, 1, TEXT.index("gemm") + 1)


def test_the_second_lens_chooses_a_report(server: Server) -> None:
    first, second = lenses(server)
    assert first.command == WRITE_REPORT
    assert second.title.startswith("1.92 ms measured · SM 31 % · memory 88 % (DRAM 84 %) · ")
    assert (second.command, second.arguments) == (CHOOSE_REPORT, [URI, "_Z_gemm"])
