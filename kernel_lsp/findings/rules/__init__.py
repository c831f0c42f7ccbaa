"""All rules, in the order in which they are asked; one rule a file. Those of reports are apart."""

from __future__ import annotations

from kernel_lsp.findings.draft import Rule
from kernel_lsp.findings.rules import (
    build_error,
    build_note,
    cannot_launch,
    comment,
    cp_async,
    dynamic_shared_unknown,
    launch_limit,
    local_array,
    not_built,
    not_compiled,
    occupancy_limiter,
    register_cliff,
    register_flag,
    shared_memory_cliff,
    spill,
)

RULES: tuple[Rule, ...] = (
    occupancy_limiter.RULE,
    shared_memory_cliff.RULE,
    register_cliff.RULE,
    register_flag.RULE,
    launch_limit.RULE,
    cannot_launch.RULE,
    dynamic_shared_unknown.RULE,
    spill.RULE,
    local_array.RULE,
    cp_async.RULE,
    build_error.RULE,
    not_built.RULE,
    build_note.RULE,
    comment.RULE,
    not_compiled.RULE,
)


def measured_rules() -> tuple[Rule, ...]:
    """Those that speak of a report. Imported with the first one: a start without needs none of what they read."""
    from kernel_lsp.findings.rules import (
        achieved_occupancy,
        bank_conflicts,
        first_reading,
        hot_line,
        local_traffic,
        low_issue,
        tail_wave,
        uncoalesced_access,
    )

    return (
        hot_line.RULE,
        uncoalesced_access.RULE,
        bank_conflicts.RULE,
        tail_wave.RULE,
        low_issue.RULE,
        achieved_occupancy.RULE,
        local_traffic.RULE,
        first_reading.RULE,
    )
