"""Turns the words of an integer expression into a value, or into a formula over template parameters.

Only what has one certain value is read: anything else (floats, calls, negative or huge intermediate results,
which wrap differently by type) is unknown. Names are looked up by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kernel_lsp.source.tokens import tokenize

INTEGER_WORDS = frozenset(
    str.split("int unsigned signed long size_t ptrdiff_t int32_t uint32_t int64_t uint64_t uint std const constexpr ::")
)
# Sizes that are the same on every platform CUDA supports; long is 4 bytes on Windows and left out.
TYPE_BYTES = {
    **dict.fromkeys(str.split("char bool int8_t uint8_t uchar __nv_fp8_e4m3 __nv_fp8_e5m2"), 1),
    **dict.fromkeys(str.split("short half __half nv_bfloat16 __nv_bfloat16 int16_t uint16_t ushort char2 uchar2"), 2),
    **dict.fromkeys(str.split("int unsigned float int32_t uint32_t uint half2 __half2 nv_bfloat162 __nv_bfloat162"), 4),
    **dict.fromkeys(str.split("char4 uchar4 short2 ushort2"), 4),
    **dict.fromkeys(str.split("double int64_t uint64_t size_t ptrdiff_t float2 int2 uint2 short4 ushort4"), 8),
    **dict.fromkeys(str.split("float3 int3 uint3"), 12),
    **dict.fromkeys(str.split("float4 int4 uint4 double2"), 16),
}

_MAX_VALUE = 2**31 - 1
_MAX_DEPTH = 50
_MAX_WORDS = 400
_PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_NUMBER = re.compile(r"(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|(0[0-7]*)|([1-9][0-9]*))[uUlLzZ]{0,3}")


class UnknownValueError(Exception):
    """Raised inside the evaluation where a value cannot be known; never leaves this package's public functions."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A template parameter of the code around an expression, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that waits for template arguments; "sizeof" has one Parameter, a type."""

    sign: str
    operands: tuple[Expression, ...]
    depth: int


Expression: TypeAlias = "int | Parameter | Operation"


class Names(Protocol):
    """What the parser asks about names."""

    def value(self, name: tuple[str, ...]) -> Expression:
        """The value of a (qualified) name; raises UnknownValueError."""

    def component(self, name: str, axis: str) -> Expression:
        """The x, y or z of a dim3 variable; raises UnknownValueError."""

    def type_size(self, type_words: Sequence[str]) -> Expression:
        """sizeof of a type; raises UnknownValueError."""


def fold(expression: Expression | None, arguments: Mapping[str, str]) -> int | None:
    """The value with template arguments filled in as written ("16", "float", "true"); None where one is missing."""
    if expression is None:
        return None
    try:
        return _fold(expression, arguments)
    except UnknownValueError:
        return None


def _fold(expression: Expression, arguments: Mapping[str, str]) -> int:
    if isinstance(expression, int):
        return expression
    if isinstance(expression, Parameter):
        text = arguments.get(expression.name, "")
        # A demangler writes (Color)2 for an enumerator; its value is what counts.
        literal = re.fullmatch(r"(?:\([\w:]+\))?(\w+)", text)
        return integer(literal.group(1)) if literal else integer(text)
    if expression.sign == "sizeof":
        operand = expression.operands[0]
        name = arguments.get(operand.name, "") if isinstance(operand, Parameter) else ""
        return type_bytes(tokenize(name).texts)
    if expression.sign == "?:":
        condition, yes, no = expression.operands
        return _fold(yes if _fold(condition, arguments) else no, arguments)
    left, right = (_fold(operand, arguments) for operand in expression.operands)
    return _apply(expression.sign, left, right)


def integer(text: str) -> int:
    """The value of an integer literal, `true` or `false`; raises UnknownValueError."""
    if text in ("true", "false"):
        return int(text == "true")
    found = _NUMBER.fullmatch(text.replace("'", ""))
    if found is None:
        raise UnknownValueError
    hexadecimal, binary, octal, decimal = found.groups()
    digits, base = (
        (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (octal, 8) if octal else (decimal, 10)
    )
    if len(digits) > 32:
        raise UnknownValueError
    return _bounded(int(digits, base))


def type_bytes(words: Sequence[str]) -> int:
    """sizeof of a builtin type, also of a pointer; raises UnknownValueError."""
    if words and words[-1] == "*":
        return 8
    kept = [word for word in words if word not in ("const", "volatile", "std", "::", "signed")]
    if kept and kept[0] == "unsigned":
        kept = kept[1:] or ["int"]
    if kept[:2] == ["long", "long"]:
        return 8
    if len(kept) != 1 or kept[0] not in TYPE_BYTES:
        raise UnknownValueError
    return TYPE_BYTES[kept[0]]


def _bounded(value: int) -> int:
    if not 0 <= value <= _MAX_VALUE:
        raise UnknownValueError
    return value


def _apply(sign: str, left: int, right: int) -> int:
    if sign in ("/", "%"):
        if right == 0:
            raise UnknownValueError
        return left // right if sign == "/" else left % right
    if sign in ("<<", ">>"):
        if right > 31:
            raise UnknownValueError
        return _bounded(left << right if sign == "<<" else left >> right)
    value = {
        "+": left + right, "-": left - right, "*": left * right, "&": left & right, "|": left | right,
        "^": left ^ right, "==": left == right, "!=": left != right, "<": left < right, ">": left > right,
        "<=": left <= right, ">=": left >= right, "&&": bool(left and right), "||": bool(left or right),
        "min": min(left, right), "max": max(left, right),
    }[sign]  # fmt: skip
    return _bounded(int(value))


def _operation(sign: str, *operands: Expression) -> Expression:
    if sign == "?:" and isinstance(operands[0], int):
        return operands[1] if operands[0] else operands[2]
    if len(operands) == 2 and isinstance(operands[0], int) and isinstance(operands[1], int):
        return _apply(sign, operands[0], operands[1])
    depth = 1 + max(operand.depth if isinstance(operand, Operation) else 0 for operand in operands)
    if depth > _MAX_DEPTH:
        raise UnknownValueError
    return Operation(sign, operands, depth)


def parse(words: Sequence[str], names: Names, depth: int = 0) -> Expression:
    """The value or formula of a whole expression; raises UnknownValueError. `depth` counts nesting across lookups."""
    if not words or len(words) > _MAX_WORDS:
        raise UnknownValueError
    parser = _Parser(words, names, depth)
    expression = parser.conditional()
    if parser.next is not None:
        raise UnknownValueError
    return expression


class _Parser:
    """Precedence climbing over a list of words."""

    def __init__(self, words: Sequence[str], names: Names, depth: int) -> None:
        self._words = words
        self._names = names
        self._depth = depth
        self._idx = 0

    @property
    def next(self) -> str | None:
        """The word to be read next."""
        return self._words[self._idx] if self._idx < len(self._words) else None

    def _take(self, expected: str | None = None) -> str:
        word = self.next
        if word is None or (expected is not None and word != expected):
            raise UnknownValueError
        self._idx += 1
        return word

    def conditional(self) -> Expression:
        """A whole expression without commas."""
        condition = self._binary(1)
        if self.next != "?":
            return condition
        self._take("?")
        yes = self.conditional()
        self._take(":")
        return _operation("?:", condition, yes, self.conditional())

    def _binary(self, lowest: int) -> Expression:
        left = self._unary()
        while True:
            sign = self.next or ""
            if sign == ">" and self._words[self._idx + 1 : self._idx + 2] == [">"]:
                sign = ">>"
            precedence = _PRECEDENCE.get(sign, 0)
            if precedence < lowest or not precedence:
                return left
            self._idx += 2 if sign == ">>" else 1
            left = _operation(sign, left, self._binary(precedence + 1))

    def _unary(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnknownValueError
        try:
            word = self._take()
            if word == "+":
                return self._unary()
            if word == "!":
                return _operation("==", self._unary(), 0)
            if word == "(":
                return self._parenthesis()
            if word == "sizeof":
                return self._names.type_size(self._group())
            if word in ("static_cast", "min", "max"):
                return self._call(word)
            if word[0].isdigit():
                return integer(word)
            if word in ("true", "false"):
                return int(word == "true")
            return self._name(word)
        finally:
            self._depth -= 1

    def _group(self) -> list[str]:
        """The words of a parenthesis that opens here."""
        self._take("(")
        start, depth = self._idx, 1
        while depth:
            depth += {"(": 1, ")": -1}.get(self._take(), 0)
        return list(self._words[start : self._idx - 1])

    def _parenthesis(self) -> Expression:
        rest = self._words[self._idx :]
        end = rest.index(")") if ")" in rest else 0
        if end and all(word in INTEGER_WORDS for word in rest[:end]):
            self._idx += end + 1
            return self._unary()  # a cast between integers wide enough for any value read here
        inner = self.conditional()
        self._take(")")
        return inner

    def _call(self, word: str) -> Expression:
        if self.next == "<":
            self._take("<")
            while (inner := self._take()) != ">":
                if inner not in INTEGER_WORDS:
                    raise UnknownValueError
        elif word == "static_cast":
            raise UnknownValueError
        self._take("(")
        first = self.conditional()
        if word == "static_cast":
            self._take(")")
            return first
        self._take(",")
        second = self.conditional()
        self._take(")")
        return _operation(word, first, second)

    def _name(self, word: str) -> Expression:
        if word == "::":
            word = self._take()
        if not (word[0].isalpha() or word[0] == "_"):
            raise UnknownValueError
        parts = [word]
        while self.next == "::":
            self._take("::")
            parts.append(self._take())
        if parts[0] == "std" and parts[-1] in ("min", "max"):
            return self._call(parts[-1])
        if self.next == "(" and all(part in INTEGER_WORDS for part in parts):
            self._take("(")
            inner = self.conditional()
            self._take(")")
            return inner
        if self.next == "." and len(parts) == 1:
            self._take(".")
            axis = self._take()
            if axis not in ("x", "y", "z"):
                raise UnknownValueError
            return self._names.component(word, axis)
        if self.next in ("(", "<", "[", "{", "->", ".", "::"):
            if self.next == "<":  # a comparison, or a template: told apart by nothing here
                return self._less(tuple(parts))
            raise UnknownValueError
        return self._names.value(tuple(parts))

    def _less(self, parts: tuple[str, ...]) -> Expression:
        if ">" in self._words[self._idx :]:
            raise UnknownValueError
        return self._names.value(parts)
