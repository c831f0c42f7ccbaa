"""Reports of Nsight Compute are read in a process of their own, one report a process, and kept by their content.

The child (`ncu/worker.py`) has limits on memory and time and ends with each report: what the library leaks, and
whatever it crashes on, goes with it. This process never loads the library.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_lsp.build import process
from kernel_lsp.build.store import BuildStore
from kernel_lsp.ncu.answer import read_answer
from kernel_lsp.ncu.metric_names import metric_names
from kernel_lsp.ncu.raw_report import NcuError, RawReport, ReaderMissingError
from kernel_lsp.source.digest import content_digest

INSTALL = "pip install 'kernel-lsp[ncu]'"
_MAGICS = (b"NVR\0", b"\x28\xb5\x2f\xfd")  # a report, and zstd's frame around one
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
_N_KEPT = 8


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """What reading one report may take."""

    file_bytes: int = 1 << 30
    unpacked_bytes: int = 2 << 30
    memory_bytes: int = 6 << 30  # of address space: the library maps some 400 MB before it reads anything
    seconds: float = 60.0


class ReportReader:
    """Reads reports one after the other, and remembers the last few by their content."""

    def __init__(self, store: BuildStore, environment: Mapping[str, str], limits: ReaderLimits | None = None) -> None:
        self._store = store
        self._environment = environment
        self._limits = limits or ReaderLimits()
        self._one_at_a_time = asyncio.Lock()
        self._kept: OrderedDict[tuple[str, bool], RawReport] = OrderedDict()

    async def read(self, path: Path, *, sass: bool = False) -> RawReport:
        """The report of a `.ncu-rep` or `.ncu-repz`; `sass` asks for its disassembly too (half a second more).

        Raises:
            NcuError: not a report, damaged, too large, or the reader crashed; one message with file and cause.
        """
        digest = await asyncio.to_thread(_checked_digest, path, self._limits.file_bytes)
        async with self._one_at_a_time:
            for key in ((digest, sass), (digest, True)):
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return replace(self._kept[key], path=str(path))
            answer = await self._ask(path, sass)
            report = await asyncio.to_thread(read_answer, answer, str(path), digest)
            if await asyncio.to_thread(_checked_digest, path, self._limits.file_bytes) != digest:
                raise NcuError(f"{path}: it was written to while it was read; read it again when ncu has finished")
            self._kept[(digest, sass)] = report
            while len(self._kept) > _N_KEPT:
                self._kept.popitem(last=False)
            return report

    async def _ask(self, path: Path, sass: bool) -> bytes:
        limits = self._limits
        request = {
            **metric_names().request(str(path.absolute()), sass=sass),
            "memory_bytes": limits.memory_bytes,
            "unpacked_bytes": limits.unpacked_bytes,
            "cpu_seconds": int(limits.seconds) + 1,
        }
        with self._store.scratch.run_folder() as folder:
            ended = await process.run(
                [sys.executable, "-m", "kernel_lsp.ncu.worker", _argument(request)],
                cwd=folder,  # empty: nothing there can be imported in place of a library
                environment={**self._environment, "PYTHONPATH": _python_path(self._environment)},
                time_limit_s=limits.seconds,
                output_limit_bytes=process.RUNAWAY_OUTPUT_BYTES,
            )
        if ended.ending == "exited" and ended.code == 0 and not ended.truncated:
            if b'"error":"not installed' in ended.stdout[:200]:
                raise ReaderMissingError(f"{path}: reading it takes NVIDIA's package ncu-report: {INSTALL}")
            return ended.stdout
        raise NcuError(f"{path}: {_failure(ended, limits)}")


def _argument(request: Mapping[str, object]) -> str:
    return json.dumps(request, separators=(",", ":"))


def _python_path(environment: Mapping[str, str]) -> str:
    """The child imports the same package as this process, and nothing from relative folders."""
    others = [p for p in environment.get("PYTHONPATH", "").split(os.pathsep) if Path(p).is_absolute()]
    return os.pathsep.join([str(_PACKAGE_PARENT), *others])


def _checked_digest(path: Path, most_bytes: int) -> str:
    """The digest of a file that starts like a report."""
    try:
        size = path.stat().st_size
        if size > most_bytes:
            raise NcuError(
                f"{path}: {size >> 20} MB are more than is read ({most_bytes >> 20} MB); profile fewer kernels"
            )
        data = path.read_bytes()
    except NcuError:
        raise
    except IsADirectoryError as error:
        raise NcuError(f"{path}: is a folder, not a report") from error
    except OSError as error:
        raise NcuError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # a NUL in the name
        raise NcuError(f"{path!r}: no name of a file") from error
    if not data:
        raise NcuError(f"{path}: the file is empty; ncu may still be running or was stopped")
    if not data.startswith(_MAGICS):
        raise NcuError(f"{path}: no Nsight Compute report (it does not start like one)")
    return content_digest(data)


def _failure(ended: process.Finished, limits: ReaderLimits) -> str:
    if ended.ending == "not started":
        return f"the reader's process could not be started ({ended.error})"
    if ended.ending == "timeout":
        return f"reading took longer than {limits.seconds:.0f} s and was stopped"
    if ended.ending == "runaway output" or ended.truncated:
        return "it holds more than is read at once; profile fewer kernels"
    if ended.code is not None and ended.code < 0:
        try:
            name = signal.Signals(-ended.code).name
        except ValueError:
            name = f"signal {-ended.code}"
        return f"NVIDIA's ncu-report ended with {name} on it; the report may be damaged"
    words = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"NVIDIA's ncu-report failed on it ({words[-1][:200] if words else f'exit {ended.code}'})"
