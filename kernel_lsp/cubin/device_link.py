"""The code of a file before and after a device link becomes one `Cubin` of that file's kernels.

A file that needs no other is linked by itself, and its numbers are those after the link. One that needs others keeps
its own as lower bounds, and each kernel gets beside them what the linker makes of it together with the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.call_graph import call_graph
from kernel_lsp.cubin.elf import read_elf
from kernel_lsp.cubin.kernel import Cubin, KernelBinary, LinkedResources


def read_linked_alone(relocatable: bytes, linked: bytes) -> Cubin:
    """Kernels as they are after linking; functions that no kernel here calls are there before it.

    A kernel that calls through pointers stays a lower bound: the rest of the program may hold hungrier functions.
    Raises CubinError as `read_cubin`.
    """
    before, after = read_cubin(relocatable), read_cubin(linked)
    # The device runtime brings kernels and functions of its own.
    own = {kernel.mangled for kernel in before.kernels}
    own_functions = {function.mangled for function in before.device_functions}
    through_pointers = _through_pointers(linked)
    known = {function.mangled for function in after.device_functions}
    return replace(
        after,
        kernels=tuple(
            _bounded(kernel) if kernel.mangled in through_pointers else kernel
            for kernel in after.kernels
            if kernel.mangled in own
        ),
        device_functions=(
            *(
                f
                for f in after.device_functions
                if f.kernel in own or (f.kernel is None and f.mangled in own_functions)
            ),
            *(f for f in before.device_functions if f.kernel is None and f.mangled not in known),
        ),
    )


def linked_resources(linked: bytes, with_files: tuple[str, ...]) -> Mapping[str, LinkedResources]:
    """What each kernel takes after a link of several files, by mangled name. Raises CubinError as `read_cubin`."""
    through_pointers = _through_pointers(linked)
    kernels = (_bounded(k) if k.mangled in through_pointers else k for k in read_cubin(linked).kernels)
    return {kernel.mangled: LinkedResources(kernel.resources, with_files) for kernel in kernels}


def with_linked_resources(cubin: Cubin, linked: Mapping[str, LinkedResources]) -> Cubin:
    """The cubin with what its kernels take after the link, for those that are lower bounds by themselves."""

    def completed(kernel: KernelBinary) -> KernelBinary:
        own, after = kernel.resources, linked.get(kernel.mangled)
        if not own.relocatable or after is None:
            return kernel
        uses_dynamic = after.resources.uses_dynamic_shared
        return replace(kernel, resources=replace(own, linked=after, uses_dynamic_shared=uses_dynamic))

    return replace(cubin, kernels=tuple(map(completed, cubin.kernels)))


def defined_names(cubin: bytes) -> frozenset[str]:
    """Mangled names of the functions and variables that other files can link with. Raises CubinError."""
    return frozenset(symbol.name for symbol in read_elf(cubin).symbols if symbol.section and symbol.binding)


def _through_pointers(linked: bytes) -> frozenset[str]:
    """Kernels that call through pointers; without a table of calls, all of them may."""
    elf = read_elf(linked)
    graph = call_graph(elf)
    return frozenset(
        symbol.name
        for symbol in elf.symbols
        if symbol.is_kernel and (graph is None or graph.reaches_pointer_call(symbol.index))
    )


def _bounded(kernel: KernelBinary) -> KernelBinary:
    return replace(kernel, resources=replace(kernel.resources, relocatable=True, calls_through_pointers=True))
