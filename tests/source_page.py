"""A source page of ncu (view cuda,sass) made by hand: a text's lines, one instruction on each line with samples."""

from __future__ import annotations

from collections.abc import Mapping

HEADER = (
    '"Line No","Source","Address","Source","# Samples","Instructions Executed","stall_long_sb","stall_wait",'
    '"stall_selected"'
)


def source_page(
    kernel: str, path: str, text: str, samples: Mapping[int, tuple[int, int, int]], base: int = 0x100
) -> str:
    """`kernel` as ncu writes it; `samples` by line: those of long scoreboard, wait, selected. 1,000 executions each."""
    rows = [f'"File Path","{path}"', f'"Function Name","{kernel}"', HEADER]
    for number, line in enumerate(text.splitlines(), 1):
        counts = samples.get(number, (0, 0, 0))
        cells = ",".join(f'"{count}"' for count in (sum(counts), 1000 if number in samples else 0, *counts))
        rows.append(f'"{number}","{line}","-","-",{cells}')
        if number in samples:
            rows.append(f'"","","{base:#x}","FADD R1, R1, R1",{cells}')
            base += 16
    return "\n".join(rows) + "\n"
