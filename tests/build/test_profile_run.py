"""Profiles with real processes: a stand-in for ncu as strict as ncu, and one for ssh that reads words as sshd does."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_lsp.build.kept_reports import MOST_REPORTS, keep, kept_reports, reports_folder
from kernel_lsp.build.process import end_left_over
from kernel_lsp.build.profile_run import Collected, ProfileError, ProfilePlan, collect
from kernel_lsp.build.store import BuildStore
from kernel_lsp.build.user_program import run_user_program
from tests.build.test_process import alive, family, until
from tests.fakes import fake_ncu, fake_ssh

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts and process groups of POSIX")

SCALE = "_Z5scalePfi"
OTHER = "_Z5otherPf"
APP = '#!/bin/sh\necho "$PWD|$TMPDIR|$*" >> {log}\nexit {code}\n'


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a program that says where and with which arguments it runs."""
    folder = tmp_path / "work space"
    folder.mkdir()
    app(folder)
    return folder


def app(folder: Path, code: int = 0) -> None:
    program = folder / "app"
    program.write_text(APP.format(log=shlex.quote(str(folder / "said")), code=code))
    program.chmod(0o755)


def plan(work: Path, ncu: Path, **changes: object) -> ProfilePlan:
    made = ProfilePlan("scale", SCALE, (str(ncu),), ("./app", "a b", "$(touch ran)", "--set"), (), 0, 1, work)
    return replace(made, **changes)  # type: ignore[arg-type]


async def profile(of: ProfilePlan, store: BuildStore, **environment: str) -> Collected:
    keep_in = reports_folder(cache_of(store), of.folder)
    return await collect(of, store, {**os.environ, **environment}, keep_in)


def cache_of(store: BuildStore) -> Path:
    assert store.folder is not None
    return store.folder


def left_in_scratch(store: BuildStore) -> list[Path]:
    return [path for path in (cache_of(store) / "tmp").rglob("*") if path.name != "lock" and path.is_file()]


async def test_a_report_is_kept_under_the_kernels_name(tmp_path: Path, work: Path, store: BuildStore) -> None:
    ncu = fake_ncu.install(tmp_path / "bin", launches=[OTHER, SCALE, SCALE], run=True)
    got = await profile(plan(work, ncu), store, TMPDIR="/var/tmp")
    assert got.note == ""
    assert got.report.read_bytes() == b"NVR\0"
    assert got.report.parent == reports_folder(cache_of(store), work)
    assert got.report.name.startswith("scale-")
    assert got.report.suffix == ".ncu-rep"
    # The program ran in the workspace, with its own TMPDIR and with its words as they are.
    assert (work / "said").read_text() == f"{work}|/var/tmp|a b $(touch ran) --set\n"
    assert sorted(path.name for path in work.iterdir()) == ["app", "said"]
    assert left_in_scratch(store) == []


async def test_reports_of_release_2026_3_have_another_extension(tmp_path: Path, work: Path, store: BuildStore) -> None:
    ncu = fake_ncu.install(tmp_path / "bin", launches=[SCALE], extension=".ncu-repz")
    assert (await profile(plan(work, ncu), store)).report.suffix == ".ncu-repz"


async def test_skip_and_count(tmp_path: Path, work: Path, store: BuildStore) -> None:
    ncu = fake_ncu.install(tmp_path / "bin", launches=[SCALE] * 3)
    await profile(plan(work, ncu, launch_skip=2), store)
    with pytest.raises(ProfileError, match=r"did not launch this kernel .*: it launched _Z5scalePfi"):
        await profile(plan(work, ncu, launch_skip=3), store)


async def test_the_users_words_come_before_the_options(tmp_path: Path, work: Path, store: BuildStore) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    ncu = fake_ncu.install(tmp_path / "bin", launches=[SCALE], marks=str(marks))
    await profile(plan(work, ncu, command=("env", "X=1", str(ncu), "--clock-control", "none")), store)
    argv = json.loads((marks / "argv").read_text())
    assert argv[:2] == ["--clock-control", "none"]
    assert argv[-4:] == ["./app", "a b", "$(touch ran)", "--set"]


async def test_a_program_that_fails_afterwards_is_told(tmp_path: Path, work: Path, store: BuildStore) -> None:
    app(work, code=3)
    ncu = fake_ncu.install(tmp_path / "bin", launches=[SCALE], run=True)
    assert (await profile(plan(work, ncu), store)).note == "the program ended with code 3"


async def test_no_report_keeps_nothing(tmp_path: Path, work: Path, store: BuildStore) -> None:
    ncu = fake_ncu.install(tmp_path / "bin", launches=[OTHER], run=True)
    with pytest.raises(ProfileError, match=f"it launched {OTHER}"):
        await profile(plan(work, ncu), store)
    assert kept_reports(reports_folder(cache_of(store), work)) == ()
    assert left_in_scratch(store) == []


@pytest.mark.parametrize(
    ("says", "part"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("==ERROR== Profiling failed because a driver resource was unavailable.\n", "dcgmi profile --pause"),
    ],
)
async def test_failures_of_ncu(tmp_path: Path, work: Path, store: BuildStore, says: str, part: str) -> None:
    with pytest.raises(ProfileError, match=part):
        await profile(plan(work, fake_ncu.install(tmp_path / "bin", says=says)), store)


async def test_an_older_release_without_an_option(tmp_path: Path, work: Path, store: BuildStore) -> None:
    ncu = fake_ncu.install(tmp_path / "bin", launches=[SCALE], unknown=["--import-source"])
    with pytest.raises(ProfileError, match="This release of ncu has no option --import-source"):
        await profile(plan(work, ncu), store)


async def test_programs_that_are_not_there(tmp_path: Path, work: Path, store: BuildStore) -> None:
    ncu = fake_ncu.install(tmp_path / "bin", launches=[SCALE])
    with pytest.raises(ProfileError, match=r"kernelLsp\.profile\.command: /none/ncu does not exist"):
        await profile(plan(work, ncu, command=("/none/ncu",)), store)
    with pytest.raises(ProfileError, match=r"kernelLsp\.profile\.program: .*/build/app does not exist"):
        await profile(plan(work, ncu, program=("build/app",)), store)
    with pytest.raises(ProfileError, match="which ncu would take for its own option"):
        await profile(plan(work, ncu, program=("--kill",)), store)
    (work / "text").write_text("no program")
    (work / "text").chmod(0o755)
    with pytest.raises(ProfileError, match=r"kernelLsp\.profile\.command could not be started \(Exec format error\)"):
        await profile(plan(work, ncu, command=("./text",)), store)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """The other machine: its home folder."""
    home = tmp_path / "remote"
    fake_ssh.install(tmp_path / "bin", home, str(tmp_path / "remote bin"))
    return home


def path_with(tmp_path: Path) -> str:
    return os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])


async def test_through_ssh_with_a_copy(tmp_path: Path, work: Path, store: BuildStore, remote: Path) -> None:
    """The remote shell reads every word once more: the program must get them as they are, and nothing must run."""
    fake_ncu.install(tmp_path / "remote bin", launches=[SCALE], run=True)
    project = remote / "pro ject"
    project.mkdir()
    app(project)
    of = plan(
        work,
        Path("ncu"),
        command=("ssh", "-tt", "gpuhost", "cd 'pro ject' && ncu"),
        fetch=("cp", "{remote}", "{local}"),
    )
    got = await profile(of, store, PATH=path_with(tmp_path))
    assert got.report.read_bytes() == b"NVR\0"
    assert (project / "said").read_text() == f"{project}||a b $(touch ran) --set\n"
    assert not list(tmp_path.rglob("ran"))


async def test_a_mangled_name_with_a_hash_passes_the_remote_shell(
    tmp_path: Path, work: Path, store: BuildStore, remote: Path
) -> None:
    fake_ncu.install(tmp_path / "remote bin", launches=["_ZN13_GLOBAL__N_cd5scaleEPf"])
    of = plan(
        work,
        Path("ncu"),
        mangled="_ZN13_GLOBAL__N_ab5scaleEPf",
        command=("ssh", "gpuhost", "ncu"),
        fetch=("cp", "{remote}", "{local}"),
    )
    assert (await profile(of, store, PATH=path_with(tmp_path))).report.is_file()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"fetch": ("true", "{remote}", "{local}")}, "did not copy it to {local}"),
        (
            {"fetch": ("no-such-program", "{remote}", "{local}")},
            "starts with no-such-program, which is no program on PATH",
        ),
        ({"command": ("ssh", "elsewhere", "ncu")}, "Could not resolve hostname elsewhere"),
        ({"command": ("ssh", "gpuhost", "nocu")}, "not found"),
    ],
)
async def test_failures_on_the_way(
    tmp_path: Path, work: Path, store: BuildStore, remote: Path, changes: dict[str, object], part: str
) -> None:
    fake_ncu.install(tmp_path / "remote bin", launches=[SCALE])
    of = plan(work, Path("ncu"), command=("ssh", "gpuhost", "ncu"), fetch=("cp", "{remote}", "{local}"))
    with pytest.raises(ProfileError) as raised:
        await profile(replace(of, **changes), store, PATH=path_with(tmp_path))  # type: ignore[arg-type]
    assert part in str(raised.value)


async def test_a_report_on_another_file_system_asks_for_the_copy(tmp_path: Path, work: Path, store: BuildStore) -> None:
    """As a container has it: ncu names the path that it was given, but nothing is there."""
    script = tmp_path / "container"
    script.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = --export ] && echo "==PROF== Report: $2.ncu-rep"; shift; done\n'
    )
    script.chmod(0o755)
    with pytest.raises(ProfileError, match=r"kernelLsp\.profile\.fetch, for example"):
        await profile(plan(work, script), store)


@pytest.fixture
async def hanging(tmp_path: Path, work: Path, store: BuildStore) -> AsyncIterator[tuple[asyncio.Task[object], Path]]:
    """A profile whose ncu never ends and has a child that ignores SIGTERM; its processes' ids."""
    marks = tmp_path / "marks"
    marks.mkdir()
    ncu = fake_ncu.install(tmp_path / "bin", hang=True, marks=str(marks))
    task = asyncio.create_task(profile(plan(work, ncu), store))
    await until(lambda: len(list(marks.glob("[0-9]*"))) == 2)
    (marks / "argv").unlink()
    yield task, marks
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_cancel_leaves_no_process_and_no_file(
    hanging: tuple[asyncio.Task[object], Path], store: BuildStore
) -> None:
    task, marks = hanging
    assert all(alive(pid) for pid in family(marks))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not any(alive(pid) for pid in family(marks)))
    assert left_in_scratch(store) == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whose a process is")
async def test_what_a_killed_server_left_is_ended(
    hanging: tuple[asyncio.Task[object], Path], store: BuildStore
) -> None:
    _, marks = hanging
    assert end_left_over(cache_of(store) / "tmp") >= 2
    await until(lambda: not any(alive(pid) for pid in family(marks)))


async def test_a_measured_program_keeps_its_priority(tmp_path: Path) -> None:
    ended = await run_user_program(
        [sys.executable, "-c", "import os; print(os.nice(0))"],
        cwd=tmp_path,
        environment=os.environ,
        run_folder=tmp_path,
        time_limit_s=30,
    )
    assert int(ended.stdout) == os.nice(0)


def test_the_oldest_reports_go(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    kept = []
    for number in range(MOST_REPORTS + 3):
        report = tmp_path / "new.ncu-rep"
        report.write_bytes(b"NVR\0")
        kept.append(keep(report, folder, "void ns::tile<(int)16>(float*)"))
        os.utime(kept[-1], (number, number))
    assert set(kept_reports(folder)) == set(kept[3:])
    assert kept_reports(folder)[0] == kept[-1]
    assert kept[0].name.startswith("void-ns-tile-int-16-float-")
    assert len({path.name for path in kept}) == len(kept)
