"""Digests: of content, and of a recipe (everything that decides a result), used as cache keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def content_digest(data: bytes) -> str:
    """SHA-256 of the bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def recipe_digest(parts: Iterable[str]) -> str:
    """SHA-256 over the parts, each with its length in front so that no two lists of parts run together."""
    hasher = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogateescape")
        hasher.update(f"{len(encoded)}:".encode())
        hasher.update(encoded)
    return hasher.hexdigest()
