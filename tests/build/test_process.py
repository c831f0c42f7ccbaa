"""The process runner against programs that misbehave: nothing of a group is left, output and time are bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_lsp.build import process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")

# A leader with two children, of which one ignores SIGTERM and both outlive the leader. All write their ids.
FAMILY = """
import os, signal, sys, time
folder = sys.argv[1]
for stubborn in (False, True):
    if os.fork() == 0:
        if stubborn:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(os.path.join(folder, str(os.getpid())), "w").close()
        time.sleep(60)
        os._exit(0)
open(os.path.join(folder, str(os.getpid())), "w").close()
time.sleep(float(sys.argv[2]))
"""


async def run(*argv: str, cwd: Path, limit_s: float = 30.0, output: int = 1 << 20) -> process.Finished:
    return await process.run(argv, cwd=cwd, environment=os.environ, time_limit_s=limit_s, output_limit_bytes=output)


async def until(condition: Callable[[], bool], within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "the awaited state did not come"
        await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie, which only its parent can clear away, does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return not Path("/proc").is_dir()
        return False


def family(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir()]


@pytest.mark.parametrize("n_lines", [10, 499, 500, 501, 1000, 5000, 200_000])
async def test_both_ends_of_much_output(n_lines: int, tmp_path: Path) -> None:
    """Lines of ten bytes, of which 500 fit: what is kept begins with the first and ends with the last."""
    code = f"for n in range({n_lines}): print(f'{{n:9}}')"
    ended = await process.run(
        (sys.executable, "-c", code),
        cwd=tmp_path,
        environment=os.environ,
        time_limit_s=60,
        output_limit_bytes=5000,
        keep_end=True,
    )
    numbers = [int(line) for line in ended.stdout.split()]
    assert ended.truncated == (n_lines > 500)
    if n_lines <= 500:
        assert numbers == list(range(n_lines))
    else:
        assert numbers == [*range(250), *range(n_lines - 250, n_lines)]
        assert b"\n\n" in ended.stdout


async def test_output_code_folder_and_environment(tmp_path: Path) -> None:
    script = "import os,sys; print(os.getcwd()); print(os.environ['MARK'], file=sys.stderr); print(sys.stdin.read())"
    ended = await process.run(
        [sys.executable, "-c", script + "; sys.exit(3)"],
        cwd=tmp_path,
        environment={"MARK": "м"},
        time_limit_s=30,
        output_limit_bytes=1000,
    )
    assert (ended.ending, ended.code, ended.truncated) == ("exited", 3, False)
    assert ended.stdout.decode() == f"{tmp_path}\n\n"  # standard input is empty
    assert ended.stderr.decode() == "м\n"


async def test_runs_nicely_in_a_group_of_its_own(tmp_path: Path) -> None:
    script = "import os; print(os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), os.nice(0))"
    # The priority is set right after the start; a first sleep makes sure that the question comes later.
    ended = await run(sys.executable, "-c", "import time; time.sleep(0.3);" + script, cwd=tmp_path)
    assert ended.stdout.decode().split() == ["True", "True", str(min(19, os.nice(0) + 10))]


async def test_what_cannot_start_says_why(tmp_path: Path) -> None:
    absent = await run(str(tmp_path / "absent"), cwd=tmp_path)
    assert (absent.ending, absent.code) == ("not started", None)
    assert "No such file" in absent.error
    (tmp_path / "noexec").write_text("x")
    assert "Permission" in (await run(str(tmp_path / "noexec"), cwd=tmp_path)).error
    assert (await run(sys.executable, "a\0b", cwd=tmp_path)).ending == "not started"
    assert (await run(sys.executable, cwd=tmp_path / "absent")).ending == "not started"


async def test_output_is_bounded_and_drained(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.write('x' * 3_000_000); sys.stderr.write('y' * 10)"
    ended = await run(sys.executable, "-c", script, cwd=tmp_path, output=1000)
    assert (ended.ending, ended.code, ended.truncated) == ("exited", 0, True)
    assert ended.stdout == b"x" * 1000
    assert ended.stderr == b"y" * 10


async def test_endless_output_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "RUNAWAY_OUTPUT_BYTES", 1 << 20)
    script = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    ended = await run(sys.executable, "-c", script, cwd=tmp_path)
    assert ended.ending == "runaway output"
    assert ended.seconds < 10


async def test_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    ended = await run(sys.executable, "-c", FAMILY, str(tmp_path), "60", cwd=tmp_path, limit_s=1.5)
    assert ended.ending == "timeout"
    assert ended.seconds < 1.5 + 2
    members = family(tmp_path)
    assert len(members) == 3
    await until(lambda: not any(map(alive, members)), within_s=2)


async def test_cancelling_ends_the_whole_group_within_two_seconds(tmp_path: Path) -> None:
    task = asyncio.ensure_future(run(sys.executable, "-c", FAMILY, str(tmp_path), "60", cwd=tmp_path))
    await until(lambda: len(family(tmp_path)) == 3)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not any(map(alive, family(tmp_path))), within_s=2)
    assert time.monotonic() - started < 2


async def test_cancelling_twice_still_ends_the_group(tmp_path: Path) -> None:
    task = asyncio.ensure_future(run(sys.executable, "-c", FAMILY, str(tmp_path), "60", cwd=tmp_path))
    await until(lambda: len(family(tmp_path)) == 3)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not any(map(alive, family(tmp_path))), within_s=2)


async def test_cancelling_at_the_very_start_leaves_nothing(tmp_path: Path) -> None:
    for n_turns in range(6):  # the start takes several turns of the loop; cancel in each of them
        task = asyncio.ensure_future(run("sleep", "61.25", cwd=tmp_path))
        for _ in range(n_turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    found = subprocess.run(["pgrep", "-f", "^sleep 61.25$"], capture_output=True, text=True, check=False)
    assert [pid for pid in found.stdout.split() if alive(int(pid))] == []


async def test_children_that_hold_the_pipes_do_not_hold_the_result(tmp_path: Path) -> None:
    ended = await run(sys.executable, "-c", FAMILY, str(tmp_path), "0.2", cwd=tmp_path)
    assert (ended.ending, ended.code) == ("exited", 0)
    assert ended.seconds < 0.2 + process.PIPE_GRACE_S + 3
    await until(lambda: not any(map(alive, family(tmp_path))), within_s=2)


async def test_an_ordinary_end_kills_nobody(tmp_path: Path) -> None:
    """A compiler cache's server may be started by a build and must live on."""
    script = (
        "import os,sys,time\nif os.fork() == 0:\n os.close(1); os.close(2)\n  \n time.sleep(30)\n os._exit(0)\n"
    ).replace("  \n", f" open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n")
    ended = await run(sys.executable, "-c", script, cwd=tmp_path)
    assert ended.ending == "exited"
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    pid = int((tmp_path / "pid").read_text())
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("ending", ["exit", "exception"])
async def test_exit_of_the_server_ends_its_groups(tmp_path: Path, ending: str) -> None:
    """Also where nobody cancelled: the interpreter ends while a run goes on."""
    script = f"""
import asyncio, os, sys
from pathlib import Path
from kernel_lsp.build import process
async def main():
    run = process.run([sys.executable, "-c", {FAMILY!r}, sys.argv[1], "60"], cwd=Path(sys.argv[1]),
                      environment=os.environ, time_limit_s=60, output_limit_bytes=1000)
    task = asyncio.ensure_future(run)
    while len(os.listdir(sys.argv[1])) < 3:
        await asyncio.sleep(0.01)
    {"sys.exit(0)" if ending == "exit" else "raise RuntimeError"}
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, timeout=30, check=False)
    members = family(tmp_path)
    assert len(members) == 3
    await until(lambda: not any(map(alive, members)), within_s=2)
