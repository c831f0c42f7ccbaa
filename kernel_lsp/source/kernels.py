"""Turns CUDA text into its kernels and device functions, with no compiler involved.

Never raises, whatever the text: what cannot be read is left out, and a text too large to be read says so.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import zip_longest

from kernel_lsp.source.constants import Constants
from kernel_lsp.source.expressions import fold
from kernel_lsp.source.function_heads import ANONYMOUS, FunctionHead, argument_ranges, function_head, join
from kernel_lsp.source.launch_comments import launch_comments
from kernel_lsp.source.launches import LaunchReader
from kernel_lsp.source.lines import LineTable
from kernel_lsp.source.position import Span
from kernel_lsp.source.scan_result import ScanNote, SharedArray, SourceFunction, SourceKernel, SourceScan
from kernel_lsp.source.scopes import Scope, Scopes
from kernel_lsp.source.shared_arrays import shared_arrays
from kernel_lsp.source.tokens import tokenize

MAX_TEXT_LENGTH = 10_000_000  # code points; about 10 s of scanning (1 ms for 40 lines)

_MAX_FAILED_HEADS = 1000  # markers without a function to be read; a text with more is none that people wrote
_MARKS = ("__global__", "__device__", "<<<", "cudaLaunch", "cudaFuncSet", "kernel-lsp:")


def scan(text: str, defines: Mapping[str, str] | None = None) -> SourceScan:
    """Everything found in `text`; `defines` are the macros of the command line (None: not known).

    A text without any CUDA in it costs one search for the words.
    """
    if len(text) > MAX_TEXT_LENGTH:
        limit = f"{MAX_TEXT_LENGTH // 1_000_000} MB"
        note = ScanNote(Span(1, 1, 1), f"longer than {limit}: kernels and launches are not looked for in the text")
        return SourceScan((), (), (note,))
    if not any(mark in text for mark in _MARKS):
        return SourceScan((), (), ())
    return _Scan(text, defines).result()


class _Scan:
    """One pass over one text."""

    def __init__(self, text: str, defines: Mapping[str, str] | None) -> None:
        self.lines = LineTable(text)
        self.tokens = tokenize(text)
        self.scopes = Scopes(self.tokens)
        self.constants = Constants(self.tokens, self.scopes, defines)
        self._declared: set[int] = set()  # names in heads of functions, definitions and declarations alike
        self._mentions: dict[str, list[int]] = {}  # of a name, outside heads
        self._guards = {
            directive.path[-1]
            for directive in self.tokens.directives
            if directive.keyword == "define"
            and directive.path
            and self.tokens.branch_conditions[directive.path[-1]][1] == f"ifndef {directive.rest}"
        }
        self._macro_words = {
            word
            for directive in self.tokens.directives
            if directive.keyword == "define"
            for word in re.findall(r"\w+", directive.rest)
        }

    def result(self) -> SourceScan:
        texts = self.tokens.texts
        marked: dict[str, list[int]] = {"__global__": [], "__device__": [], "__shared__": []}
        for idx, text in enumerate(texts):
            if text in marked:
                marked[text].append(idx)
        shared = [
            (idx, array)
            for idx in marked["__shared__"]
            for array in shared_arrays(self.tokens, idx, self.constants, self.lines)
        ]
        global_definitions = self._definitions(marked["__global__"])
        device_definitions = self._definitions(marked["__device__"])
        global_shared = {array.name: array for idx, array in shared if array.is_dynamic and self._is_global(idx)}
        kernels = [self._kernel(head, close, shared, global_shared) for head, close in global_definitions]
        functions = [
            self._function(head, close)
            for head, close in device_definitions
            if "__global__" not in texts[head.start : head.name_idx]
        ]
        comments, notes = launch_comments(self.tokens, tuple(kernels), self.lines)
        launches = LaunchReader(self.tokens, self.scopes, self.constants, self.lines)
        return SourceScan(
            kernels=tuple(kernels),
            device_functions=tuple(functions),
            notes=notes,
            launches=launches.launches(),
            shared_memory_limits=launches.shared_memory_limits(),
            comments=comments,
        )

    def _definitions(self, markers: list[int]) -> list[tuple[FunctionHead, int]]:
        """Functions with a body, each with the token that ends it. No function holds another of its kind."""
        heads: list[FunctionHead] = []
        n_failed = 0
        for marker in markers:
            head = function_head(self.tokens, marker) if n_failed < _MAX_FAILED_HEADS else None
            n_failed += head is None
            if head is not None:
                self._declared.add(head.name_idx)
            if head is not None and head.body_open >= 0 and not (heads and heads[-1].name_idx == head.name_idx):
                heads.append(head)
        ended = []
        for head, following in zip_longest(heads, heads[1:]):
            close = min(self.tokens.close(head.body_open), len(self.tokens.texts) - 1)
            if following is not None and close >= following.start > head.body_open:
                close = following.start - 1  # a brace is missing in between
            ended.append((head, close))
        return ended

    def _kernel(
        self,
        head: FunctionHead,
        close: int,
        shared: list[tuple[int, SharedArray]],
        global_shared: dict[str, SharedArray],
    ) -> SourceKernel:
        function = self._function(head, close)
        tokens = self.tokens
        body_words = set(tokens.texts[head.body_open : close])
        in_body = slice(
            bisect_left(shared, head.body_open, key=lambda entry: entry[0]),
            bisect_left(shared, close, key=lambda entry: entry[0]),
        )
        of_file = [global_shared[name] for name in body_words & global_shared.keys()]
        own = [*of_file, *(array for _, array in shared[in_body])]
        bounds_text, bounds = self._attribute(head, "__launch_bounds__")
        _, cluster = self._attribute(head, "__cluster_dims__")
        cluster_blocks: int | None = 1
        for extent in cluster:
            cluster_blocks = None if extent is None or cluster_blocks is None else cluster_blocks * extent
        return SourceKernel(
            **{name: getattr(function, name) for name in SourceFunction.__slots__},
            launch_bounds_text=bounds_text,
            max_threads=bounds[0] if bounds else None,
            min_blocks_per_sm=bounds[1] if len(bounds) > 1 else None,
            cluster_blocks=cluster_blocks if cluster else None,
            shared_arrays=tuple(own),
        )

    def _attribute(self, head: FunctionHead, name: str) -> tuple[str | None, list[int | None]]:
        """An attribute's arguments, as text and as constants."""
        opener = head.attributes.get(name)
        if opener is None:
            return None, []
        ranges = argument_ranges(self.tokens, opener, self.tokens.close(opener))
        text = ", ".join(join(self.tokens.texts[first:last]) for first, last in ranges)
        return text, [fold(self.constants.value(first, last), {}) for first, last in ranges]

    def _is_global(self, token_idx: int) -> bool:
        brace = self.tokens.brace_of(token_idx)
        return brace < 0 or self.scopes.scope(brace).kind in ("namespace", "linkage")

    def _function(self, head: FunctionHead, close: int) -> SourceFunction:
        tokens, lines = self.tokens, self.lines
        texts = tokens.texts
        name = texts[head.name_idx]
        line, column = lines.position(tokens.starts[head.name_idx])
        scope_around = self._class_around(head.name_idx)
        scope = (*self.scopes.names_around(head.name_idx), *head.written_scope)
        return SourceFunction(
            name=name,
            qualified_name="::".join((*scope, name)),
            span=Span(line, column, column + len(name)),
            first_line=self._line(head.start),
            last_line=self._line(close),
            body_first_line=self._line(head.body_open),
            template_params=head.template_params,
            specialization_args=head.specialization_args,
            is_template=head.is_template or (scope_around is not None and scope_around.is_template),
            is_static="static" in texts[head.start : head.name_idx] or ANONYMOUS in scope,
            is_member=scope_around is not None or bool(head.written_scope),
            is_mentioned=self._is_mentioned(name, head, close),
            condition=self._condition(head.name_idx),
        )

    def _class_around(self, token_idx: int) -> Scope | None:
        brace = self.tokens.brace_of(token_idx)
        scope = self.scopes.scope(brace) if brace >= 0 else None
        return scope if scope is not None and scope.kind == "class" else None

    def _is_mentioned(self, name: str, head: FunctionHead, close: int) -> bool:
        """Whether anything but the heads of its name, and its own body, has the name."""
        if name not in self._mentions:
            places = self.tokens.word_places(name)
            self._mentions[name] = [idx for idx in places if idx not in self._declared]
        mentions = self._mentions[name]
        n_own = bisect_right(mentions, close) - bisect_left(mentions, head.start)
        return len(mentions) > n_own or name in self._macro_words

    def _condition(self, token_idx: int) -> str | None:
        for arm in reversed(self.tokens.path(token_idx)):
            if arm not in self._guards:
                offset, condition = self.tokens.branch_conditions[arm]
                return f"#{condition} (line {self.lines.position(offset)[0]})"
        return None

    def _line(self, token_idx: int) -> int:
        return self.lines.position(self.tokens.starts[token_idx])[0]
