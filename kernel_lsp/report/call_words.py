"""Calls that were not inlined, in words: what a line calls, and from where a line's function is called."""

from __future__ import annotations

from kernel_lsp.cubin.names import function_name
from kernel_lsp.findings import wording
from kernel_lsp.model.kernel_sass import KernelSass, Rows
from kernel_lsp.model.line_calls import Called, called, called_from
from kernel_lsp.report.markdown_text import escaped
from kernel_lsp.report.sass_words import Places, last_name

MOST_CALLS = 3
MOST_PLACES = 4


def call_sentences(kernel: KernelSass, rows: Rows) -> list[str]:
    """`Calls heavy, which was not inlined: 123 instructions.`; one for each function, the rest counted."""
    found = called(kernel, rows)
    said = [_call_sentence(each) for each in found[:MOST_CALLS]]
    if len(found) > MOST_CALLS:
        said.append(f"Calls {wording.counted(len(found) - MOST_CALLS, 'more function')} that were not inlined.")
    return said


def _call_sentence(call: Called) -> str:
    if call.is_helper:
        what = f"Calls NVIDIA's {call.function}"
    elif call.instruction_count is None:
        what = f"Calls {last_name(function_name(call.function).short)}, which is linked later"
    else:
        what = f"Calls {last_name(function_name(call.function).short)}, which was not inlined"
    if call.n_calls > 1:
        what += f" ({wording.counted(call.n_calls, 'call')})"
    size = "" if call.instruction_count is None else f": {wording.counted(call.instruction_count, 'instruction')}"
    return f"{what}{size}{' that belong to no line' if call.is_helper and size else ''}."


def caller_lines(kernel: KernelSass, rows: Rows, places: Places) -> list[str]:
    """`- 119 instructions in heavy, called from l.18`, for instructions outside of the kernel's own code."""
    lines = []
    for each in called_from(kernel, rows):
        known = [places.chain(frames) for frames in each.places if frames]
        more = f" and {len(known) - MOST_PLACES} more" if len(known) > MOST_PLACES else ""
        calls = f", called from {', '.join(known[:MOST_PLACES])}{more}" if known else ""
        function = escaped(last_name(function_name(each.function).short))
        lines.append(f"- {wording.counted(each.count, 'instruction')} in {function}{escaped(calls)}")
    return lines
