"""The order of a night: which node comes next, and why a night stops thinking. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from memory.night.batches import entities_left, facts_left, open_loops, unconsolidated, unscored
from memory.night.plans import Plans
from memory.records import NightRecord, PlanRecord
from memory.settings import Settings

LEAST_CALLS = 8
"""Calls that even the smallest night may make: about one for each step."""

FREE = ("extract_facts", "compact")
"""Steps outside of the budget, because a history that is too long must be cut."""


def calls_allowed(entries: int, settings: Settings) -> int:
    """The most model calls for a night over so many journal entries (design, section 6)."""
    return max(LEAST_CALLS, math.floor(settings.night_calls_per_100 * entries / 100))


class Account(NamedTuple):
    """The budget of a night, given what earlier nights spent."""

    calls: int
    """Model calls that the night may make."""
    ahead: int
    """Calls that earlier nights made beyond the share of all entries so far, tonight's included."""


def account(
    earlier: Sequence[NightRecord], pending: Sequence[str], settings: Settings, *, asked: bool
) -> Account:
    """The budget of a night over the journal ids `pending`.

    A small night makes calls ahead of the entries that they are for. So that many small nights cost
    no more than one large night, a later night does not think until enough entries have come. Every
    entry counts once. A night that a person asked for (`asked`) does not wait.
    """
    made = sum(
        line["llm_calls"] for one in earlier for line in one["steps"] if line["step"] not in FREE
    )
    entries = {id_ for one in earlier for id_ in one["pending"]}.union(pending)
    left = settings.night_calls_per_100 * len(entries) / 100 - made
    if left < 0 and not asked:
        return Account(0, math.ceil(-left))
    return Account(max(LEAST_CALLS, min(calls_allowed(len(pending), settings), int(left))), 0)


def allowed(record: NightRecord, settings: Settings) -> int:
    """The most model calls of this night."""
    return record.get("calls", calls_allowed(len(record["pending"]), settings))


def calls_left(plans: Sequence[PlanRecord], most: int) -> int:
    """Model calls that may still be made, of `most`."""
    made = sum(plan["llm_calls"] for plan in plans if plan["step"] not in FREE)
    return max(0, most - made)


def used_up(plans: Sequence[PlanRecord], record: NightRecord, settings: Settings) -> str | None:
    """Which part of the budget is used up, as a sentence; None if none is."""
    counted = [plan for plan in plans if plan["step"] not in FREE]
    calls = sum(plan["llm_calls"] for plan in counted)
    if ahead := record.get("ahead"):
        owed = "1 model call" if ahead == 1 else f"{ahead:,} model calls"
        return f"earlier nights made {owed} ahead of new entries (night_calls_per_100)"
    if calls >= (most := allowed(record, settings)):
        return f"{calls} of {most} model calls are used (night_calls_per_100)"
    tokens = sum(plan["tokens"] for plan in counted)
    if settings.night_tokens is not None and tokens >= settings.night_tokens:
        return f"{tokens:,} of {settings.night_tokens:,} tokens are used (night_tokens)"
    minutes = sum(plan["seconds"] for plan in counted) / 60
    if settings.night_minutes is not None and minutes >= settings.night_minutes:
        return f"{minutes:.1f} of {settings.night_minutes:.1f} minutes are over (night_minutes)"
    return None


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
    return used_up(plans, record, settings)


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
