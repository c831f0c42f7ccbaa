"""Turns numbers into the words shared by diagnostics, lens, hover and report.

KB are 1,024 bytes. Exact bytes are written where a single byte decides (edges); elsewhere one decimal of a KB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from kernel_lsp.cubin.kernel import Resources
from kernel_lsp.hardware.profile import HwProfile, Peak
from kernel_lsp.model.kernel_analysis import KernelAnalysis, LaunchAnalysis
from kernel_lsp.model.launch import Launch
from kernel_lsp.model.occupancy import Cliff, Occupancy

_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+)")
_LINE = re.compile(r"line (?P<line>\d+)")
_WORDS = {
    "registers": "registers",
    "shared": "shared memory",
    "warps": "warps",
    "blocks": "blocks",
    "barriers": "barriers",
}


def exact_bytes(count: int) -> str:
    """`50,176 B`."""
    return f"{count:,} B"


def kilobytes(count: int) -> str:
    """`512 B` below a KB, else `49.0 KB`."""
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KB"


def edge(count: int) -> str:
    """An edge where the byte decides: `56 KB` where that is exact, else `33,024 B`."""
    return f"{count // 1024} KB" if count and count % 1024 == 0 else exact_bytes(count)


def percent(fraction: float) -> str:
    """Whole percent, halves up: 0.625 -> `63 %`."""
    return f"{int(fraction * 100 + 0.5)} %"


def share(fraction: float) -> str:
    """As `percent`; `< 1 %` for what is there but rounds to nothing."""
    return "< 1 %" if 0 < fraction < 0.005 else percent(fraction)


def waves(count: float) -> str:
    """`13.84`; two digits below one wave: `0.15`, `0.0026`."""
    return f"{count:.2g}" if count < 1 else f"{count:,.2f}"


def grid(blocks: int | None) -> str:
    """`a grid of 16 blocks`."""
    return f"a grid of {counted(blocks, 'block')}" if blocks else "the grid"


def counted(count: int, noun: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def joined(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    parts = list(words)
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1] if parts else ""


def limiters(occupancy: Occupancy, *, short: bool = False) -> str:
    """`registers and warps`; short (for the lens): `registers, warps`."""
    return ", ".join(occupancy.limiters) if short else limiter_words(occupancy.limiters)


def limiter_words(names: Iterable[str]) -> str:
    """`registers and shared memory`."""
    return joined(_WORDS[name] for name in names)


def block_size(block: tuple[int, int, int]) -> str:
    """`256`, `16x16`, `8x8x4`."""
    sizes = list(block)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return "x".join(str(size) for size in sizes)


def place(where: str, path: str) -> str:
    """A launch's `where` as seen from the file at `path`: `gemm.cu:41` -> `l.41` inside gemm.cu itself."""
    if match := _LINE.fullmatch(where):
        return f"l.{match['line']}"
    if match := _PLACE.fullmatch(where):
        name = PurePath(match["file"]).name
        return f"l.{match['line']}" if name == PurePath(path).name else f"{name}:{match['line']}"
    return where


def launch_origin(launch: Launch, path: str) -> str:
    """Where a launch was learnt: `from l.41`, `from __launch_bounds__`, `set by --block`."""
    if launch.origin == "launch_bounds":
        return "from __launch_bounds__"
    if launch.origin == "override":
        return f"set by {launch.where}"
    return f"from {place(launch.where, path)}"


def launch_words(launch: Launch, path: str) -> str:
    """`block 16x16 from l.41`."""
    return f"block {block_size(launch.block)} {launch_origin(launch, path)}"


def launch_bounds(resources: Resources) -> str | None:
    """The bound as it stands in the source as far as the cubin tells: `__launch_bounds__(1024, 2)`."""
    if resources.max_block is None:
        return None
    threads = resources.max_block[0] * resources.max_block[1] * resources.max_block[2]
    blocks = resources.min_blocks_per_sm
    return f"__launch_bounds__({threads}, {blocks})" if blocks else f"__launch_bounds__({threads})"


def registers(resources: Resources, noun: str = "registers") -> str:
    """`36 registers`; where linking raises the count `>= 24 registers`, with the number after it where it is known."""
    said = f"{'>= ' if resources.relocatable else ''}{resources.registers} {noun}"
    linked = resources.linked
    if linked is None:
        return said
    return f"{said}, {'>= ' if linked.resources.relocatable else ''}{linked.resources.registers} linked"


def linking(resources: Resources) -> str:
    """Why registers are a lower bound, and what is known of them after a link, as a sentence; "" if they are not."""
    if resources.linked is not None:
        after = resources.linked.resources
        stack = "" if after.stack_bytes is None else f" and a stack of {exact_bytes(after.stack_bytes)}"
        least = "at least " if after.relocatable else ""
        names = joined(PurePath(file).name for file in resources.linked.with_files)
        return f"Linked with {names} it has {least}{after.registers} registers{stack}."
    if resources.calls_through_pointers:
        return "Functions of other files that it calls through pointers may need more registers."
    return "Called functions are linked later: registers may rise." if resources.relocatable else ""


def blocks_per_sm(occupancy: Occupancy) -> str:
    """`2 blocks/SM`, `at most 4 blocks/SM` where the number is only a bound."""
    bound = "at most " if occupancy.is_upper_bound else ""
    return bound + counted(occupancy.blocks_per_sm, "block") + "/SM"


def own_shared_bytes(resources: Resources, launch: Launch) -> int | None:
    """Static and dynamic shared memory of one block, without the system's reserve; None where it is unknown."""
    static = resources.in_program.static_shared_bytes
    if launch.dynamic_shared_bytes is not None:
        return static + launch.dynamic_shared_bytes
    return static if resources.uses_dynamic_shared is False else None


def shared(resources: Resources, launch: Launch | None) -> str:
    """`2.0 KB shared`, `48.0 KB shared (dynamic)`, `50.0 KB shared (48.0 KB dynamic)`, or that it is unknown."""
    static = resources.in_program.static_shared_bytes
    dynamic = launch.dynamic_shared_bytes if launch else None
    if dynamic:
        return f"{kilobytes(static + dynamic)} shared ({kilobytes(dynamic) + ' ' if static else ''}dynamic)"
    if dynamic is None and resources.uses_dynamic_shared:
        known = f"{kilobytes(static)} static + " if static else ""
        return f"{known}dynamic shared unknown"
    return f"{kilobytes(static)} shared" if static else "no shared"


def is_conditional(analysis: LaunchAnalysis, resources: Resources) -> bool:
    """Whether the occupancy stands only up to some size of dynamic shared memory that nobody told."""
    return analysis.launch.dynamic_shared_bytes is None and resources.uses_dynamic_shared is not False


def condition(analysis: LaunchAnalysis) -> str:
    """`up to 56 KB of dynamic shared memory`; the empty string where no edge is known."""
    holds = analysis.holds_to_dynamic_shared_bytes
    return "" if holds is None else f"up to {edge(holds)} of dynamic shared memory"


def step(cliff: Cliff) -> str:
    """`41 registers -> 5 blocks`, `50,176 B shared -> 2 blocks`, `65 registers -> cannot start`."""
    value = f"{cliff.to_value} registers" if cliff.resource == "registers" else f"{exact_bytes(cliff.to_value)} shared"
    return f"{value} -> {counted(cliff.blocks_per_sm, 'block') if cliff.blocks_per_sm else 'cannot start'}"


def nearest(cliffs: Iterable[Cliff], resource: str, direction: str) -> Cliff | None:
    """The one step of this resource in this direction, where there is one."""
    return next((c for c in cliffs if c.resource == resource and c.direction == direction), None)


def board(profile: HwProfile) -> str:
    """What a person says: `RTX 3070 Ti` for `GeForce RTX 3070 Ti`."""
    return profile.name.removeprefix("NVIDIA ").removeprefix("GeForce ")


def no_limits(arch: str) -> str:
    """Of a machine that is not on record."""
    return f"no limits of {arch} are on record"


def spills(stores: int | None, loads: int | None) -> str:
    """`800 B spill stores, 828 B spill loads`."""
    return f"{exact_bytes(stores or 0)} spill stores, {exact_bytes(loads or 0)} spill loads"


def local_words(kernel: KernelAnalysis) -> str | None:
    """What the kernel keeps in local memory, told apart: spilled registers, or a frame without any; None: nothing."""
    resources = kernel.binary.resources
    stores, loads = resources.spill_store_bytes, resources.spill_load_bytes
    if stores or loads:
        return spills(stores, loads)
    if not own_local_bytes(resources):
        return None
    known = "" if stores == 0 and loads == 0 else ", whether by spills is not known"
    return f"{local_size(resources, 'of local memory per thread')}{known}"


def own_local_bytes(resources: Resources) -> int:
    """Local memory that a thread of the kernel has for its own data; with what it calls where only that is known."""
    frame = resources.stack_bytes if resources.frame_bytes is None else resources.frame_bytes
    return max(frame or 0, resources.local_bytes)


def local_size(resources: Resources, where: str) -> str:
    """`40 B <where>`, or `72 B <where> with the functions it calls`."""
    calls = " with the functions it calls" if resources.frame_bytes is None else ""
    return f"{exact_bytes(own_local_bytes(resources))} {where}{calls}"


def peak_provenance(peak: Peak) -> str:
    """How a peak is known: `published`, `computed`, `published and computed`, `conflict`."""
    return "published and computed" if peak.provenance == "both agree" else peak.provenance


def precision(name: str) -> str:
    """A profile's precision in words: `fp16_f32acc` -> `fp16 tensor, fp32 accumulate`."""
    kind, _, rest = name.partition("_")
    if rest.endswith("acc"):
        return f"{kind} tensor, fp{rest[1:-3]} accumulate"
    is_tensor = rest == "tensor" or kind in ("tf32", "int8", "int4", "fp4", "b1")
    return f"{kind} tensor" if is_tensor else kind
