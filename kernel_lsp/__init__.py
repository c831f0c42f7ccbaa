"""kernel-lsp: shows on the lines of a CUDA source what limits its kernels."""

__version__ = "0.1.0"
