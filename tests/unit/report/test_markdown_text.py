"""Text from files inside Markdown, checked with a Markdown parser: it comes out as the text that went in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kernel_lsp.report.markdown_text import code_span, escaped, escaped_around_code, fenced

PARSER = MarkdownIt("commonmark")
LINE = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), max_size=40).map(
    lambda text: f"a {text} b"
)


def rendered(markdown: str) -> list[tuple[str, str]]:
    tokens = [token for token in PARSER.parse(markdown) if token.children]
    return [(child.type, child.content) for token in tokens for child in token.children or ()]


@given(LINE)
def test_escaped_text_holds_no_markup(text: str) -> None:
    assert {kind for kind, _ in rendered(escaped(text))} <= {"text", "text_special", "code_inline"}


@given(LINE)
def test_code_spans_hold_any_text(text: str) -> None:
    assert rendered(code_span(text)) == [("code_inline", text)]


@given(LINE, LINE)
def test_code_survives_between_escaped_text(before: str, after: str) -> None:
    text = f"{before.replace('`', '')} `x < y` {after}"
    found = rendered(escaped_around_code(text))
    assert ("code_inline", "x < y") in found
    assert {kind for kind, _ in found} <= {"text", "text_special", "code_inline"}


@given(st.lists(LINE, min_size=1, max_size=4))
def test_fences_cannot_be_left(lines: list[str]) -> None:
    (token,) = PARSER.parse(fenced(lines))
    assert (token.type, token.content) == ("fence", "\n".join(lines) + "\n")


def test_plain_names_stay_readable() -> None:
    assert escaped("raise __launch_bounds__(256, 2)") == "raise `__launch_bounds__(256, 2)`"
    assert escaped("as __syncthreads() requires") == "as `__syncthreads()` requires"
    assert escaped("NVIDIA's __cuda_sm20_div_rn_f64_full: 92") == "NVIDIA's `__cuda_sm20_div_rn_f64_full`: 92"
    assert escaped("tiled<16> at gemm_v2.cu:41 -> 2") == "tiled<16> at gemm_v2.cu:41 -> 2"
