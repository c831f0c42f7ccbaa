"""Names of GPUs as people and drivers write them become boards: exactly, by their words, or the nearest to suggest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernel_lsp.hardware.profile_yaml import BoardIdentity

_BRANDS = re.compile(r"nvidia|geforce|tesla|quadro|jetson|rtx|graphics|generation")
# Words that make another board of a name: "RTX 3070" is not short for "RTX 3070 Ti".
_VARIANT_WORDS = frozenset({"ti", "super", "laptop", "mobile", "max", "d"})


def board_called(name: str, boards: Sequence[BoardIdentity]) -> BoardIdentity | None:
    """The board with just this name, but for case, spaces and brand words; None: no such board."""
    wanted = _compact(name)
    for identity in boards:
        if wanted in {_compact(known) for known in (identity.name, identity.slug, *identity.device_names)}:
            return identity
    return None


def boards_meant(name: str, boards: Sequence[BoardIdentity]) -> tuple[BoardIdentity, ...]:
    """The boards that have all words of the name, and no word of theirs makes them another board."""
    asked = _words(name)
    return tuple(
        identity
        for identity in boards
        if _has_words(identity, asked) and not (_all_words(identity) & _VARIANT_WORDS) - asked
    )


def nearest_names(name: str, boards: Sequence[BoardIdentity]) -> tuple[str, ...]:
    """Up to three names to suggest in place of one that nobody has, sorted."""
    from difflib import get_close_matches  # only for the message of an error

    asked = _words(name)
    with_words = [identity.name for identity in boards if _has_words(identity, asked)]
    by_compact = {_compact(identity.name): identity.name for identity in boards}
    close = [by_compact[known] for known in get_close_matches(_compact(name), by_compact, n=3)]
    return tuple(sorted((with_words or close)[:3]))


def _has_words(identity: BoardIdentity, asked: frozenset[str]) -> bool:
    # A word of letters may be the start of one: "h100 sxm" is SXM5. A number must be whole: A10 is not A100.
    words = _all_words(identity)
    return bool(asked) and all(
        word in words or (word.isalpha() and any(known.startswith(word) for known in words)) for word in asked
    )


def _compact(name: str) -> str:
    return _BRANDS.sub("", re.sub(r"[^a-z0-9]+", "", name.lower()))


def _words(name: str) -> frozenset[str]:
    joined = re.sub(r"\b(\d+)\s*gi?b?\b", r"\1gb", name.lower())
    return frozenset(word for word in re.findall(r"[a-z0-9]+", joined) if not _BRANDS.fullmatch(word))


def _all_words(identity: BoardIdentity) -> frozenset[str]:
    return frozenset().union(*(_words(known) for known in (identity.name, *identity.device_names)))
