"""Joins the names that a demangler prints with the kernels of a text: which definition, which launch, which instance.

Names are compared from the inside outwards, template arguments by value where they are numbers and by canonical
type where they are builtin types. Where a match is only possible, it is said to be so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernel_lsp.source.expressions import Expression, Parameter, UnknownValueError, fold, integer
from kernel_lsp.source.position import Span
from kernel_lsp.source.scan_result import SourceKernel, SourceScan

ANONYMOUS = "(anonymous namespace)"

_OPEN, _CLOSE = "(<[{", ")>]}"
_CANONICAL_TYPES = {
    "half": "__half", "half2": "__half2", "nv_bfloat16": "__nv_bfloat16", "nv_bfloat162": "__nv_bfloat162",
    "uint": "unsigned int", "unsigned": "unsigned int", "uint32_t": "unsigned int", "int32_t": "int",
    "uint16_t": "unsigned short", "int16_t": "short", "uint8_t": "unsigned char", "int8_t": "signed char",
    "ushort": "unsigned short", "uchar": "unsigned char",
}  # fmt: skip
_BUILTIN_TYPES = frozenset(
    {"int", "unsigned int", "float", "double", "char", "signed char", "unsigned char", "short", "unsigned short"}
    | {"bool", "float2", "float4", "int2", "int4", "__half", "__half2", "__nv_bfloat16", "__nv_bfloat162"}
)


@dataclass(frozen=True, slots=True)
class KernelName:
    """A demangled name in parts: ("ns", "(anonymous namespace)", "axpy") and ("float", "1")."""

    scope_and_name: tuple[str, ...]
    template_args: tuple[str, ...]

    @property
    def qualified(self) -> str:
        """`ns::(anonymous namespace)::axpy`."""
        return "::".join(self.scope_and_name)


@dataclass(frozen=True, slots=True)
class ArgumentMatch:
    """Written template arguments fit an instance: surely or possibly, with the parameters that this binds."""

    is_certain: bool
    bindings: Mapping[str, str]


def kernel_name(demangled: str) -> KernelName:
    """Parts of `void ns::axpy<float, 1>(float, float const*)`; also of a plain `axpy`."""
    name = demangled
    if name.endswith(")") and not name.endswith(ANONYMOUS):
        name = name[: _opening(name, len(name) - 1)]
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] in _CLOSE) - (name[at] in _OPEN)
        if depth == 0 and name[at] == " ":
            name = name[at + 1 :]
            break
    args: tuple[str, ...] = ()
    if name.endswith(">"):
        opener = _opening(name, len(name) - 1)
        args = tuple(_split(name[opener + 1 : -1], ","))
        name = name[:opener]
    parts = tuple(re.sub(r"<.*>$", "", part) for part in _split(name, "::"))
    return KernelName(parts, args)


def _opening(name: str, close: int) -> int:
    depth = 0
    for at in range(close, -1, -1):
        depth += (name[at] in _CLOSE) - (name[at] in _OPEN)
        if depth == 0:
            return at
    return close


def _split(text: str, separator: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0 and text.startswith(separator, at) and at >= start:
            parts.append(text[start:at].strip())
            start = at + len(separator)
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def kernel_in_text(scan: SourceScan, name: KernelName, line: int | None) -> SourceKernel | None:
    """The kernel of the text that a binary was made from; None where none fits.

    `line` is the definition's in the compiler's line table, which must be about this text's file; None where it
    is not known. It decides among overloads and arms of an #if, and finds a kernel whose namespace is a macro.
    """
    named = [kernel for kernel in scan.kernels if kernel.name == name.scope_and_name[-1]]
    qualified = [kernel for kernel in named if kernel.qualified_name == name.qualified]
    if line is None:
        return qualified[0] if len(qualified) == 1 else None
    for candidates in (qualified, named):
        around = [kernel for kernel in candidates if kernel.first_line <= line <= kernel.last_line]
        if around:
            return min(around, key=lambda kernel: abs(kernel.span.line - line))
    # A #line directive moves the compiler's lines; one definition of that name is still the one.
    return qualified[0] if len(qualified) == 1 else None


def names_kernel(written: Sequence[str], scope: Sequence[str], name: KernelName, scan: SourceScan) -> bool:
    """Whether `written` (("ns", "f")), seen from inside `scope`, names this kernel and no other of the text."""
    target = [part for part in name.scope_and_name if part != ANONYMOUS]
    if target[-len(written) :] != list(written):
        return False
    outer: set[tuple[str, ...]] = {tuple(target[: -len(written)])}
    for kernel in scan.kernels:
        parts = [part for part in kernel.qualified_name.split("::") if part != ANONYMOUS]
        if parts[-len(written) :] == list(written):
            outer.add(tuple(parts[: -len(written)]))
    if len(outer) == 1:
        return True
    here = tuple(part for part in scope if part != ANONYMOUS)
    visible = [names for names in outer if here[: len(names)] == names]
    return bool(visible) and max(visible, key=len) == tuple(target[: -len(written)])


def match_arguments(
    written: Sequence[str], values: Sequence[Expression | None], instance: Sequence[str]
) -> ArgumentMatch | None:
    """Whether template arguments as written at a launch can mean an instance's; None: they cannot."""
    if len(written) > len(instance):
        return None
    bindings: dict[str, str] = {}
    for value, actual in zip(values, instance, strict=False):
        if isinstance(value, Parameter) and bindings.setdefault(value.name, actual) != actual:
            return None
    is_certain = len(written) == len(instance)
    for text, value, actual in zip(written, values, instance, strict=False):
        if isinstance(value, Parameter):
            continue
        if value is not None:
            number, asked = fold(value, bindings), _number(actual)
            if number is not None and asked is not None:
                if number != asked:
                    return None
                continue
        else:
            one, other = _canonical(text), _canonical(actual)
            if one == other:
                continue
            if one in _BUILTIN_TYPES and other in _BUILTIN_TYPES:
                return None
        is_certain = False
    return ArgumentMatch(is_certain, bindings)


def _number(text: str) -> int | None:
    try:
        return integer(re.sub(r"^\([\w:\s]+\)", "", text))
    except UnknownValueError:
        return None


def _canonical(text: str) -> str:
    text = " ".join(text.replace("std::", "").split())
    return _CANONICAL_TYPES.get(text, text)


def not_compiled(
    scan: SourceScan,
    compiled: Iterable[SourceKernel],
    compiled_names: Iterable[str],
    emitted_functions: Iterable[str],
    is_header: bool,
) -> tuple[tuple[Span, str], ...]:
    """Kernels and free device functions of the text that have no code, with the reason, in the order of the text.

    `compiled` are the kernels of the text that a binary was found for, `compiled_names` the qualified names of all
    that were built (a #line directive can hide where one stands), `emitted_functions` the names of functions that
    stand in the cubin by themselves. Functions of a header are there for other files and are not spoken of.
    """
    made = set(compiled)
    made_names = set(compiled_names)
    found: list[tuple[Span, str]] = []
    for kernel in scan.kernels:
        if kernel in made:
            continue
        if kernel.condition:
            found.append((kernel.span, f"{kernel.name} stands inside {kernel.condition}"))
        elif kernel.qualified_name in made_names:
            continue
        elif kernel.is_template:
            where = "this build" if is_header else "this file"
            found.append((kernel.span, f"template {kernel.name} is not instantiated in {where}"))
        else:
            found.append((kernel.span, f"{kernel.name} has no code in this build"))
    emitted = set(emitted_functions)
    # Inlined functions leave no symbol, so only a name that nothing else mentions is certain to be unused.
    found += [
        (function.span, f"no kernel of this file calls {function.name}")
        for function in scan.device_functions
        if not (is_header or function.is_mentioned or function.is_member or function.name in emitted)
    ]
    return tuple(sorted(found, key=lambda entry: (entry[0].line, entry[0].column)))
