"""The inbox: waiting events, written to the store before anything else is done with them.

A run's new messages and events are found (`take_in`) and written here, too.

Store namespaces (below `(user, thread)`):
`inbox` id -> InboxItem · `set_aside` id -> InboxItem · `handled` id -> {id, tick, at} ·
`tick_reports` place of the tick -> TickReport, of the newest ticks ·
`tick_prompts` number of the tick -> TickPrompt, of fewer of them ·
`runs` a server's run id -> the event ids of its messages.
An event leaves `inbox` only once a checkpoint on disk contains its tick. On a server that is known
at the agent's next run; until then the event is marked as answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast, get_args

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from memory import messages as memory_messages
from memory.errors import InputError, NotFoundError, accepting
from memory.events import approvals
from memory.messages import (
    event_of,
    given_id,
    is_history,
    is_outside,
    is_summary,
    mark_of,
    valid_event,
    waits,
    with_kind,
)
from memory.records import (
    LOCAL_USER,
    Event,
    HandledMark,
    InboxItem,
    Report,
    Scope,
    TickPrompt,
    TickReport,
    operation_id,
)
from memory.settings import Settings
from memory.state import Request, State
from memory.storage import count_named, list_items, read_ahead, write_batch
from memory.text import once_per_message

INBOX, SET_ASIDE, HANDLED, TICKS = "inbox", "set_aside", "handled", "tick_reports"
PROMPTS = "tick_prompts"

TICKS_KEPT = 256
"""Reports of ticks that are kept: for callers whose event another run handled, and for people."""
PROMPTS_KEPT = 20
"""Prompts that an agent keeps where the setting is empty and no user of a server owns it."""


class Posted(NamedTuple):
    """Result of one post, by event id."""

    accepted: list[str]
    waiting: list[str]
    """Already in the inbox."""
    skipped: list[str]
    """Handled before."""


def completed(raw: Any, *, id_: str, owner: str, now: datetime) -> Any:
    """`raw` with defaults for the fields that may be left out; unchanged if it is not an object."""
    if not isinstance(raw, dict):
        return raw
    blank = {"id": id_, "at": now.isoformat(), "sender": owner, "channel": None, "addressed": True}
    return {**blank, **raw}


async def post(
    store: BaseStore,
    scope: Scope,
    events: Sequence[Event],
    *,
    now: datetime,
    also: Sequence[PutOp] = (),
) -> Posted:
    """Write events into the inbox in one transaction, in order; known ids are skipped.

    An event that was set aside is tried again. Two different events of one id are an InputError.
    """
    with accepting():
        by_id = {event["id"]: event for event in events}
        for event in events:
            if event != by_id[event["id"]]:
                raise InputError(f"two events have the id {event['id']!r:.80}: give each its own")
        store = await read_ahead(store, [scope.namespace(INBOX)], were_handled(scope, by_id))
        present, handled = await _known(store, scope, list(by_id))
        fresh = {id_: event for id_, event in by_id.items() if id_ not in present | handled}
        if fresh:
            items = await list_items(store, scope.namespace(INBOX))
            newest = max((str(item.value["order"]) for item in items), default=None)
            start = 0 if newest is None else 1 + int(newest.split("/")[1])
            arrivals = enumerate(fresh.values(), start)
            puts = [put for place, event in arrivals for put in _arrival(scope, event, now, place)]
            await write_batch(store, [*puts, *also])
        return Posted(
            list(fresh),
            [id_ for id_ in by_id if id_ in present],
            [id_ for id_ in by_id if id_ in handled],
        )


async def waiting(
    store: BaseStore, scope: Scope, handled: Iterable[HandledMark] = ()
) -> list[InboxItem]:
    """Waiting events, oldest first, without those whose tick the state contains (`handled`).

    Handled ids are looked up, too: another process may have posted one meanwhile.
    """
    items = await list_items(store, scope.namespace(INBOX))
    done = await already_handled(store, scope, [item.key for item in items])
    done |= {mark["id"] for mark in handled}
    rows = [cast(InboxItem, item.value) for item in items if item.key not in done]
    return sorted(rows, key=lambda row: row["order"])


async def set_aside(store: BaseStore, scope: Scope) -> list[InboxItem]:
    """Events that failed too often, oldest first."""
    items = await list_items(store, scope.namespace(SET_ASIDE))
    return sorted((cast(InboxItem, item.value) for item in items), key=lambda row: row["order"])


async def already_handled(store: BaseStore, scope: Scope, ids: Sequence[str]) -> set[str]:
    """The event ids among `ids` whose ticks are committed."""
    if not ids:
        return set()
    found = await store.abatch(were_handled(scope, ids))
    return {id_ for id_, item in zip(ids, found, strict=True) if item is not None}


def were_handled(scope: Scope, ids: Iterable[str]) -> list[GetOp]:
    """The reads that `already_handled` makes."""
    namespace = scope.namespace(HANDLED)
    return [GetOp(namespace, id_) for id_ in ids]


async def settle(
    store: BaseStore, scope: Scope, marks: Sequence[HandledMark], ticks: Iterable[TickReport] = ()
) -> None:
    """Take events whose ticks are on disk out of the inbox; keep ids, and reports on them."""
    handled = {None, *(mark["id"] for mark in marks)}
    puts = [
        PutOp(scope.namespace(TICKS), _place(tick["tick"]), cast(dict[str, Any], dict(tick)))
        for tick in ticks
        if tick["event_id"] in handled
    ]
    for mark in marks:
        puts.append(approvals.drop_calls(scope, mark["id"]))
        puts.append(PutOp(scope.namespace(INBOX), mark["id"], None))
        puts.append(PutOp(scope.namespace(HANDLED), mark["id"], dict(mark)))
    if puts:
        await write_batch(store, puts)


async def settled(
    store: BaseStore,
    scope: Scope,
    values: Mapping[str, Any],
    marks: Sequence[HandledMark],
    *,
    late: bool = False,
) -> None:
    """Settle the events of `marks`, and drop what questions needed whose ticks came to their ends.

    `values`: of a state that is on disk. `late`: the run that had these marks did not settle them.
    """
    report: Report = values["report"]
    await settle(store, scope, marks, report["ticks"])
    answered = any("question" in tick for tick in report["ticks"])
    if answered or report.get("questions") or (late and marks):  # an older report has none
        await approvals.tidy(store, scope, values["parked"])


async def report_on(store: BaseStore, scope: Scope, event_id: str) -> TickReport | None:
    """The report of the tick on an event, of whatever run; None if it is not among the newest."""
    mark = await store.aget(scope.namespace(HANDLED), event_id)
    if mark is None:
        return None
    report = await report_of(store, scope, int(mark.value["tick"]))
    return report if report is not None and report["event_id"] == event_id else None


async def report_of(store: BaseStore, scope: Scope, tick: int) -> TickReport | None:
    """The report of a tick; None if it is not among the newest."""
    item = await store.aget(scope.namespace(TICKS), _place(tick))
    report = cast(TickReport, item.value) if item is not None else None
    return report if report is not None and report["tick"] == tick else None


async def reports(store: BaseStore, scope: Scope) -> list[TickReport]:
    """The reports of the newest ticks, oldest first."""
    found = [
        cast(TickReport, item.value) for item in await list_items(store, scope.namespace(TICKS))
    ]
    return sorted(found, key=lambda report: report["tick"])


def puts_prompt(scope: Scope, prompt: TickPrompt, *, most: int) -> list[PutOp]:
    """Store writes that keep a tick's prompt and drop the prompt of `most` ticks before."""
    here, value = scope.namespace(PROMPTS), cast(dict[str, Any], dict(prompt))
    left = PutOp(here, str(prompt["tick"] - most), None)
    return [PutOp(here, str(prompt["tick"]), value), left]


def most_prompts(settings: Settings, user: str) -> int:
    """The number of prompts that an agent of this user keeps."""
    if settings.prompts_kept is not None:
        return settings.prompts_kept
    return PROMPTS_KEPT if user == LOCAL_USER else 0


async def drop_prompts(store: BaseStore, scope: Scope, *, most: int, since: str | None) -> None:
    """Drop the prompts beyond the newest `most`, and those of ticks before `since` (ISO 8601)."""
    found = await list_items(store, scope.namespace(PROMPTS))
    newest = max((item.value["tick"] for item in found), default=0)
    gone = [
        PutOp(item.namespace, item.key, None)
        for item in found
        if item.value["tick"] <= newest - most or (since is not None and item.value["at"] < since)
    ]
    if gone:
        await write_batch(store, gone)


async def prompt_of(store: BaseStore, scope: Scope, tick: int) -> TickPrompt | None:
    """The prompt of a tick; None if it is not kept."""
    item = await store.aget(scope.namespace(PROMPTS), str(tick))
    return cast(TickPrompt, item.value) if item is not None else None


def _place(tick: int) -> str:
    return f"{tick % TICKS_KEPT:03d}"


async def note_answered(store: BaseStore, scope: Scope, marks: Sequence[HandledMark]) -> None:
    """Mark events as answered that are not settled yet, for `waiting_now` alone.

    If a crash loses the tick, the next run answers the event again, marked or not.
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


async def waiting_now(store: BaseStore, below: tuple[str, ...] = ()) -> tuple[int, str | None]:
    """The number of unanswered events of all agents below a namespace, and when the oldest came."""
    return await count_named(store, INBOX, "received_at", without="answered", below=below)


async def give_back(
    store: BaseStore, scope: Scope, event_id: str, error: str, *, max_attempts: int
) -> tuple[int, bool]:
    """Count a failed tick; return (failed attempts, whether the event was set aside)."""
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
    """Return events that were set aside, all or one, to their places in the inbox; returns the ids.

    Takes no lock. Raises InputError if `event_id` is not set aside.
    """
    rows = [row for row in await set_aside(store, scope) if event_id in (None, row["event"]["id"])]
    if event_id is not None and not rows:
        raise InputError(f"no event {event_id} is set aside")
    ids = [row["event"]["id"] for row in rows]
    puts: list[PutOp] = []
    for id_, row in zip(ids, rows, strict=True):
        fresh = {**row, "attempts": 0, "error": None}
        puts.append(PutOp(scope.namespace(INBOX), id_, fresh))
        puts.append(PutOp(scope.namespace(SET_ASIDE), id_, None))
    if puts:
        await write_batch(store, puts)
    return ids


async def withdraw(store: BaseStore, scope: Scope, event_id: str) -> InboxItem:
    """Take an event out of the inbox for good; returns it. Raises NotFoundError."""
    gets = [GetOp(scope.namespace(name), event_id) for name in (INBOX, SET_ASIDE, HANDLED)]
    waiting, aside, handled = await store.abatch(gets)
    found = waiting or aside
    if handled is not None or not isinstance(found, Item):
        raise NotFoundError(f"no event {event_id!r:.80} waits")
    puts = [PutOp(scope.namespace(name), event_id, None) for name in (INBOX, SET_ASIDE)]
    await write_batch(store, puts)
    return cast(InboxItem, found.value)


async def _known(store: BaseStore, scope: Scope, ids: Sequence[str]) -> tuple[set[str], set[str]]:
    """(ids that wait in the inbox, ids that were handled), out of `ids`; disjoint."""
    if not ids:
        return set(), set()
    places = [(name, id_) for name in (INBOX, HANDLED) for id_ in ids]
    items = await store.abatch([GetOp(scope.namespace(name), id_) for name, id_ in places])
    found = [place for place, item in zip(places, items, strict=True) if item is not None]
    handled = {id_ for name, id_ in found if name == HANDLED}
    return {id_ for name, id_ in found if name == INBOX} - handled, handled


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


RUNS = "runs"


class Room(NamedTuple):
    """How many new events fit, and why no more."""

    events: int
    why: str


class Arrived(NamedTuple):
    """Result of taking in a run's input."""

    given: bool
    """Whether the input had any message or event."""
    skipped: list[str]
    """Ids of events that were handled before."""
    messages: list[BaseMessage]
    """Update of the history: new messages wait behind it, until their ticks put them into it."""
    notes: list[str]


async def take_in(
    state: State,
    *,
    store: BaseStore,
    scope: Scope,
    owner: str,
    now: datetime,
    run_id: str | None,
    room: Callable[[Scope], Awaitable[Room]] | None = None,
) -> Arrived:
    """Write the new messages and events of the state into the inbox.

    A message that cannot be an event is left out with a note: an error would come back in every
    later run. So would one for messages beyond `room`: they stay for the next run. Raises
    InputError, with nothing taken: unknown request, malformed event, or more events than there is
    room for.
    """
    check_request(state.get("request"))
    brought = state.get("events") or []
    if not isinstance(brought, list):
        raise InputError(f"events must be a list of objects with a text; got {brought!r:.80}")
    standing = state.get("messages", [])
    behind = standing[_answered(standing) + 1 :]
    asked = [event for m in behind if isinstance(m, HumanMessage) and (event := _event(m))]
    handled = await already_handled(store, scope, asked)
    people, foreign = new_messages(standing, handled)
    named = [m.model_copy(update={"id": given_id(m, standing)}) for m in people]
    first = await _as_first_given(named, store, scope, run_id)
    spoken, notes = _spoken(first, owner=owner, now=now)
    if run_id is not None:  # ids derive from the run, so that a repeated run repeats them
        ids = [operation_id("event", run_id, str(place)) for place in range(len(brought))]
        named_events = zip(ids, brought, strict=True)
        brought = [completed(raw, id_=id_, owner=owner, now=now) for id_, raw in named_events]
    events = [valid_event(raw) for raw in brought]
    late: set[str] = set()
    if room is not None and (spoken or events):
        late, told = await _beyond(await room(scope), events, spoken, store=store, scope=scope)
        notes += told
        spoken = [event for event in spoken if event["id"] not in late]
    posted = await post(store, scope, [*_not_among(events, spoken), *events], now=now)
    if foreign:
        types = ", ".join(sorted({message.type for message in foreign}))
        notes.append(f"Only human messages are taken; left out: {types}.")
    past = {message.id for message in standing} - {message.id for message in people}
    change: list[BaseMessage] = [RemoveMessage(id=str(one.id)) for one in (*people, *foreign)]
    for given, one in zip(people, first, strict=True):
        if one.id in late:
            change.append(memory_messages.waiting(given, outside=True))
        elif one.id not in past:
            change.append(memory_messages.waiting(one))
    return Arrived(bool(people or events), posted.skipped, change, notes)


async def _beyond(
    room: Room, events: Sequence[Event], spoken: Sequence[Event], *, store: BaseStore, scope: Scope
) -> tuple[set[str], list[str]]:
    """The ids of messages that do not fit any more, and a note on them. Known ids take no room.

    Raises InputError if the events alone do not fit: unlike messages, the state does not keep them.
    """
    ids = list(dict.fromkeys(event["id"] for event in (*events, *spoken)))
    known = set().union(*await _known(store, scope, ids))
    new = [id_ for id_ in ids if id_ not in known]
    brought = {event["id"] for event in events}.intersection(new)
    if len(brought) > (most := max(0, room.events)):
        raise InputError(f"{len(brought):,} events were not taken in: {room.why}")
    late = set(new[most:])
    return late, [f"Messages that stay in the thread: {len(late):,} ({room.why})."] if late else []


def new_messages(
    messages: Sequence[AnyMessage], handled: Collection[str] = ()
) -> tuple[list[HumanMessage], list[AnyMessage]]:
    """Messages that neither a tick nor a compaction wrote: (people's, others to be removed).

    New input may carry the mark of a tick, but it comes last: a marked human message belongs to a
    tick if a tick's answer follows it, or if its event is in `handled` (somebody removed or edited
    the answer by hand). One that waits was taken in before, unless it waits for room. A
    summary counts as a compaction's only in first place.

    A tool's answer without its call, or a call without its answer, makes the history invalid for
    every provider, so both are removed. A model's answer in words stays: an edit by hand leaves it.
    """
    answered = _answered(messages)
    # Of a long history nearly all stands: those that may not are looked at one by one.
    marked = enumerate(_is_marked.each(messages))
    new = [
        messages[at]
        for at, known in marked
        if not (known and at < answered)
        and not (
            (waits(messages[at]) and not is_outside(messages[at]))
            or _stands(messages[at], at, answered, handled)
        )
    ]
    people = [m for m in new if isinstance(m, HumanMessage)]
    edited = [m for m in new if isinstance(m, AIMessage) and not m.tool_calls]
    return people, [m for m in new if m not in people and m not in edited]


@once_per_message
def _is_marked(message: AnyMessage) -> bool:
    return is_history(message) and not isinstance(message, SystemMessage)


def _answered(messages: Sequence[AnyMessage]) -> int:
    newest_first = range(len(messages) - 1, -1, -1)
    answers = (
        at
        for at in newest_first
        if not isinstance(messages[at], HumanMessage) and _is_marked(messages[at])
    )
    return next(answers, -1)


def _event(message: HumanMessage) -> str | None:
    """The event id in the message's mark, if it is the message's id, too."""
    event = mark_of(message)["event"] if is_history(message) else None
    return event if event == message.id else None


def _stands(message: AnyMessage, at: int, answered: int, handled: Collection[str]) -> bool:
    """Whether the message at index `at` belongs to the history and is not new input."""
    if isinstance(message, SystemMessage):
        return at == 0 and is_summary(message)
    if not isinstance(message, HumanMessage):
        return is_history(message)
    return is_history(message) and (at < answered or _event(message) in handled)


def _spoken(
    messages: Sequence[HumanMessage], *, owner: str, now: datetime
) -> tuple[list[Event], list[str]]:
    events, notes = [], []
    for message in messages:
        event = event_of(message, owner=owner, now=now)
        if not event["text"].strip():
            notes.append("A message without any content was left out.")
            continue
        try:
            events.append(with_kind(valid_event(event), message))
        except InputError as error:
            notes.append(f"A message was left out: {error}.")
    return events, list(dict.fromkeys(notes))


def _not_among(events: Sequence[Event], spoken: Sequence[Event]) -> list[Event]:
    """The messages but those that were sent again as events, as people do after a crash."""

    def told(one: Event) -> tuple[object, ...]:
        return one["id"], one["sender"], one["text"], one["channel"], one["addressed"]

    again = {*map(told, events)}
    return [one for one in spoken if told(one) not in again]


async def _as_first_given(
    new: Sequence[HumanMessage], store: BaseStore, scope: Scope, run_id: str | None
) -> list[HumanMessage]:
    """The messages with the ids of the run's first attempt.

    After a crash a server repeats a run; a message without an id of its own then gets another one.
    """
    if run_id is None or not new:
        return list(new)
    # Positions count from the end: messages of earlier runs come before this run's input.
    given = {
        operation_id(str(len(new) - at), str(m.name), str(m.content)): str(m.id)
        for at, m in enumerate(new)
    }
    place = scope.namespace(RUNS), run_id
    kept = await store.aget(*place)
    ids = {**given, **(kept.value if kept else {})}
    await store.aput(*place, ids)
    return [m.model_copy(update={"id": ids[k]}) for k, m in zip(given, new, strict=True)]


def check_request(request: object) -> None:
    """Raise InputError for an unknown request."""
    known = get_args(Request)
    if request is not None and request not in known:
        raise InputError(f"unknown request {request!r}; known are {', '.join(known)}")
