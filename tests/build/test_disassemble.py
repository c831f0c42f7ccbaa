"""nvdisasm through the product: kept by content, and honest when it is missing, fails half way or hangs."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_lsp.build.disassemble import disassemble
from kernel_lsp.build.store import BuildStore
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.project.toolchain import Toolchain

CUBIN = (Path(__file__).parents[1] / "data" / "cubin_recorded" / "ptxas_13.0.sm_86.cubin").read_bytes()
HALF = '\t.section\t.text.k,"ax",@progbits\n        /*0000*/                   EXIT ;'


def with_script(tools: Toolchain, folder: Path, body: str) -> Toolchain:
    """The toolchain with a program of the test's own as nvdisasm; it counts its runs in the file `runs`."""
    folder.mkdir(exist_ok=True)
    path = folder / "nvdisasm"
    path.write_text(f"#!/bin/sh\necho run >> {folder}/runs\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    assert tools.nvdisasm is not None
    return replace(tools, nvdisasm=replace(tools.nvdisasm, path=path))


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().split()) if (folder / "runs").is_file() else 0


async def test_one_run_gives_all_kernels_and_the_next_time_none_is_needed(tools: Toolchain, store: BuildStore) -> None:
    first = await disassemble(CUBIN, tools, store, ARGUMENTS)
    assert (first.reason, first.cached) == ("", False)
    assert first.text.count(".section\t.text.") > 1
    again = await disassemble(CUBIN, tools, BuildStore(store.folder), ARGUMENTS)
    assert again.cached
    assert again.text == first.text


async def test_another_cubin_or_another_program_is_read_anew(
    tools: Toolchain, store: BuildStore, tmp_path: Path
) -> None:
    fake = with_script(tools, tmp_path / "fake", f"printf '%s' '{HALF}'")
    for cubin, expected in ((b"one", 1), (b"one", 1), (b"two", 2)):
        await disassemble(cubin, fake, store, ARGUMENTS)
        assert runs(tmp_path / "fake") == expected
    os.utime(tmp_path / "fake" / "nvdisasm", (1, 1))  # another release in the same place
    await disassemble(b"one", fake, store, ARGUMENTS)
    assert runs(tmp_path / "fake") == 3


async def test_a_failure_half_way_gives_what_was_printed_and_keeps_nothing(
    tools: Toolchain, store: BuildStore, tmp_path: Path
) -> None:
    body = f"printf '%s\\n' '{HALF}'; echo 'nvdisasm fatal   : Internal error' >&2; exit 1"
    fake = with_script(tools, tmp_path / "fake", body)
    found = await disassemble(CUBIN, fake, store, ARGUMENTS)
    assert "EXIT" in found.text
    assert found.reason.startswith("nvdisasm failed: Internal error (")
    assert "pip install" in found.reason
    await disassemble(CUBIN, fake, store, ARGUMENTS)
    assert runs(tmp_path / "fake") == 2


async def test_missing_says_the_command_that_brings_it(tools: Toolchain, store: BuildStore) -> None:
    found = await disassemble(CUBIN, replace(tools, nvdisasm=None), store, ARGUMENTS)
    assert (found.text, found.tool_missing) == ("", True)
    assert "pip install 'kernel-lsp[cuda]'" in found.reason


@pytest.mark.parametrize("body", ["exec sleep 60", "sleep 60 & wait"])
async def test_a_hanging_program_is_ended_with_its_children(
    tools: Toolchain, store: BuildStore, tmp_path: Path, body: str
) -> None:
    fake = with_script(tools, tmp_path / "fake", body)
    started = time.perf_counter()
    found = await disassemble(CUBIN, fake, store, ARGUMENTS, time_limit_s=0.3)
    assert found.reason == "nvdisasm was stopped after 0.3 s."
    assert time.perf_counter() - started < 10


async def test_a_cancelled_run_leaves_no_process_and_no_folder(
    tools: Toolchain, store: BuildStore, tmp_path: Path
) -> None:
    fake = with_script(tools, tmp_path / "fake", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    task = asyncio.ensure_future(disassemble(CUBIN, fake, store, ARGUMENTS))
    while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text().strip():
        await asyncio.sleep(0.01)
    pid = int((tmp_path / "pid").read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not list((tmp_path / "cache" / "tmp").glob("server-*/run-*"))


async def test_too_much_output_is_said_to_be_cut(tools: Toolchain, store: BuildStore, tmp_path: Path) -> None:
    fake = with_script(tools, tmp_path / "fake", "yes | head -c 100000")
    found = await disassemble(CUBIN, fake, store, ARGUMENTS, output_limit_bytes=1000)
    assert len(found.text) == 1000
    assert "more than is read" in found.reason


async def test_a_damaged_entry_is_as_none(tools: Toolchain, store: BuildStore) -> None:
    first = await disassemble(CUBIN, tools, store, ARGUMENTS)
    assert store.folder is not None
    [kept] = store.folder.glob("builds-*/blobs/*/*.bin")
    kept.write_bytes(kept.read_bytes()[:-7])
    again = await disassemble(CUBIN, tools, store, ARGUMENTS)
    assert not again.cached
    assert again.text == first.text
