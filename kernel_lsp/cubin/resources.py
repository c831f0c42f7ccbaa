"""Turns a cubin's attributes and section sizes into what each function takes: registers, shared memory, spills.

Where each number lives, by toolkit (ptxas 12.0 to 13.5) and architecture:
registers, stack, frame: `.nv.info`, per function. Static shared memory: the size of `.nv.shared.<kernel>`; linked
cubins of sm_90 and later add the system's 1,024 bytes there. Barriers: an attribute since CUDA 13, before that the
flags of the code section. Spills: since 12.6 ptxas lists the offset of every instruction that spills or refills;
their bytes are the widths of those instructions.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernel_lsp.cubin.attributes import Info
from kernel_lsp.cubin.call_graph import CallGraph
from kernel_lsp.cubin.elf import Attribute, CubinElf, Section, Symbol
from kernel_lsp.cubin.kernel import CubinError, Resources
from kernel_lsp.cubin.names import is_nvidias
from kernel_lsp.cubin.ptx import PtxKernel

SYSTEM_SHARED_BYTES = 1024
_FIRST_ARCH_WITH_SYSTEM_SHARED = 90
_FIRST_TOOLKIT_WITH_SPILLS = (12, 6)
_ANNOTATION_SPILL = 1
_UNKNOWN_STACK = 0xFFFFFFFF
_INSTRUCTION = struct.Struct("<QQ")
_LARGEST_SHARED = 1 << 24  # far above any machine's, to tell a damaged size

# Low 12 bits of an instruction: the opcode. Bits 73-75: the access width.
_STL, _LDL = 0x387, 0x983
# ptxas leaves spills to shared memory (`.pragma "enable_smem_spilling"`) out of its spill bytes.
_SHARED_SPILLS = frozenset((0x388, 0x984))
_WIDTH_BYTES = (1, 1, 2, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Spills:
    """Bytes that a function's instructions spill and refill; None where not known, with the reason."""

    store_bytes: int | None
    load_bytes: int | None
    why: str | None


@dataclass(frozen=True, slots=True)
class FunctionNumbers:
    """The per-function numbers of `.nv.info`, by symbol index."""

    registers: dict[int, int]
    frame_bytes: dict[int, int]
    stack_bytes: dict[int, int]


def function_numbers(elf: CubinElf) -> FunctionNumbers:
    """Reads `.nv.info`, whose records are pairs of a symbol index and a value."""
    tables: dict[int, dict[int, int]] = {Info.REGCOUNT: {}, Info.FRAME_SIZE: {}, Info.MIN_STACK_SIZE: {}}
    for attribute in elf.attributes(elf.section(".nv.info")):
        table = tables.get(attribute.code)
        if table is None:
            continue
        words = attribute.words()
        if len(words) < 2:
            raise CubinError("damaged cubin: an attribute of .nv.info has no value")
        table[words[0]] = words[1]
    return FunctionNumbers(tables[Info.REGCOUNT], tables[Info.FRAME_SIZE], tables[Info.MIN_STACK_SIZE])


def kernel_resources(
    elf: CubinElf,
    kernel: Symbol,
    numbers: FunctionNumbers,
    spills: Spills,
    ptx: PtxKernel | None,
    graph: CallGraph | None,
) -> Resources:
    """What the kernel takes. `spills`: its own of `spills_by_function`; `ptx`: None without embedded PTX."""
    name = kernel.name
    own = {attribute.code: attribute for attribute in elf.attributes(elf.section(f".nv.info.{name}"))}
    registers = numbers.registers.get(kernel.index)
    if registers is None:
        raise CubinError(f"damaged cubin: no register count for kernel {name}")
    frame: int | None = numbers.frame_bytes.get(kernel.index, 0)
    stack: int | None = numbers.stack_bytes.get(kernel.index, frame)
    # ptxas 12.6 to 13.0 writes the frame alone for a kernel that recurses, the others all ones.
    if stack == _UNKNOWN_STACK or (ptx and ptx.recurses):
        stack = None
    elif frame and frame == numbers.stack_bytes.get(kernel.index) and _holds_frames(elf, kernel, numbers):
        frame = None  # where a called function has its own (its address is taken), the cubin gives the whole stack here
    barriers = own.get(Info.NUM_BARRIERS)
    return Resources(
        registers=registers,
        static_shared_bytes=_static_shared_bytes(elf, name),
        local_bytes=_section_bytes(elf, f".nv.local.{name}"),
        frame_bytes=frame,
        stack_bytes=stack,
        spill_store_bytes=spills.store_bytes,
        spill_load_bytes=spills.load_bytes,
        spill_why=spills.why,
        barriers=barriers.number() if barriers else elf.sections[kernel.section].flags >> 20 & 0x7F,
        constant_bytes=_section_bytes(elf, f".nv.constant0.{name}"),
        max_block=_block(own.get(Info.MAX_THREADS)),
        required_block=_block(own.get(Info.REQNTID)),
        min_blocks_per_sm=ptx.min_blocks_per_sm if ptx else None,
        uses_dynamic_shared=_uses_dynamic_shared(elf, name, ptx),
        relocatable=elf.relocatable and (graph is None or graph.calls(kernel.index)),
    )


def _holds_frames(elf: CubinElf, kernel: Symbol, numbers: FunctionNumbers) -> bool:
    """Whether a function placed behind the kernel has a frame; NVIDIA's helpers use the kernel's."""
    inside = [elf.symbols[index] for index, size in numbers.frame_bytes.items() if size and index < len(elf.symbols)]
    return any(
        function.section == kernel.section and function.index != kernel.index and not is_nvidias(function.name)
        for function in inside
    )


def spills_by_function(elf: CubinElf, functions: Sequence[Symbol]) -> dict[int, Spills]:
    """Spill bytes by symbol index, for all functions of one code section.

    An instruction belongs to the function inside the section (a call that was not inlined) whose range holds it,
    else to the kernel, whose range is the whole section.
    """
    code = elf.sections[functions[0].section]
    content = elf.content(code)
    annotated = _annotated_offsets(elf, code)
    if annotated is None:
        unknown = Spills(None, None, "the cubin's list of spill instructions has a form that is not known here")
        return {function.index: unknown for function in functions}
    owner = _Owners(functions)
    if not annotated and not _lists_spills(elf):
        touching = {owner.of(offset) for offset in _local_accesses(content)}
        unknown = Spills(None, None, "ptxas before 12.6 does not record which local memory accesses are spills")
        return {f.index: unknown if f.index in touching else Spills(0, 0, None) for f in functions}
    found = {function.index: Spills(0, 0, None) for function in functions}
    for offset in annotated:
        function = owner.of(offset)
        spills = found.get(function)
        if spills is not None:
            found[function] = _with_access(spills, content, offset)
    return found


def _with_access(spills: Spills, content: bytes, offset: int) -> Spills:
    if offset + _INSTRUCTION.size > len(content):
        return Spills(None, None, f"the cubin's list of spills is damaged: {offset:#x} is behind the end of the code")
    low, high = _INSTRUCTION.unpack_from(content, offset)
    opcode, width = low & 0xFFF, high >> 9 & 7
    if opcode in _SHARED_SPILLS or spills.store_bytes is None or spills.load_bytes is None:
        return spills
    if opcode not in (_STL, _LDL) or width >= len(_WIDTH_BYTES):
        return Spills(None, None, f"an instruction of unknown form spills at {offset:#x}")
    if opcode == _STL:
        return Spills(spills.store_bytes + _WIDTH_BYTES[width], spills.load_bytes, None)
    return Spills(spills.store_bytes, spills.load_bytes + _WIDTH_BYTES[width], None)


class _Owners:
    """Offset in a code section -> index of the function's symbol; -1 for none."""

    def __init__(self, functions: Sequence[Symbol]) -> None:
        self._inner = sorted((f for f in functions if not f.is_kernel), key=lambda function: function.value)
        self._starts = [function.value for function in self._inner]
        self._kernel = next((function.index for function in functions if function.is_kernel), -1)

    def of(self, offset: int) -> int:
        at = bisect_right(self._starts, offset) - 1
        if at >= 0 and offset < self._starts[at] + self._inner[at].size:
            return self._inner[at].index
        return self._kernel


def spill_offsets(elf: CubinElf, code: Section) -> frozenset[int] | None:
    """Byte offsets in a code section of the instructions that spill or refill; None where the cubin cannot tell."""
    annotated = _annotated_offsets(elf, code)
    if annotated is None or not (annotated or _lists_spills(elf)):
        return None
    return frozenset(annotated)


def _annotated_offsets(elf: CubinElf, code: Section) -> tuple[int, ...] | None:
    """Offsets of the instructions that spill or refill; None where a record of another kind is among them."""
    found: tuple[int, ...] = ()
    for attribute in elf.attributes(elf.section(".nv.info." + code.name.removeprefix(".text."))):
        if attribute.code == Info.ANNOTATIONS:
            words = attribute.words()
            if len(words) % 2 or any(kind != _ANNOTATION_SPILL for kind in words[::2]):
                return None
            found += words[1::2]
    return found


def _lists_spills(elf: CubinElf) -> bool:
    release = [int(part) for part in (elf.toolkit or "0").split(".")[:2] if part.isdigit()]
    return release >= [*_FIRST_TOOLKIT_WITH_SPILLS]


def _local_accesses(content: bytes) -> Iterator[int]:
    for offset in range(0, len(content) - _INSTRUCTION.size + 1, _INSTRUCTION.size):
        if (content[offset] | content[offset + 1] << 8) & 0xFFF in (_STL, _LDL):
            yield offset


def _static_shared_bytes(elf: CubinElf, name: str) -> int:
    size = _section_bytes(elf, f".nv.shared.{name}")
    if size > _LARGEST_SHARED:
        raise CubinError(f"damaged cubin: kernel {name} with {size} bytes of shared memory")
    number = int("".join(filter(str.isdigit, elf.arch)))
    if size and not elf.relocatable and number >= _FIRST_ARCH_WITH_SYSTEM_SHARED:
        if size < SYSTEM_SHARED_BYTES:
            raise CubinError(f"damaged cubin: {size} bytes of shared memory, less than the system's own")
        return size - SYSTEM_SHARED_BYTES
    return size


def _uses_dynamic_shared(elf: CubinElf, name: str, ptx: PtxKernel | None) -> bool | None:
    if ptx is not None and (ptx.uses_dynamic_shared or not elf.relocatable):
        return ptx.uses_dynamic_shared
    # Any `extern __shared__` of the file gives every linked kernel the section, so only its absence tells something.
    return None if elf.relocatable or elf.section(f".nv.shared.{name}") else False


def _section_bytes(elf: CubinElf, name: str) -> int:
    section = elf.section(name)
    return section.size if section else 0


def _block(attribute: Attribute | None) -> tuple[int, int, int] | None:
    if attribute is None:
        return None
    words = attribute.words()
    if len(words) < 3:
        raise CubinError("damaged cubin: launch bounds without three numbers")
    return words[0], words[1], words[2]
