"""Report files become measured launches: read, decoded with their own cubins, disassembled where nvdisasm is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from kernel_lsp.build.disassemble import disassemble
from kernel_lsp.build.ncu_reader import ReportReader
from kernel_lsp.build.store import BuildStore
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.cubin.elf import read_elf
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.ncu.attach import measure
from kernel_lsp.ncu.counters import read_report_values
from kernel_lsp.ncu.csv_pages import read_csv_page
from kernel_lsp.ncu.kernel_code import KernelCode, bare_codes, kernel_code
from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.raw_report import NcuError
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.source.digest import content_digest

_DISASSEMBLY_S = 30.0


class ProfileLoader:
    """Loads reports and CSV pages. Without nvdisasm there are no instruction texts, and no producers of waits."""

    def __init__(
        self,
        store: BuildStore,
        environment: Mapping[str, str],
        toolchain: Toolchain,
        reader: ReportReader | None = None,
    ) -> None:
        self._reader = reader or ReportReader(store, environment)
        self._store = store
        self._environment = environment
        self._toolchain = toolchain

    async def load(self, path: Path) -> MeasuredReport:
        """A report's launches.

        Raises:
            NcuError: it cannot be read; one message with file and cause.
        """
        modified_at = await asyncio.to_thread(_modified_at, path)
        report = await self._report(path)
        codes = await self._codes(report)
        kernels = await asyncio.to_thread(
            lambda: tuple(measure(kernel, codes.get(kernel.mangled or "")) for kernel in report.kernels)
        )
        return MeasuredReport(report, kernels, modified_at)

    async def _report(self, path: Path) -> NcuReport:
        if path.suffix.lower() != ".csv":
            return await asyncio.to_thread(read_report_values, await self._reader.read(path))
        return await asyncio.to_thread(_csv_report, path)

    async def _codes(self, report: NcuReport) -> Mapping[str, KernelCode]:
        """The code of each measured kernel, from the report's cubins; a name that two cubins hold is left out."""
        names = {kernel.mangled for kernel in report.kernels if kernel.mangled}
        counted = {kernel.mangled for kernel in report.kernels if kernel.mangled and kernel.instructions is not None}
        found: dict[str, KernelCode] = {}
        twice: set[str] = set()
        for cubin in report.cubins:
            # Without counters by instruction the bytes are all there is to say: whether they are those built now.
            codes = dict(await asyncio.to_thread(bare_codes, cubin, names - counted))
            text = await self._text(cubin, counted) if counted else ""
            for mangled in sorted(counted):
                full = await asyncio.to_thread(kernel_code, cubin, mangled, text)
                if full is not None:
                    codes[mangled] = full
            for mangled, code in codes.items():
                if mangled in found and found[mangled].content != code.content:
                    twice.add(mangled)
                found[mangled] = code
        return {mangled: code for mangled, code in found.items() if mangled not in twice}

    async def _text(self, cubin: bytes, wanted: set[str]) -> str:
        try:
            symbols = [symbol.index for symbol in read_elf(cubin).symbols if symbol.name in wanted]
        except CubinError:
            return ""
        if not symbols:
            return ""
        # Only the measured kernels: a module of 150 kernels takes seconds.
        arguments = (*ARGUMENTS, "-fun", ",".join(str(symbol) for symbol in symbols))
        found = await disassemble(
            cubin, self._toolchain, self._store, arguments, time_limit_s=_DISASSEMBLY_S, environment=self._environment
        )
        return found.text if not found.reason else ""


def _modified_at(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    except OSError as error:
        raise NcuError(f"{path}: {error.strerror or error}") from error


def _csv_report(path: Path) -> NcuReport:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NcuError(f"{path}: {error.strerror or error}") from error
    return read_report_values(read_csv_page(data, str(path), content_digest(data)))
