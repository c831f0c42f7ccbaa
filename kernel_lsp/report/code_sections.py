"""The report's sections that come from a kernel's instructions: ratio, mix, memory access."""

from __future__ import annotations

from kernel_lsp.cubin.mix import counted_rows
from kernel_lsp.findings import wording
from kernel_lsp.model.kernel_analysis import KernelAnalysis
from kernel_lsp.model.kernel_sass import KernelSass, SassLoop
from kernel_lsp.model.line_sass import LocalLine, local_lines
from kernel_lsp.report.commands import ncu, sass
from kernel_lsp.report.loop_words import cp_async_words, loop_place, main_loops, peak_sentence, work_words
from kernel_lsp.report.sass_words import Places, opcode_counts
from kernel_lsp.report.section import Block, BuildFacts, Bullets, Command, Paragraph, Section, Table

MOST_LOOPS = 8
MOST_FAMILIES = 14
MOST_LINES = 8
_MEMORY = ("LD", "ST", "ATOM", "RED", "UBLKCP", "UTMA", "SULD", "SUST", "TEX", "TLD", "SHFL", "BAR")


def ratio(kernel: KernelAnalysis, path: str, build: BuildFacts) -> Section:
    """Operations over global loads of each inner loop, and what that says of asynchronous copies."""
    code = kernel.sass
    if code is None or code.loops is None:
        return _unknown("ratio", "Compute to load ratio", kernel, build)
    loops, places = main_loops(code), Places(path)
    if not loops:
        said = "The kernel has no loop that computes on or loads from global memory."
        return Section("ratio", "Compute to load ratio", True, (Paragraph(said),))
    blocks: list[Block] = [
        Paragraph(
            "Per iteration of the compiled loop, which may hold several of the source's. Below 5 : 1 asynchronous "
            "copies paid, above 20 : 1 they did not (estimated, from two kernels on one board)."
        ),
        Table(
            ("loop", "depth", "work of an iteration", "ratio", "class", "asynchronous copies"),
            tuple(_loop_row(loop, places) for loop in loops[:MOST_LOOPS]),
        ),
    ]
    if len(loops) > MOST_LOOPS:
        blocks.append(Paragraph(f"{len(loops) - MOST_LOOPS} more loops are left out."))
    return Section("ratio", "Compute to load ratio", True, tuple(blocks))


def _loop_row(loop: SassLoop, places: Places) -> tuple[str, ...]:
    found = loop.ratio
    return (
        loop_place(loop.work, places),
        str(loop.work.depth),
        work_words(loop.work),
        "-" if found.ratio is None else f"{found.ratio:.3g} : 1",
        found.kind or found.why or "-",
        cp_async_words(found) or found.cp_async_why or "-",
    )


def mix(kernel: KernelAnalysis, path: str, build: BuildFacts) -> Section:
    """Instructions by family, each once however often it runs."""
    code = kernel.sass
    if code is None or code.mix is None:
        return _unknown("mix", "Instruction mix", kernel, build)
    total = sum(code.mix.values())
    rows = [(family, f"{count:,}", wording.percent(count / total)) for family, count in code.mix.items()]
    rest = sum(count for count in list(code.mix.values())[MOST_FAMILIES:])
    if rest:
        rows = [
            *rows[:MOST_FAMILIES],
            (f"{len(code.mix) - MOST_FAMILIES} others", f"{rest:,}", wording.percent(rest / total)),
        ]
    said = f"{wording.counted(total, 'instruction')}, each counted once however often it runs; moves that the compiler "
    said += f"sends to arithmetic pipes count as MOV. {peak_sentence(code, Places(path))}"
    blocks: list[Block] = [Paragraph(said.strip()), Table(("family", "instructions", "share"), tuple(rows))]
    if code.text_why:
        blocks.append(Paragraph(f"Some instructions are not known: {code.text_why}"))
    return Section("mix", "Instruction mix", True, tuple(blocks))


def _share(fraction: float) -> str:
    return "< 1 %" if fraction < 0.005 else wording.percent(fraction)


def memory_access(kernel: KernelAnalysis, path: str) -> Section:
    """Widths of the memory instructions and local memory by line; coalescing and conflicts need a measurement."""
    blocks: list[Block] = []
    code = kernel.sass
    if code is not None and code.mix is not None:
        rows = [
            (name, f"{count:,}")
            for name, count in opcode_counts(code.sass, counted_rows(code.sass, code.code))
            if name.startswith(_MEMORY)
        ]
        if rows:
            blocks.append(Table(("instruction", "count"), tuple(rows)))
    local = wording.local_words(kernel)
    known = f"{local}." if local else "No local memory: no register is spilled, no array indexed at run time."
    if kernel.binary.resources.spill_store_bytes is None and not local:
        known = "Whether registers are spilled is not known."
    blocks.append(Paragraph(known))
    if code is not None:
        items = _local_items(code, path)
        if items:
            blocks.append(Bullets(items))
    measured: tuple[Block, ...] = ()
    if kernel.measured is not None:
        from kernel_lsp.report.measured_sections import memory_blocks

        measured = memory_blocks(kernel.measured, Places(path))
    if measured:
        return Section("memory_access", "Memory access", True, (*blocks, *measured))
    blocks += [
        Paragraph("Coalescing, sectors per request and bank conflicts are not known. This measures them:"),
        Command(ncu(kernel, "--section MemoryWorkloadAnalysis --section MemoryWorkloadAnalysis_Tables")),
    ]
    return Section("memory_access", "Memory access", False, tuple(blocks))


def _local_items(code: KernelSass, path: str) -> tuple[str, ...]:
    places = Places(path)
    spills = [f"spilled, {_local_item(line, places)}" for line in local_lines(code, "spill")[:MOST_LINES]]
    arrays = [f"array, {_local_item(line, places)}" for line in local_lines(code, "array")[:MOST_LINES]]
    return (*spills, *arrays)


def _local_item(line: LocalLine, places: Places) -> str:
    depth = f", loop depth {line.loop_depth}" if line.loop_depth else ""
    stored, loaded = wording.exact_bytes(line.store_bytes), wording.exact_bytes(line.load_bytes)
    return f"{places.chain(line.frames)}: {line.stores} STL ({stored}), {line.loads} LDL ({loaded}){depth}"


def _unknown(key: str, title: str, kernel: KernelAnalysis, build: BuildFacts) -> Section:
    why = kernel.sass_why if kernel.sass is None else kernel.sass.text_why
    return Section(
        key, title, False, (Paragraph(f"Not known: {why.rstrip('.')}. This shows the instructions:"), sass(build))
    )
