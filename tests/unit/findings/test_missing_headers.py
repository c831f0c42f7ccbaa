"""What is advised where a header is missing: the library's package beside the compiler from PyPI, else the toolkit."""

from __future__ import annotations

import pytest

from kernel_lsp.analysis import failed_build_findings
from kernel_lsp.findings.missing_headers import header_advice, libraries
from kernel_lsp.source.message import CompilerMessage

# Of the wheels' own lists of files, November 2026 (CUDA 13.5): package -> headers in its include folder.
IN_PACKAGES = {
    "nvidia-cublas": "cublas.h cublasLt.h cublasXt.h cublas_api.h cublas_v2.h nvblas.h",
    "nvidia-curand": "curand.h curand_kernel.h curand_uniform.h curand_mtgp32dc_p_11213.h",
    "nvidia-cusparse": "cusparse.h cusparse_v2.h",
    "nvidia-cusolver": "cusolverDn.h cusolverMg.h cusolverRf.h cusolverSp.h cusolver_common.h",
    "nvidia-cufft": "cufft.h cufftXt.h cufft_device.h cufftw.h cudalibxt.h",
    "nvidia-npp": "npp.h nppcore.h nppdefs.h nppi.h nppi_linear_transforms.h npps.h",
    "nvidia-nvjpeg": "nvjpeg.h",
    "nvidia-nvjitlink": "nvJitLink.h",
    "nvidia-cuda-nvrtc": "nvrtc.h",
    "nvidia-nvtx": "nvtx3/nvToolsExt.h nvtx3/nvtx3.hpp nvtxw3/nvtxw3.h",
    "nvidia-cuda-cupti": "cupti.h cupti_activity.h cupti_callbacks.h Openacc/cupti_openacc.h",
    "nvidia-cuda-profiler-api": "cuda_profiler_api.h cudaProfiler.h",
    "nvidia-nvml-dev": "nvml.h",
    "nvidia-cufile": "cufile.h",
    "nvidia-cuda-cccl": "thrust/device_vector.h cub/cub.cuh cuda/std/type_traits",
    "nvidia-cudnn-cu13": "cudnn.h cudnn_ops.h cudnn_version_v9.h",
    "nvidia-nccl-cu13": "nccl.h nccl_device.h nccl_device/core.h",
    "nvidia-nvshmem-cu13": "nvshmem.h nvshmemx.h nvshmem_host.h",
    "nvidia-cusparselt-cu13": "cusparseLt.h cusparseLt_cusparse_stub.h",
}


def test_every_package_that_is_named_is_tried_here() -> None:
    assert {library.package for library in libraries() if library.package} == set(IN_PACKAGES)


@pytest.mark.parametrize(
    ("package", "header"), [(package, header) for package, names in IN_PACKAGES.items() for header in names.split()]
)
def test_the_package_that_has_it(package: str, header: str) -> None:
    message = f"{header}: No such file or directory"
    assert f"pip install {package}, " in header_advice(message, compiler_from_pypi=True)
    elsewhere = header_advice(message, compiler_from_pypi=False)
    assert "pip" not in elsewhere
    apart = package in ("nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-nvshmem-cu13", "nvidia-cusparselt-cu13")
    assert ("not in the CUDA toolkit" if apart else "a part of the CUDA toolkit") in elsewhere


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("nvToolsExt.h: No such file or directory", "nvtx3/nvToolsExt.h"),
        ("cutlass/cutlass.h: No such file or directory", "CUTLASS"),
        ("torch/extension.h: No such file or directory", "PyTorch"),
        ("my/own.h: No such file or directory", "Name its folder"),
        ('cannot open source file "own.h"', "Name its folder"),
        ("cudagraph_own.h: No such file or directory", "Name its folder"),
        ('identifier "x" is undefined', ""),
        ("ld: cannot find -lcudart: No such file or directory", ""),
    ],
)
def test_others(message: str, said: str) -> None:
    for from_pypi in (True, False):
        advice = header_advice(message, compiler_from_pypi=from_pypi)
        assert said in advice
        assert bool(advice) == bool(said)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("cublas_v2.h: No such file or directory", "nvidia-cublas"),
        ("Modifier '.wait' requires .target sm_90 or higher", "--arch"),
        ("Instruction 'wgmma.fence' not supported on .target 'sm_86'", "sm_90a"),
    ],
)
def test_it_stands_at_the_error(text: str, part: str) -> None:
    message = CompilerMessage("gcc", "error", "/p/a.cu", 3, None, None, text)
    [finding] = failed_build_findings("/p/a.cu", "\n\n\n", "reason", [message], compiler_from_pypi=True)
    assert (finding.code, finding.line) == ("KL901", 3)
    assert part in finding.advice
