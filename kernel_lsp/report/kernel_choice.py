"""Turns the name that somebody gives a kernel into the kernels of a file that are called so."""

from __future__ import annotations

from kernel_lsp.analysis import FileAnalysis
from kernel_lsp.model.kernel_analysis import KernelAnalysis

MOST_NAMED = 12
_ANONYMOUS = "(anonymousnamespace)::"


class NoSuchKernelError(ValueError):
    """No kernel of the file has the name that was asked for; the message lists those there are."""


def chosen_kernels(analysis: FileAnalysis, name: str | None) -> tuple[KernelAnalysis, ...]:
    """All kernels, or those called `name`: mangled, in full, short, or without template arguments.

    Where none is called exactly so, `name` may leave out namespaces from the left and template arguments from the
    right. Blanks do not count. Overloads and instances that share the name are all meant.
    """
    if name is None:
        return analysis.kernels
    asked = _without_blanks(name.strip().removeprefix("void ")).removeprefix("::").replace(_ANONYMOUS, "")
    spelt = [(kernel, _spellings(kernel)) for kernel in analysis.kernels]
    found = tuple(kernel for kernel, names in spelt if asked in names)
    if not found and asked:
        found = tuple(kernel for kernel, names in spelt if any(_is_part(asked, each) for each in names))
    if not found:
        raise NoSuchKernelError(f"no kernel named {name!r} in {analysis.path}; {_there(analysis, asked)}")
    return found


def _is_part(asked: str, whole: str) -> bool:
    """`gemm` and `ns::gemm<float>` of `lib::ns::gemm<float,4>`."""
    if whole.endswith(f"::{asked}"):
        return True
    return asked.endswith(">") and f"::{asked[:-1]}," in f"::{whole}"


def _spellings(kernel: KernelAnalysis) -> set[str]:
    binary = kernel.binary
    names = (binary.mangled, binary.name.removeprefix("void "), binary.short_name, binary.short_name.partition("<")[0])
    return {_without_blanks(each).replace(_ANONYMOUS, "") for each in names}


def _without_blanks(name: str) -> str:
    return "".join(name.split())


def _there(analysis: FileAnalysis, asked: str) -> str:
    """The names there are, those that hold what was asked for first."""
    names = list(dict.fromkeys(kernel.binary.short_name for kernel in analysis.kernels))
    if not names:
        return "it has none"
    names.sort(key=lambda each: asked.casefold() not in _without_blanks(each).casefold())
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"there are: {', '.join(names[:MOST_NAMED])}{more}"
