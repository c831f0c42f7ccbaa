"""Frozen values of a text scan: the kernels, device functions and launches that stand in a CUDA source.

Lines are 1-based, columns code points. Everything here is as written; what the compiler made of it is in the
cubin. None means not known from the text.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.source.expressions import Expression
from kernel_lsp.source.position import Span

Extents = tuple[Expression, Expression, Expression]


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A `__shared__` variable. `dims` () is a scalar; a None in it is no constant; dynamic: `extern`, size unknown."""

    name: str
    element_type: str
    dims: tuple[int | None, ...]
    line: int
    is_dynamic: bool


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """A function definition with a body: a `__global__` kernel or a `__device__` function."""

    name: str
    qualified_name: str  # "ns::(anonymous namespace)::name", as demanglers write it
    span: Span  # of its name
    first_line: int  # of the declaration: template header, attributes
    last_line: int  # of the closing brace; the last line of the text where there is none
    body_first_line: int  # of the opening brace
    template_params: tuple[str, ...]  # names; "" where unnamed, "Ts..." for a pack
    specialization_args: tuple[str, ...] | None  # of `template <> void name<16>(...)`, as written
    is_template: bool  # needs an instantiation to have code
    is_static: bool
    is_member: bool  # of a class
    is_mentioned: bool  # the text's code or macros name it anywhere but in its own definition
    condition: str | None  # the innermost #if around it that is not known to hold: "#ifdef FAST (line 3)"


@dataclass(frozen=True, slots=True)
class SourceKernel(SourceFunction):
    """A kernel. Bounds are constants of its attributes, None where absent or not constant in the text."""

    launch_bounds_text: str | None  # "256, 2", as written
    max_threads: int | None  # __launch_bounds__'s first
    min_blocks_per_sm: int | None  # and second argument
    cluster_blocks: int | None  # product of __cluster_dims__
    shared_arrays: tuple[SharedArray, ...]  # its own, and dynamic ones of file scope that its body names


@dataclass(frozen=True, slots=True)
class ScanNote:
    """Something in the text that could not be used, with its place and what would be right."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class SourceLaunch:
    """A `<<<...>>>` or cudaLaunchKernel call. Extents may wait for template arguments; None: unknown."""

    kernel: tuple[str, ...]  # as written: ("ns", "tiled")
    kernel_args: tuple[str, ...]  # template arguments as written
    arg_values: tuple[Expression | None, ...]  # those that are constants or formulas
    scope: tuple[str, ...]  # namespaces and classes around the launch
    line: int
    block: Extents | None
    grid: Extents | None
    dynamic_shared_bytes: Expression | None
    is_conditional: bool  # inside an #if that is not known to hold


@dataclass(frozen=True, slots=True)
class SharedMemoryLimit:
    """A cudaFuncSetAttribute that allows a kernel so much dynamic shared memory (same names as SourceLaunch)."""

    kernel: tuple[str, ...]
    kernel_args: tuple[str, ...]
    arg_values: tuple[Expression | None, ...]
    scope: tuple[str, ...]
    line: int
    limit_bytes: Expression


@dataclass(frozen=True, slots=True)
class LaunchComment:
    """A `// kernel-lsp: block=256 smem=48KB` comment and the kernel that it stands at."""

    kernel: str  # qualified name
    kernel_line: int  # of the kernel's name
    line: int
    block: tuple[int, int, int] | None
    grid: tuple[int, int, int] | None
    dynamic_shared_bytes: int | None
    cluster: int | None


@dataclass(frozen=True, slots=True)
class SourceScan:
    """What a text holds, in the order of the text."""

    kernels: tuple[SourceKernel, ...]
    device_functions: tuple[SourceFunction, ...]  # without kernels; members of classes included
    notes: tuple[ScanNote, ...]
    launches: tuple[SourceLaunch, ...] = ()
    shared_memory_limits: tuple[SharedMemoryLimit, ...] = ()
    comments: tuple[LaunchComment, ...] = ()
