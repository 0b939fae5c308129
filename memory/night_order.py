"""The order of a night: which node comes next, and why a night stops thinking. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from memory.dreaming import budget
from memory.night_batches import entities_left, facts_left, open_loops, unconsolidated, unscored
from memory.night_plans import Plans
from memory.records import NightRecord, PlanRecord
from memory.settings import Settings


def next_step(
    record: NightRecord,
    plans: Plans,
    settings: Settings,
    *,
    waking: bool,
    compaction_due: bool,
) -> str:
    """The node to visit next. This function alone orders a night (design section 2).

    A waking event never interrupts compacting; it leaves the rest of dreaming to the next night.
    An approved night, once a preview or held back, is only applied.
    """
    approved = record.get("status") == "approved"
    thinking = not approved and stopped(record, plans, settings) is None
    if "compacting" not in record["applied"]:
        return (_compacting(plans, settings) if thinking else None) or "apply_operations"
    if "dreaming" in record["applied"]:
        return "record_night"
    if approved:
        return "apply_operations"
    if record.get("status") == "held":
        return "record_night"
    if "gate" in record:
        return "apply_operations"
    step = None if waking else _dreaming(record, plans, thinking=thinking)
    if step is None and compaction_due and not waking and not plans.of("compact"):
        return "extract_facts"
    return step or "weigh_night"


def stopped(record: NightRecord, plans: Sequence[PlanRecord], settings: Settings) -> str | None:
    """Why the night asks no model any more; None while it goes on.

    The first reason stays: steps without a model come later, and look as if all were well.
    """
    if why := record.get("stopped"):
        return why
    if model_is_down(plans):
        return "the model gives no usable answer"
    return budget.used_up(plans, record, settings)


def model_is_down(plans: Sequence[PlanRecord]) -> bool:
    """Whether the night gives the model up: two plans in a row without a usable answer.

    A single failure may be due to its batch, and the other batches are still tried. While the
    circuit breaker is open, no other batch could be asked about either.
    """
    if plans and plans[-1].get("left_alone"):
        return True
    failed = [bool(plan["errors"]) and not plan.get("overflowed") for plan in plans[-2:]]
    return len(failed) == 2 and all(failed)


def left_over(record: NightRecord, plans: Plans, settings: Settings) -> bool:
    """Whether a night that ended early leaves work to the next one."""
    compacting = "compacting" not in record["applied"] or _compacting(plans, settings)
    dreams = facts_left(record, plans) or entities_left(record, plans)
    reflection = record.get("reflect") and not _reflected(plans)
    return bool(compacting or dreams or reflection or not plans.of("prune"))


def _compacting(plans: Plans, settings: Settings) -> str | None:
    if unscored(plans):
        return "score_importance"
    if open_loops(plans) or unconsolidated(plans, settings.min_importance):
        return "consolidate"
    return None


def _dreaming(record: NightRecord, plans: Plans, *, thinking: bool) -> str | None:
    if thinking and facts_left(record, plans):
        return "dream"
    if not plans.of("prune_links"):
        return "prune_links"
    if thinking and entities_left(record, plans):
        return "consolidate_entities"
    if thinking and record.get("reflect") and not _reflected(plans):
        return "reflect"
    return None if plans.of("prune") else "prune"


def _reflected(plans: Plans) -> bool:
    return any(plan.get("finished", True) for plan in plans.of("reflect"))
