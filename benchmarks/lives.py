"""Events for nights: made-up sentences, or the turns of conversations in LoCoMo's format."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from langgraph.store.base import PutOp

from benchmarks.conversations import Conversation, events_of, read_conversations, sessions
from benchmarks.stores import draft
from benchmarks.words import drawn_words, told, vocabulary
from graph.api import AsyncAgent
from memory.errors import InputError
from memory.events import entry_for_event
from memory.journal import puts
from memory.operations import apply_operations
from memory.records import (
    Event,
    FactDraft,
    JournalEntry,
    Observation,
    observe_entity,
)
from memory.storage import write_batch

SPELL = 20
"""Entries between two observations of a person."""
OBSERVED = 5
"""Observations per entity."""
BATCH = 500
START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
YEAR = timedelta(days=365)
PEOPLE, COMMON, LINKS = 400, 3_000, 10
"""People of a year, named by words of this rank and above, and links from each of its facts."""
LINK = {"relation": "related", "reason": "both speak of it", "at": START.isoformat()}


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


async def remember(agent: AsyncAgent, count: int) -> None:
    """Give a memory `count` facts of a year by 400 people, their entries, and ten links a fact."""
    semantic, scope, drawn = agent.resources.semantic, agent.scope, random.Random(0)
    every, ids = [_remembered(number, count) for number in range(count)], list[str]()
    for start in range(0, count, BATCH):
        some = every[start : start + BATCH]
        ids += [fact["id"] for fact in await semantic.add(scope, [draft for _, draft in some])]
        await write_batch(agent.store, [put for entry, _ in some for put in puts(scope, entry)])
    ends = defaultdict[str, dict[str, Any]](dict)
    for one in ids:
        for other in drawn.sample(ids, min(LINKS, count)):
            ends[one][other] = ends[other][one] = LINK
    links = [
        PutOp(
            scope.namespace("links"),
            one,
            {"linked_to": sorted(others), "created": LINK["at"], "relations": others},
        )
        for one, others in ends.items()
    ]
    for start in range(0, len(links), BATCH):
        await write_batch(agent.store, links[start : start + BATCH])


def _remembered(number: int, count: int) -> tuple[JournalEntry, FactDraft]:
    """An entry that nights are done with, and the fact that they made of it."""
    at = START - YEAR + number * YEAR / count
    who = vocabulary()[0][COMMON + number % PEOPLE].title()
    event = _event(f"y{number}", at, who, f"{who} {' '.join(drawn_words(number))}.")
    entry = entry_for_event(event, known_entities=(), projects=())
    settled: JournalEntry = {**entry, "consolidation": "consolidated", "importance": 5}
    return settled, {
        **draft(number, event["text"]),
        "source_entries": [entry["id"]],
        "source_events": [event["id"]],
        "speaker": who,
        "entities": [who],
        "created": at.isoformat(),
        "valid_from": at.isoformat(),
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
