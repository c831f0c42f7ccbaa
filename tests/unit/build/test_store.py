"""The store: the same inputs find the same build, anything else does not, and a bad disk is only a slow one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_lsp.build import store as store_module
from kernel_lsp.build.digests import FileDigests
from kernel_lsp.build.scratch import Scratch
from kernel_lsp.build.store import BuildStore, StoredBuild
from kernel_lsp.source.digest import content_digest
from kernel_lsp.source.message import CompilerMessage, MessageNote

KEY = "ab" * 32
MESSAGE = CompilerMessage(
    "ptxas", "warning", "/p/м.cu", 3, None, "C7510", "text", "_Z1kv", (MessageNote("/p/a.cuh", 1, "here"),)
)


def header(tmp_path: Path, text: str = "one") -> tuple[tuple[str, str], ...]:
    path = tmp_path / "a.cuh"
    path.write_text(text)
    return ((str(path), content_digest(text.encode())),)


def a_build(
    store: BuildStore, dependencies: tuple[tuple[str, str], ...], cubin: bytes | None = b"\x7fELF"
) -> StoredBuild:
    return StoredBuild(
        cubin, (MESSAGE,), "", tuple(path for path, _ in dependencies), 0.5, store.recipe(KEY, dependencies)
    )


def object_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("builds-*/objects/*/*.bin"))


def test_found_by_a_later_process_with_all_its_parts(tmp_path: Path) -> None:
    dependencies = header(tmp_path)
    first = BuildStore(tmp_path / "cache")
    built = a_build(first, dependencies)
    first.put(KEY, dependencies, built)
    assert BuildStore(tmp_path / "cache").find(KEY) == built
    assert BuildStore(tmp_path / "cache").find("cd" * 32) is None


def test_a_changed_header_misses_and_the_old_text_hits_again(tmp_path: Path) -> None:
    old = header(tmp_path, "old")
    store = BuildStore(tmp_path / "cache")
    built_old = a_build(store, old)
    store.put(KEY, old, built_old)
    new = header(tmp_path, "new")
    for each in (store, BuildStore(tmp_path / "cache")):
        assert each.find(KEY) is None
    built_new = replace(a_build(store, new), seconds=2.0)
    store.put(KEY, new, built_new)
    assert store.find(KEY) == built_new
    header(tmp_path, "old")
    for each in (store, BuildStore(tmp_path / "cache")):
        assert each.find(KEY) == built_old
    Path(old[0][0]).unlink()
    assert store.find(KEY) is None


def test_a_failed_build_is_kept_in_memory_alone(tmp_path: Path) -> None:
    dependencies = header(tmp_path)
    store = BuildStore(tmp_path / "cache")
    failed = a_build(store, dependencies, cubin=None)
    store.put(KEY, dependencies, failed)
    assert store.find(KEY) == failed
    assert BuildStore(tmp_path / "cache").find(KEY) is None


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "manifest", "manifest type", "folder"])
def test_damage_is_a_miss(tmp_path: Path, damage: str) -> None:
    dependencies = header(tmp_path)
    store = BuildStore(tmp_path / "cache")
    store.put(KEY, dependencies, a_build(store, dependencies))
    (stored,) = object_files(tmp_path / "cache")
    (manifest,) = (tmp_path / "cache").glob("builds-*/manifests/*/*.json")
    data = stored.read_bytes()
    if damage == "cut":
        stored.write_bytes(data[:-1])
    elif damage == "flip":
        stored.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    elif damage == "empty":
        stored.write_bytes(b"")
    elif damage == "manifest":
        manifest.write_bytes(b"\xff{")
    elif damage == "manifest type":
        manifest.write_text('{"variants": [[3, 4]]}')
    else:
        stored.unlink()
        stored.mkdir()
    fresh = BuildStore(tmp_path / "cache")
    assert fresh.find(KEY) is None
    if damage != "folder":
        fresh.put(KEY, dependencies, a_build(fresh, dependencies))
        assert BuildStore(tmp_path / "cache").find(KEY) is not None


def test_the_budget_holds_and_the_least_used_goes_first(tmp_path: Path) -> None:
    dependencies = header(tmp_path)
    budget = 200_000
    store = BuildStore(tmp_path / "cache", budget_bytes=budget)
    keys = [f"{number:02x}" * 32 for number in range(30)]
    for number, key in enumerate(keys):
        build = StoredBuild(os.urandom(10_000), (), "", (), 0.1, store.recipe(key, dependencies))
        store.put(key, dependencies, build)
        for path in (tmp_path / "cache").glob(f"builds-*/*/*/{store.recipe(key, dependencies)}*"):
            os.utime(path, (1_000_000 + number, 1_000_000 + number))
        for path in (tmp_path / "cache").glob(f"builds-*/*/*/{key}*"):
            os.utime(path, (1_000_000 + number, 1_000_000 + number))
        if number >= 1:  # used all the time, so it stays
            assert BuildStore(tmp_path / "cache").find(keys[0]) is not None
    assert store.disk_bytes() <= budget
    fresh = BuildStore(tmp_path / "cache")
    assert fresh.find(keys[0]) is not None
    assert fresh.find(keys[1]) is None
    assert fresh.find(keys[-1]) is not None


@pytest.mark.skipif(os.name != "posix" or not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_cannot_be_written_gives_one_note_and_works_on(tmp_path: Path) -> None:
    dependencies = header(tmp_path)
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the folder should be")  # also for root, whom permissions do not stop
    store = BuildStore(blocked)
    built = a_build(store, dependencies)
    store.put(KEY, dependencies, built)
    store.put("cd" * 32, dependencies, built)
    assert store.find(KEY) == built
    assert store.trouble is not None
    assert str(blocked) in store.trouble
    with store.scratch.run_folder() as folder:
        (folder / "x").write_text("y")
    store.close()
    assert not folder.exists()


def test_no_folder_works_from_memory(tmp_path: Path) -> None:
    dependencies = header(tmp_path)
    store = BuildStore(None)
    built = a_build(store, dependencies)
    store.put(KEY, dependencies, built)
    assert (store.find(KEY), store.trouble) == (built, None)


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_MEMORY_BYTES", 50_000)
    store = BuildStore(None)
    for number in range(20):
        key = f"{number:02x}" * 32
        store.put(key, (), StoredBuild(b"x" * 10_000, (), "", (), 0.1, store.recipe(key, ())))
    assert [store.find(f"{number:02x}" * 32) is not None for number in range(20)] == [False] * 15 + [True] * 5


def test_digests_follow_content_that_keeps_size_and_time(tmp_path: Path) -> None:
    digests = FileDigests()
    path = tmp_path / "a.cuh"
    for text in ("one", "two", "six"):  # within the coarseness of time stamps
        path.write_text(text)
        os.utime(path, ns=(10**18, path.stat().st_mtime_ns))
        assert digests.digest(str(path)) == content_digest(text.encode())
    os.utime(path, (1_000_000, 1_000_000))  # old: from here on it is remembered
    assert digests.digest(str(path)) == content_digest(b"six")
    path.write_text("ten")
    os.utime(path, (1_000_000, 1_000_000))
    assert digests.digest(str(path)) == content_digest(b"ten")  # the change time tells
    assert digests.digest(str(tmp_path)) is None
    assert digests.digest(str(tmp_path / "absent")) is None
    assert digests.digest("a\0b") is None


def test_run_folders_go_and_a_dead_servers_are_cleared(tmp_path: Path) -> None:
    root = tmp_path / "tmp"
    living = Scratch(root)
    with living.run_folder() as kept:
        script = (
            "import os,sys\nfrom pathlib import Path\nfrom kernel_lsp.build.scratch import Scratch\n"
            "with Scratch(Path(sys.argv[1])).run_folder() as folder:\n"
            " (folder / 'tmpxft_1').write_text('x')\n os.kill(os.getpid(), 9)\n"
        )
        subprocess.run([sys.executable, "-c", script, str(root)], check=False)
        assert len(list(root.glob("server-*/run-*"))) == 2
        BuildStore(tmp_path)
        assert list(root.glob("server-*/run-*")) == [kept]
    assert not kept.exists()
    living.close()
    assert list(root.iterdir()) == []


def test_a_run_folder_can_be_made_after_the_cache_was_removed(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "tmp")
    with scratch.run_folder():
        shutil.rmtree(tmp_path / "tmp")
    with scratch.run_folder() as folder:
        assert folder.is_dir()
    scratch.close()
