"""Loads in a row leave the server's memory where it was; what is kept of reports is bounded."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from kernel_lsp.session.pipeline import Pipeline
from kernel_lsp.session.settings import Settings
from tests.source_page import source_page
from tests.unit.session.test_session_reports import SCALE, Desk

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "ncu"
MB = 1 << 20


def resident_bytes() -> int:
    """Of this process, after what is garbage is gone."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_pages_that_change_often(tmp_path: Path, pipeline: Pipeline) -> None:
    """A page of 400 instructions, read 26 times with other numbers and shown each time."""
    desk = Desk(tmp_path, pipeline)
    page = tmp_path / "a.csv"
    text = SCALE + "// filler\n" * 400
    (tmp_path / "scale.cu").write_text(text)

    def write(number: int) -> None:
        samples = {line: (number, line % 7, 1) for line in range(1, 400)}
        page.write_text(source_page("scale(float const *, float *)", "/home/ci/scale.cu", text, samples))
        os.utime(page, (1_000_000 + number, 1_000_000 + number))

    try:
        write(1)
        desk.use(str(page))
        desk.open("scale.cu")
        await desk.rest()
        after: list[int] = []
        for number in range(2, 28):
            write(number)
            desk.session.reports.shelf.look(search=False)
            await desk.rest()
            assert desk.waits() == number
            after.append(resident_bytes())
    finally:
        await desk.session.end()
    settled = max(after[11:15])  # what is kept by design is there by then
    assert max(after[20:]) - settled < 8 * MB, [each // MB for each in after]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"left out: there are no measured reports at {DATA}")
async def test_reports_in_a_row(tmp_path: Path, pipeline: Pipeline) -> None:
    """Twelve different reports (more than are kept), two times; every load runs the reader's process."""
    real = (DATA / "gtx1660_divergence_basic.ncu-rep").read_bytes()
    at = real.index(b"GTX 1660")
    after: list[int] = []
    for number in range(24):
        report = tmp_path / "run.ncu-rep"
        report.write_bytes(real[:at] + b"GTX %04d" % (number % 12) + real[at + 8 :])
        loaded = await pipeline.load_report(report, Settings())
        assert f"{number % 12:04}" in str(loaded.kernels[0].profile.device.name)
        after.append(resident_bytes())
    assert max(after[12:]) - max(after[8:12]) < 8 * MB, [each // MB for each in after]
