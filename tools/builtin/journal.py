"""Tools of the journal: write an entry, and read the newest entries."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Annotated, Any, NamedTuple

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import Field

from memory import entities, journal, records
from memory.compaction import covered_events
from memory.errors import Refusal
from memory.guards import is_courtesy, said_in, speaker_of
from memory.journal import TRUST
from memory.operations import Collector, PlanCollector, collector_of
from memory.records import JournalEntry, add_entry
from memory.runtime import scope_of, settings_of, store_of
from tools.answers import Answer, Reasoning, Runtime, answer, event_of, now_of, refusals_answered
from tools.evidence import (
    RECALLED,
    WHERE_FROM,
    grounds,
    in_sight,
    is_extracting,
    origin_of,
    shared_words,
    shown,
)

EXTRACTION, NIGHT_EXTRACTION, CONSOLIDATION = 1_000, 2_000, 3_000
"""First positions of entries per loop, so that entries of two loops never share an id."""

REFLECTIONS = frozenset({"reflection", "reflection_cont"})
"""The contexts in which the assistant looks at its own work."""


@tool
@refusals_answered
async def add_journal_entry(
    content: Annotated[str, Field(description="What happened or was learned, with dates.")],
    runtime: Runtime,
    importance: Annotated[
        int | None, Field(description="1 (trifle) to 10 (vital); leave out when unsure.")
    ] = None,
    tags: list[str] | None = None,
    source_entity: Annotated[str | None, Field(description="Whom it is from.")] = None,
    reasoning: Reasoning = None,
) -> Answer:
    """Write an entry into the journal. A night makes long-term facts of what matters."""
    if not content.strip():
        raise Refusal("Nothing to journal", "Give the entry's content as a sentence.")
    if importance is not None and not 1 <= importance <= 10:
        raise Refusal(f"Importance {importance} is out of range", "Give 1 to 10, or leave it out.")
    collector = collector_of(runtime.config, runtime.store)
    basis = _basis(content, source_entity, runtime, collector)
    known = await entities.names_in(store_of(runtime), scope_of(runtime.config), content)
    write = partial(
        journal.entry_by_tool,
        content=content.strip(),
        importance=importance,
        tags=_tags(tags or [], runtime),
        source_entity=basis.speaker,
        trust=basis.trust,
        source_events=_sources(content, runtime, collector),
        origin=origin_of(runtime, collector),
        now=now_of(runtime),
        known_entities=[*journal.known_entities(runtime.state), *known],
    )
    position = _position(runtime, collector)
    if isinstance(collector, PlanCollector):
        entry = write(position=position)
    else:
        tries = (write(position=one) for one in count(position))
        entry = await journal.first_free(store_of(runtime), scope_of(runtime.config), tries)
    written = await collector.write([add_entry(entry, "add_journal_entry")])
    result = {
        "entry_id": entry["id"],
        "importance": entry["importance"],
        "scoring_method": entry["scoring_method"],
    }
    return answer(runtime, result, artifact={"written": written})


@tool
@refusals_answered
async def review_journal(
    runtime: Runtime,
    query: Annotated[str | None, Field(description="Words that an entry should hold.")] = None,
    tags: Annotated[list[str] | None, Field(description="Tags of which it has any.")] = None,
    limit: int = 10,
    reasoning: Reasoning = None,
) -> Answer:
    """Read the newest journal entries, newest first."""
    if limit < 1:
        raise Refusal(f"Limit {limit} is out of range", "Give 1 or more.")
    entries = await journal.newest(
        store_of(runtime),
        scope_of(runtime.config),
        query=query,
        tags=tags,
        limit=limit,
        include_self=_reflecting(runtime),
    )
    rows = [_shown(entry) for entry in entries]
    return answer(runtime, {"entries": rows, "count": len(rows)})


def _shown(entry: JournalEntry) -> dict[str, Any]:
    keys = ("id", "timestamp", "content", "source_entity", "importance", "tags")
    return {key: value for key, value in entry.items() if key in keys}


def _tags(given: list[str], runtime: Runtime) -> list[str]:
    """The given tags without reserved ones; notes on the assistant's own work are tagged `self`."""
    kept = [one for one in given if " ".join(one.casefold().split()) not in journal.OURS]
    own = [records.SELF] if _reflecting(runtime) and records.SELF not in kept else []
    return [*kept, *own]


class _Basis(NamedTuple):
    """The speaker that a note rests on, and the trust (0..1)."""

    speaker: str | None
    trust: float


def _basis(content: str, given: str | None, runtime: Runtime, collector: Collector) -> _Basis:
    """What the note rests on: the nearest entry in words, or else the answer of a tool.

    Raises:
        Refusal: the note repeats a memory or a rule.
    """
    if _reflecting(runtime):
        return _Basis(None, TRUST["inference"])
    entries = in_sight(runtime, settings_of(runtime.context), collector)
    beside, said = shown(runtime), grounds(entries)
    if is_courtesy(content) or beside.recalls(content, said):
        raise Refusal(RECALLED, WHERE_FROM)
    if beside.returns(content, said):
        return _Basis(None, TRUST["environmental"])
    near = [shared_words(content, f"{e['source_entity'] or ''} {e['content']}") for e in entries]
    if not any(near) and len(entries) != 1:
        return _Basis(None, min((e["source_trust"] for e in entries), default=TRUST["inference"]))
    nearest = [e for e, words in zip(entries, near, strict=True) if words == max(near)]
    who = speaker_of(content, given, said_in(nearest))
    return _Basis(who, min(one["source_trust"] for one in nearest))


def _reflecting(runtime: Runtime) -> bool:
    return runtime.state["context"]["context_type"] in REFLECTIONS


def _position(runtime: Runtime, collector: Collector) -> int:
    """In a night the call's place in its loop; awake the first place of the loop.

    A night never repeats a call with other words, because its plan is stored first. A tick may, so
    awake the entry takes the first place that is free or holds the same content.
    """
    if not isinstance(collector, PlanCollector):
        return EXTRACTION if is_extracting(runtime) else 0
    exchange = runtime.state.get("exchange") or []
    earlier = sum(isinstance(message, ToolMessage) for message in exchange)
    first = CONSOLIDATION if collector.shown else NIGHT_EXTRACTION
    return first + earlier + len(collector.operations)


def _sources(content: str, runtime: Runtime, collector: Collector) -> list[str]:
    """The ids of the events that the entry comes from, the nearest in words first."""
    event = event_of(runtime)
    if collector.shown:
        return _nearest(
            content, ((one["content"], one["sources"]) for one in collector.shown.values())
        )
    if collector.shown is not None or is_extracting(runtime):
        messages = runtime.state["messages"]
        people = [one for one in messages if isinstance(one, HumanMessage)]
        nearest = _nearest(content, ((str(one.text), covered_events([one])) for one in people))
        return list(dict.fromkeys([*nearest, *covered_events(messages)]))
    return [event["id"]] if event is not None else []


def _nearest(content: str, texts: Iterable[tuple[str, list[str]]]) -> list[str]:
    """The event ids of `texts`, ordered by the number of words shared with `content`."""
    ranked = sorted(texts, key=lambda text: -shared_words(content, text[0]))
    return list(dict.fromkeys(event for _, events in ranked for event in events))
