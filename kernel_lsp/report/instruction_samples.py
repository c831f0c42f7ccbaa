"""The samples of each instruction of a kernel, where a report measured exactly this code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kernel_lsp.ncu.kernel_measurement import KernelMeasurement


def instruction_samples(measured: KernelMeasurement | None) -> Mapping[int, Mapping[str, int]] | None:
    """By the instruction's address in the kernel its samples by reason, those without any left out.

    None where nothing is measured of this very code.
    """
    if measured is None or measured.placed.fit != "exact" or measured.measured.sampled is None:
        return None
    found = measured.measured.sampled
    return {
        int(found.pc[row]): found.by_reason(np.array([row], np.int64))
        for row in np.flatnonzero(found.samples.any(axis=1)).tolist()
    }
