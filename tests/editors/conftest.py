"""What the editor tests share: a compiler that can be slow, and a cache of the session's own."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from .workspace import nvcc_path


@pytest.fixture(scope="session")
def slow_nvcc(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An nvcc that takes 2 s longer to compile while a file exists; the wrapper, and that file."""
    folder = tmp_path_factory.mktemp("nvcc")
    slow = folder / "slow"
    wrapper = folder / "nvcc"
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *-cubin*) [ ! -e "{slow}" ] || sleep 2 ;; esac\nexec "{nvcc_path()}" "$@"\n'
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return wrapper, slow


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of the session's own: results of an earlier run must not stand in for builds."""
    return tmp_path_factory.mktemp("cache")
