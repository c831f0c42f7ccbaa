"""Turns a cubin's attribute for indirect branches (switch tables) into the addresses each of them may reach."""

from __future__ import annotations

import struct

from kernel_lsp.cubin.attributes import Info
from kernel_lsp.cubin.elf import CubinElf
from kernel_lsp.cubin.kernel import CubinError

# Branch offset, two unused half words, number of targets; then the targets' offsets.
_RECORD = struct.Struct("<IHHI")


def indirect_branch_targets(elf: CubinElf, name: str) -> dict[int, tuple[int, ...]]:
    """Byte offset of each indirect branch of the section `.text.<name>` -> byte offsets that it may reach.

    Empty where the cubin has no such attribute. Raises CubinError where a record runs past its end.
    """
    found: dict[int, tuple[int, ...]] = {}
    for attribute in elf.attributes(elf.section(f".nv.info.{name}")):
        if attribute.code != Info.INDIRECT_BRANCH_TARGETS:
            continue
        at, payload = 0, attribute.payload
        while at + _RECORD.size <= len(payload):
            branch, _, _, count = _RECORD.unpack_from(payload, at)
            at += _RECORD.size
            if at + 4 * count > len(payload):
                raise CubinError(f"damaged cubin: the branch targets of {name} run past their end")
            found[branch] = struct.unpack_from(f"<{count}I", payload, at)
            at += 4 * count
    return found
