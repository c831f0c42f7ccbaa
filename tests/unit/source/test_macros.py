"""Macros that the command line defines, in the forms nvcc takes them."""

from __future__ import annotations

from kernel_lsp.source.kernels import scan
from kernel_lsp.source.macros import defines_of


def test_every_form_of_a_definition() -> None:
    flags = ["-O3", "-DA", "-DB=2", "-D", "C=3", "--define-macro", "D=4,E", "-D=F=6", "-DG=", "--define-macro=H=8"]
    assert defines_of(flags) == {"A": "1", "B": "2", "C": "3", "D": "4", "E": "1", "F": "6", "G": "", "H": "8"}
    assert defines_of(["-DA=1", "-DB", "-UA", "-U", "B"]) == {}
    assert defines_of(["-DA=1", "-D"]) == {"A": "1"}


def test_a_header_forced_in_leaves_macros_unknown() -> None:
    assert defines_of(["-DA=1", "-include", "config.h"]) is None
    assert defines_of(["--pre-include=config.h"]) is None


def test_a_macro_of_the_command_line_bounds_a_kernel() -> None:
    text = "#ifndef THREADS\n#define THREADS 128\n#endif\n__global__ void __launch_bounds__(THREADS) f() {}"
    assert scan(text, defines_of(["-DTHREADS=64"])).kernels[0].max_threads == 64
    assert scan(text, defines_of([])).kernels[0].max_threads == 128
    assert scan(text, None).kernels[0].max_threads is None
