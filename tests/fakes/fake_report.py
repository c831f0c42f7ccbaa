"""Writes reports that look like Nsight Compute's to everything of ours, and are read by a stand-in for its library.

`LIBRARY` goes on the PYTHONPATH of the process that reads them; all behind the library is the product's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LIBRARY = Path(__file__).parent / "report_library"


@dataclass(frozen=True)
class FakeLaunch:
    """One launch. `metrics` by name as (value, unit); `columns` by name and address; `lines` by address."""

    mangled: str
    name: str
    base: int
    metrics: Mapping[str, tuple[float | str, str]]
    columns: Mapping[str, Mapping[int, int]]
    lines: Mapping[int, tuple[str, int]]
    sources: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[Mapping[str, Any]] = ()


def write_report(path: Path, launches: Sequence[FakeLaunch], cubin: bytes) -> Path:
    """Write a report of these launches, with the module that holds their code."""
    head = {"collector": "2025.3.1.0 (build 36398880)", "actions": [asdict(launch) for launch in launches]}
    path.write_bytes(b"NVR\0\n" + json.dumps(head).encode() + b"\n" + cubin)
    return path
