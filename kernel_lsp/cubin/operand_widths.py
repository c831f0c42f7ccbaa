"""Turns (opcode, operand) into how many registers the operand spans, by the opcode's rule in `opcodes.csv`.

The rules were fitted to, and are tested against, the life ranges that NVIDIA's disassembler prints: memory data by
access width, 64-bit pairs by type, matrix operands by shape, addresses by space (global and generic addresses are
64 bits wide, shared, local and constant ones 32), descriptors and TMA coordinate lists by instruction.
"""

from __future__ import annotations

import re

from kernel_lsp.cubin.opcodes import Opcode, matrix_shape
from kernel_lsp.cubin.operand_text import Operand
from kernel_lsp.cubin.texture_operands import surface_width, texture_width

_GATHER4_COORDINATES = 5
_SHARED_FAMILIES = {"LDS", "STS", "ATOMS", "LDSM", "STSM", "LDL", "STL", "SYNCS", "ARRIVES"}
# Rules whose operands in brackets are ordinary addresses.
_PLAIN_ADDRESS_RULES = ("data", "halves", "matrix", "double", "alu64", "wide", "single", "pair")


class OperandWidths:
    """How many registers an operand of one instruction spans, by the rule of its opcode."""

    def __init__(self, opcode: Opcode, operands: tuple[Operand, ...], destinations: int) -> None:
        self._opcode = opcode
        self._tokens = set(opcode.modifiers)
        self._operands = operands
        self._destinations = destinations
        # Sources by role: predicates and immediates stand between registers but are no data.
        self._sources = [at for at in range(destinations, len(operands)) if not operands[at].is_bank("P", "UP")]

    def of(self, position: int, operand: Operand, bank: str, suffix: str) -> int | None:
        """Registers from the named one on; None where the rule cannot tell."""
        special = self._by_rule(position, operand, bank, suffix)
        if special is not None:
            return special if special > 0 else None
        if operand.is_address:
            return self._address(position, operand, bank, suffix)
        return 1

    def _by_rule(self, position: int, operand: Operand, bank: str, suffix: str) -> int | None:
        """The rule's own answer: None to fall through to the address rules and 1, -1 for unknown."""
        rule = self._opcode.registers
        tokens = self._tokens
        is_destination = position < self._destinations
        if operand.is_address and rule in _PLAIN_ADDRESS_RULES:
            return None
        if rule in ("double", "pair", "target"):
            return 2
        if rule == "alu64":
            return 2 if tokens & {"64", "U64", "S64"} else 1
        if rule == "match":
            return 2 if "U64" in tokens and not is_destination else 1
        if rule == "wide":
            third = self._sources[2] if len(self._sources) > 2 else -1
            wide = "WIDE" in tokens
            return 2 if (wide and is_destination) or ((wide or "HI" in tokens) and position == third) else 1
        if rule == "data":
            return (self._opcode.width_bytes or 4) + 3 >> 2
        if rule == "halves":  # 256 bits as two operands of four registers
            return 4
        if rule == "clock":
            return 1 if "32" in tokens else 2
        if rule == "convert":
            return self._convert(is_destination)
        if rule == "movm":
            return 2 if "U4TO8" in tokens and is_destination else 1
        if rule == "matrix":
            return (self._opcode.width_bytes or 4) // 4
        if rule == "tmem":
            return 1 if operand.is_address else (self._opcode.width_bytes or 4) // 4
        if rule in ("mma", "mma_group"):
            return self._matrix(position, operand)
        if rule == "tcgen05":
            return self._tensor_memory(position, operand)
        if rule in ("tensor_map", "bulk"):
            return self._bulk_copy(position, operand)
        if rule == "mbarrier":
            return self._mbarrier(position, operand)
        if rule == "texture":
            return texture_width(self._opcode, self._operands, self._destinations, position) or -1
        if rule == "surface":
            return surface_width(self._opcode, position, operand) or -1
        return None

    def _address(self, position: int, operand: Operand, bank: str, suffix: str) -> int:
        """Registers of an address: 64-bit for global and generic space, 32-bit for shared, local and constant."""
        text = operand.text
        if text.startswith(("desc[", "cx[")):
            # desc[UR4][R2.64]: the descriptor is a pair, and so is a uniform base beside the vector one.
            return 2 if bank == "UR" or ".U32" not in suffix else 1
        if text.startswith(("c[", "tmem[", "idesc[")):
            return 1
        if text.startswith("gdesc["):
            return 2
        family = self._opcode.family
        if family in _SHARED_FAMILIES or (family == "LDGSTS" and position == 0):
            return 1
        if ".U32" in suffix:
            return 1
        if ".64" in suffix or "E" in self._tokens or family == "UTMACCTL":
            return 2
        return 1

    def _convert(self, is_destination: bool) -> int:
        types = [token for token in self._opcode.modifiers if re.fullmatch(r"[FUS](8|16|32|64)|BF16|TF32", token)]
        family = self._opcode.family.removeprefix("U")
        if family == "F2F":
            chosen = types[:1] if is_destination else types[1:2]
            return 2 if chosen == ["F64"] else 1
        if family == "FRND":
            return 2 if "F64" in types else 1
        # F2I writes the integer and reads the float, I2F the other way round.
        float_side = is_destination == (family == "I2F")
        return 2 if (("F64" in types) if float_side else bool({"U64", "S64"} & set(types))) else 1

    def _matrix(self, position: int, operand: Operand) -> int:
        shape = matrix_shape(self._opcode.text)
        if shape is None:
            return -1
        if operand.is_address:  # gdesc[UR4]: the descriptors of A and B beside each other
            return 4
        if position < self._destinations:
            return shape.registers("c")
        role = position - self._destinations
        if self._opcode.registers == "mma_group":
            a_in_registers = not self._operands[self._destinations].is_address
            roles = ("a", "", "c") if a_in_registers else ("", "c")
        else:
            roles = ("a", "b", "c")
        if role < len(roles) and roles[role]:
            return shape.registers(roles[role])
        # Behind the three matrices: sparsity metadata and scales, the first two in a pair where there are both.
        return 2 if role == len(roles) and {"SP", "SF"} <= self._tokens else 1

    def _tensor_memory(self, position: int, operand: Operand) -> int:
        if operand.text.startswith("gdesc["):
            return 2
        if not any(other.text.startswith("idesc[") for other in self._operands[:position]):
            return 1
        if operand.text.startswith("tmem["):
            return 2  # the scales of A and B
        # Lanes not to be written, a bit each, or under .WS columns that are zero.
        return 2 if "WS" in self._tokens else 8 if "2CTA" in self._tokens else 4

    def _bulk_copy(self, position: int, operand: Operand) -> int:
        family = self._opcode.family
        if operand.text.startswith("desc["):
            return 2
        if not operand.is_address:
            return 1
        if self._opcode.registers == "bulk":
            # Global side: a pair. Shared side: the address, and the mbarrier's behind it where it is the target.
            shared_source = family in ("UBLKCP", "UBLKRED") and "G" in self._opcode.modifiers[:1] and position == 1
            return 1 if shared_source else 2
        if position == 1:
            return 2  # the tensor map's address
        dimensions = next((int(t[0]) for t in self._opcode.modifiers if re.fullmatch(r"[1-5]D", t)), 0)
        if not dimensions:
            return -1
        if self._tokens & {"GATHER4", "SCATTER4"}:
            dimensions = _GATHER4_COORDINATES
        # Shared address, then the mbarrier for a load, then the coordinates; a prefetch has coordinates alone.
        return dimensions + {"UTMALDG": 2, "UTMASTG": 1, "UTMAREDG": 1}.get(family, 0)

    def _mbarrier(self, position: int, operand: Operand) -> int:
        if operand.is_address:
            return 1
        if position < self._destinations:
            return 2 if "TRANS64" in self._tokens or "64" in self._tokens else 1
        return 2 if "EXCH" in self._tokens and "64" in self._tokens else 1
