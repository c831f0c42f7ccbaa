"""Turns the bytes of a cubin into its kernels: what they take, how they are called, where they are defined."""

from __future__ import annotations

from kernel_lsp.cubin.call_graph import call_graph
from kernel_lsp.cubin.elf import CubinElf, Symbol, read_elf
from kernel_lsp.cubin.kernel import Cubin, CubinError, DeviceFunction, KernelBinary
from kernel_lsp.cubin.line_program import entry_lines
from kernel_lsp.cubin.names import function_name, is_nvidias, short_names
from kernel_lsp.cubin.ptx import read_ptx
from kernel_lsp.cubin.resources import (
    FunctionNumbers,
    Spills,
    function_numbers,
    kernel_resources,
    spills_by_function,
)
from kernel_lsp.source.position import SourceLine


def read_cubin(data: bytes) -> Cubin:
    """Decodes a cubin, linked or relocatable. Raises CubinError with one message when the bytes are none or damaged."""
    elf = read_elf(data)
    by_section: dict[int, list[Symbol]] = {}
    for symbol in elf.symbols:
        if symbol.is_function and _has_code(elf, symbol):
            by_section.setdefault(symbol.section, []).append(symbol)
    kernels: list[Symbol] = []
    spills: dict[int, Spills] = {}
    for functions in by_section.values():
        entries = [function for function in functions if function.is_kernel]
        if len(entries) > 1:
            raise CubinError(f"damaged cubin: {len(entries)} kernels in one code section")
        kernels += entries
        spills.update(spills_by_function(elf, functions))
    numbers = function_numbers(elf)
    # One section per linked file: ".nv_debug_ptx_txt", or with a number behind it.
    ptx = read_ptx(b"\0".join(elf.content(s) for s in elf.sections if s.name.startswith(".nv_debug_ptx_txt")))
    definitions = _definitions(elf)
    graph = call_graph(elf)
    short_name_of = short_names(kernel.name for kernel in kernels)
    kernel_of = {kernel.section: kernel.name for kernel in kernels}
    return Cubin(
        arch=elf.arch,
        kernels=tuple(
            KernelBinary(
                mangled=kernel.name,
                name=function_name(kernel.name).full,
                short_name=short_name_of[kernel.name],
                arch=elf.arch,
                definition=definitions.get(kernel.section),
                resources=kernel_resources(elf, kernel, numbers, spills[kernel.index], ptx.get(kernel.name), graph),
                code_bytes=kernel.size,
            )
            for kernel in sorted(kernels, key=lambda kernel: kernel.name)
        ),
        device_functions=tuple(
            _device_function(symbol, numbers, spills[symbol.index], kernel_of.get(symbol.section))
            for functions in by_section.values()
            for symbol in functions
            if not symbol.is_kernel
        ),
        toolkit=elf.toolkit,
        relocatable=elf.relocatable,
    )


def _has_code(elf: CubinElf, symbol: Symbol) -> bool:
    """Whether the symbol stands for code in this file; calls to functions of other files have no section."""
    if symbol.section == 0 or symbol.section >= len(elf.sections):
        return False
    section = elf.sections[symbol.section]
    if not section.name.startswith(".text."):
        return False
    if symbol.value + symbol.size > section.size:
        raise CubinError(f"damaged cubin: function {symbol.name} runs past the end of its code")
    return True


def _definitions(elf: CubinElf) -> dict[int, SourceLine]:
    try:
        return entry_lines(elf)
    except CubinError:
        return {}  # a line table of a later kind must not cost the numbers; the line map itself says what is wrong


def _device_function(symbol: Symbol, numbers: FunctionNumbers, spills: Spills, kernel: str | None) -> DeviceFunction:
    mangled = symbol.name
    if mangled.startswith("$"):
        # "$kernel$function", or "$__internal_0_$function" for NVIDIA's own.
        prefix = f"${kernel}$"
        mangled = mangled.removeprefix(prefix) if mangled.startswith(prefix) else mangled.rpartition("$")[2]
    name = function_name(mangled)
    return DeviceFunction(
        mangled=mangled,
        name=name.full,
        short_name=name.short,
        kernel=kernel,
        is_helper=is_nvidias(symbol.name),
        registers=numbers.registers.get(symbol.index) if kernel is None else None,
        frame_bytes=numbers.frame_bytes.get(symbol.index) if kernel is None else None,
        spill_store_bytes=spills.store_bytes,
        spill_load_bytes=spills.load_bytes,
        spill_why=spills.why,
        offset_bytes=symbol.value,
        code_bytes=symbol.size,
    )
