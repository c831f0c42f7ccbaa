"""The numbers of the `.nv.info` attributes that are read here, by the names that `cuobjdump -elf` prints."""

from __future__ import annotations

from enum import IntEnum


class Info(IntEnum):
    """EIATTR numbers. Payloads: `function, value` pairs in `.nv.info`; the kernel's own in `.nv.info.<kernel>`."""

    MAX_THREADS = 0x05  # 3 words: .maxntid
    REQNTID = 0x10  # 3 words: .reqntid
    FRAME_SIZE = 0x11  # function, bytes: its own stack frame
    MIN_STACK_SIZE = 0x12  # function, bytes: with everything it calls; all ones: unknown (recursion)
    EXIT_INSTR_OFFSETS = 0x1C
    REGCOUNT = 0x2F  # function, registers per thread
    INDIRECT_BRANCH_TARGETS = 0x34
    CUDA_API_VERSION = 0x37  # 10 * major + minor of the toolkit
    NUM_BARRIERS = 0x4C  # one byte; toolkits before 13 keep it in the flags of the code section
    ANNOTATIONS = 0x55  # pairs: kind, byte offset in the code section
