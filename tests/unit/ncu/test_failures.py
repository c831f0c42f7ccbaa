"""Each failure in ncu's own words gives one message: the cause, and what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.ncu.failures import failure_message, program_ended_badly

# Output as users of ncu printed it, and what the message must say: a part of the cause, a part of the advice.
STOPPED = """==ERROR== Failed to profile "k" in process 7508
==PROF== Trying to shutdown target application
==ERROR== The application returned an error code (9).
==ERROR== An error occurred while trying to profile.
==WARNING== No kernels were profiled.
"""
CASES = {
    "permission": (
        "==PROF== Connected to process 5183 (/home/u/a.out)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have "
        "permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling "
        "permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
        "==PROF== Disconnected from process 5183\n==WARNING== No kernels were profiled.\n",
        ("only administrators", "NVreg_RestrictProfilingToAdminUsers=0", "developer.nvidia.com/ERR_NVGPUCTRPERM"),
    ),
    "DCGM": (
        "==ERROR== An error was reported by the driver\n\n==ERROR== Profiling failed because a driver resource was "
        "unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data. See "
        "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq for more details.\n" + STOPPED,
        ("Another tool holds", "dcgmi profile --pause"),
    ),
    "lock file": (
        "==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check that this process has write "
        "permissions on this file.\n" + STOPPED,
        ("lock file", "TMPDIR="),
    ),
    "WSL": (
        "==ERROR== Profiling is not supported on device 0 as it uses the Windows Subsystem for Linux (WSL).\n",
        ("WSL", "Windows 11"),
    ),
    "GPU unknown": (
        "==PROF== Connected to process 4613 (/home/u/add1.exe)\n==ERROR== Profiling is not supported on device 0. To "
        "find out supported GPUs refer --list-chips option.\n==PROF== Disconnected from process 4613\n"
        "==WARNING== No kernels were profiled.\n",
        ("does not know this GPU", "Volta"),
    ),
    "driver too old": (
        "==ERROR== An error was reported by the driver:\n==ERROR== Cuda driver is not compatible with Nsight Compute.\n"
        "==PROF== Connected to process 15159 (/usr/bin/python3.10)\n",
        ("driver does not fit", "nvidia-smi"),
    ),
    "no driver library": (
        "==ERROR== An error was reported by the counter measurement library:\n==ERROR== Failed to initialize the "
        "profiler: LibraryNotLoaded. Check that a compatible driver library is loaded.\n"
        "==PROF== Trying to shutdown target application\n==ERROR== The application returned an error code (9).\n",
        ("driver library", "nvidia-smi"),
    ),
    "stub": (
        "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).\n"
        "==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n",
        ("stub", "LD_LIBRARY_PATH"),
    ),
    "MIG": (
        "==ERROR== Cannot lock GPU clock frequencies on MIG! Try locking the clocks externally (e.g. using 'nvidia-smi "
        "--lock-gpu-clocks=tdp,tdp') or profile without fixed frequencies (see '--clock-control').\n" + STOPPED,
        ("clocks", '"--clock-control" and "none"'),
    ),
    "old ncu": (
        "==ERROR== unrecognised option '--import-source'. Use --help for further details.\n",
        ("no option --import-source", "newer ncu"),
    ),
    "no such section": (
        "==ERROR== Option '--section PmSampling' did not match any section.\n",
        ("nothing for --section PmSampling", "--section-folder-restore"),
    ),
    "no GPU": (
        "RuntimeError: CUDA error: no CUDA-capable device is detected\n==PROF== Disconnected from process 1\n"
        "==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n",
        ("no GPU", "CUDA_VISIBLE_DEVICES"),
    ),
    "driver older than the runtime": (
        "CUDA driver version is insufficient for CUDA runtime version\n==ERROR== The application returned an error "
        "code (1).\n==WARNING== No kernels were profiled.\n",
        ("older than the CUDA version", "Update the driver"),
    ),
    "other architecture": (
        "CUDA error: no kernel image is available for execution on the device\n==WARNING== No kernels were profiled.\n",
        ("no code for this GPU", "-arch=native"),
    ),
    "memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n"
        "==ERROR== The application returned an error code (1).\n",
        ("memory was full", "--replay-mode"),
    ),
    "memory of the replay": (
        "==WARNING== Backing up device memory in system memory. Kernel replay might be slow.\n==ERROR== UnknownError\n"
        + STOPPED,
        ("could not save", "--replay-mode"),
    ),
    "sudo": (
        "sudo: a terminal is required to read the password; either use the -S option to read from standard input or "
        "configure an askpass helper\nsudo: a password is required\n",
        ("sudo would not", "NOPASSWD"),
    ),
    "ncu missing, bash": ("bash: line 1: ncu: command not found\n", ("no ncu on PATH", "CUDA toolkit")),
    "ncu missing, dash": ("sh: 1: /opt/cuda/bin/ncu: not found\n", ("no ncu on PATH", "No PyPI package")),
    "ncu missing, zsh": ("zsh:1: command not found: ncu\n", ("no ncu on PATH", "CUDA toolkit")),
    "ncu missing, env": ("env: ‘ncu’: No such file or directory\n", ("no ncu on PATH", "CUDA toolkit")),
    "host": (
        "ssh: Could not resolve hostname gpuhost: Name or service not known\r\n",
        ("ssh failed (Could not resolve hostname gpuhost", "in a terminal"),
    ),
    "key": ("me@gpuhost: Permission denied (publickey,password).\r\n", ("not let in", "ssh-copy-id")),
    "host key": ("Host key verification failed.\r\n", ("not let in", "host key")),
    "srun": (
        "srun: error: Unable to allocate resources: Invalid partition name specified\n",
        ("srun failed (Unable to allocate resources", "terminal"),
    ),
    "other kernels": (
        "==PROF== Connected to process 664418 (/home/u/wmma)\nC[0,0]=79.0\n==PROF== Disconnected from process 664418\n"
        "==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. wmma_cxx_kernel\n2. wmma_inline_ptx_stub\n",
        ("did not launch this kernel", "wmma_cxx_kernel, wmma_inline_ptx_stub", "launchSkip"),
    ),
    "no kernels": (
        "==PROF== Disconnected from process 3\n==WARNING== No kernels were profiled.\n"
        "==WARNING== Profiling kernels launched by child processes requires the --target-processes all option.\n",
        ("launched none at all", "built from this source"),
    ),
    "program failed": (
        "usage: app SIZE\n==PROF== Disconnected from process 3\n==ERROR== The application returned an error code (2).\n"
        "==WARNING== No kernels were profiled.\n",
        ("ended with code 2", "usage: app SIZE", "without ncu"),
    ),
    "srun tells only that ncu failed": (
        "usage: app SIZE\n==ERROR== The application returned an error code (2).\n"
        "srun: error: node7: task 0: Exited with exit code 2\n",
        ("ended with code 2", "usage: app SIZE"),
    ),
    "unknown words": (
        "==ERROR== Something that no table knows.\n",
        ("exit code 9", "Something that no table knows", "log"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cause_and_cure(name: str) -> None:
    output, parts = CASES[name]
    message = failure_message(output, 9)
    assert [part for part in parts if part not in message] == []
    assert "\n" not in message
    assert message[0].isupper()
    assert ".." not in message


def test_a_program_that_fails_after_its_kernel_was_measured_is_mentioned() -> None:
    output = "==ERROR== The application returned an error code (3).\n==PROF== Report: /x/y.ncu-rep\n"
    assert program_ended_badly(output) == "the program ended with code 3"
    assert program_ended_badly("==PROF== Report: /x/y.ncu-rep\n") is None


@given(st.text(max_size=400), st.none() | st.integers(-64, 255))
def test_any_output_gives_one_bounded_message(output: str, code: int | None) -> None:
    message = failure_message(output, code)
    assert message
    assert len(message) < 2000
