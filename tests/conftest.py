"""For all tests: NVIDIA's tools from PyPI, a cache of the session's own, no trace of the machine's GPU or settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_lsp.session.pipeline import Pipeline

INSTALL = "pip install -e '.[cuda,dev]'"


def wheel_toolkit() -> Path:
    """The folder of the toolkit that the extra [cuda] installed (with bin/ and include/)."""
    try:
        import nvidia
    except ImportError:
        pytest.fail(f"the CUDA tools from PyPI are not installed; {INSTALL}")
    for base in nvidia.__path__:
        for folder in sorted(Path(base).glob("cu*"), reverse=True):
            if (folder / "bin" / "nvcc").is_file():
                return folder
    pytest.fail(f"no nvcc in the Python environment; {INSTALL}")


@pytest.fixture(scope="session")
def toolkit() -> Path:
    """The toolkit from PyPI that all tests build with."""
    return wheel_toolkit()


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the product and the servers that tests start see: one toolkit, an empty cache, no flags from outside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_HOME", str(wheel_toolkit()))
        patch.setenv("KERNEL_LSP_CACHE_DIR", str(tmp_path_factory.mktemp("kernel-lsp-cache")))
        for name in ("CUDA_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "TORCH_EXTENSIONS_DIR"):
            patch.delenv(name, raising=False)
        # cmake and ninja of the development extra stand beside the interpreter, whether it is activated or not
        folders = [str(wheel_toolkit() / "bin"), os.environ["PATH"], str(Path(sys.executable).parent)]
        patch.setenv("PATH", os.pathsep.join(folders))
        yield


@pytest.fixture
def pipeline(clean_environment: None) -> Iterator[Pipeline]:
    """The product's pipeline, with the toolkit from PyPI and the session's cache."""
    made = Pipeline()
    yield made
    made.close()
