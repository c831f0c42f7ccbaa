"""Finished builds by the recipe that made them: same inputs, same result at once, without running anything.

Two steps, because the headers are known only after a build: a manifest, named by what is known beforehand (source
content, arguments, tools), lists for each earlier build the headers with their digests; where all agree, the recipe
(manifest's name and those digests) names the object that holds cubin and messages. A new header that would come
first on the include path is not seen until something else changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import OrderedDict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import platformdirs

from kernel_lsp.build.digests import FileDigests
from kernel_lsp.build.scratch import Scratch, remove_stale
from kernel_lsp.source.digest import content_digest, recipe_digest
from kernel_lsp.source.message import CompilerMessage, MessageNote

FORMAT = 3  # raise when what is stored, or what a build keeps of the compiler's words, changes
CACHE_VARIABLE = "KERNEL_LSP_CACHE_DIR"
DEFAULT_BUDGET_BYTES = 500 << 20
_MEMORY_BYTES = 64 << 20
_N_MEMORY = 256
_N_VARIANTS = 8  # header states kept per manifest
_KEEP_SHARE = 0.8  # of the budget, after clearing

Dependencies = tuple[tuple[str, str], ...]  # (absolute path, digest)


@dataclass(frozen=True, slots=True)
class StoredBuild:
    """A finished build. `cubin` None: it failed, and is kept in memory only."""

    cubin: bytes | None
    messages: tuple[CompilerMessage, ...]
    reason: str
    dependencies: tuple[str, ...]
    seconds: float
    recipe: str
    linked: bytes | None = None


def default_cache_folder() -> Path:
    """The platform's cache folder for this program, or the one that KERNEL_LSP_CACHE_DIR names."""
    chosen = os.environ.get(CACHE_VARIABLE, "")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("kernel-lsp", appauthor=False))


class BuildStore:
    """`folder` None, read-only or full: works from memory alone; `trouble` then holds one sentence for the user."""

    def __init__(self, folder: Path | None, *, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self.folder = folder
        self.digests = FileDigests()
        self.scratch = Scratch(None if folder is None else folder / "tmp")
        if folder is not None:
            remove_stale(folder / "tmp")  # of a server that was killed
        self.trouble: str | None = None
        self._budget_bytes = budget_bytes
        self._root = None if folder is None else folder / f"builds-{FORMAT}"
        self._writable = folder is not None
        self._disk_bytes: int | None = None
        self._memory: OrderedDict[str, tuple[tuple[Dependencies, StoredBuild], ...]] = OrderedDict()

    def find(self, key: str) -> StoredBuild | None:
        """The build made from `key` while every file it read is as it was then; None: not known."""
        for dependencies, build in self._memory.get(key, ()):
            if self._unchanged(dependencies):
                self._memory.move_to_end(key)
                return build
        for dependencies, recipe in self._manifest(key):
            if self._unchanged(dependencies):
                build_or_none = self._object(recipe)
                if build_or_none is not None:
                    self._remember(key, dependencies, build_or_none)
                    with contextlib.suppress(OSError):
                        os.utime(self._manifest_path(key))
                    return build_or_none
        return None

    def recipe(self, key: str, dependencies: Dependencies) -> str:
        """Digest of all inputs: what was known before the build and every file it read."""
        return recipe_digest([key, *(part for pair in dependencies for part in pair)])

    def put(self, key: str, dependencies: Dependencies, build: StoredBuild) -> None:
        """Keep a build. Never raises: a disk that cannot be written sets `trouble` once and is left alone."""
        self._remember(key, dependencies, build)
        if build.cubin is None or self._root is None or not self._writable:
            return
        try:
            self._write(self._object_path(build.recipe), _packed(build))
            variants = [(dependencies, build.recipe)]
            variants += [(d, r) for d, r in self._manifest(key) if r != build.recipe]
            text = json.dumps({"variants": variants[:_N_VARIANTS]}, separators=(",", ":"))
            self._write(self._manifest_path(key), text.encode())
            self._clear_over_budget()
        except OSError as error:
            self._give_up(error)

    def find_blob(self, key: str) -> bytes | None:
        """Bytes kept by `put_blob`, on disk only; None: not known, or damaged."""
        if self._root is None:
            return None
        path = self._blob_path(key)
        try:
            digest, _, body = path.read_bytes().partition(b"\n")
        except OSError:
            return None
        if digest.decode("ascii", "replace") != content_digest(body):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return body

    def put_blob(self, key: str, body: bytes) -> None:
        """Keep bytes that `key` alone decides. Never raises; a disk that cannot be written is told as by `put`."""
        if self._root is None or not self._writable:
            return
        try:
            self._write(self._blob_path(key), content_digest(body).encode() + b"\n" + body)
            self._clear_over_budget()
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Remove this process's run folders."""
        self.scratch.close()

    def disk_bytes(self) -> int:
        """What the folder holds now, in bytes (all formats)."""
        return sum(size for _, size, _ in self._files())

    def _give_up(self, error: OSError) -> None:
        self._writable = False
        self.trouble = (
            f"The cache folder {self.folder} cannot be written ({error.strerror or error}): "
            "builds work, but are not kept. Free space there, or name another folder in "
            f"{CACHE_VARIABLE}."
        )

    def _unchanged(self, dependencies: Dependencies) -> bool:
        return all(self.digests.digest(path) == digest for path, digest in dependencies)

    def _remember(self, key: str, dependencies: Dependencies, build: StoredBuild) -> None:
        others = tuple(v for v in self._memory.get(key, ()) if v[1].recipe != build.recipe)
        self._memory[key] = ((dependencies, build), *others)[:_N_VARIANTS]
        self._memory.move_to_end(key)
        while len(self._memory) > _N_MEMORY or (len(self._memory) > 1 and self._memory_bytes() > _MEMORY_BYTES):
            self._memory.popitem(last=False)

    def _memory_bytes(self) -> int:
        return sum(
            len(b.cubin or b"") + len(b.linked or b"") for variants in self._memory.values() for _, b in variants
        )

    def _manifest_path(self, key: str) -> Path:
        assert self._root is not None
        return self._root / "manifests" / key[:2] / f"{key}.json"

    def _object_path(self, recipe: str) -> Path:
        assert self._root is not None
        return self._root / "objects" / recipe[:2] / f"{recipe}.bin"

    def _blob_path(self, key: str) -> Path:
        assert self._root is not None
        return self._root / "blobs" / key[:2] / f"{key}.bin"

    def _manifest(self, key: str) -> list[tuple[Dependencies, str]]:
        if self._root is None:
            return []
        try:
            variants = json.loads(self._manifest_path(key).read_bytes())["variants"]
            return [(tuple((str(p), str(d)) for p, d in pairs), str(recipe)) for pairs, recipe in variants]
        except (OSError, ValueError, KeyError, TypeError):  # absent or damaged: not known
            return []

    def _object(self, recipe: str) -> StoredBuild | None:
        if not recipe.isalnum():
            return None
        path = self._object_path(recipe)
        try:
            build = _unpacked(path.read_bytes(), recipe)
        except OSError:
            return None
        if build is None:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the time of last use, for clearing
        return build

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        if self._disk_bytes is not None:
            self._disk_bytes += len(data)

    def _files(self) -> list[tuple[float, int, Path]]:
        """(time of last use, bytes, path) of every stored file, the oldest first."""
        files: list[tuple[float, int, Path]] = []
        if self.folder is None:
            return files
        for root in self.folder.glob("builds-*"):
            for folder, _, names in os.walk(root):
                for name in names:
                    path = Path(folder, name)
                    with contextlib.suppress(OSError):
                        status = path.stat()
                        files.append((status.st_mtime, status.st_size, path))
        return sorted(files)

    def _clear_over_budget(self) -> None:
        if self._disk_bytes is None:
            self._disk_bytes = self.disk_bytes()
        if self._disk_bytes <= self._budget_bytes:
            return
        files = self._files()
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self._budget_bytes * _KEEP_SHARE:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size
        self._disk_bytes = total


def _packed(build: StoredBuild) -> bytes:
    head = {
        "messages": [asdict(message) for message in build.messages],
        "dependencies": build.dependencies,
        "seconds": build.seconds,
        "linked_bytes": len(build.linked or b""),
    }
    body = json.dumps(head, separators=(",", ":")).encode() + b"\n" + (build.linked or b"") + (build.cubin or b"")
    return content_digest(body).encode() + b"\n" + body


def _unpacked(data: bytes, recipe: str) -> StoredBuild | None:
    digest, _, body = data.partition(b"\n")
    if digest.decode("ascii", "replace") != content_digest(body):
        return None
    try:
        head_text, _, code = body.partition(b"\n")
        head: dict[str, Any] = json.loads(head_text)
        n_linked = int(head["linked_bytes"])
        cubin, linked = code[n_linked:], code[:n_linked] or None
        messages = tuple(
            CompilerMessage(**{**m, "notes": tuple(MessageNote(**n) for n in m["notes"])}) for m in head["messages"]
        )
        return StoredBuild(cubin, messages, "", tuple(head["dependencies"]), float(head["seconds"]), recipe, linked)
    except (ValueError, KeyError, TypeError):
        return None
