"""Turns `<<<grid, block, shared, stream>>>`, cudaLaunchKernel and cudaFuncSetAttribute into launches.

Extents are evaluated as far as the text alone decides them; template parameters of the code around a launch stay
as formulas until a kernel's arguments are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.source.constants import Constants
from kernel_lsp.source.expressions import Expression
from kernel_lsp.source.function_heads import argument_ranges, is_word, join, match_angle
from kernel_lsp.source.lines import LineTable
from kernel_lsp.source.scan_result import SharedMemoryLimit, SourceLaunch
from kernel_lsp.source.scopes import Scopes
from kernel_lsp.source.tokens import Tokens

_CALLS = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel")  # (kernel, grid, block, arguments, shared, stream)
_CONFIGURED_CALL = "cudaLaunchKernelEx"  # (&config, kernel, ...)
_LIMIT_CALL = "cudaFuncSetAttribute"
_LIMIT = "cudaFuncAttributeMaxDynamicSharedMemorySize"
_MAX_TOKENS = 2000


@dataclass(frozen=True, slots=True)
class _Callee:
    """A kernel as named at a launch; the tokens of its template arguments are `args_open`..`args_close`, or -1."""

    names: tuple[str, ...]
    args: list[tuple[int, int]]


class LaunchReader:
    """Reads the launches of one text."""

    def __init__(self, tokens: Tokens, scopes: Scopes, constants: Constants, lines: LineTable) -> None:
        self._tokens = tokens
        self._scopes = scopes
        self._constants = constants
        self._lines = lines

    def launches(self) -> tuple[SourceLaunch, ...]:
        """Every launch whose kernel is named, in the order of the text."""
        tokens = self._tokens
        found: list[tuple[int, SourceLaunch]] = []
        for idx, text in enumerate(tokens.texts):
            launch = None
            if text == "<<<":
                launch = self._triple_chevron(idx)
            elif text in _CALLS:
                launch = self._call(idx)
            elif text == _CONFIGURED_CALL:
                launch = self._configured_call(idx)
            if launch is not None:
                found.append((idx, launch))
        return tuple(launch for _, launch in found)

    def shared_memory_limits(self) -> tuple[SharedMemoryLimit, ...]:
        """Every cudaFuncSetAttribute that sets a kernel's largest dynamic shared memory to a constant."""
        found = []
        for idx in self._tokens.word_places(_LIMIT_CALL):
            arguments = self._arguments(idx)
            if len(arguments) != 3 or _LIMIT not in self._tokens.texts[slice(*arguments[1])]:
                continue
            callee = self._callee_in(*arguments[0])
            size = self._constants.value(*arguments[2])
            if callee is not None and size is not None:
                names, args, values, scope = self._named(callee, idx)
                found.append(SharedMemoryLimit(names, args, values, scope, self._line(idx), size))
        return tuple(found)

    def _triple_chevron(self, idx: int) -> SourceLaunch | None:
        close = self._chevron_close(idx)
        callee = self._callee_before(idx) if close is not None else None
        if callee is None or close is None:
            return None
        ranges = argument_ranges(self._tokens, idx, close)
        if len(ranges) < 2:
            return None
        shared: Expression | None = 0
        if len(ranges) > 2:
            shared = self._constants.value(*ranges[2])
        return self._launch(callee, idx, ranges[0], ranges[1], shared)

    def _call(self, idx: int) -> SourceLaunch | None:
        arguments = self._arguments(idx)
        callee = self._callee_in(*arguments[0]) if len(arguments) >= 4 else None
        if callee is None:
            return None
        shared: Expression | None = 0
        if len(arguments) > 4:
            shared = self._constants.value(*arguments[4])
        return self._launch(callee, idx, arguments[1], arguments[2], shared)

    def _configured_call(self, idx: int) -> SourceLaunch | None:
        """cudaLaunchKernelEx(&config, kernel, ...) where each field of config is set once before it."""
        texts = self._tokens.texts
        arguments = self._arguments(idx)
        if len(arguments) < 2:
            return None
        callee = self._callee_in(*arguments[1])
        config = texts[slice(*arguments[0])]
        if callee is None or len(config) != 2 or config[0] != "&":
            return None
        fields = {name: self._field(config[1], name, idx) for name in ("gridDim", "blockDim", "dynamicSmemBytes")}
        if fields["blockDim"] is None:
            return None
        shared = fields["dynamicSmemBytes"]
        return self._launch(
            callee,
            idx,
            fields["gridDim"],
            fields["blockDim"],
            self._constants.value(*shared) if shared else None,
        )

    def _field(self, config: str, name: str, before: int) -> tuple[int, int] | None:
        """The tokens of the value in the only `config.name = value;` of the function around, before a call."""
        tokens, texts = self._tokens, self._tokens.texts
        brace = tokens.brace_of(before)
        found = []
        for idx in tokens.word_places(name):
            if texts[idx - 2 : idx] == [config, "."] and brace < idx < tokens.close(brace):
                found.append(idx)
        if len(found) != 1 or found[0] > before or tokens.brace_of(found[0]) != brace:
            return None
        if texts[found[0] + 1 : found[0] + 2] != ["="]:
            return None
        end = found[0] + 2
        while end < len(texts) and texts[end] != ";":
            end = tokens.close(end) + 1 if texts[end] in ("(", "{") else end + 1
        return found[0] + 2, end

    def _launch(
        self,
        callee: _Callee,
        idx: int,
        grid: tuple[int, int] | None,
        block: tuple[int, int],
        shared: Expression | None,
    ) -> SourceLaunch:
        names, args, values, scope = self._named(callee, idx)
        return SourceLaunch(
            kernel=names,
            kernel_args=args,
            arg_values=values,
            scope=scope,
            line=self._line(idx),
            block=self._constants.extents(*block),
            grid=self._constants.extents(*grid) if grid else None,
            dynamic_shared_bytes=shared,
            is_conditional=bool(self._tokens.path(idx)),
        )

    def _named(
        self, callee: _Callee, idx: int
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Expression | None, ...], tuple[str, ...]]:
        texts = self._tokens.texts
        args = tuple(join(texts[first:last]) for first, last in callee.args)
        values = tuple(self._constants.value(first, last) for first, last in callee.args)
        return callee.names, args, values, self._scopes.names_around(idx)

    def _arguments(self, idx: int) -> list[tuple[int, int]]:
        """The arguments of the call whose name is at `idx`, past template arguments."""
        after = idx + 1
        texts = self._tokens.texts
        if texts[after : after + 1] == ["<"]:
            after = (match_angle(self._tokens, after) or after) + 1
        if texts[after : after + 1] != ["("] or self._tokens.close(after) >= len(texts):
            return []
        return argument_ranges(self._tokens, after, self._tokens.close(after))

    def _chevron_close(self, opener: int) -> int | None:
        """The first of the three ">" that close a launch."""
        tokens, texts = self._tokens, self._tokens.texts
        idx = opener + 1
        end = min(opener + _MAX_TOKENS, len(texts))
        while idx < end:
            text = texts[idx]
            if text in ("(", "[", "{"):
                idx = tokens.close(idx)
            elif text in (";", ")", "}", "]", "<<<"):
                return None
            elif text == ">" and texts[idx : idx + 3] == [">", ">", ">"]:
                starts = tokens.starts
                if starts[idx + 2] == starts[idx] + 2 and texts[idx + 3 : idx + 4] == ["("]:
                    return idx
            idx += 1
        return None

    def _callee_before(self, idx: int) -> _Callee | None:
        """The kernel named in front of "<<<"."""
        texts = self._tokens.texts
        name = idx - 1
        args: list[tuple[int, int]] = []
        if name >= 0 and texts[name] == ">":
            opener = self._angle_open(name)
            if opener is None:
                return None
            args = argument_ranges(self._tokens, opener, name)
            name = opener - 1
        elif name >= 0 and texts[name] == ")":  # (kernel<16>)<<<...>>>
            opener = self._tokens.match.get(name, -1)
            return self._callee_in(opener + 1, name) if opener >= 0 else None
        return self._callee(name, args)

    def _angle_open(self, close: int) -> int | None:
        """The "<" that opens the template list closed at `close`."""
        tokens, texts = self._tokens, self._tokens.texts
        depth = 0
        idx = close
        for _ in range(_MAX_TOKENS):
            if idx < 0:
                return None
            text = texts[idx]
            if text == ">":
                depth += 1
            elif text == "<":
                depth -= 1
                if depth == 0:
                    return idx
            elif text in (")", "]", "}"):
                idx = tokens.match.get(idx, -1)
                if idx < 0:
                    return None
            elif text in (";", "{", "(", "["):
                return None
            idx -= 1
        return None

    def _callee_in(self, first: int, last: int) -> _Callee | None:
        """The kernel named by an argument: `kernel<16>`, `&kernel`, `(const void*)kernel`, a cast of it."""
        tokens, texts = self._tokens, self._tokens.texts
        while first < last and texts[first] in ("&", "(", "*"):
            if texts[first] != "(":
                first += 1
            elif tokens.close(first) == last - 1:
                first, last = first + 1, last - 1
            else:
                first = tokens.close(first) + 1  # a C cast
        if first < last and texts[first] in ("reinterpret_cast", "static_cast"):
            opener = (match_angle(tokens, first + 1) or first) + 1
            if texts[opener : opener + 1] == ["("] and tokens.close(opener) == last - 1:
                return self._callee_in(opener + 1, last - 1)
            return None
        args: list[tuple[int, int]] = []
        name = last - 1
        if first < last and texts[name] == ">":
            opener = self._angle_open(name) or 0
            if opener <= first:
                return None
            args = argument_ranges(tokens, opener, name)
            name = opener - 1
        if name < first or any(not (is_word(text) or text == "::") for text in texts[first : name + 1]):
            return None
        return self._callee(name, args)

    def _callee(self, name: int, args: list[tuple[int, int]]) -> _Callee | None:
        texts = self._tokens.texts
        if name < 0 or not is_word(texts[name]):
            return None
        names = [texts[name]]
        idx = name
        while idx >= 2 and texts[idx - 1] == "::" and is_word(texts[idx - 2]):
            idx -= 2
            names.insert(0, texts[idx])
        if idx >= 1 and texts[idx - 1] in (".", "->"):
            return None
        if len(names) == 1 and not args:
            alias = self._constants.alias_of(name)
            if alias is not None:
                return self._callee_in(*alias)
            if self._constants.lookup.is_local(texts[name], name):
                return None  # a parameter or variable that holds some kernel
        return _Callee(tuple(names), args)

    def _line(self, idx: int) -> int:
        return self._lines.position(self._tokens.starts[idx])[0]
