"""KL204: a stack frame without any spill: per-thread data in local memory (an array, or a call's frame).

The cubin tells the size and that nothing was spilled. Its instructions tell which lines access local memory with an
address made at run time: there the finding stands, with the array's name where the text leaves no choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_lsp.findings import wording
from kernel_lsp.findings.catalogue import RuleText
from kernel_lsp.findings.draft import Draft, Rule, exact, kernel_draft
from kernel_lsp.findings.facts import Facts
from kernel_lsp.findings.finding import Related
from kernel_lsp.findings.local_places import access_places
from kernel_lsp.findings.measured import leaves_local_memory_alone
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.model.line_sass import LocalLine, local_lines
from kernel_lsp.source.local_arrays import IndexedArray, indexed_arrays

_PER_THREAD = ("bytes per thread", "cubin")


def _check(facts: Facts, text: RuleText) -> Iterator[Draft]:
    for kernel in facts.kernels:
        resources = kernel.binary.resources
        frame = wording.own_local_bytes(resources)
        no_spills = resources.spill_store_bytes == 0 and resources.spill_load_bytes == 0
        if not frame or not no_spills or resources.relocatable:
            continue  # unlinked: the frame belongs to the calls, and its size is not final
        lines = local_lines(kernel.sass, "array", facts.path) if kernel.sass else ()
        indexed = next((line for line in lines if line.is_indexed), None)
        array = _array(facts, indexed)
        if indexed is not None:
            variant = "named" if array else "indexed"
        elif _is_only_a_call(kernel):
            variant = "call"
        else:
            variant = "array" if frame >= text.thresholds["warning_from_bytes"] else "small"
        is_large = variant not in ("call", "small") and frame >= text.thresholds["warning_from_bytes"]
        is_idle = leaves_local_memory_alone(kernel)
        yield kernel_draft(
            text,
            facts,
            kernel,
            message=text.messages[variant].format(
                held=wording.local_size(resources, "per thread in local memory"), name=array.name if array else ""
            ),
            advice=text.advice["untouched" if is_idle else variant],
            badness=frame,
            severity=None if is_large and not is_idle else "hint",
            evidence=(
                exact("frame_bytes" if resources.frame_bytes is not None else "stack_bytes", frame, *_PER_THREAD),
                exact("spill_store_bytes", 0, "bytes", "cubin"),
                exact("spill_load_bytes", 0, "bytes", "cubin"),
            ),
            at=array.span if array else None,
            at_line=indexed.frames[0].line if indexed else None,
            related=_related(facts, lines, indexed, array),
        )


def _is_only_a_call(kernel: KernelAnalysis) -> bool:
    """Whether every access to local memory passes an argument or saves a register for a call."""
    local = kernel.sass.local if kernel.sass else None
    return bool(local) and all(access.purpose == "convention" for access in local or ())


def _array(facts: Facts, indexed: LocalLine | None) -> IndexedArray | None:
    """The array that the line indexes, where it can only be one."""
    if indexed is None or facts.scan is None:
        return None
    found = indexed_arrays(facts.text, facts.scan, indexed.frames[0].line)
    return found[0] if len(found) == 1 else None


def _related(
    facts: Facts, lines: tuple[LocalLine, ...], indexed: LocalLine | None, array: IndexedArray | None
) -> tuple[Related, ...]:
    declared = (Related(facts.path, array.declared_line, f"{array.name} is declared here"),) if array else ()
    others = tuple(line for line in lines if line is not indexed)
    return declared + access_places(others, facts.path)


RULE = Rule("KL204", _check)
