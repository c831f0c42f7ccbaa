"""The user's own command (a profile, a copy of its report, a benchmark) becomes a finished process.

Unlike a compiler it keeps its TMPDIR and its priority: both would change what is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_lsp.build import process


async def run_user_program(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], run_folder: Path, time_limit_s: float
) -> process.Finished:
    """Run it to its end; as `process.run` otherwise. `run_folder` marks it as ours, should this server be killed."""
    return await process.run(
        argv,
        cwd=cwd,
        environment={**environment, process.RUN_VARIABLE: str(run_folder)},
        time_limit_s=time_limit_s,
        output_limit_bytes=process.RUNAWAY_OUTPUT_BYTES,  # what matters stands at the end
        niceness=0,
    )


def output_text(ended: process.Finished) -> str:
    """Both streams as text."""
    streams = [stream.decode("utf-8", "replace").rstrip("\n") for stream in (ended.stdout, ended.stderr)]
    return "\n".join(stream for stream in streams if stream)
