"""A cubin's instructions for the pipeline: one nvdisasm run, decoded off the event loop, the latest kept in memory.

A cubin that nvdisasm refuses is asked for again in parts (see `cubin.salvage`): what it can read is shown.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from kernel_lsp.build.disassemble import Disassembly, disassemble
from kernel_lsp.build.store import BuildStore
from kernel_lsp.cubin.disassembly import ARGUMENTS
from kernel_lsp.cubin.kernel import CubinError
from kernel_lsp.cubin.salvage import Answer, Salvaged, salvage
from kernel_lsp.model.kernel_sass import CubinLines, CubinSass, read_cubin_lines, read_cubin_sass
from kernel_lsp.project.toolchain import Toolchain
from kernel_lsp.session.uris import real_path
from kernel_lsp.source.digest import content_digest

logger = logging.getLogger(__name__)

_MOST_KEPT_INSTRUCTIONS = 1_000_000
_N_AT_ONCE = 1
# nvdisasm takes about half a second for a MB of cubin; on some damaged ones it never ends.
_TIME_LIMIT_S, _TIME_LIMIT_S_PER_MIB = 30.0, 30.0


@dataclass(frozen=True, slots=True)
class Instructions:
    """What is known of a cubin's instructions: `sass`, or None with `why` not.

    `notice` is what the user must act on; `more_to_come`: they are being read.
    """

    sass: CubinSass | None
    why: str
    notice: str | None = None
    more_to_come: bool = False


@dataclass(frozen=True, slots=True)
class _Text:
    """`reason` says why the text is not whole, `lost_why` says it of single sections, by their function."""

    text: str
    reason: str
    lost_why: Mapping[str, str] = field(default_factory=dict)


NO_CODE = Instructions(None, "nothing was built")
BEING_READ = Instructions(None, "the instructions are being read", more_to_come=True)


class InstructionReader:
    """Reads cubins one after another; belongs to one event loop."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._turn = asyncio.Semaphore(_N_AT_ONCE)
        # Not the pipeline's thread: a large cubin must not hold up the next build's first findings.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="instructions")
        self._kept: OrderedDict[tuple[str, ...], CubinSass] = OrderedDict()

    def known(self, cubin: bytes, toolchain: Toolchain, document: Path) -> Instructions | None:
        """The instructions of a cubin that was read in this session, by this nvdisasm, for this document."""
        key = _key(cubin, toolchain, document)
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return Instructions(found, "")

    async def read(
        self, cubin: bytes, toolchain: Toolchain, document: Path, store: BuildStore, time_limit_s: float
    ) -> Instructions:
        """The instructions of a cubin; without nvdisasm their lines alone, and a notice. Raises CancelledError only."""
        limit_s = min(time_limit_s, _TIME_LIMIT_S + _TIME_LIMIT_S_PER_MIB * len(cubin) / (1 << 20))
        async with self._turn:
            loop = asyncio.get_running_loop()
            reading_lines = loop.run_in_executor(self._thread, _lines, cubin, document)  # while nvdisasm runs
            text = await self._text(cubin, toolchain, store, limit_s)
            notice = text.reason or None
            try:
                lines = await reading_lines
                sass = await loop.run_in_executor(self._thread, _decoded, cubin, text, lines)
            except CubinError as error:
                return Instructions(None, str(error), notice)
            except Exception:
                # A fault here must not cost what is known of the kernels.
                logger.exception("the instructions of %s could not be read", document)
                return Instructions(None, "reading the instructions failed, see the log", notice)
        if not text.reason:
            self._keep(_key(cubin, toolchain, document), sass)
        return Instructions(sass, "", notice)

    async def _text(self, cubin: bytes, toolchain: Toolchain, store: BuildStore, limit_s: float) -> _Text:
        """nvdisasm's text; where it refuses the cubin, that of the parts it reads, within the same time again."""

        async def ask(data: bytes, within_s: float) -> Disassembly:
            return await disassemble(
                data, toolchain, store, ARGUMENTS, time_limit_s=within_s, environment=self._environment
            )

        whole = await ask(cubin, limit_s)
        if not whole.complaints:
            return _Text(whole.text, whole.reason)
        ends_at = time.monotonic() + limit_s
        try:
            attempt = salvage(cubin)
            part = next(attempt)
            while True:
                answer = await ask(part, max(0.0, ends_at - time.monotonic()))
                part = attempt.send(Answer(not answer.reason, answer.text, answer.complaints or answer.reason))
        except CubinError:
            return _Text(whole.text, whole.reason)
        except StopIteration as end:
            found: Salvaged = end.value
        # A section that stands in both is taken from the later one.
        lost = {each.section.removeprefix(".text."): each.said for each in found.lost}
        if found.text and not lost:
            return _Text(found.text, "")
        return _Text(whole.text + found.text, whole.reason, lost if found.text else {})

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _keep(self, key: tuple[str, ...], sass: CubinSass) -> None:
        self._kept[key] = sass
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > _MOST_KEPT_INSTRUCTIONS:
            self._kept.popitem(last=False)


def _size(sass: CubinSass) -> int:
    return sum(section.code.stop - section.code.start for section in sass.sections.values())


def _key(cubin: bytes, toolchain: Toolchain, document: Path) -> tuple[str, ...]:
    tool = toolchain.nvdisasm
    return content_digest(cubin), str(document), *((str(tool.path), tool.version or "") if tool else ())


def _lines(cubin: bytes, document: Path) -> CubinLines:
    own = real_path(document)

    @functools.cache
    def spelt(file: str) -> str:
        """The document under its own spelling: the table holds what the compiler was given."""
        return str(document) if real_path(file) == own else file

    return read_cubin_lines(cubin, spelt)


def _decoded(cubin: bytes, text: _Text, lines: CubinLines) -> CubinSass:
    return read_cubin_sass(cubin, text.text, text.reason, lines, text.lost_why)
