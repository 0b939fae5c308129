"""The inbox: events that wait, in the store, written there before anything else is done with them.

Store namespaces (below `(user, thread)`):
`inbox` id -> InboxItem · `set_aside` id -> InboxItem · `handled` id -> {tick, at}.
An event leaves `inbox` once the checkpointed state contains its tick, and not before; on a server
that is with its agent's next run, and until then it says that it is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from memory.errors import InputError, accepting
from memory.records import Event, HandledMark, InboxItem, Scope
from memory.storage import count_items_named, list_items, write_batch

INBOX, SET_ASIDE, HANDLED = "inbox", "set_aside", "handled"


class Posted(NamedTuple):
    """What became of the events of one post."""

    accepted: list[str]
    waiting: list[str]
    """Ids that stood in the inbox already."""
    skipped: list[str]
    """Ids that were handled before."""


def completed(raw: Any, *, id_: str, owner: str, now: datetime) -> Any:
    """`raw` with what the sender of an event may leave out; what is no object stays as it is."""
    if not isinstance(raw, dict):
        return raw
    blank = {"id": id_, "at": now.isoformat(), "sender": owner, "channel": None, "addressed": True}
    return {**blank, **raw}


async def post(store: BaseStore, scope: Scope, events: Sequence[Event], *, now: datetime) -> Posted:
    """Write events into the inbox in one transaction, in order; an id known already is skipped.

    An event that had been set aside gets another chance.
    """
    with accepting():
        ids = list(dict.fromkeys(event["id"] for event in events))
        present, handled = await _known(store, scope, ids)
        fresh = {e["id"]: e for e in events if e["id"] not in present | handled}
        if fresh:
            start = await _next_position(store, scope)
            arrivals = enumerate(fresh.values(), start)
            puts = [put for place, event in arrivals for put in _arrival(scope, event, now, place)]
            await write_batch(store, puts)
        return Posted(
            list(fresh),
            [id_ for id_ in ids if id_ in present],
            [id_ for id_ in ids if id_ in handled],
        )


async def waiting(
    store: BaseStore, scope: Scope, handled: Iterable[HandledMark] = ()
) -> list[InboxItem]:
    """What waits, oldest first; without events whose tick the state already contains.

    An id can be handled by one process while another is about to post it, so what was handled is
    asked here too and not in `post` alone.
    """
    items = await list_items(store, scope.namespace(INBOX))
    done = await already_handled(store, scope, [item.key for item in items])
    done |= {mark["id"] for mark in handled}
    rows = [cast(InboxItem, item.value) for item in items if item.key not in done]
    return sorted(rows, key=lambda row: row["order"])


async def set_aside(store: BaseStore, scope: Scope) -> list[InboxItem]:
    """What failed too often, oldest first."""
    items = await list_items(store, scope.namespace(SET_ASIDE))
    return sorted((cast(InboxItem, item.value) for item in items), key=lambda row: row["order"])


async def already_handled(store: BaseStore, scope: Scope, ids: Sequence[str]) -> set[str]:
    """Those of `ids` whose tick was committed."""
    if not ids:
        return set()
    namespace = scope.namespace(HANDLED)
    found = await store.abatch([GetOp(namespace, one) for one in ids])
    return {one for one, item in zip(ids, found, strict=True) if item is not None}


async def settle(
    store: BaseStore,
    scope: Scope,
    marks: Sequence[HandledMark],
    *,
    also: Sequence[PutOp] = (),
) -> None:
    """Take events whose ticks are committed out of the inbox, and remember their ids.

    `also`: the caller's writes in the same transaction.
    """
    puts = [*also]
    for mark in marks:
        puts.append(PutOp(scope.namespace(INBOX), mark["id"], None))
        puts.append(PutOp(scope.namespace(HANDLED), mark["id"], dict(mark)))
    if puts:
        await write_batch(store, puts)


async def note_answered(store: BaseStore, scope: Scope, marks: Sequence[HandledMark]) -> None:
    """Say so on events that are answered and not settled: who counts them reads no checkpoint.

    It is for `count_waiting` alone. Where that tick is lost after all, as by a crash, the next run
    answers the event again whatever it says.
    """
    namespace = scope.namespace(INBOX)
    found = await store.abatch([GetOp(namespace, mark["id"]) for mark in marks])
    puts = [
        PutOp(namespace, mark["id"], {**item.value, "answered": mark["tick"]})
        for mark, item in zip(marks, found, strict=True)
        if isinstance(item, Item) and "answered" not in item.value
    ]
    if puts:
        await write_batch(store, puts)


async def count_waiting(store: BaseStore) -> int:
    """The events that wait in the inboxes of all agents of all users."""
    return await count_items_named(store, INBOX, without="answered")


async def give_back(
    store: BaseStore, scope: Scope, event_id: str, error: str, *, max_attempts: int
) -> tuple[int, bool]:
    """A tick failed: count it. Returns (failed attempts, whether the event was set aside)."""
    item = await store.aget(scope.namespace(INBOX), event_id)
    if item is None:
        return 0, False
    row = cast(InboxItem, {**item.value, "attempts": item.value["attempts"] + 1, "error": error})
    row.pop("answered", None)
    aside = row["attempts"] >= max_attempts
    puts = [PutOp(scope.namespace(SET_ASIDE if aside else INBOX), event_id, dict(row))]
    if aside:
        puts.append(PutOp(scope.namespace(INBOX), event_id, None))
    await write_batch(store, puts)
    return row["attempts"], aside


async def retry(store: BaseStore, scope: Scope, event_id: str | None = None) -> list[str]:
    """Put what was set aside, all or one, back into the inbox with a fresh count.

    It keeps its place: what came first is taken first. One transaction; takes no lock. Returns the
    ids, oldest first. Raises InputError where `event_id` is not set aside.
    """
    rows = [row for row in await set_aside(store, scope) if event_id in (None, row["event"]["id"])]
    if event_id is not None and not rows:
        raise InputError(f"no event {event_id} is set aside")
    ids = [row["event"]["id"] for row in rows]
    puts: list[PutOp] = []
    for one, row in zip(ids, rows, strict=True):
        fresh = {**row, "attempts": 0, "error": None}
        puts.append(PutOp(scope.namespace(INBOX), one, fresh))
        puts.append(PutOp(scope.namespace(SET_ASIDE), one, None))
    if puts:
        await write_batch(store, puts)
    return ids


async def _known(store: BaseStore, scope: Scope, ids: Sequence[str]) -> tuple[set[str], set[str]]:
    """Those of `ids` that wait in the inbox, and those that were handled; disjoint."""
    if not ids:
        return set(), set()
    places = [(name, id_) for name in (INBOX, HANDLED) for id_ in ids]
    items = await store.abatch([GetOp(scope.namespace(name), id_) for name, id_ in places])
    found = [place for place, item in zip(places, items, strict=True) if item is not None]
    handled = {id_ for name, id_ in found if name == HANDLED}
    return {id_ for name, id_ in found if name == INBOX} - handled, handled


async def _next_position(store: BaseStore, scope: Scope) -> int:
    """The counter in the newest event's sort key, plus 1."""
    items = await list_items(store, scope.namespace(INBOX))
    newest = max((str(item.value["order"]) for item in items), default=None)
    return 0 if newest is None else 1 + int(newest.split("/")[1])


def _arrival(scope: Scope, event: Event, now: datetime, position: int) -> list[PutOp]:
    row: InboxItem = {
        "event": event,
        "received_at": now.isoformat(),
        "order": f"{now.isoformat(timespec='microseconds')}/{position:06d}",
        "attempts": 0,
        "error": None,
    }
    return [
        PutOp(scope.namespace(INBOX), event["id"], cast(dict[str, Any], dict(row))),
        PutOp(scope.namespace(SET_ASIDE), event["id"], None),
    ]
