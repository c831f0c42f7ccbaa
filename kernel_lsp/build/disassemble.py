"""A cubin becomes nvdisasm's text of it, or of some of its functions, bounded in time and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_lsp.build import process
from kernel_lsp.build.store import BuildStore

_TIME_LIMIT_S = 30.0


async def disassemble(
    cubin: bytes,
    nvdisasm: Path,
    arguments: Sequence[str],
    store: BuildStore,
    environment: Mapping[str, str],
    *,
    symbols: Sequence[int] = (),
) -> str:
    """What `nvdisasm ARGUMENTS` prints; "" where it fails or takes too long (some damaged cubins never end).

    `symbols` are indices of function symbols: only their sections are printed.
    """
    chosen = ("-fun", ",".join(str(index) for index in symbols)) if symbols else ()
    with store.scratch.run_folder() as folder:
        path = folder / "kernel.cubin"
        path.write_bytes(cubin)
        ended = await process.run(
            [str(nvdisasm), *arguments, *chosen, str(path)],
            cwd=folder,
            environment=environment,
            time_limit_s=_TIME_LIMIT_S,
            output_limit_bytes=process.RUNAWAY_OUTPUT_BYTES,
        )
    if ended.ending != "exited" or ended.code != 0 or ended.truncated:
        return ""
    return ended.stdout.decode("utf-8", "replace")
