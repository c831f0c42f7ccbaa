"""The one place that joins IO and core: a document becomes command, build, cubin, analysis, and one frozen outcome.

The language server follows `Pipeline.phases`, the command line takes the last of them: both show the same numbers.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp.build.device_link import is_relocatable
from kernel_lsp.build.probe import Gpu, detect_gpu, probe
from kernel_lsp.build.store import BuildStore, default_cache_folder
from kernel_lsp.hardware.catalog import board_names, by_name
from kernel_lsp.project.find_command import ProjectFiles
from kernel_lsp.project.toolchain import Toolchain, find_toolchain
from kernel_lsp.session.building import DocumentBuilder
from kernel_lsp.session.conclude import cubin_outcome, failed_outcome, outcome
from kernel_lsp.session.instructions import BEING_READ, NO_CODE, InstructionReader, Instructions
from kernel_lsp.session.linking import ProjectLinker
from kernel_lsp.session.measuring import BuiltKernelName, Measuring
from kernel_lsp.session.outcome import FileOutcome, PipelineRequest, ProjectLink
from kernel_lsp.session.planning import Plan, Planner
from kernel_lsp.session.settings import Settings
from kernel_lsp.source.kernels import scan
from kernel_lsp.source.macros import defines_of

if TYPE_CHECKING:
    from kernel_lsp.build.ncu_reader import ReportReader
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, LaunchRef
    from kernel_lsp.ncu.measured_report import MeasuredReport
    from kernel_lsp.session.gpu_runs import GpuRuns

AT_ONCE_S = 0.3  # a link that takes longer is waited for with interim numbers shown


@dataclass(frozen=True, slots=True)
class _Built:
    """Code, and what it means once its link and instructions are known or are said not to be.

    `link` is set where kernels call functions of other files of the project.
    """

    cubin: bytes
    toolchain: Toolchain
    conclude: Callable[[ProjectLink | None, Instructions], FileOutcome]
    link: Callable[[], Awaitable[ProjectLink | None]] | None = None


class Pipeline:
    """Runs analyses; keeps the build store, project files and what was learnt of the tools between them."""

    def __init__(self, environment: Mapping[str, str] | None = None, cache_folder: Path | None = None) -> None:
        self._environment = dict(os.environ if environment is None else environment)
        self._store = BuildStore(default_cache_folder() if cache_folder is None else cache_folder)
        self._no_store = BuildStore(None)
        self._files = ProjectFiles()
        self._toolchains: dict[tuple[object, ...], Toolchain] = {}
        self._gpu: asyncio.Task[Gpu | None] | None = None
        self._instructions = InstructionReader(self._environment)
        self._measuring = Measuring()
        self._gpu_runs: GpuRuns | None = None
        self._reports: ReportReader | None = None
        self._planner = Planner(self._files, self._environment)
        self._builder = DocumentBuilder(self._environment)
        self._linker = ProjectLinker(self._files, self._environment)
        # Reading and decoding off the event loop, so that hovers are answered meanwhile. One thread: the project
        # files are shared between analyses.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="analysis")

    async def analyze(self, request: PipelineRequest) -> FileOutcome:
        """One document from command to findings, instructions included. Raises as `phases`."""
        return [found async for found in self.phases(request)][-1]

    async def phases(self, request: PipelineRequest) -> AsyncGenerator[FileOutcome, None]:
        """The outcome as soon as resources and occupancy are known, then the same with the instructions.

        The first is the only one where there are no instructions, or where they were read before. Where a link with
        other files has to be made and takes its time, an interim outcome goes before it. Raises
        asyncio.CancelledError only; all else is in the outcomes.
        """
        loop = asyncio.get_running_loop()
        found = await self._built(request)
        if isinstance(found, FileOutcome):
            yield found
            return
        assert request.document is not None
        known = self._instructions.known(found.cubin, found.toolchain, request.document)
        link: ProjectLink | None = None
        if found.link is not None:
            linking = asyncio.ensure_future(found.link())
            try:
                await asyncio.wait([linking], timeout=AT_ONCE_S)
                if not linking.done():
                    interim = await loop.run_in_executor(self._thread, found.conclude, None, known or BEING_READ)
                    yield replace(interim, is_interim=True)
                link = await linking
            finally:
                linking.cancel()
                await asyncio.gather(linking, return_exceptions=True)
        first = await loop.run_in_executor(self._thread, found.conclude, link, known or BEING_READ)
        yield first
        if first.more_to_come:
            store = self._store if request.use_cache else self._no_store
            limit_s = request.settings.build_time_limit_s
            read = await self._instructions.read(found.cubin, found.toolchain, request.document, store, limit_s)
            yield await loop.run_in_executor(self._thread, found.conclude, link, read)

    async def _built(self, request: PipelineRequest) -> _Built | FileOutcome:
        """The code of a document, or the outcome where there is none."""
        loop = asyncio.get_running_loop()
        path = request.document
        if path is None:
            return failed_outcome("", "the buffer has no file; save it as a .cu file to see its numbers", "information")
        machine = await self.machine_gpu()
        try:
            if path.suffix == ".cubin":
                data = await loop.run_in_executor(self._thread, path.read_bytes)
                toolchain = await self._toolchain(request)
                return _Built(
                    data,
                    toolchain,
                    lambda _, read: cubin_outcome(request, machine, data, toolchain, self._measuring, read),
                )
            plan, toolchain = await self._prepared(request, machine)
        except OSError as error:
            return failed_outcome(str(path), f"{path} cannot be read ({error.strerror or error})")
        store = self._store if request.use_cache else self._no_store

        async def replan(includers: tuple[Path, ...]) -> Plan:
            return await loop.run_in_executor(self._thread, self._planner.plan, request, toolchain, machine, includers)

        planned_flags = plan.command.flags
        scanned = loop.run_in_executor(self._thread, scan, plan.text, defines_of(planned_flags))
        plan, built = await self._builder.build(request, plan, replan, toolchain, store)
        text = await scanned
        if plan.command.flags != planned_flags:
            text = await loop.run_in_executor(self._thread, scan, plan.text, defines_of(plan.command.flags))
        trouble = self._store.trouble
        conclude = partial(outcome, request, plan, toolchain, machine, built, text, trouble, self._measuring)
        if built.cubin is None:
            return await loop.run_in_executor(self._thread, conclude, None, NO_CODE)
        link = None
        if built.linked is None and is_relocatable(plan.command.flags):
            link = partial(self._linker.link, request, plan, toolchain, built, store)
        return _Built(built.linked or built.cubin, toolchain, conclude, link)

    @property
    def gpu_runs(self) -> GpuRuns:
        """What runs programs of the user's settings; made at the first use."""
        if self._gpu_runs is None:
            from kernel_lsp.session.gpu_runs import GpuRuns

            self._gpu_runs = GpuRuns(self._store, self._environment)
        return self._gpu_runs

    def kept_reports(self, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        """The folders with the reports of profiles that were run from these folders."""
        from kernel_lsp.build.kept_reports import reports_folder

        folder = self._store.folder
        return () if folder is None else tuple(reports_folder(folder, each) for each in folders)

    async def end_gpu_runs(self) -> None:
        """Stop them; no process is left."""
        if self._gpu_runs is not None:
            await self._gpu_runs.end()

    def close(self) -> None:
        """Remove temporary folders and end the thread."""
        self._store.close()
        self._no_store.close()
        self._instructions.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def load_report(
        self, path: Path, settings: Settings, roots: tuple[Path, ...] = (), *, trusted: bool = True
    ) -> MeasuredReport:
        """The launches of a report or CSV page, read in a process of its own.

        Raises:
            NcuError: it cannot be read; one message with file and cause.
        """
        await asyncio.to_thread(_prepare_for_reports)  # hovers are answered meanwhile
        from kernel_lsp.build.ncu_reader import ReportReader
        from kernel_lsp.session.profiles import ProfileLoader

        toolchain = await self._toolchain(
            PipelineRequest(document=None, settings=settings, roots=roots, trusted=trusted)
        )
        if self._reports is None:
            self._reports = ReportReader(self._store, self._environment)
        return await ProfileLoader(self._store, self._environment, toolchain, self._reports).load(path)

    async def measured(
        self, kernel: BuiltKernelName, launches: Sequence[tuple[MeasuredReport, LaunchRef | None]]
    ) -> tuple[KernelMeasurement | None, ...]:
        """Launches of a kernel on its file's last build; of a report without one the longest. None: it holds none."""

        def all_of_them() -> tuple[KernelMeasurement | None, ...]:
            return tuple(self._measuring.of_launch(kernel, report, launch) for report, launch in launches)

        return await asyncio.get_running_loop().run_in_executor(self._thread, all_of_them)

    async def machine_gpu(self) -> Gpu | None:
        """This machine's GPU; asked once. Its architecture decides what is built, so it is waited for."""
        if self._gpu is None:
            self._gpu = asyncio.ensure_future(detect_gpu(self._environment))
        return await asyncio.shield(self._gpu)

    async def command(self, request: PipelineRequest) -> tuple[Plan, Toolchain]:
        """What `analyze` would build, and with which tools. Raises OSError."""
        return await self._prepared(request, await self.machine_gpu())

    async def toolchain(self, settings: Settings, roots: tuple[Path, ...] = ()) -> Toolchain:
        """The tools that would be used, with versions."""
        return await self._toolchain(PipelineRequest(document=None, settings=settings, roots=roots))

    def boards(self) -> tuple[tuple[str, str], ...]:
        """Names and architectures of all boards, for a menu."""
        return tuple((name, by_name(name).arch) for name in board_names())

    # --- steps -----------------------------------------------------------------------------------------------------

    async def _prepared(self, request: PipelineRequest, machine: Gpu | None) -> tuple[Plan, Toolchain]:
        """The plan, with the compiler that the file's own entry names where it may be run. Raises OSError."""
        loop = asyncio.get_running_loop()
        toolchain = await self._toolchain(request)
        plan = await loop.run_in_executor(self._thread, self._planner.plan, request, toolchain, machine)
        if plan.command.compiler is not None:
            own = await self._toolchain(request, plan.command.compiler)
            if own != toolchain:
                toolchain = own
                plan = await loop.run_in_executor(self._thread, self._planner.plan, request, toolchain, machine)
        return plan, toolchain

    async def _toolchain(self, request: PipelineRequest, entry_compiler: str | None = None) -> Toolchain:
        settings = request.settings
        wanted = {
            "nvcc": settings.tools_nvcc,
            "ptxas": settings.tools_ptxas,
            "nvdisasm": settings.tools_nvdisasm,
            "cuobjdump": settings.tools_cuobjdump,
        }
        found = find_toolchain(
            settings=wanted,
            environment=self._environment,
            workspace_folders=request.roots,
            entry_compiler=entry_compiler,
            trusted=request.trusted,
        )
        key = (found.nvcc, found.ptxas, found.nvdisasm, found.cuobjdump, found.problems)
        if key not in self._toolchains:
            self._toolchains[key] = await probe(found, self._store, self._environment)
        return self._toolchains[key]


def _prepare_for_reports() -> None:
    """Load what the first report needs: modules, and a table that takes longer to read than a hover may."""
    importlib.import_module("kernel_lsp.session.profiles")
    from kernel_lsp.ncu.metric_names import metric_names

    metric_names()
