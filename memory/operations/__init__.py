"""Operations on long-term memory: applying, collecting and checking them for conflicts."""

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
    last_reflection,
)
from memory.operations.collector import Collector, PlanCollector, collector_of, with_collector
from memory.operations.conflicts import changed_since, find_conflicts

__all__ = [
    "LINKS",
    "UNDREAMED",
    "Collector",
    "PlanCollector",
    "apply",
    "apply_operations",
    "changed_since",
    "cited_ids",
    "collector_of",
    "dependents_of",
    "entries_after",
    "fact_from",
    "facts_after",
    "find_conflicts",
    "last_reflection",
    "with_collector",
]
