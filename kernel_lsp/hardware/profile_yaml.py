"""The text of `hw_profiles/*.yaml` becomes HwProfile and SmLimits values, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

from kernel_lsp.hardware.profile import HwProfile, Peak, Provenance, SmLimits
from kernel_lsp.hardware.yaml_fields import Fields, parse_fields

PEAK_PROVENANCES = ("published", "computed", "both agree", "conflict")
FACT_PROVENANCES = (*PEAK_PROVENANCES, "assumed", "rule of thumb")
PRECISIONS = (
    "fp64",
    "fp32",
    "fp16",
    "bf16",
    "fp64_tensor",
    "tf32",
    "bf16_f32acc",
    "fp16_f16acc",
    "fp16_f32acc",
    "fp8_f16acc",
    "fp8_f32acc",
    "fp6_f32acc",
    "fp4_f32acc",
    "int8",
    "int4",
)
_IDENTITY = ("name", "arch", "representative", "device_names")
_FACTS = (
    "sm_count",
    "boost_clock_mhz",
    "tensor_clock_mhz",
    "dram_gb_per_s",
    "l2_mib",
    "half_rate_f32_accumulate",
    "warps_to_hide_latency",
)
_LIMIT_NAMES = (
    "warp_size",
    "schedulers",
    "max_warps",
    "max_threads",
    "max_blocks",
    "max_threads_per_block",
    "registers",
    "max_registers_per_block",
    "max_registers_per_thread",
    "launch_check_registers_per_thread",
    "register_unit",
    "register_partitions",
    "launch_check_partitions",
    "shared_bytes",
    "static_shared_max_bytes",
    "shared_default_bytes_per_block",
    "shared_optin_bytes_per_block",
    "shared_reserved_bytes_per_block",
    "shared_unit_bytes",
    "shared_banks",
    "shared_bank_bytes",
    "l1_kib",
    "l2_sector_bytes",
    "line_bytes",
    "constant_bytes",
    "local_bytes_per_thread",
    "barriers_per_block",
)
_OPTIONAL_LIMIT_NAMES = ("barrier_slots", "max_cluster_blocks_portable", "max_cluster_blocks")  # null: none
_OTHER_LIMIT_NAMES = ("architecture", "tegra", "shared_carveouts_kib", "conflicts", "notes", "source")


@dataclass(frozen=True, slots=True)
class BoardIdentity:
    """The first paragraph of a board's file: what it is called and what it stands for."""

    slug: str
    name: str
    arch: str
    representative: bool  # of its architecture
    device_names: tuple[str, ...]  # as the driver reports them


def parse_identity(file: str, slug: str, text: str) -> BoardIdentity:
    """Who the board of a file is, from its first paragraph alone: a look at all boards stays cheap.

    Raises:
        HardwareDataError: a field is missing there or has the wrong type.
    """
    fields = parse_fields(file, text.split("\n\n", 1)[0])
    return BoardIdentity(
        slug=slug,
        name=fields.text("name"),
        arch=fields.text("arch"),
        representative=fields.has("representative") and fields.flag("representative"),
        device_names=fields.texts("device_names"),
    )


def parse_board(file: str, identity: BoardIdentity, limits: SmLimits, text: str) -> HwProfile:
    """A board's file with the limits of its compute capability.

    Raises:
        HardwareDataError: a field is missing, unknown, of the wrong type, or names a source that is not listed.
    """
    fields = parse_fields(file, text)
    fields.only(*_IDENTITY, *_FACTS, "chip", "confidence", "sources", "peaks", "notes")
    sources = _sources(fields)
    facts = {name: _fact(fields, name) for name in _FACTS if fields.has(name)}

    def fact_number(name: str) -> float | None:
        return facts[name].number("value") if name in facts else None

    peaks = {name: _peak(name, child, sources) for name, child in fields.child("peaks").children()}
    return HwProfile(
        name=identity.name,
        slug=identity.slug,
        chip=fields.text("chip"),
        arch=identity.arch,
        limits=limits,
        sm_count=facts["sm_count"].integer("value") if "sm_count" in facts else None,
        boost_clock_mhz=fact_number("boost_clock_mhz"),
        tensor_clock_mhz=fact_number("tensor_clock_mhz") or fact_number("boost_clock_mhz"),
        dram_gb_per_s=fact_number("dram_gb_per_s"),
        dram_source=_fact_source(facts["dram_gb_per_s"], sources) if "dram_gb_per_s" in facts else None,
        l2_mib=fact_number("l2_mib"),
        half_rate_f32_accumulate="half_rate_f32_accumulate" in facts
        and facts["half_rate_f32_accumulate"].flag("value"),
        warps_to_hide_latency=facts["warps_to_hide_latency"].integer("value")
        if "warps_to_hide_latency" in facts
        else None,
        peaks=MappingProxyType(peaks),
        confidence=fields.one_of("confidence", ("high", "medium", "low")),
        notes=fields.texts("notes"),
        source="; ".join(sources.values()),
    )


def parse_limits(table: Fields, compute_capability: str) -> SmLimits:
    """The limits of one compute capability out of the whole table `sm/limits.yaml`: `common` under its own.

    Raises:
        HardwareDataError: a limit is missing, unknown or of the wrong type.
    """
    own = table.child("compute_capabilities").child(compute_capability)
    known = (*_LIMIT_NAMES, *_OPTIONAL_LIMIT_NAMES, *_OTHER_LIMIT_NAMES)
    own.only(*known)
    row = Fields(own.file, own.path, {**table.child("common").values, **own.values})
    row.only(*known)
    numbers = {name: row.integer(name) for name in _LIMIT_NAMES}

    def optional(name: str) -> int | None:
        return row.integer(name) if row.has(name) else None

    conflicts = row.child("conflicts").values if row.has("conflicts") else {}
    return SmLimits(
        compute_capability=compute_capability,
        arch="sm_" + compute_capability.replace(".", ""),
        architecture=row.text("architecture"),
        tegra=row.flag("tegra"),
        shared_carveouts_kib=row.integers("shared_carveouts_kib"),
        notes=(*row.texts("notes"), *(f"{name}: {str(text).strip()}" for name, text in conflicts.items())),
        source=row.text("source"),
        barrier_slots=optional("barrier_slots"),
        max_cluster_blocks_portable=optional("max_cluster_blocks_portable"),
        max_cluster_blocks=optional("max_cluster_blocks"),
        **numbers,
    )


def _sources(fields: Fields) -> Mapping[str, str]:
    listed = fields.child("sources")
    return {name: listed.text(name) for name in listed.values}


def _fact(fields: Fields, name: str) -> Fields:
    fact = fields.child(name)
    fact.only("value", "provenance", "source")
    fact.one_of("provenance", FACT_PROVENANCES)
    fact.text("source")
    return fact


def _fact_source(fact: Fields, sources: Mapping[str, str]) -> str:
    named = fact.text("source")
    return sources.get(named, named)


def _peak(precision: str, fields: Fields, sources: Mapping[str, str]) -> Peak:
    if precision not in PRECISIONS:
        raise fields.error("precision", f"unknown; known are {', '.join(PRECISIONS)}")
    fields.only("dense", "sparse", "computed", "provenance", "source", "note")
    source = fields.one_of("source", ("computed", *sources))
    return Peak(
        precision=precision,
        dense_tops=fields.number("dense"),
        sparse_tops=fields.number("sparse") if fields.has("sparse") else None,
        computed_tops=fields.number("computed") if fields.has("computed") else None,
        provenance=cast(Provenance, fields.one_of("provenance", PEAK_PROVENANCES)),
        source=sources.get(source, "SMs x operations per clock x clock"),
        note=fields.text("note") if fields.has("note") else None,
    )
