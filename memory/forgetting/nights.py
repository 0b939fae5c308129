"""Records of nights without a forgotten person. Pure.

An ended night keeps its operations as a list of what was done; operations on erased memories lose
their texts. A night that has not ended thinks again about a phase that is not applied yet, if the
phase may have seen erased memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from memory.forgetting.erasure import Erasure
from memory.forgetting.scrubbing import FORGOTTEN
from memory.records import NightRecord, Operation, PlanRecord


def plans_after(
    plans: Sequence[PlanRecord], record: NightRecord | None, erasure: Erasure
) -> list[PlanRecord | None]:
    """A night's plans as they stay, in order; None for a plan that is dropped."""
    erasure = _with_planned(plans, erasure)
    saw_erased = _saw_erased(record, erasure)
    after = [plan_after(plan, erasure, saw_erased=saw_erased) for plan in plans]
    if record is None or record["ended"] is not None:
        return list(after)
    waits = [plan["phase"] not in record["applied"] for plan in plans]
    rethink = any(w and new != old for w, new, old in zip(waits, after, plans, strict=True))
    return [None if rethink and w else plan for plan, w in zip(after, waits, strict=True)]


def plan_after(plan: PlanRecord, erasure: Erasure, *, saw_erased: bool) -> PlanRecord:
    """One plan as it stays.

    Its messages go if its inputs or operations are touched, and so does what the same call noted on
    other facts. `saw_erased`: the night began after the oldest erased memory was made. Its dreams
    may quote what they were shown as neighbours, which nothing records, so a dreaming plan then
    loses its messages and refusals in any case.
    """
    gone, scrub = erasure.gone, erasure.scrubber.value
    operations = [operation_after(one, erasure) for one in plan["operations"]]
    touched = operations != plan["operations"] or not gone.isdisjoint(plan["inputs"])
    quotes = touched or (saw_erased and plan["phase"] == "dreaming")
    if touched:
        operations = [_stripped(one, erasure) if _is_note(one) else one for one in operations]
    same = not quotes and scrub(plan["exchange"]) == plan["exchange"]
    after: Any = {
        **plan,
        "operations": operations,
        "inputs": [one for one in plan["inputs"] if one not in gone],
        "left": [one for one in plan["left"] if one not in gone],
        "errors": _told(plan["errors"], erasure, quotes=quotes),
        "exchange": plan["exchange"] if same else [],
    }
    if "refused" in plan:
        after["refused"] = _told(plan["refused"], erasure, quotes=quotes)
    return cast(PlanRecord, after)


def is_touched(before: PlanRecord, after: PlanRecord | None) -> bool:
    """Whether a night with this plan can no longer be undone or applied."""
    what = ("operations", "inputs", "left")
    return after is None or any(cast(Any, before)[key] != cast(Any, after)[key] for key in what)


def operation_after(operation: Operation, erasure: Erasure) -> Operation:
    """One operation; without its texts if it names the person, or has to do with what is erased."""
    ends = [operation["target"], *_values(operation["before"]), *_values(operation["after"])]
    named = erasure.scrubber.value(dict(operation)) != dict(operation)
    if not named and (erasure.gone | erasure.profiles).isdisjoint([*ends, *operation["sources"]]):
        return operation
    return _stripped(operation, erasure)


def record_after(record: NightRecord, erasure: Erasure, *, touched: bool, at: str) -> NightRecord:
    """The night's head. `touched`: one of its plans changed, so that it cannot be undone."""
    gone, before = erasure.gone | erasure.profiles, cast(dict[str, Any], dict(record))
    texts: dict[str, Any] = {
        key: erasure.scrubber.value(before[key])
        for key in ("stopped", "gate", "errors")
        if key in before
    }
    ids: dict[str, Any] = {
        key: [one for one in before[key] if one not in gone]
        for key in ("facts", "entities", "held", "pending")
        if key in before
    }
    after: dict[str, Any] = {**before, **texts, **ids}
    return cast(NightRecord, {**after, "forgotten": at}) if touched or after != before else record


def _with_planned(plans: Sequence[PlanRecord], erasure: Erasure) -> Erasure:
    """The erasure with the ids of what the night planned to add from erased sources.

    A preview's facts and insights are in no store, and its later operations refer to them.
    """
    gone = set(erasure.gone)
    for plan in plans:
        for one in plan["operations"]:
            if one["kind"] in ("add_fact", "add_entry") and not gone.isdisjoint(one["sources"]):
                gone.add(one["target"])
    return replace(erasure, gone=frozenset(gone))


def _is_note(operation: Operation) -> bool:
    """Whether a dream describes a fact in the light of its neighbours."""
    after = operation["after"]
    return operation["kind"] == "change_fact" and isinstance(after, dict) and "context" in after


def _stripped(operation: Operation, erasure: Erasure) -> Operation:
    target = operation["target"]
    # The id of an entry holds that of its event, which whoever sent it chose.
    gone = target in erasure.gone or target in erasure.profiles
    hidden = gone and erasure.names.in_id(target)
    return {
        **operation,
        "target": FORGOTTEN if hidden else erasure.scrubber.label(target),
        "before": None,
        "after": None,
        "sources": [],
        "reason": FORGOTTEN,
    }


def _saw_erased(record: NightRecord | None, erasure: Erasure) -> bool:
    return bool(erasure.memories) and (record is None or record["started"] >= erasure.since)


def _told(texts: Sequence[str], erasure: Erasure, *, quotes: bool) -> list[str]:
    """Errors or refusals; where they may quote the model's answer, only their number stays."""
    return [FORGOTTEN if quotes else erasure.scrubber.value(one) for one in texts]


def _values(value: Any) -> list[str]:
    """Texts directly in a record, among them the ids of what it is about."""
    return (
        [one for one in value.values() if isinstance(one, str)] if isinstance(value, dict) else []
    )
