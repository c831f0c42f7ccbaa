"""What loaded reports say of a build's kernels; kept, so that a save that changes nothing measures nothing again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernel_lsp.cubin.kernel import Cubin
from kernel_lsp.model.launch import Launch
from kernel_lsp.session.outcome import PipelineRequest
from kernel_lsp.source.digest import content_digest

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement, LaunchRef
    from kernel_lsp.ncu.measured_report import MeasuredReport
    from kernel_lsp.ncu.placement import BuiltKernel

_N_KEPT = 16
_N_BUILDS = 8  # of one file: a profile of any of them follows the edits since
_MOST_CUBIN_BYTES = 8 << 20  # a larger one is not remembered once a newer build is there


@dataclass(frozen=True, slots=True)
class _Build:
    cubin_digest: str
    cubin: bytes
    text: str


@dataclass(frozen=True, slots=True)
class BuiltKernelName:
    """One kernel of a file's build. `of_build` names all of them, mangled -> demangled in full."""

    path: str
    text: str  # that was built
    mangled: str
    of_build: Mapping[str, str]


class Measuring:
    """Measurements by what they are made from, and each file's last builds. Used from one thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, Mapping[str, KernelMeasurement]] = OrderedDict()
        self._builds: dict[str, tuple[_Build, ...]] = {}

    def of_build(
        self, request: PipelineRequest, path: str, text: str, cubin: Cubin, data: bytes
    ) -> Mapping[str, KernelMeasurement]:
        """What the request's reports say of the kernels in the cubin whose bytes are `data`; by mangled name."""
        build = _Build(content_digest(data), data, text)
        self._remember(path, build)
        if not request.reports:
            return {}
        from kernel_lsp.ncu.kernel_measurement import measurements  # with the first report: a start needs none of it
        from kernel_lsp.session.report_kernels import holds_any

        names = {kernel.mangled: kernel.name for kernel in cubin.kernels}
        # A report of other kernels that comes or goes changes nothing here.
        reports = tuple(report for report in request.reports if holds_any(report, names))
        if not reports:
            return {}
        key = (
            path,
            content_digest(text.encode("utf-8", "surrogatepass")),
            build.cubin_digest,
            tuple((each.report.path, each.report.digest, each.modified_at) for each in reports),
            tuple(sorted(request.launches.items(), key=lambda item: item[0])),
        )
        found = self._kept.get(key)
        if found is None:
            found = measurements(
                names, lambda mangled: self._built(path, mangled), path, text, reports, request.launches
            )
            self._kept[key] = found
            while len(self._kept) > _N_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return found

    def of_launch(
        self, kernel: BuiltKernelName, report: MeasuredReport, launch: LaunchRef | None = None
    ) -> KernelMeasurement | None:
        """A launch (None: the longest) of one kernel in one report, on its file's last build; None: it holds none."""
        from kernel_lsp.ncu.kernel_measurement import measurements
        from kernel_lsp.session.report_kernels import launches_of

        path, mangled = kernel.path, kernel.mangled
        only = replace(report, kernels=launches_of(report, mangled, kernel.of_build))
        chosen = {} if launch is None else {mangled: launch}
        names = kernel.of_build
        found = measurements(names, lambda each: self._built(path, each), path, kernel.text, (only,), chosen)
        return found.get(mangled)

    def _remember(self, path: str, build: _Build) -> None:
        """Make it the file's newest build; an older one with the same code knew the profiled text just as well."""
        older = (
            each
            for each in self._builds.get(path, ())
            if (each.cubin_digest, each.text) != (build.cubin_digest, build.text)
            and len(each.cubin) <= _MOST_CUBIN_BYTES
        )
        self._builds[path] = (build, *older)[:_N_BUILDS]

    def _built(self, path: str, mangled: str) -> Iterator[BuiltKernel]:
        from kernel_lsp.ncu.kernel_code import kernel_code
        from kernel_lsp.ncu.placement import BuiltKernel

        for build in self._builds.get(path, ()):
            code = kernel_code(build.cubin, mangled)
            if code is not None:
                yield BuiltKernel(code, build.text)


def profiled_launches(measured: KernelMeasurement | None) -> tuple[Launch, ...]:
    """How the shown launch was launched; () where the report does not tell the block."""
    if measured is None or (launch := measured.profile.launch).block is None:
        return ()
    cluster = launch.cluster_blocks if (launch.cluster_blocks or 0) > 1 else None
    where = measured.report_name
    return (Launch(launch.block, launch.grid, launch.dynamic_shared_bytes, cluster, "profile", where),)


def measured_on(measured: Mapping[str, KernelMeasurement]) -> str | None:
    """The device of the newest report that is shown, as the driver names it; None: no report, or it does not tell."""
    newest = max(measured.values(), key=lambda each: each.modified_at, default=None)
    return None if newest is None else newest.profile.device.name
