"""Damaged cubins and failing disassemblers through the whole way: what is known is shown, the rest says why not."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernel_lsp.build.disassemble import Disassembly, disassemble
from kernel_lsp.build.store import BuildStore
from kernel_lsp.cubin.binary import read_cubin
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.cubin.elf import read_elf
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.report.hover import kernel_hover
from kernel_lsp.report.kernel_choice import chosen_kernels
from kernel_lsp.report.line_hover import line_hover
from kernel_lsp.report.sass_listing import sass_listing
from kernel_lsp.report.sass_value import sass_document
from kernel_lsp.session import instructions
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest
from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings
from tests.oracle.cubin_corpus import build
from tests.unit.cli.test_check import run

SOURCE = """
__global__ void first(float* x, int n) { for (int i = 0; i < n; ++i) x[i] += x[i + n]; }
__global__ void second(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= x[i + n]; }
__global__ void third(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1.f; }
"""
N_FLIPPED = 200

Script = Callable[[str], None]


@pytest.fixture(scope="module")
def good(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    source = tmp_path_factory.mktemp("damaged") / "three.cu"
    source.write_text(SOURCE)
    return build(source, "sm_90", toolkit).data


@pytest.fixture
def nvdisasm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Puts a shell script in nvdisasm's place; `$REAL` is the real one."""
    found = Pipeline._toolchain

    def use(body: str) -> None:
        async def tools(self: Pipeline, *arguments: Any) -> Toolchain:
            known = await found(self, *arguments)
            assert known.nvdisasm is not None
            path = tmp_path / "nvdisasm"
            path.write_text(f'#!/bin/sh\nREAL="{known.nvdisasm.path}"\n{body}\n')
            path.chmod(0o755)
            return replace(known, nvdisasm=replace(known.nvdisasm, path=path))

        monkeypatch.setattr(Pipeline, "_toolchain", tools)

    return use


async def outcome(pipeline: Pipeline, path: Path, **settings: Any) -> FileOutcome:
    return await pipeline.analyze(PipelineRequest(document=path, settings=Settings(**settings)))


def with_illegal(data: bytes, kernel: str, *rows: int) -> bytes:
    section = read_elf(data).section(f".text.{kernel}")
    assert section is not None
    bad = bytearray(data)
    for row in rows:
        bad[section.offset + 16 * row : section.offset + 16 * row + 16] = b"\xff" * 16
    return bytes(bad)


async def test_an_illegal_instruction_costs_its_kernel_alone(good: bytes, pipeline: Pipeline, tmp_path: Path) -> None:
    """With the real nvdisasm, which prints nothing at all for such a cubin."""
    path = tmp_path / "three.cubin"
    path.write_bytes(with_illegal(good, "_Z6secondPfi", 2, 5))
    found = await outcome(pipeline, path)
    assert found.analysis is not None
    kernels = {kernel.binary.short_name: kernel.sass for kernel in found.analysis.kernels}
    for name in ("first", "third"):
        sass = kernels[name]
        assert sass is not None
        assert sass.text_why == ""
        assert sass.live.peak
    second = kernels["second"]
    assert second is not None
    assert second.text_why.startswith("nvdisasm does not know those at 0x0020, 0x0050: Unrecognized operation")
    assert [
        row - second.code.start for row in range(second.code.start, second.code.padding) if not second.sass.text(row)
    ] == [2, 5]
    assert second.live.peak is None
    assert second.loops_why.endswith("the instruction at 0x0020 branches")
    assert [
        kernel.sass.loops_why for kernel in found.analysis.kernels if kernel.sass is not second and kernel.sass
    ] == [
        "",
        "",
    ]
    values = {value["short_name"]: value for value in sass_document(found.analysis.kernels)["kernels"]}
    assert values["second"]["loop_depth_why"] == second.loops_why
    assert "loop_depth_why" not in values["first"]
    assert any("nvdisasm failed" in notice for notice in found.notices)
    everything_is_shown(found)


async def test_what_was_printed_before_a_failure_is_kept(
    good: bytes, pipeline: Pipeline, tmp_path: Path, nvdisasm: Script
) -> None:
    """A program that prints the first kernel and half of the second and then fails, whatever it is asked."""
    nvdisasm('"$REAL" "$@" | head -c 16000; echo "nvdisasm fatal   : Internal error" >&2; exit 1')
    path = tmp_path / "three.cubin"
    path.write_bytes(good)
    found = await outcome(pipeline, path)
    assert found.analysis is not None
    known = Counter(bool(k.sass and k.sass.text_why == "") for k in found.analysis.kernels)
    assert known[True] >= 1
    assert known[False] >= 1
    for kernel in found.analysis.kernels:
        assert kernel.binary.resources.registers > 0
        assert kernel.sass is not None
        assert kernel.sass.text_why == "" or "Internal error" in kernel.sass.text_why
    everything_is_shown(found)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exec sleep 60", "nvdisasm was stopped after 0.5 s."),
        ("exit 3", "nvdisasm failed: exit status 3"),
        ("kill -SEGV $$", "nvdisasm failed: exit status -11"),
        ("echo no instructions at all", "nvdisasm left instructions out"),
    ],
)
async def test_without_a_text_lines_and_resources_remain(
    good: bytes, pipeline: Pipeline, tmp_path: Path, nvdisasm: Script, body: str, why: str
) -> None:
    nvdisasm(body)
    path = tmp_path / "three.cubin"
    path.write_bytes(good)
    found = await outcome(pipeline, path, build_time_limit_s=0.5)
    assert found.analysis is not None
    assert len(found.analysis.kernels) == 3
    for kernel in found.analysis.kernels:
        assert kernel.binary.resources.registers > 0
        assert kernel.sass is not None
        assert kernel.sass.text_why.startswith(why)
        assert kernel.sass.mix is None
        assert sum(map(len, kernel.sass.rows.own.values())) == kernel.sass.instruction_count
    everything_is_shown(found)


def everything_is_shown(found: FileOutcome, chance: random.Random | None = None) -> None:
    """All that is printed or shown of an analysis (of one kernel by chance) can be made, with each instruction."""
    analysis = found.analysis
    if analysis is None:
        assert len(found.findings) == 1
        assert found.findings[0].message
        return
    kernels = list(chosen_kernels(analysis, None))
    if chance is not None:
        kernels = chance.sample(kernels, min(1, len(kernels)))
    values = json.loads(json.dumps(sass_document(kernels)))["kernels"]
    for kernel, value in zip(kernels, values, strict=True):
        if kernel.sass is None:
            assert kernel.sass_why
            continue
        assert len(value["instructions"]) == kernel.sass.instruction_count
        assert sass_listing(kernel, analysis.path).text.count("\n") >= kernel.sass.instruction_count
        for file, line in list(kernel.sass.rows.within)[:3]:
            assert line_hover(replace(analysis, path=file), line)


async def test_flipped_and_cut_cubins_never_fail_unsaid(
    good: bytes, pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disassembler gives the text of the undamaged cubin, all of it or cut, or complains."""
    text = (await disassemble(good, await pipeline.toolchain(Settings()), BuildStore(None), ARGUMENTS)).text
    endings = Counter[str]()
    path = tmp_path / "bad.cubin"
    for seed in range(N_FLIPPED):
        chance = random.Random(seed)
        bad = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.15:
            del bad[chance.randrange(len(bad)) :]
        path.write_bytes(bad)

        async def answer(*_: Any, _chance: random.Random = chance, **__: Any) -> Disassembly:
            said = _chance.choice(["", "", "", f"nvdisasm error : no at address 0x{16 * _chance.randrange(40):x}"])
            cut = _chance.choice([len(text), len(text), _chance.randrange(len(text))])
            return Disassembly(text[:cut], said, False, False, 0.0, said)

        monkeypatch.setattr(instructions, "disassemble", answer)
        found = await outcome(pipeline, path)
        everything_is_shown(found, chance)
        whole = found.analysis is not None and all(k.sass and not k.sass.text_why for k in found.analysis.kernels)
        endings["refused" if found.analysis is None else "whole" if whole else "in part"] += 1
    assert len(endings) == 3
    assert min(endings.values()) > N_FLIPPED // 20


@pytest.mark.parametrize("command", ["sass", "check"])
def test_the_commands_say_it_in_one_line(
    good: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """With the real nvdisasm: code that it refuses in part, a cut file, and a file that is no cubin."""
    path = tmp_path / "bad.cubin"
    path.write_bytes(with_illegal(good, "_Z5thirdPfi", 3))
    status, out, err = run(capsys, command, path)
    assert status == 0
    assert "first" in out
    assert err.count("\n") == 1
    assert "nvdisasm failed: " in err
    for data in (good[: len(good) // 2], good[:100], b"", b"\x7fELF no cubin"):
        path.write_bytes(data)
        status, out, err = run(capsys, command, path)
        assert status == 2
        assert "bad.cubin" in out + err
        assert "Traceback" not in err
        assert err.count("\n") <= 1


def of_a_future_machine(data: bytes) -> bytes:
    """The same code said to be for sm_150 (the number stands in bits 8 to 15 of e_flags since CUDA 13)."""
    changed = bytearray(data)
    flags = int.from_bytes(changed[0x30:0x34], "little")
    changed[0x30:0x34] = (flags & ~0xFF00 | 150 << 8).to_bytes(4, "little")
    assert read_elf(bytes(changed)).arch == "sm_150"
    return bytes(changed)


async def test_a_future_architecture_costs_what_must_be_known_of_it(
    good: bytes, pipeline: Pipeline, tmp_path: Path
) -> None:
    """Resources, names and lines are the cubin's own; occupancy, opcodes and control words are said to be unknown."""
    path = tmp_path / "future.cubin"
    path.write_bytes(of_a_future_machine(good))
    found = await outcome(pipeline, path)
    assert found.analysis is not None
    known = read_cubin(good)
    assert [kernel.binary.resources for kernel in found.analysis.kernels] == [
        kernel.resources
        for kernel in sorted(known.kernels, key=lambda kernel: kernel.name)  # as they stand
    ]
    for kernel in found.analysis.kernels:
        assert (kernel.launches, kernel.block_sizes, kernel.max_launchable_threads) == ((), (), None)
        assert "Occupancy unknown: no limits of sm_150 are on record." in kernel_hover(kernel, found.analysis).replace(
            "\\", ""
        )
    assert [finding.message for finding in found.findings if finding.code == "KL903"] == [
        "no limits of sm_150 are on record: what its launches reach is not known"
    ]
    for value in sass_document(found.analysis.kernels)["kernels"]:
        assert value["text_why"]
        assert "sm_150" in value["stall_why"]
        assert all(row["text"] is None and row["stall"] is None and row["line"] for row in value["instructions"])


def test_a_future_architecture_on_the_command_line(
    good: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "future.cubin"
    path.write_bytes(of_a_future_machine(good))
    status, out, _ = run(capsys, "check", path, "--format", "json")
    assert status == 0
    value = json.loads(out)
    assert value["gpu"]["name"] == "sm_150"
    for kernel in value["files"][0]["kernels"]:
        assert kernel["launches"] == []
        assert kernel["launches_why"] == "no limits of sm_150 are on record"
        assert kernel["max_launchable_threads"] is None
    status, out, _ = run(capsys, "report", path)
    assert status == 0
    assert "Not known: no limits of sm\\_150 are on record." in out or "no limits of sm_150 are on record" in out
    assert "blocks/SM" not in out
