"""Turns a cubin and nvdisasm's text of it into columns: one element per instruction of every code section.

Addresses and control words come from the cubin itself, opcodes and operands from the text; where the text lacks an
instruction, its form is the empty one and its class "unknown". Instructions are numbered in rows through all sections
of the cubin; a `Code` is the rows of one section. Each distinct instruction text is kept and parsed once, as a `Form`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernel_lsp.cubin.control import ByteColumn, ControlWords, decode_control
from kernel_lsp.cubin.disassembly import read_sections
from kernel_lsp.cubin.elf import CubinElf, Section
from kernel_lsp.cubin.opcodes import Opcode, classes, describe
from kernel_lsp.cubin.operands import BANK_START, Registers, registers_of

INSTRUCTION_BYTES = 16
NO_TARGET = -1
UNKNOWN_TARGET = -2
# Guards as numbers: predicate 0-7 (7 is PT), plus 8 where negated, plus 16 for a uniform one; -1: none.
NO_GUARD = -1
ALWAYS_GUARD = 7  # @PT
NEVER_GUARD = 15  # @!PT: the instruction is never executed
_GUARD_NEGATED, _GUARD_UNIFORM = 8, 16

# sm_80 to sm_89 take a memory descriptor in a uniform pair that nvdisasm does not print: "[R2.64]". Its number stands
# in bits 32-37 of a load and in bits 64-69 of everything else (found by comparing with printed life ranges).
_HIDDEN_DESCRIPTOR_ARCHES = range(80, 90)
_HIDDEN_ADDRESS = re.compile(r"\[(?:R\d+|RZ)\.64[^\]]*\]")
_LABEL = re.compile(r"`\((?P<name>[^)]+)\)")
_DIRECT_BRANCHES = {"BRA", "JMP", "BSSY", "CALL", "WARPSYNC"}
_INDIRECT_BRANCHES = {"BRX", "BRXU", "JMX"}
_TRANSFERS = tuple(_DIRECT_BRANCHES | _INDIRECT_BRANCHES)

IntColumn = npt.NDArray[np.int32]


class Form(NamedTuple):
    """One distinct instruction text without its guard. The empty opcode stands for an instruction without text."""

    opcode: Opcode
    operands: str
    registers: Registers

    @property
    def text(self) -> str:
        """As nvdisasm prints it: "LDG.E R4, desc[UR36][R4.64]"; "" where not known."""
        return f"{self.opcode.text} {self.operands}".rstrip()


@dataclass(frozen=True, slots=True)
class CodeFunction:
    """A function inside a section: the kernel itself, or a device function placed behind it."""

    name: str
    start: int  # rows
    stop: int
    is_kernel: bool


@dataclass(frozen=True, slots=True)
class Code:
    """Rows `start` to `stop` are one code section; rows from `padding` on are the trap loop and NOPs at its end."""

    name: str  # the section's name behind ".text.": that of its kernel or function
    start: int
    padding: int
    stop: int
    functions: tuple[CodeFunction, ...]  # by address; never empty


@dataclass(frozen=True, eq=False)
class Sass:
    """Every instruction of a cubin, as columns of equal length.

    `pc` is the byte offset in the section. `target` is the row a branch, call or BSSY names, NO_TARGET, or
    UNKNOWN_TARGET (indirect, or outside the cubin). `control` is None, with `control_why`, for architectures whose
    control words are not known.
    """

    arch: str
    codes: tuple[Code, ...]
    forms: tuple[Form, ...]
    pc: IntColumn
    form: IntColumn
    guard: npt.NDArray[np.int8]
    target: IntColumn
    control: ControlWords | None
    control_why: str | None

    def __len__(self) -> int:
        return len(self.pc)

    def code(self, name: str) -> Code | None:
        """The section of the kernel or function with this mangled name."""
        return next((code for code in self.codes if code.name == name), None)

    def text(self, row: int) -> str:
        """The instruction with its guard: "@!P0 BRA `(.L_x_1)"; "" where the disassembler gave none."""
        guard = guard_text(int(self.guard[row]))
        form = self.forms[int(self.form[row])].text
        return f"@{guard} {form}" if guard and form else form

    def opcode(self, row: int) -> Opcode:
        """What the instruction of this row is."""
        return self.forms[int(self.form[row])].opcode

    def families(self, start: int, stop: int) -> list[str]:
        """The opcode's first token of each row from `start` to `stop`; "" where not known."""
        per_form = self._family_of_form
        return [per_form[form] for form in self.form[start:stop].tolist()]

    @cached_property
    def _family_of_form(self) -> tuple[str, ...]:
        return tuple(form.opcode.family for form in self.forms)

    @cached_property
    def form_registers(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Registers that each form defines, and that it uses; 0 where not known."""
        registers = [form.registers for form in self.forms]
        return tuple(each.defines or 0 for each in registers), tuple(each.uses or 0 for each in registers)

    @cached_property
    def forms_of_unknown_registers(self) -> frozenset[int]:
        """Forms whose registers are not known."""
        return frozenset(number for number, form in enumerate(self.forms) if form.registers.reason is not None)

    @cached_property
    def may_branch_unseen(self) -> npt.NDArray[np.bool_]:
        """Per form: whether it has no text, or an opcode that the table does not know and a label."""
        unseen = [not form.opcode.text or (not form.opcode.known and "`(" in form.operands) for form in self.forms]
        return np.array(unseen, np.bool_)

    @cached_property
    def kind(self) -> ByteColumn:
        """Position in `opcodes.classes()` per row."""
        position = {name: index for index, name in enumerate(classes())}
        per_form = np.array([position[form.opcode.kind] for form in self.forms], np.uint8)
        return per_form[self.form]

    @cached_property
    def width_bytes(self) -> npt.NDArray[np.int16]:
        """Bytes a thread moves to or from memory per row; 0: no memory access, -1: not known."""
        widths = [form.opcode.width_bytes for form in self.forms]
        return np.array([-1 if width is None else width for width in widths], np.int16)[self.form]

    @cached_property
    def unknown_rows(self) -> int:
        """How many instructions have no text or an opcode that the table does not know (padding not counted)."""
        unknown = np.array([not form.opcode.known for form in self.forms], np.bool_)[self.form]
        return sum(int(unknown[code.start : code.padding].sum()) for code in self.codes)


def guard_text(guard: int) -> str:
    """The predicate of a `guard` number: "P0", "!UP1", "!PT"; "" for none."""
    if guard == NO_GUARD:
        return ""
    number = guard & 7
    bank = "UP" if guard & _GUARD_UNIFORM else "P"
    return ("!" if guard & _GUARD_NEGATED else "") + bank + ("T" if number == 7 else str(number))


def guard_bit(guard: int) -> int:
    """The register bit (see `operands`) that a guard reads; 0 for none and for PT."""
    if guard == NO_GUARD or guard & 7 == 7:
        return 0
    return 1 << (BANK_START["UP" if guard & _GUARD_UNIFORM else "P"] + (guard & 7))


def opposite_guard(guard: int) -> int:
    """The guard that holds exactly where this one does not."""
    return guard ^ _GUARD_NEGATED


def decode_sass(elf: CubinElf, disassembly: str) -> Sass:
    """All instructions of a cubin; `disassembly` is nvdisasm's text ("" where it failed: then no row has a text)."""
    return _Decoder(elf, disassembly).result()


class _Decoder:
    """Collects the columns section by section."""

    def __init__(self, elf: CubinElf, disassembly: str) -> None:
        self._elf = elf
        digits = re.match(r"sm_(\d+)", elf.arch)
        self._arch = int(digits[1]) if digits else 0
        self._texts = {section.name: section for section in read_sections(disassembly)}
        self._forms: list[Form] = [Form(describe(""), "", Registers(None, None, "not every instruction has a text"))]
        self._form_ids: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._pending: list[tuple[int, str, str]] = []  # row, label, the section that names it

    def result(self) -> Sass:
        sections = [
            section
            for section in self._elf.sections
            if section.name.startswith(".text.") and section.has_bytes and section.size >= INSTRUCTION_BYTES
        ]
        counts = [section.size // INSTRUCTION_BYTES for section in sections]
        starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        total = int(starts[-1])
        words = np.concatenate(
            [self._words(section, count) for section, count in zip(sections, counts, strict=True)]
            or [np.zeros((0, 2), np.uint64)]
        )
        form = np.zeros(total, np.int32)
        guard = np.full(total, NO_GUARD, np.int8)
        target = np.full(total, NO_TARGET, np.int32)
        for section, start, count in zip(sections, starts.tolist(), counts, strict=False):
            self._read_section(section.name[6:], start, words[start : start + count], form, guard, target)
        for row, label, home in self._pending:
            target[row] = self._labels.get(f"{home}\n{label}", self._labels.get(label, UNKNOWN_TARGET))
        codes = tuple(
            self._code(section, start, count, form, guard, target)
            for section, start, count in zip(sections, starts.tolist(), counts, strict=False)
        )
        pc = np.concatenate([np.arange(count, dtype=np.int32) for count in counts] or [np.zeros(0, np.int32)])
        control = decode_control(words, self._arch)
        return Sass(
            arch=self._elf.arch,
            codes=codes,
            forms=tuple(self._forms),
            pc=pc * np.int32(INSTRUCTION_BYTES),
            form=form,
            guard=guard,
            target=target,
            control=control,
            control_why=None if control else f"the control words of {self._elf.arch} are not known",
        )

    def _words(self, section: Section, count: int) -> npt.NDArray[np.uint64]:
        content = self._elf.content(section)[: count * INSTRUCTION_BYTES]
        return np.frombuffer(content, np.dtype("<u8")).reshape(-1, 2)

    def _read_section(
        self,
        name: str,
        start: int,
        words: npt.NDArray[np.uint64],
        form: IntColumn,
        guard: npt.NDArray[np.int8],
        target: IntColumn,
    ) -> None:
        text = self._texts.get(name)
        hidden = self._arch in _HIDDEN_DESCRIPTOR_ARCHES
        low_words, high_words = words[:, 0].tolist() if hidden else [], words[:, 1].tolist() if hidden else []
        waiting: list[str] = []
        forms, guards = form[start : start + len(words)].tolist(), guard[start : start + len(words)].tolist()
        form_ids = self._form_ids
        self._labels.setdefault(name, start)
        for pc, guarded, instruction, label in text.lines() if text else ():
            if label:
                waiting.append(label)
            if not pc or not instruction:
                continue
            offset = int(pc, 16)
            row = offset // INSTRUCTION_BYTES
            if offset % INSTRUCTION_BYTES or row >= len(forms):
                continue
            for each in waiting:
                # .L_x_N is unique in the whole text, but a damaged one may repeat it: prefer the section's own.
                self._labels[f"{name}\n{each}"] = self._labels[each] = start + row
            waiting.clear()
            key = instruction
            if hidden and ".64" in instruction and "desc" not in instruction and _HIDDEN_ADDRESS.search(instruction):
                is_load = instruction.startswith(("LDG.", "LD."))
                descriptor = (low_words[row] >> 32 if is_load else high_words[row]) & 0x3F
                key = f"{instruction}\n{descriptor}"
            known = form_ids.get(key)
            forms[row] = self._new_form(key) if known is None else known
            if guarded:
                guards[row] = _guard_number(guarded)
            if instruction.startswith(_TRANSFERS):
                self._note_target(start + row, name, self._forms[forms[row]], target)
        form[start : start + len(words)] = forms
        guard[start : start + len(words)] = guards

    def _new_form(self, key: str) -> int:
        """`key`: the instruction's text, and the number of its hidden descriptor on a second line."""
        number = self._form_ids[key] = len(self._forms)
        instruction, _, descriptor = key.partition("\n")
        opcode, _, operands = instruction.partition(" ")
        operands = operands.strip()
        registers = registers_of(opcode, operands)
        if descriptor and registers.uses is not None:
            used = registers.uses | 3 << (BANK_START["UR"] + int(descriptor))
            registers = Registers(registers.defines, used, registers.reason)
        self._forms.append(Form(describe(opcode), operands, registers))
        return number

    def _note_target(self, row: int, home: str, form: Form, target: IntColumn) -> None:
        family, operands = form.opcode.family, form.operands
        if family in _INDIRECT_BRANCHES:
            target[row] = UNKNOWN_TARGET
        elif family in _DIRECT_BRANCHES:
            found = _LABEL.search(operands)
            if family == "CALL" and not operands.startswith("`"):
                target[row] = UNKNOWN_TARGET  # CALL.REL.NOINC R2 `(base): the register decides
            elif found:
                self._pending.append((row, found["name"], home))
            elif family not in ("WARPSYNC", "BSSY"):
                target[row] = UNKNOWN_TARGET

    def _code(
        self,
        section: Section,
        start: int,
        count: int,
        form: IntColumn,
        guard: npt.NDArray[np.int8],
        target: IntColumn,
    ) -> Code:
        stop = start + count
        padding = stop
        while padding > start:
            row = padding - 1
            family = self._forms[form[row]].opcode.family
            is_trap_loop = family == "BRA" and target[row] == row and guard[row] == NO_GUARD
            if family != "NOP" and not is_trap_loop:
                break
            padding = row
        return Code(section.name[6:], start, padding, stop, self._functions(section, start, stop, padding))

    def _functions(self, section: Section, start: int, stop: int, padding: int) -> tuple[CodeFunction, ...]:
        heads = {
            start + symbol.value // INSTRUCTION_BYTES: (symbol.name, symbol.is_kernel)
            for symbol in self._elf.symbols
            if symbol.is_function and symbol.section == section.index
        }
        heads.setdefault(start, (section.name[6:], False))
        rows = sorted(row for row in heads if start <= row < stop)
        ends = [*rows[1:], max(padding, rows[-1])]
        return tuple(CodeFunction(heads[row][0], row, end, heads[row][1]) for row, end in zip(rows, ends, strict=True))


@lru_cache(maxsize=64)
def _guard_number(text: str) -> int:
    negated = text.startswith("!")
    name = text.lstrip("!")
    number = 7 if name.endswith("T") else min(7, int(name[-1]))
    return number + _GUARD_NEGATED * negated + _GUARD_UNIFORM * name.startswith("U")
