"""A request becomes a plan: the command that builds the document, the text to build, and what the user must be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_lsp.build.probe import Gpu
from kernel_lsp.hardware.catalog import UnknownGpuError, by_name
from kernel_lsp.project.arch import is_supported
from kernel_lsp.project.command import BuildCommand, CommandNote
from kernel_lsp.project.config import ProjectConfig, find_config, load_config
from kernel_lsp.project.find_command import CommandPreferences, ProjectFiles, ToolkitFacts, find_command
from kernel_lsp.project.search_folders import search_folders
from kernel_lsp.project.toolchain import Toolchain, find_launcher
from kernel_lsp.project.unsaved_header import with_unsaved_header
from kernel_lsp.session.outcome import PipelineRequest

if TYPE_CHECKING:
    from kernel_lsp.session.report_kernels import MeasuredDevice

DEFAULT_GPU = "RTX 3070 Ti"
DEFAULT_ARCH = "sm_86"
_DEFAULT_WHY = f"{DEFAULT_GPU} by default"
_MAX_HEADER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before the build."""

    path: Path
    text: str
    overlay: bytes | None  # built instead of the source on disk
    launcher: tuple[str, ...]  # the user's own, in front of nvcc
    config: ProjectConfig | None
    command: BuildCommand
    arch_is_default: bool  # nothing named an architecture, so the default GPU decided it
    notices: tuple[str, ...]


class Planner:
    """Makes plans; keeps what was read of project files between them."""

    def __init__(self, files: ProjectFiles, environment: Mapping[str, str]) -> None:
        self._files = files
        self._environment = environment

    def plan(
        self,
        request: PipelineRequest,
        toolchain: Toolchain,
        machine: Gpu | None,
        includers: tuple[Path, ...] = (),
    ) -> Plan:
        """What to build for a request. `includers`: of a header's, the sources to build it through, the best first.

        Raises OSError where the document cannot be read.
        """
        assert request.document is not None
        path = request.document
        if request.unsaved_text is None:
            text_bytes = path.read_bytes()
        else:
            text_bytes = request.unsaved_text.encode("utf-8", "surrogatepass")
        config = self._config(request)
        gpu_wanted = request.settings.gpu or (config.gpu if config is not None else None) or ""
        arch, why, notices = request.settings.arch or None, "setting", []
        if arch is None and gpu_wanted:
            try:
                arch, why = by_name(gpu_wanted).arch, f"{gpu_wanted} as chosen"
            except UnknownGpuError as error:
                notices.append(str(error))
        device = self._measured_device(request, text_bytes, toolchain)
        run_on, run_on_why = (machine.arch if machine is not None else None), "this machine's GPU"
        if device is not None:
            run_on, run_on_why = device.arch, f"the device of {device.report_name}"
        command = find_command(
            path,
            files=self._files,
            preferences=CommandPreferences(
                explicit_flags=request.explicit_flags,
                explicit_directory=Path.cwd() if request.explicit_flags is not None else None,
                fallback_flags=request.settings.build_flags,
                compile_commands=Path(request.settings.compile_commands) if request.settings.compile_commands else None,
                arch=arch,
                arch_why=why,
                default_arch=DEFAULT_ARCH,
                default_arch_why=_DEFAULT_WHY,
                includers=includers,
            ),
            toolkit=ToolkitFacts(
                supported_archs=toolchain.gpu_code or None,
                version=".".join((toolchain.nvcc.version or "").split(".")[:2]) if toolchain.nvcc else "",
                machine_arch=run_on,
                machine_why=run_on_why,
            ),
            config=config,
            workspace_roots=request.roots,
            trusted=request.trusted,
            environment=self._environment,
            open_texts=dict(request.open_texts),
            readers=request.readers,
        )
        problems = list(config.problems) if config is not None else []
        launcher, problem = find_launcher(request.settings.build_launcher, self._environment, request.roots)
        problems += [problem] if problem else []
        overlay = None if request.unsaved_text is None else text_bytes
        if overlay is not None and command.source != path:
            overlay = _unsaved_header(command, path, text_bytes)
            if overlay is None and command.skip_reason is None:
                command = _not_as_it_is(command)
        return Plan(
            path,
            text_bytes.decode("utf-8-sig", "replace"),
            overlay,
            launcher,
            config,
            command,
            command.arch_why.startswith(_DEFAULT_WHY),
            (*notices, *problems, *toolchain.problems),
        )

    def _measured_device(self, request: PipelineRequest, text: bytes, toolchain: Toolchain) -> MeasuredDevice | None:
        """Where the kernels of a text were measured, if code for it can be built: the same code fits the best."""
        if not request.reports:
            return None
        from kernel_lsp.session.report_kernels import measured_device

        device = measured_device(request.reports, text.decode("utf-8", "replace"))
        can_build = device is not None and is_supported(device.arch, toolchain.gpu_code or None)
        return device if can_build else None

    def _config(self, request: PipelineRequest) -> ProjectConfig | None:
        assert request.document is not None
        if request.config_file is not None:
            return load_config(request.config_file)
        if not request.trusted:
            return None
        found = find_config(request.document, request.roots)
        return load_config(found) if found is not None else None


def _unsaved_header(command: BuildCommand, header: Path, header_text: bytes) -> bytes | None:
    """The source that reads a header, with the header's unsaved text inside; None where that cannot be done."""

    def read(path: str) -> str | None:
        try:
            with Path(path).open("rb") as file:
                return file.read(_MAX_HEADER_BYTES).decode("utf-8", "surrogateescape")
        except OSError:
            return None

    folders = search_folders(command.flags, str(command.cwd))
    text = header_text.decode("utf-8", "surrogateescape")
    found = with_unsaved_header(str(command.source), str(header), text, folders, read)
    return None if found is None else found.encode("utf-8", "surrogateescape")


def _not_as_it_is(command: BuildCommand) -> BuildCommand:
    reason = f"{command.source.name} reads it by an #include that is computed: save it to see its numbers"
    note = CommandNote("warning", reason, "information")
    return replace(command, skip_reason=reason, notes=(*command.notes, note))
