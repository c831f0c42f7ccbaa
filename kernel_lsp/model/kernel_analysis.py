"""Frozen values that join one kernel of a cubin with its launches, their occupancy and cliffs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_lsp.cubin.kernel import KernelBinary, Resources
from kernel_lsp.hardware.profile import SmLimits
from kernel_lsp.model.kernel_sass import KernelSass
from kernel_lsp.model.launch import Launch
from kernel_lsp.model.occupancy import Cliff, LaunchShape, Occupancy
from kernel_lsp.source.position import Span

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement


@dataclass(frozen=True, slots=True)
class LaunchAnalysis:
    """A launch with its occupancy; the occupancy is exact for `assumed_dynamic_shared_bytes`.

    Where dynamic shared memory is unknown (`launch.dynamic_shared_bytes` is None) the occupancy is that for 0 bytes
    and holds up to `holds_to_dynamic_shared_bytes`: shown with that condition, never as a bare percentage.
    """

    launch: Launch
    occupancy: Occupancy
    cliffs: tuple[Cliff, ...]
    holds_to_dynamic_shared_bytes: int | None


@dataclass(frozen=True, slots=True)
class BlockSizeRow:
    """One row of the table shown where the block size is unknown."""

    threads: int
    occupancy: Occupancy


@dataclass(frozen=True, slots=True)
class KernelAnalysis:
    """One kernel of the file. `span` is its name in the text (None: defined elsewhere or not found)."""

    binary: KernelBinary
    file: str  # absolute path of the definition, "" where unknown
    line: int  # 1-based, 0 where unknown
    span: Span | None
    launches: tuple[LaunchAnalysis, ...]
    block_sizes: tuple[BlockSizeRow, ...]  # filled where no launch is known
    max_launchable_threads: int | None  # by registers and the kernel's own bounds; 0: cannot be launched; None: unknown
    sass: KernelSass | None = None  # None: not known (yet), and `sass_why` says why
    sass_why: str = "instructions are not decoded yet"
    measured: KernelMeasurement | None = None  # by a report of Nsight Compute

    @property
    def has_limits(self) -> bool:
        """Whether the limits of its machine are on record; without them nothing is known of occupancy and launches."""
        return self.max_launchable_threads is not None

    @property
    def judged_launches(self) -> tuple[LaunchAnalysis, ...]:
        """The launches to speak of: those of the best origin, each shape once.

        A launch bound is only the largest block: where launches stand in the text, these are judged instead.
        """
        ranked = self.launches
        if ranked and ranked[0].launch.origin == "launch_bounds":
            ranked = tuple(la for la in ranked if la.launch.origin == "source") or ranked
        return _each_shape_once(la for la in ranked if la.launch.origin == ranked[0].launch.origin)

    @property
    def other_launches(self) -> tuple[LaunchAnalysis, ...]:
        """Further launches whose shape is none of the judged ones."""
        judged = self.judged_launches
        return _each_shape_once((*judged, *self.launches))[len(judged) :]


def _each_shape_once(launches: Iterable[LaunchAnalysis]) -> tuple[LaunchAnalysis, ...]:
    shapes: dict[object, LaunchAnalysis] = {}
    for analysis in launches:
        launch = analysis.launch
        shapes.setdefault((launch.block, launch.dynamic_shared_bytes, launch.cluster), analysis)
    return tuple(shapes.values())


def exceeds_cluster(limits: SmLimits, launch: Launch) -> bool:
    """Whether the launch asks for more blocks per cluster than the SMs of a GPC ever run together."""
    most = limits.max_cluster_blocks
    return launch.cluster is not None and most is not None and launch.cluster > most


def breaks_required_block(resources: Resources, launch: Launch) -> bool:
    """Whether the kernel requires another block (.reqntid).

    By the PTX ISA each dimension must be the required one. A measured launch did start: 32x24 threads of a kernel that
    requires 768 ran on an A40, so there only their number decides.
    """
    required = resources.required_block
    if required is None or launch.block == required:
        return False
    return launch.origin != "profile" or launch.threads != required[0] * required[1] * required[2]


def launch_shape(resources: Resources, launch: Launch) -> LaunchShape:
    """What decides the occupancy of this kernel in this launch; unknown dynamic shared memory counts as none."""
    resources = resources.in_program
    return LaunchShape(
        threads_per_block=launch.threads,
        registers_per_thread=resources.registers,
        static_shared_bytes=resources.static_shared_bytes,
        dynamic_shared_bytes=launch.dynamic_shared_bytes or 0,
        barriers=resources.barriers,
        cluster_blocks=launch.cluster,
    )
