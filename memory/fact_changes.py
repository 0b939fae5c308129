"""What changes of facts come to, whatever stands by now. Pure.

Lists are joined: what a change adds is added and what it takes is taken, and what others added
stays. All other fields are replaced together, where they are still as they were when the change was
decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from memory.operations import BLANK, told
from memory.records import Fact, FactDraft, Operation

JOINED = ("source_entries", "source_events", "entities", "disputed")
"""Fields that are lists of which order says nothing."""


def fields_after(
    standing: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The fields that are to be written, none where all is so already.

    None where those that are no lists are neither as they were nor as they are to be: somebody
    changed them meanwhile.
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


class Circles:
    """Changes by which facts would end up in each other's places.

    Batches that were thought out side by side may each let one of two facts go for the other: the
    first one counts.
    """

    def __init__(self) -> None:
        self._heirs: dict[str, str] = {}

    def allow(self, one: Operation) -> bool:
        """Whether an operation, coming after those before it, closes no circle."""
        if one["kind"] != "change_fact":
            return True
        at = heir = (one["after"] or {}).get("superseded_by")
        while at is not None and at != one["target"]:
            at = self._heirs.get(at)
        if at is not None:
            return False
        if heir is not None:
            self._heirs.setdefault(one["target"], heir)
        return True


class Rivals:
    """Changes that a change before them has made impossible.

    Batches that were thought out side by side may each replace the same value of one fact: the
    first one counts, and the others are no part of what the night does.
    """

    def __init__(self) -> None:
        self._now: dict[tuple[str, str], Any] = {}

    def allow(self, one: Operation) -> bool:
        """Whether an operation, coming after those before it, is still possible."""
        before, after = one["before"], one["after"]
        if one["kind"] != "change_fact" or before is None or after is None:
            return True
        plain = [name for name in after if name not in JOINED]
        keys = [(one["target"], name) for name in plain]
        found = [self._now.get(key, before[name]) for key, name in zip(keys, plain, strict=True)]
        if any(
            now not in (before[name], after[name]) for now, name in zip(found, plain, strict=True)
        ):
            return False
        self._now |= {key: after[name] for key, name in zip(keys, plain, strict=True)}
        return True


def without_circles(operations: Iterable[Operation]) -> list[Operation]:
    """All but the changes by which facts would end up in each other's places."""
    circles = Circles()
    return [one for one in operations if circles.allow(one)]


def facts_after(facts: Mapping[str, Fact], operations: Sequence[Operation]) -> dict[str, Fact]:
    """The overlay: facts by operation id once `operations` are applied, in order.

    A fact that is not stored yet has its operation id for an id; what supersedes is named by its
    operation id, too.
    """
    ops = {fact["id"]: fact["op"] for fact in facts.values()}
    after = {op: _by_op(fact, ops) for op, fact in facts.items()}
    for one in without_circles(told(operations)):
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
    """The fact with what superseded it named by its operation id, where that is known."""
    by = fact["superseded_by"]
    return {**fact, "superseded_by": ops.get(by, by)} if by else fact


def fact_from(draft: FactDraft) -> Fact:
    """The fact that a draft becomes."""
    blank = {"invalid_at": None, "superseded_by": None, "access_count": 0, "last_access": None}
    return cast(Fact, {**draft, "id": draft["op"], **blank})
