"""Turns the tokens around `__global__` or `__device__` into the head of a function: its name, templates, body.

Works from the marker outwards, so that macros, attributes and incomplete code elsewhere do not matter. A name
that a macro makes, a lambda, an operator and a variable yield nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.source.tokens import Tokens

ANONYMOUS = "(anonymous namespace)"

_MAX_HEAD_TOKENS = 400
_TAKES_PARENS = frozenset(
    str.split(
        "__launch_bounds__ __cluster_dims__ __block_size__ __maxnreg__ __attribute__ __attribute __declspec __align__"
        " alignas decltype typeof __typeof__ noexcept requires explicit asm sizeof"
    )
)
_NO_NAME = frozenset(str.split("if for while switch return void auto int float double bool char unsigned"))
_AFTER_PARAMETERS = frozenset(str.split("{ ; = -> [ : noexcept requires const try override final throw"))


@dataclass(frozen=True, slots=True)
class FunctionHead:
    """Token indices of a function's parts; `body_open` is -1 for a declaration without body."""

    start: int
    name_idx: int
    written_scope: tuple[str, ...]  # of `void ns::name(...)`
    params_open: int
    body_open: int
    template_params: tuple[str, ...]
    is_template: bool
    specialization_args: tuple[str, ...] | None
    is_instantiation: bool  # `template __global__ void f<16>(...);`
    attributes: dict[str, int]  # `__launch_bounds__` -> its "(", for those before the parameters


def function_head(tokens: Tokens, marker: int) -> FunctionHead | None:
    """The function that the specifier at token `marker` belongs to; None where no plain name can be told."""
    texts = tokens.texts
    start = tokens.statement_start(marker)
    attributes: dict[str, int] = {}
    for idx in range(start, marker):
        if texts[idx] in _TAKES_PARENS and texts[idx + 1] == "(":
            attributes[texts[idx]] = idx + 1
    name = _find_name(tokens, marker, "void" in texts[start:marker], attributes)
    if name is None:
        return None
    name_idx, params_open, args = name
    body_open = _find_body(tokens, tokens.close(params_open) + 1)
    if body_open is None:
        return None
    template_params, is_template, is_instantiation = _template_header(tokens, start, marker)
    scope: list[str] = []
    idx = name_idx
    while idx >= 2 and texts[idx - 1] == "::" and is_word(texts[idx - 2]):
        idx -= 2
        scope.insert(0, texts[idx])
    return FunctionHead(
        start=start,
        name_idx=name_idx,
        written_scope=tuple(scope),
        params_open=params_open,
        body_open=body_open,
        template_params=template_params,
        is_template=is_template and args is None,
        specialization_args=args,
        is_instantiation=is_instantiation,
        attributes=attributes,
    )


def _find_name(
    tokens: Tokens, marker: int, seen_void: bool, attributes: dict[str, int]
) -> tuple[int, int, tuple[str, ...] | None] | None:
    """(name, its parameters' "(", template arguments behind the name or None)."""
    texts = tokens.texts
    end = min(marker + _MAX_HEAD_TOKENS, len(texts))
    idx = marker + 1
    while idx < end:
        text = texts[idx]
        if text in ";{}=" or text in (")", "]", "operator"):
            return None
        if text == "[":
            idx = tokens.close(idx) + 1
            continue
        if text == "(":  # of a lambda, or a second group of a macro
            return None
        if not is_word(text):
            idx += 1
            continue
        args, after = None, idx + 1
        if after < end and texts[after] == "<":
            close = match_angle(tokens, after)
            if close is None:
                return None
            args, after = split_arguments(tokens, after, close), close + 1
        if after >= end or texts[after] != "(":
            seen_void = seen_void or text in ("void", "auto")
            idx = after
            continue
        close = tokens.close(after)
        if close >= len(texts):
            return None
        if text in _TAKES_PARENS:
            attributes[text] = after
        elif text in _NO_NAME:
            return None
        elif close + 1 < len(texts) and texts[close + 1] == "(":
            return None  # NAME(x)(parameters): the name is a macro's
        elif _is_name(tokens, idx, close, seen_void):
            return idx, after, args
        idx = close + 1
    return None


def _is_name(tokens: Tokens, idx: int, close: int, seen_void: bool) -> bool:
    """Whether `word(...)` is the declarator rather than an attribute macro in front of it."""
    texts = tokens.texts
    if close + 1 >= len(texts) or texts[close + 1] in _AFTER_PARAMETERS:
        return True
    return seen_void and not texts[idx].isupper()


def _find_body(tokens: Tokens, idx: int) -> int | None:
    """The "{" of the body, -1 for a declaration, None where neither follows."""
    texts = tokens.texts
    end = min(idx + _MAX_HEAD_TOKENS, len(texts))
    while idx < end:
        text = texts[idx]
        if text == "{":
            return idx
        if text in (";", "=", ":"):
            return -1
        if text in ("}", ")", "]"):
            return None
        idx = tokens.close(idx) + 1 if text in ("(", "[") else idx + 1
    return None


def _template_header(tokens: Tokens, start: int, marker: int) -> tuple[tuple[str, ...], bool, bool]:
    """(parameter names, whether there is one to be given, whether this is an explicit instantiation)."""
    texts = tokens.texts
    names = parameter_names(tokens, start, marker)
    is_instantiation = any(texts[idx] == "template" and texts[idx + 1] != "<" for idx in range(start, marker))
    return names, bool(names), is_instantiation


def parameter_names(tokens: Tokens, start: int, end: int) -> tuple[str, ...]:
    """Names of the template parameters in a head; "" for an unnamed one, "Ts..." for a pack."""
    texts = tokens.texts
    names: list[str] = []
    idx = start
    while idx + 1 < end:
        close = match_angle(tokens, idx + 1) if texts[idx] == "template" and texts[idx + 1] == "<" else None
        if close is not None:
            names += [_parameter_name(texts[first:last]) for first, last in argument_ranges(tokens, idx + 1, close)]
            idx = close
        idx += 1
    return tuple(names)


def _parameter_name(param: list[str]) -> str:
    if "=" in param:
        param = param[: param.index("=")]
    if len(param) < 2 or not is_word(param[-1]):
        return ""
    if param[-1] in _NO_NAME or param[-1] in ("typename", "class", "size_t", "long", "short", "signed"):
        return ""
    if param[-2] == "::":  # std::size_t, unnamed
        return ""
    return param[-1] + "..." if param[-2] == "..." else param[-1]


def match_angle(tokens: Tokens, opener: int) -> int | None:
    """The ">" that closes the template list opened at `opener`; None where none does before the statement ends."""
    texts = tokens.texts
    depth = 0
    idx = opener
    end = min(opener + _MAX_HEAD_TOKENS, len(texts))
    while idx < end:
        text = texts[idx]
        if text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                return idx
        elif text in ("(", "[", "{"):
            idx = tokens.close(idx)
        elif text in (";", "}", ")", "]"):
            return None
        idx += 1
    return None


def argument_ranges(tokens: Tokens, opener: int, close: int) -> list[tuple[int, int]]:
    """Token ranges [first, last) between the commas of a bracketed list; an empty list has none."""
    texts = tokens.texts
    ranges = []
    first = idx = opener + 1
    while idx < close:
        text = texts[idx]
        if text in ("(", "[", "{"):
            idx = min(tokens.close(idx), close)
        elif text == "<" and texts[opener] == "<":
            idx = match_angle(tokens, idx) or idx
        elif text == ",":
            ranges.append((first, idx))
            first = idx + 1
        idx += 1
    if first < close:
        ranges.append((first, close))
    return ranges


def split_arguments(tokens: Tokens, opener: int, close: int) -> tuple[str, ...]:
    """The arguments of a bracketed list as text with single blanks between words."""
    return tuple(join(tokens.texts[first:last]) for first, last in argument_ranges(tokens, opener, close))


def join(texts: list[str]) -> str:
    """Tokens as text, a blank only where two words would run together."""
    out: list[str] = []
    for text in texts:
        if out and (out[-1][-1].isalnum() or out[-1][-1] == "_") and (text[0].isalnum() or text[0] == "_"):
            out.append(" ")
        out.append(text)
    return "".join(out)


def is_word(text: str) -> bool:
    """Whether a token is an identifier or keyword."""
    return text[0].isalpha() or text[0] == "_"
