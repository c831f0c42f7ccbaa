"""What is shown where: findings per owner (the document that was analysed) and per file, published only on change.

An owner's findings may lie in several files (headers). The union over owners is what a file shows. A file that no
owner mentions any longer is published empty once, so that nothing is left standing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kernel_lsp.findings.finding import Finding


class FilePublication(NamedTuple):
    """The full, sorted list of findings for one file."""

    file: str
    findings: tuple[Finding, ...]


def _order(finding: Finding) -> tuple[int, str, int, str]:
    return (finding.line, finding.code, finding.column or 0, finding.message)


class PublishedFindings:
    """Owner -> file -> findings; every change returns the files whose union changed."""

    def __init__(self) -> None:
        self._by_owner: dict[str, dict[str, tuple[Finding, ...]]] = {}
        self._shown: dict[str, tuple[Finding, ...]] = {}

    def accept(
        self, owner: str, by_file: Mapping[str, Iterable[Finding]], always: Iterable[str] = ()
    ) -> tuple[FilePublication, ...]:
        """Replace all findings of `owner`; files in `always` are published even when unchanged (a new version)."""
        before = self._by_owner.get(owner, {})
        after = {file: tuple(findings) for file, findings in by_file.items()}
        self._by_owner[owner] = after
        return self._changes({*before, *after, *always}, frozenset(always))

    def drop(self, owner: str) -> tuple[FilePublication, ...]:
        """Forget an owner; its files are published without its findings."""
        before = self._by_owner.pop(owner, {})
        return self._changes(set(before), frozenset())

    def _changes(self, files: Iterable[str], always: frozenset[str]) -> tuple[FilePublication, ...]:
        publications = []
        for file in sorted(files):
            union = {finding for owned in self._by_owner.values() for finding in owned.get(file, ())}
            findings = tuple(sorted(union, key=_order))
            if file in always or self._shown.get(file, ()) != findings:
                publications.append(FilePublication(file, findings))
            if findings:
                self._shown[file] = findings
            else:
                self._shown.pop(file, None)
        return tuple(publications)
