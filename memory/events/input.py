"""A run's new input: what of it is new, and how it gets into the inbox.

Store namespace (below `(user, thread)`): `runs` a server's run id -> the event ids of its messages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple, get_args

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.store.base import BaseStore

from memory import messages as memory_messages
from memory.errors import InputError
from memory.events import inbox
from memory.messages import event_of, given_id, is_history, is_summary, mark_of, with_kind
from memory.records import Event, Scope, operation_id
from memory.state import Request, State

RUNS = "runs"


class Arrived(NamedTuple):
    """What became of a run's input."""

    given: bool
    """Whether there was any message or event."""
    skipped: list[str]
    """Ids that were handled before."""
    messages: list[RemoveMessage]
    """The change of the history: new input leaves it until its tick."""
    notes: list[str]


async def take_in(
    state: State, *, store: BaseStore, scope: Scope, owner: str, now: datetime, run_id: str | None
) -> Arrived:
    """Write the new messages and events of the state into the inbox.

    Raises InputError for an unknown request or a malformed event; nothing was taken then. A message
    that can be no event is refused before it gets here (`memory.messages.history`); one that stands in the
    thread all the same is left out, since every later run would meet it.
    """
    check_request(state.get("request"))
    standing = state.get("messages", [])
    handled = await inbox.already_handled(store, scope, _last_asked(standing))
    people, foreign = new_messages(standing, handled)
    named = [one.model_copy(update={"id": given_id(one, standing)}) for one in people]
    first = await _as_first_given(named, store, scope, run_id)
    spoken, notes = _spoken(first, owner=owner, now=now)
    events = [
        memory_messages.valid_event(_completed(raw, run_id, place, owner, now))
        for place, raw in enumerate(state.get("events", []) or [])
    ]
    posted = await inbox.post(store, scope, [*spoken, *events], now=now)
    if foreign:
        types = ", ".join(sorted({message.type for message in foreign}))
        notes.append(f"Only human messages are taken; left out: {types}.")
    change = [RemoveMessage(id=str(message.id)) for message in (*people, *foreign)]
    return Arrived(bool(people or events), posted.skipped, change, notes)


def _completed(raw: Any, run_id: str | None, place: int, owner: str, now: datetime) -> Any:
    """An event without an id has one by the run that brought it: done again, it is the same one.

    Without a run's id there is nothing to tell two of them apart by: then it must bring its own.
    """
    if run_id is None:
        return raw
    return inbox.completed(raw, id_=operation_id("event", run_id, str(place)), owner=owner, now=now)


def new_messages(
    messages: Sequence[AnyMessage], handled: Collection[str] = ()
) -> tuple[list[HumanMessage], list[AnyMessage]]:
    """Those that no tick and no compaction wrote: (people's, what is no input).

    Input can bring a tick's mark, but stands at the end: a human message is a tick's where a tick's
    answer stands after it, or where its event is one of `handled` (its answer was removed or
    edited by hand). The summary of a compaction stands first.

    A tool's answer without its question, or the other way round, breaks the history for every
    provider. An answer in words is kept: that is what an edit of the history by hand leaves.
    """
    answered = _answered(messages)
    new = [m for at, m in enumerate(messages) if not _stands(m, at, answered, handled)]
    people = [m for m in new if isinstance(m, HumanMessage)]
    edited = [m for m in new if isinstance(m, AIMessage) and not m.tool_calls]
    return people, [m for m in new if m not in people and m not in edited]


def _answered(messages: Sequence[AnyMessage]) -> int:
    """The place of the newest answer that a tick wrote; -1 where there is none."""
    answers = (n for n, m in enumerate(messages) if not isinstance(m, HumanMessage | SystemMessage))
    return max((n for n in answers if is_history(messages[n])), default=-1)


def _last_asked(messages: Sequence[AnyMessage]) -> list[str]:
    """The events of those behind the newest answer that have the mark of a tick."""
    behind = messages[_answered(messages) + 1 :]
    return [event for m in behind if isinstance(m, HumanMessage) and (event := _event(m))]


def _event(message: HumanMessage) -> str | None:
    """The event that the message's mark names, if the id is the event's too."""
    event = mark_of(message)["event"] if is_history(message) else None
    return event if event == message.id else None


def _stands(message: AnyMessage, at: int, answered: int, handled: Collection[str]) -> bool:
    """Whether the message at `at` is one of the history and no input."""
    if isinstance(message, SystemMessage):
        return at == 0 and is_summary(message)
    if not isinstance(message, HumanMessage):
        return is_history(message)
    return is_history(message) and (at < answered or _event(message) in handled)


def _spoken(
    messages: Sequence[HumanMessage], *, owner: str, now: datetime
) -> tuple[list[Event], list[str]]:
    """(the messages as events; a note on each that is none)."""
    events, notes = [], []
    for message in messages:
        event = event_of(message, owner=owner, now=now)
        if not event["text"].strip():
            notes.append("A message without any content was left out.")
            continue
        try:
            events.append(with_kind(memory_messages.valid_event(event), message))
        except InputError as error:
            notes.append(f"A message was left out: {error}.")
    return events, list(dict.fromkeys(notes))


async def _as_first_given(
    new: Sequence[HumanMessage], store: BaseStore, scope: Scope, run_id: str | None
) -> list[HumanMessage]:
    """The ids of the first time: after a crash a server does a run again, even an ended one.

    A message that came without an id has another one then.
    """
    if run_id is None or not new:
        return list(new)
    # Counted from the end: what earlier runs left in the thread stands before this run's input.
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
    """Raise InputError for a request that there is not."""
    known = get_args(Request)
    if request is not None and request not in known:
        raise InputError(f"unknown request {request!r}; known are {', '.join(known)}")
