"""The store's records, kind by kind, without what is a forgotten person's. Pure.

Kinds that are not known here, as those of a later version, are searched for texts all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from memory import apply, approvals, arrivals, audit, entities, inbox, journal, night
from memory.compaction import SUMMARIES
from memory.forgetting.erasure import Erasure
from memory.forgetting.nights import record_after, texts_after
from memory.forgetting.profiles import profile_after

Value: TypeAlias = dict[str, Any]


@dataclass
class Context:
    """What the rules know."""

    erasure: Erasure
    gone: frozenset[str]
    """Ids of what is erased: events, entries, facts, messages."""
    questions: frozenset[str]
    """Questions of ticks that are dropped."""
    at: str
    """Now, ISO 8601."""
    nights: set[str] = field(default_factory=set)
    """Ids of nights of which a plan changed."""


Rule: TypeAlias = Callable[[str, Value, Context], Value | None]


def row_after(kind: str, key: str, value: Value, context: Context) -> Value | None:
    """A record of `kind` (its namespace's first label) as it stays; None: it goes."""
    rule = RULES.get(kind)
    if rule is not None:
        return rule(key, value, context)
    erasure = context.erasure
    if key in context.gone or erasure.names.within(key):
        return None
    return cast(Value, erasure.scrubber.value(value, "unknown"))


def _entry(key: str, value: Value, context: Context) -> Value | None:
    after = context.erasure.entries.get(key, cast(Any, value))
    return dict(after) if after is not None else None


def _marker(key: str, value: Value, context: Context) -> Value | None:
    return None if value.get("id") in context.gone else value


def _link(key: str, value: Value, context: Context) -> Value | None:
    left = [one for one in value["linked_to"] if one not in context.gone]
    if not left or key in context.gone:
        return None
    relations = value.get("relations", {})
    kept = {
        one: texts_after(told, context.erasure, "mixed")
        for one, told in relations.items()
        if one in left
    }
    return {**value, "linked_to": left, **({"relations": kept} if "relations" in value else {})}


def _waiting(key: str, value: Value, context: Context) -> Value | None:
    if key in context.erasure.events:
        return None
    scrub = context.erasure.scrubber.value
    return {
        **value,
        "event": scrub(value["event"], "said"),
        "error": scrub(value["error"], "unknown"),
    }


def _handled(key: str, value: Value, context: Context) -> Value | None:
    """The mark stays: the same event, posted again, is still known. But not by a name."""
    named = key in context.erasure.events and context.erasure.names.in_id(key)
    return None if named or context.erasure.names.within(key) else value


def _audit(key: str, value: Value, context: Context) -> Value | None:
    """When, what, by which tool and how it went stays; the text goes."""
    scrub = context.erasure.scrubber.value
    after = scrub(value, "unknown")
    if "detail" not in value or (after == value and value["origin"] not in context.erasure.events):
        return cast(Value, after)
    return {**after, "id": value["id"], "why": None, "detail": {}}


def _deed(key: str, value: Value, context: Context) -> Value | None:
    events = context.erasure.events
    theirs = {approvals.deed_key(cast(Any, {"id": one}), None) for one in events}
    if key in theirs or key in context.questions:
        return None
    return cast(Value, context.erasure.scrubber.value(value, "unknown"))


def _answer(key: str, value: Value, context: Context) -> Value | None:
    if key in context.questions:
        return None
    return cast(Value, context.erasure.scrubber.value(value, "unknown"))


def _run(key: str, value: Value, context: Context) -> Value | None:
    left = {one: event for one, event in value.items() if event not in context.erasure.events}
    return left or None


def _summary(key: str, value: Value, context: Context) -> Value | None:
    """Nobody knows of what; it is needed only until it stands in the history."""
    same = context.erasure.scrubber.value(value, "mixed") == value
    return value if same and not context.erasure.events else None


def _profile(key: str, value: Value, context: Context) -> Value | None:
    return cast(Value | None, profile_after(cast(Any, value), context.erasure))


def _name(key: str, value: Value, context: Context) -> Value | None:
    erasure = context.erasure
    theirs = value.get("id") in erasure.profiles or erasure.names.means(key)
    return None if theirs or erasure.names.within(key) else value


def _night(key: str, value: Value, context: Context) -> Value | None:
    touched = key in context.nights
    record = record_after(
        cast(Any, value), context.erasure, context.gone, touched=touched, at=context.at
    )
    return cast(Value, dict(record))


RULES: Mapping[str, Rule] = {
    "journal": _entry,
    journal.PENDING: _marker,
    journal.ARCHIVES: _marker,
    journal.UNINDEXED: _marker,
    apply.LINKS: _link,
    inbox.INBOX: _waiting,
    inbox.SET_ASIDE: _waiting,
    inbox.HANDLED: _handled,
    audit.AUDIT: _audit,
    approvals.DEEDS: _deed,
    approvals.ANSWERS: _answer,
    approvals.PASSED_OVER: _answer,
    arrivals.RUNS: _run,
    SUMMARIES: _summary,
    entities.ENTITIES: _profile,
    entities.NAMES: _name,
    night.NIGHTS: _night,
}
