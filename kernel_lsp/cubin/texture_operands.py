"""Turns the operands of a texture or surface instruction into how many registers each spans.

    TEX.LL.AOFFI.DC P0, R14, R12, R10, R4, UR6, 2D, 0x7
    |               |   |    |    |    |   |    |   components asked for: the second result takes the first two
    |               |   |    |    |    |   |    coordinates
    |               |   |    |    |    |   handle; none where it is in the source registers (bindless)
    |               |   |    |    |    what the modifiers ask for: level, offset, reference value
    |               |   |    |    coordinates
    |               whether all of it is resident, only where asked for

Under .SCR coordinates and the rest form one list of which the first two stand in the first source. The rules were
fitted to nvdisasm's life ranges on sm_75 to sm_90; from sm_100 on these leave out each list's last register.
"""

from __future__ import annotations

import re

from kernel_lsp.cubin.opcodes import Opcode
from kernel_lsp.cubin.operand_text import Operand

_COORDINATES = {"1D": 1, "ARRAY_1D": 2, "2D": 2, "ARRAY_2D": 3, "3D": 3, "CUBE": 3, "ARRAY_CUBE": 4}
_SURFACE_COORDINATES = {"1D": 1, "1D_ARRAY": 2, "2D": 2, "2D_ARRAY": 3, "3D": 3}
# One register each behind the coordinates; PTP (an offset for each of four texels) has two.
_EXTRAS = {"LL": 1, "LB": 1, "AOFFI": 1, "DC": 1, "MS": 1, "PTP": 2}
_MOST_COMPONENTS = 4
_MASK = re.compile(r"0x([0-9a-f])")


def texture_width(opcode: Opcode, operands: tuple[Operand, ...], destinations: int, position: int) -> int | None:
    """Registers of one operand of a texture fetch or query; None where the dimensions are not in the text."""
    operand = operands[position]
    if operand.is_bank("UR"):
        return 2
    if position < destinations:
        return _result(opcode, operands, destinations, position)
    if opcode.family == "TXQ":  # the level, and the handle where no other operand is one
        return 2 if "B" in opcode.modifiers else 1
    sources = [at for at in range(destinations, len(operands)) if operands[at].is_bank("R")]
    kind = next((at for at, each in enumerate(operands) if each.text in _COORDINATES), None)
    if kind is None or not sources:
        return None
    is_bindless = sources[-1] + 1 == kind
    coordinates = _COORDINATES[operands[kind].text]
    more = sum(count for token, count in _EXTRAS.items() if token in opcode.modifiers) + is_bindless
    if opcode.family == "TXD":
        spatial = coordinates - operands[kind].text.startswith("ARRAY")
        return coordinates + more if position == sources[0] else 2 * spatial
    if len(sources) == 1:
        return coordinates + more
    if "SCR" in opcode.modifiers:
        first = min(2, coordinates + more - 1)
        return first if position == sources[0] else coordinates + more - first
    return coordinates if position == sources[0] else max(1, more)


def _result(opcode: Opcode, operands: tuple[Operand, ...], destinations: int, position: int) -> int:
    """Components in two halves: the last destination takes the first two of them, the one before it the rest."""
    mask = _MASK.fullmatch(operands[-1].text)
    components = int(mask[1], 16).bit_count() if mask else _MOST_COMPONENTS
    if "F16" in opcode.modifiers:
        return 1  # two components a register
    return min(2, components) if position == destinations - 1 else max(1, components - 2)


def surface_width(opcode: Opcode, position: int, operand: Operand) -> int | None:
    """Registers of one operand of a surface access: data and coordinates in either order, then the handle."""
    if operand.is_address:
        return next((_SURFACE_COORDINATES[each] for each in opcode.modifiers if each in _SURFACE_COORDINATES), None)
    if position == 2 or operand.is_bank("UR"):
        return 1
    if "P" in opcode.modifiers[:1]:  # formatted: one register a component
        return next((len(each) for each in opcode.modifiers if each in ("R", "RG", "RGB")), _MOST_COMPONENTS)
    return (opcode.width_bytes or 4) + 3 >> 2
