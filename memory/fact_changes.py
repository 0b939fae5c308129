"""Merge changes of facts into the facts as they are now. Pure.

A change says what it found and what it leaves. Lists are merged: its additions and removals are
made, and what others added meanwhile stays. All other fields are replaced together, and only if
they still are what the change found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from memory.operations import BLANK, told
from memory.records import Fact, FactDraft, Operation

JOINED = ("source_entries", "source_events", "entities", "disputed")
"""List fields, whose order means nothing."""


def fields_after(
    standing: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The fields to write; {} where the change is made already.

    None on a conflict: a field that is no list is neither as `before` nor as `after`, because
    somebody changed it meanwhile.
    """
    now = {name: standing.get(name, BLANK.get(name)) for name in after}
    plain = [name for name in after if name not in JOINED]
    if not any(all(now[name] == one[name] for name in plain) for one in (before, after)):
        return None
    lists = {name: _joined(now[name], before[name], after[name]) for name in after.keys() - plain}
    wanted = {**lists, **{name: after[name] for name in plain}}
    return {name: wanted[name] for name in after if wanted[name] != now[name]}


def _joined(now: Sequence[Any], before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    kept = [one for one in now if one in after or one not in before]
    return [*kept, *(one for one in after if one not in before and one not in now)]


def facts_after(facts: Mapping[str, Fact], operations: Sequence[Operation]) -> dict[str, Fact]:
    """Facts by operation id once `operations` are applied, in order.

    A fact that is not stored yet has its operation id for an id, and `superseded_by` holds an
    operation id, too.
    """
    ops = {fact["id"]: fact["op"] for fact in facts.values()}
    after = {op: _by_op(fact, ops) for op, fact in facts.items()}
    for one in told(operations):
        target = one["target"]
        if one["kind"] == "add_fact":
            after.setdefault(target, fact_from(cast(FactDraft, one["after"])))
        elif one["kind"] == "remove_fact":
            after.pop(target, None)
        elif one["kind"] == "change_fact" and target in after:
            changed = fields_after(after[target], one["before"], one["after"])
            after[target] = cast(Fact, {**after[target], **(changed or {})})
    return after


def _by_op(fact: Fact, ops: Mapping[str, str]) -> Fact:
    """The fact with `superseded_by` as an operation id, where that is known."""
    by = fact["superseded_by"]
    return {**fact, "superseded_by": ops.get(by, by)} if by else fact


def fact_from(draft: FactDraft) -> Fact:
    """The fact that a draft becomes."""
    blank = {"invalid_at": None, "superseded_by": None, "access_count": 0, "last_access": None}
    return cast(Fact, {**draft, "id": draft["op"], **blank})
