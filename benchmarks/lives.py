"""Events for nights: made-up sentences, or the turns of conversations in LoCoMo's format."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.conversations import Conversation, events_of, read_conversations, sessions
from benchmarks.words import told
from graph.api import AsyncAgent
from memory.errors import InputError
from memory.events import entry_for_event
from memory.journal import puts
from memory.operations import apply_operations
from memory.records import Event, Observation, observe_entity
from memory.storage import write_batch

SPELL = 20
"""Entries between two observations of a person."""
OBSERVED = 5
"""Observations per entity."""
BATCH = 500
START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def made_up(count: int) -> list[Event]:
    """`count` messages by four people, a minute apart and as long as real ones."""
    people = ("Ada", "Ben", "Cleo", "Dan")
    return [
        _event(f"e{n}", START + timedelta(minutes=n), people[n % 4], f"I noticed that {told(n)}")
        for n in range(count)
    ]


def spoken(conversations: Sequence[Conversation]) -> list[Event]:
    """The turns of these conversations as events, one conversation after the other."""
    return [
        _event(
            f"{conversation['sample_id']}/{event['id']}",
            datetime.fromisoformat(event["at"]),
            event["sender"],
            event["text"],
        )
        for conversation in conversations
        for session in sessions(conversation)
        for event in events_of(session)
    ]


def read_turns(path: Path) -> list[Event]:
    """Read the turns of a file as events, one conversation after the other.

    Raises:
        InputError: the file is absent, has another format, or holds no turn.
    """
    if not path.is_file():
        raise InputError(f"{path} is absent: no night was measured")
    try:
        turns = spoken(read_conversations(path))
    except KeyError as error:
        raise InputError(f"{path} is not in LoCoMo's format: it lacks {error}") from None
    except (AttributeError, OSError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not in LoCoMo's format: {error}") from None
    if not turns:
        raise InputError(f"{path} holds no turn of any conversation")
    return turns


def _event(name: str, at: datetime, sender: str, text: str) -> Event:
    return {
        "id": name,
        "at": at.isoformat(),
        "sender": sender,
        "text": text,
        "channel": None,
        "addressed": False,
    }


async def live(agent: AsyncAgent, events: Sequence[Event]) -> None:
    """Write journal entries for the events, and observations of people, as ticks do."""
    entries = [entry_for_event(one, known_entities=(), projects=()) for one in events]
    for start in range(0, len(entries), BATCH):
        some = entries[start : start + BATCH]
        await write_batch(agent.store, [put for one in some for put in puts(agent.scope, one)])
    observed = [
        _observed(place // (SPELL * OBSERVED), event)
        for place, event in enumerate(events)
        if place % SPELL == 0
    ]
    await apply_operations(
        observed, store=agent.store, semantic=agent.resources.semantic, scope=agent.scope
    )


def _observed(number: int, event: Event) -> Any:
    name = f"Person {number}"
    observation: Observation = {
        "id": f"obs_{event['id']}",
        "text": f"{name} likes {event['text']}",
        "at": event["at"],
        "speaker": event["sender"],
        "trust": 0.8,
        "sources": [event["id"]],
        "consolidated": False,
    }
    now = event["at"]
    return observe_entity(
        f"person-{number}", name, observation, kept=100, now=now, reason="benchmark"
    )
