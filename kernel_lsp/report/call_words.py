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
    """`Calls heavy, which was not inlined: 123 instructions.`, NVIDIA's own functions in one sentence."""
    found = called(kernel, rows)
    own, helpers = [each for each in found if not each.is_helper], [each for each in found if each.is_helper]
    said = [_call_sentence(each) for each in own[:MOST_CALLS]]
    if len(own) > MOST_CALLS:
        said.append(f"Calls {wording.counted(len(own) - MOST_CALLS, 'more function')} that were not inlined.")
    return [*said, _helper_sentence(helpers)] if helpers else said


def _call_sentence(call: Called) -> str:
    fate = "is linked later" if call.instruction_count is None else "was not inlined"
    said = f"Calls {last_name(function_name(call.function).short)}, which {fate}{_calls(call)}"
    return f"{said}." if call.instruction_count is None else f"{said}: {_size(call)}."


def _helper_sentence(helpers: list[Called]) -> str:
    """`Calls NVIDIA's __cuda_sm20_div_rn_f64_full: 92 instructions that belong to no line.`"""
    if len(helpers) == 1:
        [call] = helpers
        size = f": {_size(call)} that belong to no line" if call.instruction_count is not None else ""
        return f"Calls NVIDIA's {call.function}{_calls(call)}{size}."
    named = [f"{call.function} ({_size(call)})" for call in helpers[:MOST_CALLS] if call.instruction_count is not None]
    more = len(helpers) - len(named)
    names = wording.joined([*named, *([f"{more} more"] if more else [])])
    return f"Calls functions of NVIDIA that belong to no line: {names}."


def _size(call: Called) -> str:
    return wording.counted(call.instruction_count or 0, "instruction")


def _calls(call: Called) -> str:
    return f" ({wording.counted(call.n_calls, 'call')})" if call.n_calls > 1 else ""


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
