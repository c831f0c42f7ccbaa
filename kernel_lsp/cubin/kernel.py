"""Frozen values read from a cubin: its kernels with their resources, names and definition lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_lsp.source.position import SourceLine

_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")


class CubinError(ValueError):
    """The bytes are no cubin that can be read; the message says what was wrong, for people, on one line."""

    def __init__(self, message: str) -> None:
        # It may hold a name from a damaged file.
        super().__init__(_CONTROL.sub("?", message))


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes, equal to `cuobjdump -res-usage` and `ptxas -v` (both checked by tests).

    `static_shared_bytes` leaves out the system's 1 KB per block that linked cubins of sm_90 and later include.
    Spill bytes are None where the cubin cannot tell (its `spill_why` says why).
    """

    registers: int
    static_shared_bytes: int
    local_bytes: int
    # ptxas's "stack frame": the function's own. None: functions behind the kernel have frames of their own, and the
    # cubin tells `stack_bytes` alone.
    frame_bytes: int | None
    stack_bytes: int | None  # ptxas's "cumulative stack size": with all that it calls; None: recursion, not known
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    spill_why: str | None
    barriers: int
    constant_bytes: int  # bank 0
    max_block: tuple[int, int, int] | None  # .maxntid, from __launch_bounds__
    required_block: tuple[int, int, int] | None  # .reqntid
    min_blocks_per_sm: int | None  # .minnctapersm, where the embedded PTX tells
    uses_dynamic_shared: bool | None  # extern __shared__; None: not known
    # It calls what is linked later: registers, stack, static shared memory and barriers are lower bounds.
    relocatable: bool
    calls_through_pointers: bool = False  # the reason of that after a link: other files may hold hungrier functions
    linked: LinkedResources | None = None  # after a link with the files that it needs; None: not tried, not possible

    @property
    def in_program(self) -> Resources:
        """What a launch takes as far as that is known: after the link, where there was one."""
        return self.linked.resources if self.linked else self

    @property
    def max_threads(self) -> int | None:
        """Largest block the kernel can be launched with, in threads; None: not bounded by the kernel."""
        bound = self.required_block or self.max_block
        return None if bound is None else bound[0] * bound[1] * bound[2]


@dataclass(frozen=True, slots=True)
class LinkedResources:
    """What a kernel takes once it is linked with the files that it needs."""

    resources: Resources  # `relocatable` where they are lower bounds even so
    with_files: tuple[str, ...]  # absolute paths of the other sources


@dataclass(frozen=True, slots=True)
class KernelBinary:
    """One kernel (entry function) of a cubin."""

    mangled: str
    name: str  # demangled: "void axpy<float, 1>(float, float const*, float*, int)"
    short_name: str  # what a person says: "axpy<float, 1>"
    arch: str  # "sm_86", with suffix where the cubin says so ("sm_90a")
    definition: SourceLine | None  # the line with the kernel's name in its declarator; None: no line table
    resources: Resources
    code_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A function that was not inlined: part of a kernel's code, or on its own in a cubin that is not linked yet.

    NVIDIA's own slow paths (division, square root, trigonometry) are `is_helper`. Its spill bytes leave out the
    registers that it saves for its caller by the calling convention, which `ptxas -v` counts for functions.
    """

    mangled: str
    name: str
    short_name: str
    kernel: str | None  # mangled name of the kernel whose code holds this copy; None: not linked yet
    is_helper: bool
    registers: int | None  # None: part of the kernel's count, or not known before linking
    frame_bytes: int | None  # None: part of the kernel's
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    spill_why: str | None
    offset_bytes: int  # in its code section
    code_bytes: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """A decoded cubin: its kernels, sorted by mangled name, and the device functions that stand beside them."""

    arch: str
    kernels: tuple[KernelBinary, ...]
    device_functions: tuple[DeviceFunction, ...]  # in the order of the symbol table
    toolkit: str | None  # "13.5.37"; "12.4" where the cubin tells only the release
    relocatable: bool
