"""A run's new input: what of it is new, and how it gets into the inbox.

Store namespace (below `(user, thread)`): `runs` a server's run id -> the event ids of its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, get_args

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.store.base import BaseStore

from memory import inbox
from memory.chat import event_of, is_history, with_kind
from memory.errors import InputError
from memory.history import given_id
from memory.operations import operation_id
from memory.scope import Scope
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

    Raises InputError for an unknown request or a malformed event; nothing was taken then.
    """
    check_request(state.get("request"))
    standing = state.get("messages", [])
    people, foreign = new_messages(standing)
    named = [one.model_copy(update={"id": given_id(one, standing)}) for one in people]
    first = await _as_first_given(named, store, scope, run_id)
    spoken = [with_kind(event_of(one, owner=owner, now=now), one) for one in first]
    events = [inbox.valid_event(raw) for raw in state.get("events", []) or []]
    kept = [event for event in spoken if event["text"].strip()]
    posted = await inbox.post(store, scope, [*kept, *events], now=now)
    notes = []
    if len(kept) < len(spoken):
        notes.append("A message without any content was left out.")
    if foreign:
        types = ", ".join(sorted({message.type for message in foreign}))
        notes.append(f"Only human messages are taken; left out: {types}.")
    change = [RemoveMessage(id=str(message.id)) for message in (*people, *foreign)]
    return Arrived(bool(people or events), posted.skipped, change, notes)


def new_messages(messages: Sequence[AnyMessage]) -> tuple[list[HumanMessage], list[AnyMessage]]:
    """Those that no tick and no compaction wrote: (people's, what is no input).

    A tool's answer without its question, or the other way round, breaks the history for every
    provider. An answer in words is kept: that is what an edit of the history by hand leaves.
    """
    new = [m for m in messages if not is_history(m) and "metadata" not in m.additional_kwargs]
    people = [m for m in new if isinstance(m, HumanMessage)]
    edited = [m for m in new if isinstance(m, AIMessage) and not m.tool_calls]
    return people, [m for m in new if m not in people and m not in edited]


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
