"""Every annotated `.cu` file beside this one, built by the real compiler: what is found is what is marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_lsp.report.hints import line_hints
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.lens import lenses
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings
from kernel_lsp.source.lines import LineTable
from tests.markers.marker_file import MarkerFile, read_marker_file

FILES = sorted(Path(__file__).parent.glob("*.cu"))


async def outcome_of(marked: MarkerFile, pipeline: Pipeline) -> FileOutcome:
    return await pipeline.analyze(
        PipelineRequest(
            document=marked.path,
            settings=Settings(arch=marked.arch, gpu=marked.gpu),
            roots=(marked.path.parent,),
            trusted=True,
        )
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_marked_file(path: Path, pipeline: Pipeline) -> None:
    marked = read_marker_file(path)
    assert marked.markers or "nothing to find" in marked.text, "a marker file without markers proves nothing"
    outcome = await outcome_of(marked, pipeline)
    table = LineTable(marked.text)
    left = list(outcome.findings)
    for marker in marked.of("finding"):
        code, *parts = marker.args
        matching = [
            f
            for f in left
            if f.code == code
            and f.line == marker.line
            and all(part in f.message for part in parts)
            and (marker.at is None or table.line(f.line)[(f.column or 1) - 1 : (f.end_column or 1) - 1] == marker.at)
        ]
        assert matching, f"line {marker.line}: no {code} {parts} at {marker.at!r}; found: {_told(outcome)}"
        left.remove(matching[0])
    assert marked.allow_extra or not left, f"unmarked: {[f'{f.line} {f.code} {f.message}' for f in left]}"

    analysis = outcome.analysis
    for marker in marked.of("lens"):
        assert analysis is not None
        texts = [lens.text for lens in lenses(analysis.kernels, analysis.path) if lens.line == marker.line]
        assert any(all(part in text for part in marker.args) for text in texts), (marker, texts)
    for marker in marked.of("hover"):
        assert analysis is not None
        word, *parts = marker.args
        on_line = [k for k in analysis.kernels if k.span is not None and k.span.line == marker.line]
        named = [k for k in on_line if word in k.binary.short_name]
        assert named, f"line {marker.line}: no kernel {word!r}"
        text = kernel_hover(named[0], analysis)
        assert all(part in text for part in parts), (marker, text)
    for marker in marked.of("line_hover"):
        assert analysis is not None
        text = line_hover(analysis, marker.line) or ""
        assert all(part in text for part in marker.args), (marker, text)
        assert bool(text) == bool(marker.args), (marker, text)
    for marker in marked.of("hint"):
        assert analysis is not None
        texts = [hint.text for hint in line_hints(analysis) if hint.line == marker.line]
        assert len(texts) == bool(marker.args), (marker, texts)
        assert all(part in texts[0] for part in marker.args), (marker, texts)


def _told(outcome: FileOutcome) -> list[str]:
    return [f"{f.line} {f.code} {f.message}" for f in outcome.findings]


def test_a_misspelt_marker_fails(tmp_path: Path) -> None:
    path = tmp_path / "typo.cu"
    path.write_text('__global__ void k() {}  //@ fnding("KL101")\n')
    with pytest.raises(AssertionError, match="unknown marker 'fnding'"):
        read_marker_file(path)
