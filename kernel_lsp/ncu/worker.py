"""The child process that alone imports NVIDIA's ncu_report: one request, one report, one answer, then it ends.

    python -m kernel_lsp.ncu.worker REQUEST       (REQUEST: JSON, see `ncu/request.py`)

The library aborts on some arguments, keeps the memory of every report it has loaded, holds the interpreter's lock for
a second, writes to stderr, and says nothing about damaged files; hence a process for each report, whose end gives
everything back. The answer on stdout is one line of JSON and the columns behind it as raw little-endian arrays
(`ncu/answer.py` reads it). Only the standard library is used beside ncu_report, because each import is waited for.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from kernel_lsp.ncu.embedded_cubins import embedded_cubins

MAGIC = b"NVR\0"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_CUBIN_BUDGET_BYTES = 40 << 20
_INSTRUCTION_BYTES = 16
_MAX_INSTRUCTIONS = 1 << 20


class ReportError(Exception):
    """The report cannot be read; the message says why, for people."""


class _Blobs:
    """The binary part of the answer: equal blobs are kept once."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._index: dict[bytes, int] = {}

    def add(self, data: bytes) -> int:
        known = self._index.get(data)
        if known is None:
            known = self._index[data] = len(self.parts)
            self.parts.append(data)
        return known


def main() -> int:
    """Answer the request of the command line."""
    out = _own_stdout()
    request = json.loads(sys.argv[1])
    _limit(int(request["memory_bytes"]), int(request["cpu_seconds"]))
    blobs = _Blobs()
    try:
        head = _answer(request, blobs)
    except ReportError as error:
        head = {"error": str(error)}
    except MemoryError:
        head = {"error": "needs more memory than allowed"}
    head["blob_bytes"] = [len(part) for part in blobs.parts] if "error" not in head else []
    out.write(_json(head) + b"\n")
    if "error" not in head:
        for part in blobs.parts:
            out.write(part)
    out.flush()
    # Not through the interpreter's exit: the library's threads have been seen to hang there.
    os._exit(0)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=str).encode("ascii")


def _own_stdout() -> BinaryIO:
    """The real stdout for the answer alone; whatever the library prints goes to stderr."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(kept, "wb")


def _limit(memory_bytes: int, cpu_seconds: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    for what, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CPU, cpu_seconds)):
        _, hard = resource.getrlimit(what)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (limit, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(request: dict[str, Any], blobs: _Blobs) -> dict[str, Any]:
    path: str = request["report"]
    on_disk = Path(path).read_bytes()
    raw = _raw_bytes(on_disk, int(request["unpacked_bytes"]))
    try:
        import ncu_report
    except ImportError as error:
        raise ReportError(f"not installed: {error}") from error
    context = ncu_report.load_report(_with_right_suffix(path, packed=not raw.startswith(MAGIC) or raw is not on_disk))
    actions = [action for group in context for action in group]
    if not actions:
        raise ReportError("damaged: it holds no kernel that ncu_report can read")
    names = [_name(action, action.NameBase_MANGLED) for action in actions]
    if any(name is None for name in names):
        raise ReportError("cut short: a kernel in it has neither name nor metrics")
    reader = _ActionReader(request, blobs)
    return {
        "library_version": context.get_version(),
        # Each in a blob of its own: the server parses them one by one, and answers others between.
        "actions": [blobs.add(_json(reader.read(action))) for action in actions],
        **_cubins(raw, {str(name) for name in names}, blobs),
        "collector": _collector(raw),
    }


def _with_right_suffix(path: str, *, packed: bool) -> str:
    """ncu_report decides by the suffix how to read; a report under another name gets a copy in this run's folder."""
    suffix = ".ncu-repz" if packed else ".ncu-rep"
    if path.endswith(suffix):
        return path
    import shutil

    return shutil.copyfile(path, f"report{suffix}")


def _raw_bytes(data: bytes, most_bytes: int) -> bytes:
    """The report's bytes, unpacked where it is one zstd frame; none for a packed one without an unpacker."""
    if data.startswith(MAGIC):
        return data
    if not data.startswith(ZSTD_MAGIC):
        raise ReportError("no Nsight Compute report: it does not start as one")
    unpacked = _unpacked(data, most_bytes)
    if unpacked and not unpacked.startswith(MAGIC):
        raise ReportError("no Nsight Compute report: what is packed in it does not start as one")
    return unpacked


def _unpacked(data: bytes, most_bytes: int) -> bytes:
    from importlib import import_module

    for name in ("compression.zstd", "backports.zstd"):  # the first from Python 3.14 on
        try:
            decompressor = import_module(name).ZstdDecompressor()
            break
        except ImportError:
            continue
    else:
        return b""
    try:
        unpacked: bytes = decompressor.decompress(data, most_bytes)
    except Exception as error:  # the module's own error class differs by Python version
        raise ReportError(f"damaged: it cannot be unpacked ({error})") from error
    if not decompressor.eof:
        if len(unpacked) >= most_bytes:
            raise ReportError(f"larger than {most_bytes >> 20} MB when unpacked")
        raise ReportError("cut short: its compressed data ends early")
    return unpacked


def _collector(raw: bytes) -> str | None:
    """ncu's own version, "2024.1.1.0 (build 33998838)": the report says it only in passing."""
    import re

    found = re.search(rb"20\d\d\.\d+\.\d+\.\d+ \(build \d+\)", raw)
    return found[0].decode("ascii") if found else None


def _cubins(raw: bytes, kernels: set[str], blobs: _Blobs) -> dict[str, Any]:
    """The modules that hold the report's kernels."""
    kept: list[int] = []
    left_out = 0
    room = _CUBIN_BUDGET_BYTES
    wanted = [b".text." + name.encode("utf-8", "surrogateescape") for name in kernels]
    for cubin in embedded_cubins(raw):
        if not any(section in cubin for section in wanted):
            continue
        room -= len(cubin)
        if room < 0:
            left_out += 1
        else:
            kept.append(blobs.add(cubin))
    return {"cubins": kept, "cubins_left_out": left_out, "unpacked": bool(raw)}


def _name(action: Any, base: int) -> str | None:
    name = action.name(base)
    return str(name) if name else None


class _ActionReader:
    """Reads what the request asks for from one action (a launch of a kernel) after the other."""

    def __init__(self, request: dict[str, Any], blobs: _Blobs) -> None:
        self._names = frozenset(request["metrics"])
        self._prefixes = tuple(request["prefixes"])
        self._lists = tuple(request["lists"])
        self._columns = frozenset(request["columns"])
        self._strings = frozenset(request["by_opcode"])
        self._sass = bool(request["sass"])
        self._blobs = blobs
        self._places: dict[int, tuple[str, int] | None] = {}

    def read(self, action: Any) -> dict[str, Any]:
        present: tuple[str, ...] = action.metric_names()
        available = frozenset(present)
        wanted = {name for name in present if name in self._names or name.startswith(self._prefixes)}
        metrics: dict[str, tuple[Any, str]] = {}
        for name in self._lists:
            if name in available:  # its value names the metrics that it is the largest of
                metrics[name] = (value := action.metric_by_name(name).value(), "")
                wanted.update(part for part in str(value or "").split(",") if part in available)
        for name in sorted(wanted):
            metric = action.metric_by_name(name)
            if metric is not None:
                metrics[name] = (metric.value(), metric.unit())
        columns = {name: column for name in self._columns & available if (column := self._column(action, name))}
        functions = self._functions(action)
        return {
            "mangled": _name(action, action.NameBase_MANGLED),
            "name": _name(action, action.NameBase_DEMANGLED) or _name(action, action.NameBase_FUNCTION),
            "metrics": metrics,
            "columns": columns,
            "by_opcode": {name: self._by_opcode(action, name) for name in self._strings & available},
            "functions": functions,
            "lines": self._lines(action, columns),
            "sources": self._sources(action) if columns else {},
            "rules": action.rule_results_as_dicts(),
            "markers": [_marker(marker) for marker in action.source_markers()],
            "sass": self._sass_of(action, functions) if self._sass else None,
        }

    def _column(self, action: Any, name: str) -> tuple[int, int] | None:
        """(blob of the addresses, blob of the values); the lists of two metrics differ in length."""
        metric = action.metric_by_name(name)
        count = metric.num_instances()
        if not count or not metric.has_correlation_ids():
            return None
        ids = metric.correlation_ids()
        value: Callable[[int], float] = (
            metric.as_double
            if metric.kind(0) in (metric.ValueKind_DOUBLE, metric.ValueKind_FLOAT)
            else metric.as_uint64
        )
        pcs = array("Q", [ids.as_uint64(index) for index in range(count)])
        values = array("d", [value(index) for index in range(count)])
        return self._array(pcs), self._array(values)

    def _array(self, values: array[Any]) -> int:
        if sys.byteorder == "big":
            values.byteswap()
        return self._blobs.add(values.tobytes())

    def _sources(self, action: Any) -> dict[str, int]:
        """Embedded texts by path. Only counters by line have a use of them, and looking may take 0.2 s an action."""
        return {path: self._text(text) for path, text in dict(action.source_files()).items() if text}

    def _text(self, text: str) -> int:
        return self._blobs.add(text.encode("utf-8", "surrogateescape"))

    def _by_opcode(self, action: Any, name: str) -> dict[str, int]:
        metric = action.metric_by_name(name)
        ids = metric.correlation_ids()
        if ids is None:
            return {}
        return {str(ids.as_string(index)): metric.as_uint64(index) for index in range(metric.num_instances())}

    def _functions(self, action: Any) -> list[int]:
        """Start addresses: the kernel's first, then those of the functions it calls."""
        metric = action.metric_by_name("launch__function_pcs")
        if metric is None:
            return []
        return [int(metric.value(index)) for index in range(metric.num_instances())] or [int(metric.value())]

    def _lines(self, action: Any, columns: dict[str, tuple[int, int]]) -> dict[str, Any]:
        """File and line of every address of a column, as ncu itself says (the innermost inlined one)."""
        pcs: set[int] = set()
        for addresses in {pair[0] for pair in columns.values()}:
            each = array("Q", self._blobs.parts[addresses])
            if sys.byteorder == "big":
                each.byteswap()
            pcs.update(each)
        files: dict[str, int] = {}
        rows = (array("Q"), array("Q"), array("Q"))
        for pc in sorted(pcs):
            if pc not in self._places:  # a function stays where it is in all launches of a report
                info = action.source_info(pc)
                self._places[pc] = (str(info.file_name()), int(info.line())) if info is not None else None
            place = self._places[pc]
            if place is not None:
                for column, value in zip(rows, (pc, files.setdefault(place[0], len(files)), place[1]), strict=True):
                    column.append(value)
        return {"files": list(files), "rows": [self._array(column) for column in rows]}

    def _sass_of(self, action: Any, functions: list[int]) -> list[tuple[int, str]]:
        return [pair for start in functions for pair in _instructions(action, start)]


def _instructions(action: Any, start: int) -> Iterator[tuple[int, str]]:
    for pc in range(start, start + _MAX_INSTRUCTIONS * _INSTRUCTION_BYTES, _INSTRUCTION_BYTES):
        text = action.sass_by_pc(pc)
        if not text:
            return
        yield pc, text


def _marker(marker: Mapping[str, Any]) -> dict[str, Any]:
    """A marker is on an instruction or on a source line; it has only the key of its kind."""
    location = marker.get("source_location") or {}
    return {
        "rule": marker["rule_identifier"],
        "message": marker["message"],
        "pc": marker.get("source_address"),
        "file": location.get("file_name"),
        "line": location.get("line"),
    }


if __name__ == "__main__":
    sys.exit(main())
