"""Published findings: the union over owners, sent only on change, cleared everywhere."""

from __future__ import annotations

from kernel_lsp.findings.finding import Finding
from kernel_lsp.session.published import FilePublication, PublishedFindings


def finding(file: str, line: int, code: str = "KL101") -> Finding:
    return Finding(code, "slug", "warning", file, line, line, None, None, None, f"{file}:{line}", "")


def test_owners_are_united_and_sorted() -> None:
    published = PublishedFindings()
    a, b = finding("h.cuh", 9), finding("h.cuh", 3)
    assert published.accept("one", {"h.cuh": [a]}) == (FilePublication("h.cuh", (a,)),)
    assert published.accept("two", {"h.cuh": [b, a]}) == (FilePublication("h.cuh", (b, a)),)  # a only once


def test_nothing_is_sent_when_nothing_changed() -> None:
    published = PublishedFindings()
    a = finding("a.cu", 1)
    published.accept("one", {"a.cu": [a]})
    assert published.accept("one", {"a.cu": [a]}) == ()
    assert published.accept("one", {"a.cu": [a]}, always=["a.cu"]) == (FilePublication("a.cu", (a,)),)


def test_a_clean_file_is_published_empty_for_its_version() -> None:
    assert PublishedFindings().accept("one", {}, always=["a.cu"]) == (FilePublication("a.cu", ()),)


def test_headers_are_cleared_with_their_last_owner() -> None:
    published = PublishedFindings()
    in_header = finding("h.cuh", 2)
    published.accept("one", {"h.cuh": [in_header], "a.cu": [finding("a.cu", 1)]})
    published.accept("two", {"h.cuh": [in_header]})
    assert published.drop("one") == (FilePublication("a.cu", ()),)
    assert published.drop("two") == (FilePublication("h.cuh", ()),)
    assert published.drop("two") == ()
