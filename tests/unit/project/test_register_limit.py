"""The register limit among nvcc's flags, in the forms that nvcc takes."""

from __future__ import annotations

import pytest

from kernel_lsp.project.register_limit import register_limit


@pytest.mark.parametrize(
    ("flags", "limit"),
    [
        ((), None),
        (("-O3", "-DN=32"), None),
        (("-maxrregcount=32",), 32),
        (("--maxrregcount", "40"), 40),
        (("-maxrregcount", "40", "-maxrregcount=64"), 64),
        (("-Xptxas", "-maxrregcount=48"), 48),
        (("-Xptxas=-O3,-maxrregcount=48,-v",), 48),
        (("-DX=-maxrregcount",), None),
    ],
)
def test_register_limit(flags: tuple[str, ...], limit: int | None) -> None:
    assert register_limit(flags) == limit
