"""The shelf: which files are read and in which order, what is told of bad ones, and that changes are followed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from kernel_lsp.ncu.kernel_profile import NcuReport
from kernel_lsp.ncu.measured_report import MeasuredReport
from kernel_lsp.ncu.raw_report import NcuError, ReaderMissingError
from kernel_lsp.session import report_shelf
from kernel_lsp.session.report_files import ReportPlaces, find_reports
from kernel_lsp.session.report_shelf import ReportShelf

LONG_AGO = time.time() - 1000


class Reader:
    """Gives a report of each file, its text as the digest; notes what it was asked. Files with "bad" are no reports."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.let = asyncio.Event()
        self.let.set()
        self.missing = False

    async def load(self, path: Path) -> MeasuredReport:
        self.asked.append(path.name)
        await self.let.wait()
        if self.missing:
            raise ReaderMissingError(f"{path}: reading it takes a package")
        text = path.read_text()
        if "bad" in text:
            raise NcuError(f"{path}: no report ({text})")
        return MeasuredReport(NcuReport(str(path), text, None, (), (), ()), (), datetime.now().astimezone())


class Listener:
    def __init__(self) -> None:
        self.changes = 0
        self.settled = 0
        self.problems: list[str] = []
        self.works: list[asyncio.Task[None]] = []
        self.names: list[str] = []

    def reports_changed(self) -> None:
        self.changes += 1

    def reports_settled(self) -> None:
        self.settled += 1

    def reading_reports(self, work: asyncio.Task[None]) -> None:
        self.works.append(work)

    def reading_report(self, name: str) -> None:
        self.names.append(name)

    def report_problem(self, text: str) -> None:
        self.problems.append(text)


Parts = tuple[ReportShelf, Reader, Listener]


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    reader, listener = Reader(), Listener()
    shelf = ReportShelf(reader.load, listener)
    yield shelf, reader, listener
    await shelf.end()


def put(path: Path, text: str = "good", age_s: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (LONG_AGO - age_s, LONG_AGO - age_s))
    return path


def shown(shelf: ReportShelf) -> list[str]:
    return [Path(report.report.path).name for report in shelf.reports]


async def test_the_newest_is_read_first_and_hidden_folders_are_left_alone(tmp_path: Path, parts: Parts) -> None:
    shelf, reader, listener = parts
    put(tmp_path / "old.ncu-rep", age_s=20)
    put(tmp_path / "deep" / "er" / "new.ncu-repz")
    put(tmp_path / "mid.NCU-REP", age_s=10)
    for folder in (".git", "node_modules", "x/site-packages"):
        put(tmp_path / folder / "hidden.ncu-rep")
    put(tmp_path / "page.csv")
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    shelf.use(ReportPlaces(searched=(tmp_path, tmp_path / "deep")))
    await shelf.settled()
    assert reader.asked == ["new.ncu-repz", "mid.NCU-REP", "old.ncu-rep"]
    assert shown(shelf) == reader.asked
    assert (listener.changes, listener.settled, listener.problems) == (3, 1, [])

    shelf.look(search=True)
    await shelf.settled()
    assert len(reader.asked) == 3, "nothing changed"
    assert listener.changes == 3


async def test_files_that_come_change_and_go(tmp_path: Path, parts: Parts) -> None:
    shelf, reader, listener = parts
    first = put(tmp_path / "first.ncu-rep", age_s=10)
    shelf.use(ReportPlaces(searched=(tmp_path,)))
    await shelf.settled()
    put(tmp_path / "second.ncu-rep")
    shelf.look(search=False)
    await shelf.settled()
    assert shown(shelf) == ["first.ncu-rep"], "without a search only known files are looked at"
    shelf.look(search=True)
    await shelf.settled()
    assert shown(shelf) == ["second.ncu-rep", "first.ncu-rep"]
    before = listener.changes
    put(first, "other", age_s=-5)
    shelf.look(search=False)
    await shelf.settled()
    assert [report.report.digest for report in shelf.reports] == ["other", "good"]
    first.unlink()
    shelf.look(search=False)
    await shelf.settled()
    assert shown(shelf) == ["second.ncu-rep"]
    assert listener.changes == before + 2  # its new content came, it went
    assert reader.asked == ["first.ncu-rep", "second.ncu-rep", "first.ncu-rep"]


async def test_bad_reports_are_listed_and_only_named_ones_are_spoken_of(tmp_path: Path, parts: Parts) -> None:
    shelf, reader, listener = parts
    found = put(tmp_path / "w" / "found.ncu-rep", "bad 1")
    named = put(tmp_path / "n" / "named.ncu-rep", "bad 2")
    shelf.use(ReportPlaces((tmp_path / "w",), (str(named), "no/such.ncu-rep", str(tmp_path / "x.txt")), (tmp_path,)))
    await shelf.settled()
    assert shelf.reports == ()
    assert {each.file.path: each.problem for each in shelf.shelved} == {
        found: f"{found}: no report (bad 1)",
        named: f"{named}: no report (bad 2)",
    }
    assert sorted(listener.problems) == [
        f"{named}: no report (bad 2)",
        f"kernelLsp.reports.paths: {tmp_path / 'x.txt'}: no such file or folder",
        "kernelLsp.reports.paths: no/such.ncu-rep: no such file or folder in the workspace",
    ]
    shelf.look(search=True)
    await shelf.settled()
    assert sorted(reader.asked) == ["found.ncu-rep", "named.ncu-rep"], "the same file is not tried again"
    listener.problems.clear()
    shelf.use(ReportPlaces((tmp_path / "w",), (str(found),)))
    await shelf.settled()
    assert listener.problems == [f"{found}: no report (bad 1)"], "it is named now"
    shelf.use(ReportPlaces((tmp_path / "w",), (str(named),), (tmp_path,)))
    await shelf.settled()
    put(found, "good now", age_s=-1)
    shelf.look(search=False)
    await shelf.settled()
    assert shown(shelf) == ["found.ncu-rep"]
    shelf.retry()
    await shelf.settled()
    assert reader.asked.count("named.ncu-rep") == 3  # left the shelf once, and tried again


async def test_a_file_that_is_being_written_is_waited_for(
    tmp_path: Path, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_shelf, "SETTLED_S", 0.2)
    shelf, _, listener = parts
    named = tmp_path / "named.ncu-rep"
    named.write_text("bad: half")  # now
    shelf.use(ReportPlaces(names=(str(named),)))
    await shelf.settled()
    assert shelf.reports == ()
    assert listener.problems == []
    named.write_text("whole")
    while not shelf.reports:  # looked at again by itself
        await asyncio.sleep(0.01)
    assert listener.problems == []

    named.write_text("bad for good")
    shelf.look(search=False)
    await shelf.settled()
    assert [report.report.digest for report in shelf.reports] == ["whole"], "it may still be written to"
    while not listener.problems:
        await asyncio.sleep(0.01)
    assert listener.problems == [f"{named}: no report (bad for good)"]
    await shelf.settled()
    assert shelf.reports == ()


async def test_limits(tmp_path: Path, parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_shelf, "MOST_FOUND", 2)
    monkeypatch.setattr(report_shelf, "MOST_FOUND_BYTES", 50)
    shelf, reader, _ = parts
    for number in range(4):
        put(tmp_path / f"{number}.ncu-rep", age_s=10 * number)
    large = put(tmp_path / "n" / "large.ncu-rep", "x" * 51, age_s=-10)
    shelf.use(ReportPlaces(searched=(tmp_path,)))
    await shelf.settled()
    assert shown(shelf) == ["0.ncu-rep"]
    reasons = {each.file.path.name: each.problem for each in shelf.shelved if each.problem}
    assert "more than is read unasked" in reasons["large.ncu-rep"]
    assert "2 newer reports are read" in reasons["1.ncu-rep"]
    shelf.use(ReportPlaces(searched=(tmp_path,), names=("n",), names_from=(tmp_path,)))
    await shelf.settled()
    assert shown(shelf) == ["large.ncu-rep", "0.ncu-rep", "1.ncu-rep"]
    (tmp_path / "0.ncu-rep").unlink()
    large.unlink()
    shelf.look(search=False)
    await shelf.settled()
    assert shown(shelf) == ["1.ncu-rep", "2.ncu-rep"], "what the limit left out comes in"
    assert reader.asked.count("1.ncu-rep") == 1


async def test_the_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_lsp.session import report_files

    for number in range(20):
        (tmp_path / f"{number}.txt").touch()
    put(tmp_path / "a" / "b" / "far.ncu-rep")
    assert not find_reports(ReportPlaces((tmp_path,))).is_cut
    monkeypatch.setattr(report_files, "_MOST_ENTRIES", 10)
    found = find_reports(ReportPlaces((tmp_path,)))
    assert (found.files, found.is_cut) == ((), True)
    monkeypatch.undo()
    monkeypatch.setattr(report_files, "_DEEPEST", 1)
    assert find_reports(ReportPlaces((tmp_path,))).files == ()


async def test_a_missing_reader_is_asked_for_once(tmp_path: Path, parts: Parts) -> None:
    shelf, reader, listener = parts
    reader.missing = True
    for number in range(5):
        put(tmp_path / f"{number}.ncu-rep", age_s=number)
    shelf.use(ReportPlaces(searched=(tmp_path,)))
    await shelf.settled()
    assert reader.asked == ["0.ncu-rep"]
    assert [each.problem for each in shelf.shelved] == [
        f"{tmp_path / f'{number}.ncu-rep'}: reading it takes a package" for number in range(5)
    ]
    assert listener.problems == []


async def test_stopping_leaves_the_rest_unread_until_asked_again(tmp_path: Path, parts: Parts) -> None:
    shelf, reader, listener = parts
    reader.let.clear()
    for number in range(3):
        put(tmp_path / f"{number}.ncu-rep", age_s=number)
    shelf.use(ReportPlaces(searched=(tmp_path,)))
    while not reader.asked:
        await asyncio.sleep(0.01)
    assert shelf.is_working
    listener.works[-1].cancel()
    await shelf.settled()
    assert [each.problem for each in shelf.shelved] == [
        f"{tmp_path / f'{number}.ncu-rep'}: reading was stopped" for number in range(3)
    ]
    reader.let.set()
    shelf.look(search=True)
    await shelf.settled()
    assert reader.asked == ["0.ncu-rep"]
    shelf.retry()
    await shelf.settled()
    assert len(shelf.reports) == 3


async def test_a_new_file_goes_before_those_that_wait(tmp_path: Path, parts: Parts) -> None:
    shelf, reader, _ = parts
    reader.let.clear()
    for number in range(3):
        put(tmp_path / f"{number}.ncu-rep", age_s=number)
    shelf.use(ReportPlaces(searched=(tmp_path,)))
    while not reader.asked:
        await asyncio.sleep(0.01)
    put(tmp_path / "newest.ncu-rep", age_s=-10)
    shelf.look(search=True)
    reader.let.set()
    await shelf.settled()
    assert reader.asked == ["0.ncu-rep", "newest.ncu-rep", "1.ncu-rep", "2.ncu-rep"]


async def test_nothing_is_started_where_there_is_no_place_to_look(parts: Parts) -> None:
    shelf, _, listener = parts
    shelf.look(search=True)
    assert not shelf.is_working
    assert listener.works == []
