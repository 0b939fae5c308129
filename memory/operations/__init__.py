"""Operations on long-term memory: applying, collecting and correcting."""

from memory.operations import apply
from memory.operations.apply import (
    LINKS,
    UNDREAMED,
    apply_operations,
    cited_ids,
    dependents_of,
    entries_after,
    fact_from,
    facts_after,
    facts_named,
    last_reflection,
    undreamed_facts,
)
from memory.operations.collector import Collector, PlanCollector, collector_of, with_collector
from memory.operations.corrections import (
    CORRECTING,
    BegunCorrection,
    begin_correction,
    begun_corrections,
    carry_out,
    correction_id,
    finish_corrections,
)

__all__ = [
    "CORRECTING",
    "LINKS",
    "UNDREAMED",
    "BegunCorrection",
    "Collector",
    "PlanCollector",
    "apply",
    "apply_operations",
    "begin_correction",
    "begun_corrections",
    "carry_out",
    "cited_ids",
    "collector_of",
    "correction_id",
    "dependents_of",
    "entries_after",
    "fact_from",
    "facts_after",
    "facts_named",
    "finish_corrections",
    "last_reflection",
    "undreamed_facts",
    "with_collector",
]
