"""A store, a probed toolchain and a maker of commands for the tests that build."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_lsp.build.probe import probe
from kernel_lsp.build.store import BuildStore
from kernel_lsp.project.command import BuildCommand
from kernel_lsp.project.toolchain import Toolchain, find_toolchain

CommandMaker = Callable[..., BuildCommand]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BuildStore]:
    """An empty store in a folder of the test's own."""
    made = BuildStore(tmp_path / "cache")
    yield made
    made.close()


@pytest.fixture
async def tools(toolkit: Path, store: BuildStore) -> Toolchain:
    """The toolkit from PyPI."""
    found = find_toolchain(settings={"nvcc": str(toolkit / "bin")}, environment=os.environ)
    return await probe(found, store, os.environ)


@pytest.fixture
def command() -> CommandMaker:
    """`command(path, arch, *flags, cwd=, document=)`."""

    def make(
        path: Path, arch: str = "sm_86", *flags: str, cwd: Path | None = None, document: Path | None = None
    ) -> BuildCommand:
        return BuildCommand(
            source=path,
            document=document or path,
            flags=flags,
            arch=arch,
            arch_why="the test's",
            cwd=cwd or path.parent,
            origin="default",
            origin_path=None,
            origin_detail="",
            compiler=None,
            environment=(),
            notes=(),
            skip_reason=None,
        )

    return make
