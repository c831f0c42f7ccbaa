"""The machine that numbers are for, in words, for what-ifs that have no file."""

from __future__ import annotations

from kernel_lsp.hardware.profile import GpuChoice


def machine_words(gpu: GpuChoice) -> str:
    """`RTX 3070 Ti, sm_86 (by default)`; the architecture alone where no board is known."""
    by_default = " (by default)" if gpu.why == "default" else ""
    board = gpu.profile.short_name
    return board + by_default if board == gpu.profile.arch else f"{board}, {gpu.profile.arch}{by_default}"
