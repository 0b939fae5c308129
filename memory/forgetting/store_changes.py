"""The changes of a forget in the store, by kind of record.

Records of a kind without a rule of its own are scrubbed of the person's names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from langgraph.store.base import BaseStore, Item, PutOp

from memory import audit, entities, journal, night, pages
from memory.compaction import SUMMARIES
from memory.events import approvals, inbox
from memory.forgetting.erasure import Erasure
from memory.forgetting.scrubbing import FORGOTTEN, Forgettable
from memory.operations import apply
from memory.records import (
    Attribute,
    EntityProfile,
    NightRecord,
    Observation,
    Operation,
    PlanRecord,
    Scope,
)
from memory.storage import Shelf, shelves


def plans_after(
    plans: Sequence[PlanRecord], record: NightRecord | None, erasure: Erasure
) -> list[PlanRecord | None]:
    """A night's plans as they stay, in order; None for a plan that is dropped."""
    erasure = _with_planned(plans, erasure)
    # "9" is later than any time: plans without a record are taken for the newest.
    began = "9" if record is None else record["started"]
    saw_erased = bool(erasure.memories) and began >= erasure.since
    after = [plan_after(plan, erasure, saw_erased=saw_erased) for plan in plans]
    if record is None or record["ended"] is not None:
        return [*after]
    # If a plan that waits to be applied changes, the night makes all waiting plans again.
    waits = [plan["phase"] not in record["applied"] for plan in plans]
    redo = any(w and new != old for w, new, old in zip(waits, after, plans, strict=True))
    return [None if redo and w else plan for plan, w in zip(after, waits, strict=True)]


def plan_after(plan: PlanRecord, erasure: Erasure, *, saw_erased: bool) -> PlanRecord:
    """One plan as it stays.

    If inputs or operations are touched, the plan's messages go, and what the same call noted on
    other facts. `saw_erased`: the night began after the oldest erased memory was made. Then a
    dreaming plan loses its messages and refusals in any case: a dream may quote the neighbours that
    it was shown, and nothing records them.
    """
    gone, scrub = erasure.gone, erasure.scrubber.value
    operations = [operation_after(one, erasure) for one in plan["operations"]]
    touched = operations != plan["operations"] or not gone.isdisjoint(plan["inputs"])
    quotes = touched or (saw_erased and plan["phase"] == "dreaming")
    if touched:
        operations = [_without_texts(one, erasure) if _is_note(one) else one for one in operations]
    same = not quotes and scrub(plan["exchange"]) == plan["exchange"]
    after: Any = {
        **plan,
        "operations": operations,
        "inputs": [one for one in plan["inputs"] if one not in gone],
        "left": [one for one in plan["left"] if one not in gone],
        "errors": _texts_after(plan["errors"], erasure, quotes=quotes),
        "exchange": plan["exchange"] if same else [],
    }
    if "refused" in plan:
        after["refused"] = _texts_after(plan["refused"], erasure, quotes=quotes)
    return cast(PlanRecord, after)


def is_touched(before: PlanRecord, after: PlanRecord | None) -> bool:
    """Whether the night of this plan can no longer be undone or applied."""
    return after is None or any(
        after[key] != before[key] for key in ("operations", "inputs", "left")
    )


def operation_after(operation: Operation, erasure: Erasure) -> Operation:
    """One operation; without its texts if it names the person or concerns an erased memory."""
    named = erasure.scrubber.value(dict(operation)) != dict(operation)
    return (
        _without_texts(operation, erasure) if named or _concerns(operation, erasure) else operation
    )


def _concerns(operation: Operation, erasure: Erasure) -> bool:
    ends = [operation["target"], *_texts_in(operation["before"]), *_texts_in(operation["after"])]
    return not erasure.all_gone.isdisjoint([*ends, *operation["sources"]])


def record_after(record: NightRecord, erasure: Erasure, *, touched: bool, at: str) -> NightRecord:
    """A night's record as it stays. `touched`: a plan changed, so that undoing is impossible."""
    gone, before = erasure.all_gone, cast(dict[str, Any], dict(record))
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
    """The erasure with the memories that the night plans to add from erased sources."""
    gone = set(erasure.gone)
    for plan in plans:
        for operation in plan["operations"]:
            if operation["kind"] in ("add_fact", "add_entry") and not gone.isdisjoint(
                operation["sources"]
            ):
                gone.add(operation["target"])
    return replace(erasure, gone=frozenset(gone))


def _is_note(operation: Operation) -> bool:
    """Whether the operation is a dream's note on a fact: how its neighbours make it look."""
    after = operation["after"]
    return operation["kind"] == "change_fact" and isinstance(after, dict) and "context" in after


def _without_texts(operation: Operation, erasure: Erasure) -> Operation:
    target = operation["target"]
    # An entry's id contains the event's id, which the sender chose.
    hidden = target in erasure.all_gone and erasure.names.in_id(target)
    return {
        **operation,
        "target": FORGOTTEN if hidden else erasure.scrubber.label(target),
        "before": None,
        "after": None,
        "sources": [],
        "reason": FORGOTTEN,
    }


def _texts_after(texts: Sequence[str], erasure: Erasure, *, quotes: bool) -> list[str]:
    """Errors or refusals; where they may quote the model's answer, only their number stays."""
    return [FORGOTTEN if quotes else erasure.scrubber.value(one) for one in texts]


def _texts_in(value: Any) -> list[str]:
    """Texts directly in a record, among them the ids of what it is about."""
    fields = value.values() if isinstance(value, dict) else ()
    return [text for text in fields if isinstance(text, str)]


FORGETTING = "forgetting"
"""The kind of a forget's own records, which it does not change."""

WITH_OTHERS = frozenset(
    (
        *("journal", "pending", "archives", "unindexed", "entity_names", "speakers", "handled"),
        *("tick_reports", "agent", "runs", "night"),
    )
)
"""Kinds whose records accompany counted ones, so that they do not count as `other`."""

Value: TypeAlias = dict[str, Any]


@dataclass
class ForgetContext:
    """The input of the rules."""

    erasure: Erasure
    questions: frozenset[str]
    """Ids of the questions of dropped ticks."""
    at: str
    """Now, ISO 8601."""
    messages: frozenset[str] = frozenset()
    """Ids of messages that go."""
    informed: frozenset[int | None] = frozenset()
    """Ticks whose tools returned an erased memory."""
    nights: dict[str, NightRecord | None] = field(default_factory=dict)
    """By id, the old records of nights that change; `store_changes` fills this in."""


async def store_changes(store: BaseStore, scope: Scope, context: ForgetContext) -> list[PutOp]:
    """All changes of the agent's records, for one transaction; writes nothing."""
    changes: list[PutOp] = []
    # Sorted by label: plans ("night") come before records ("nights"), whose rule needs `nights`.
    async for shelf in shelves(store, scope):
        if shelf.labels[:1] == (FORGETTING,):
            continue
        after = await _after(store, scope, shelf, context)
        changes += (
            PutOp(shelf.namespace, item.key, value)
            for item, value in zip(shelf.items, after, strict=True)
            if value != item.value
        )
    return changes


async def _after(
    store: BaseStore, scope: Scope, shelf: Shelf, context: ForgetContext
) -> Sequence[Value | None]:
    kind = shelf.labels[0] if shelf.labels else ""
    if any(map(context.erasure.names.within, shelf.labels)):
        return [None] * len(shelf.items)
    if kind == "night" and len(shelf.labels) == 2:
        return await _plans(store, scope, shelf.labels[1], shelf.items, context)
    # In a thread: other work should not wait for a kind with many records.
    return await asyncio.to_thread(
        lambda: [row_after(kind, item.key, item.value, context) for item in shelf.items]
    )


async def _plans(
    store: BaseStore, scope: Scope, night_id: str, items: Sequence[Item], context: ForgetContext
) -> list[Value | None]:
    before: list[Any] = [item.value for item in items]
    record = await night.load(store, scope, night_id)
    after: list[Any] = plans_after(before, record, context.erasure)
    if any(map(is_touched, before, after)):
        context.nights[night_id] = record
    return after


def row_after(kind: str, key: str, value: Value, context: ForgetContext) -> Value | None:
    """A record of `kind` (the first label of its namespace) as it stays; None if it goes."""
    rule = _RULES.get(kind)
    if rule is not None:
        return rule(key, value, context)
    erasure = context.erasure
    if key in erasure.gone or key in context.messages or erasure.names.within(key):
        return None
    return cast(Value, erasure.scrubber.value(value))


def profile_after(profile: EntityProfile, erasure: Erasure) -> EntityProfile | None:
    """A profile as it stays; None if it is the person's own.

    An observation goes if the person said it, if it names them, or if any of its sources goes. An
    attribute goes if it names them or if any of its evidence goes: observations, or facts.
    """
    if profile["id"] in erasure.profiles:
        return None
    names = erasure.names
    staying = (seen for seen in profile["observations"] if not _is_theirs(seen, erasure))
    observations: list[Any] = [{**seen, **erasure.scrubber.origins(seen)} for seen in staying]
    gone = {one["id"] for one in profile["observations"]} - {one["id"] for one in observations}
    gone |= erasure.gone
    attributes: dict[str, Any] = {
        key: {**left, **erasure.scrubber.origins(left)}
        for key, attribute in profile["attributes"].items()
        if not names.within(key) and (left := _attribute_after(attribute, gone, names)) is not None
    }
    relationship = profile["relationship"]
    answered = [one for one in relationship["answered"] if one not in erasure.events]
    return {
        **profile,
        "aliases": [one for one in profile["aliases"] if not names.within(one)],
        "attributes": attributes,
        "observations": observations,
        "relationship": {**relationship, "answered": answered},
    }


def _is_theirs(observation: Observation, erasure: Erasure) -> bool:
    names = erasure.names
    told = " ".join((observation["text"], *observation.get("names", ())))
    if names.means(observation["speaker"]) or names.within(told):
        return True
    return not erasure.gone.isdisjoint(observation["sources"])


def _attribute_after(attribute: Attribute, gone: set[str], names: Forgettable) -> Attribute | None:
    if names.within(attribute["value"]) or not gone.isdisjoint(attribute["evidence"]):
        return None
    replaced = [
        former
        for former in attribute["replaced"]
        if gone.isdisjoint(former.get("evidence", []))
        and not names.within(str(former.get("value")))
    ]
    return {**attribute, "replaced": replaced}


def _entry(key: str, value: Value, context: ForgetContext) -> Value | None:
    after = context.erasure.entries.get(key, cast(Any, value))
    return dict(after) if after is not None else None


def _marker(key: str, value: Value, context: ForgetContext) -> Value | None:
    return None if value.get("id") in context.erasure.gone else value


def _link(key: str, value: Value, context: ForgetContext) -> Value | None:
    erasure = context.erasure
    left = [one for one in value["linked_to"] if one not in erasure.gone]
    if not left or key in erasure.gone:
        return None
    told = {id_: how for id_, how in value["relations"].items() if id_ in left}
    relations = dict(zip(told, erasure.scrubber.value([*told.values()]), strict=True))
    return {**value, "linked_to": left, "relations": relations}


def _handled(key: str, value: Value, context: ForgetContext) -> Value | None:
    """The mark stays unless it names the person, so that an event posted again is still known."""
    erasure = context.erasure
    named = key in erasure.events and erasure.names.in_id(key)
    return None if named or erasure.names.within(key) else value


def _tick_report(key: str, value: Value, context: ForgetContext) -> Value | None:
    erased = value["event_id"] in context.erasure.events or value["tick"] in context.informed
    return None if erased else cast(Value, context.erasure.scrubber.value(value))


def _audit(key: str, value: Value, context: ForgetContext) -> Value | None:
    """Time, action, tool and outcome stay; the texts go."""
    after = context.erasure.scrubber.value(value)
    if "detail" not in value:
        return cast(Value, after)
    theirs = value["origin"] in context.erasure.events or value["tick"] in context.informed
    if after == value and not theirs:
        return value
    return {**after, "id": value["id"], "why": None, "detail": {}}


def _deed(key: str, value: Value, context: ForgetContext) -> Value | None:
    events = context.erasure.events
    theirs = {approvals.deed_key(cast(Any, {"id": one}), None) for one in events}
    return None if key in theirs else _answer(key, value, context)


def _answer(key: str, value: Value, context: ForgetContext) -> Value | None:
    if key in context.questions:
        return None
    return cast(Value, context.erasure.scrubber.value(value))


def _run(key: str, value: Value, context: ForgetContext) -> Value | None:
    left = {one: event for one, event in value.items() if event not in context.erasure.events}
    return left or None


def _summary(key: str, value: Value, context: ForgetContext) -> Value | None:
    """A summary not yet in the conversation names no sources; if in doubt it is made again."""
    same = context.erasure.scrubber.value(value) == value
    return value if same and not context.erasure.events else None


def _probe(key: str, value: Value, context: ForgetContext) -> Value | None:
    """A recent recall always goes: nothing records whose words its query has."""
    return None if context.erasure.gone else value


def _profile(key: str, value: Value, context: ForgetContext) -> Value | None:
    return cast(Value | None, profile_after(cast(Any, value), context.erasure))


def _page(key: str, value: Value, context: ForgetContext) -> Value | None:
    """A page has no texts: lines of erased facts go, and attributes that name the person."""
    erasure = context.erasure
    if key in erasure.profiles or erasure.names.within(key.replace("_", " ")):
        return None
    lines = [
        {**line, "facts": [op for op in line["facts"] if op not in erasure.gone]}
        for line in value["lines"]
        if not erasure.names.within(line["attribute"] or "")
    ]
    left = [line for line in lines if line["facts"]]
    return {**value, "lines": left} if left else None


def _name(key: str, value: Value, context: ForgetContext) -> Value | None:
    erasure = context.erasure
    theirs = value.get("id") in erasure.profiles or erasure.names.means(key)
    return None if theirs or erasure.names.within(key) else value


def _night(key: str, value: Value, context: ForgetContext) -> Value | None:
    touched = key in context.nights
    record = record_after(cast(Any, value), context.erasure, touched=touched, at=context.at)
    if record != value:
        context.nights[key] = cast(NightRecord, value)
    return cast(Value, dict(record))


def _prompt(key: str, value: Value, context: ForgetContext) -> Value | None:
    """Any forget drops the kept prompts, because a prompt may show every memory."""
    erasure = context.erasure
    named = erasure.names.within(f"{value['system']}\n{value['front']}")
    return None if named or erasure.all_gone else value


_RULES: Mapping[str, Callable[[str, Value, ForgetContext], Value | None]] = {
    "journal": _entry,
    journal.PENDING: _marker,
    journal.ARCHIVES: _marker,
    journal.UNINDEXED: _marker,
    apply.LINKS: _link,
    inbox.HANDLED: _handled,
    inbox.TICKS: _tick_report,
    inbox.PROMPTS: _prompt,
    audit.AUDIT: _audit,
    approvals.DEEDS: _deed,
    approvals.ANSWERS: _answer,
    approvals.PASSED_OVER: _answer,
    inbox.RUNS: _run,
    SUMMARIES: _summary,
    entities.ENTITIES: _profile,
    entities.NAMES: _name,
    pages.PAGES: _page,
    night.NIGHTS: _night,
    night.PROBES: _probe,
}
