"""The history without the ticks that a forgotten person set off. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.messages import (
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from memory.chat import event_of, is_history, mark_of, text_of
from memory.compaction import MARK as SUMMARY
from memory.forgetting.erasure import Erasure
from memory.forgetting.scrubbing import Level
from memory.history import is_summary
from memory.records import Event

_NEVER = datetime.min.replace(tzinfo=UTC)


def events_in(messages: Sequence[AnyMessage], owner: str) -> list[Event]:
    """What people said, as far as the history still has it."""
    found = []
    for one in messages:
        if not isinstance(one, HumanMessage):
            continue
        mark = mark_of(one) if is_history(one) else {"event": str(one.id), "at": ""}
        if mark.get("event"):
            event = event_of(one, owner=owner, now=_NEVER)
            found.append(cast(Event, {**event, "id": mark["event"], "at": str(mark.get("at"))}))
    return found


def history_after(
    messages: Sequence[AnyMessage], erasure: Erasure, handled: Mapping[str, int]
) -> list[AnyMessage]:
    """The history as it stays.

    A tick that an erased event set off goes whole, calls with their answers. Of other messages the
    sentences that are the person's are cut; a tick whose tools found something erased counts as
    written from it, and so does one of which a compaction took what its tools found. `handled`:
    events and the ticks that they were handled in.
    """
    ticks = ticks_of(messages, erasure.events, handled)
    mixed = {_tick(one) for one in messages if _found_erased(one, erasure)} | _beheaded(messages)
    left = []
    for one in messages:
        if _tick(one) in ticks or _event(one) in erasure.events:
            continue
        after = _scrubbed(one, erasure, mixed=_tick(one) in mixed)
        if after is not None:
            left.append(after)
    return left


def _beheaded(messages: Sequence[AnyMessage]) -> set[int | None]:
    """The tick of which a compaction cut the beginning, if any."""
    if not any(is_summary(one) for one in messages):
        return set()
    first = next((one for one in messages if not isinstance(one, SystemMessage)), None)
    return set() if first is None or isinstance(first, HumanMessage) else {_tick(first)}


def ticks_of(
    messages: Sequence[AnyMessage], events: Collection[str], handled: Mapping[str, int]
) -> set[int]:
    """The ticks in the history that were set off by one of `events`.

    Where the message that set it off was cut, the event's mark tells its tick, unless an event that
    stays was handled in the same: one taken as context has the number of the tick before it.
    """
    asked = {_tick(one): _event(one) for one in messages if isinstance(one, HumanMessage)}
    theirs = {tick for tick, event in asked.items() if tick is not None and event in events}
    others = {tick for event, tick in handled.items() if event not in events}
    cut = {tick for event, tick in handled.items() if event in events} - set(asked)
    return theirs | (cut - others)


def _scrubbed(message: AnyMessage, erasure: Erasure, *, mixed: bool) -> AnyMessage | None:
    """One message as it stays. An answer keeps its place where nothing of its text is left."""
    if isinstance(message, SystemMessage) and is_summary(message):
        return _summary(message, erasure)
    if isinstance(message, HumanMessage) and _event(message) is not None:
        level: Level = "said"
    else:
        level = "mixed" if mixed else "unknown"
    before = messages_to_dict([message])[0]
    data = {**erasure.scrubber.value(before["data"], level), **_kept(before["data"])}
    if data == before["data"]:
        return message
    after: Any = messages_from_dict([{**before, "data": data}])[0]
    return cast(AnyMessage, after)


def _summary(message: SystemMessage, erasure: Erasure) -> AnyMessage | None:
    metadata = message.additional_kwargs.get("metadata", {})
    sources = metadata.get("sources", []) if isinstance(metadata, dict) else []
    left = [one for one in sources if one not in erasure.events]
    level: Level = "mixed" if len(left) < len(sources) else "unknown"
    text = erasure.scrubber.text(str(message.text).removeprefix(SUMMARY).strip(), level)
    if text is None:
        return None
    kept = {**message.additional_kwargs, "metadata": {**metadata, "sources": left}}
    return message.model_copy(update={"content": f"{SUMMARY}\n{text}", "additional_kwargs": kept})


def _kept(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that bind messages to each other, which hold nobody's words."""
    return {key: data[key] for key in ("id", "type", "tool_call_id") if key in data}


def _found_erased(message: AnyMessage, erasure: Erasure) -> bool:
    """Whether a tool's answer shows a memory that is erased."""
    if not isinstance(message, ToolMessage):
        return False
    text = text_of(message.content)
    return any(f'"{one}"' in text for one in erasure.memories)


def _tick(message: AnyMessage) -> int | None:
    tick = mark_of(message).get("tick")
    return tick if isinstance(tick, int) else None


def _event(message: AnyMessage) -> str | None:
    if not isinstance(message, HumanMessage):
        return None
    if not is_history(message):
        return str(message.id)
    event = mark_of(message).get("event")
    return str(event) if event is not None else None
