"""Tools of long-term memory: write and read the journal, store and recall facts with sources.

Rulings 13, 15 and 17 say which evidence an entry or a fact needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Annotated, Any, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from memory import entities, journal, records
from memory import events as memory_events
from memory.compaction import covered_events
from memory.errors import Refusal
from memory.guards import (
    OWN,
    Doubt,
    cited_in_vain,
    is_courtesy,
    said_in,
    share,
    speaker_of,
    speakers_of,
    violation,
)
from memory.journal import TRUST
from memory.messages import Citations
from memory.operations import Collector, PlanCollector, collector_of
from memory.recall import fit_for, probes, recall
from memory.records import (
    LOCAL_USER,
    LONGEST_FACT,
    FactDraft,
    JournalEntry,
    Operation,
    add_entry,
    add_fact,
    operation_id,
)
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.text import SPEAKER, name_key
from tools.answers import (
    Absent,
    Answer,
    Reasoning,
    Runtime,
    answer,
    event_of,
    now_of,
    refusals_answered,
)
from tools.evidence import (
    RECALLED,
    WHERE_FROM,
    FactCheck,
    grounds,
    in_sight,
    is_extracting,
    origin_of,
    shared_words,
    shown,
    unsaid,
    with_questions,
)
from tools.origins import (
    LEAST_TRUST,
    kept_origins,
    listeners_in,
    may_be_of_others,
    of_entry,
    others_beside,
    owners_in,
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
        int | Absent, Field(description="1 (trifle) to 10 (vital); leave out when unsure.")
    ] = None,
    tags: list[str] | Absent = None,
    source_entity: Annotated[str | Absent, Field(description="Whom it is from.")] = None,
    reasoning: Reasoning = None,
) -> Answer:
    """Write an entry into the journal. A night makes long-term facts of what matters."""
    if not content.strip():
        raise Refusal("Nothing to journal", "Give the entry's content as a sentence.")
    if importance is not None and not 1 <= importance <= 10:
        raise Refusal(f"Importance {importance} is out of range", "Give 1 to 10, or leave it out.")
    collector = collector_of(runtime.config, runtime.store)
    basis = await _basis(content, source_entity, runtime, collector)
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
    if basis.origins:
        entry["origins"] = basis.origins
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
        hidden=_hidden(runtime),
    )
    return answer(runtime, {"entries": [*map(_shown, entries)], "count": len(entries)})


def _hidden(runtime: Runtime) -> Callable[[JournalEntry], bool]:
    """Whether a review leaves an entry out: the listeners may not know it, or it is on own work."""
    settings, listeners, own = settings_of(runtime.context), listeners_in(runtime), records.SELF
    reflecting = _reflecting(runtime)

    def hidden(entry: JournalEntry) -> bool:
        on_own_work = own in entry["tags"] and not reflecting
        return on_own_work or journal.is_private(entry, listeners, settings)

    return hidden


def _shown(entry: JournalEntry) -> dict[str, Any]:
    keys = ("id", "timestamp", "content", "source_entity", "origins", "importance", "tags")
    return {key: value for key, value in entry.items() if key in keys}


def _tags(given: list[str], runtime: Runtime) -> list[str]:
    """The given tags without reserved ones; notes on the assistant's own work are tagged `self`."""
    kept = [one for one in given if " ".join(one.casefold().split()) not in journal.OURS]
    own = [records.SELF] if _reflecting(runtime) and records.SELF not in kept else []
    return [*kept, *own]


class _Basis(NamedTuple):
    """The speaker that a note rests on, the trust (0..1), and whose words it may hold besides."""

    speaker: str | None
    trust: float
    origins: list[str] | None = None


async def _basis(content: str, given: str | None, runtime: Runtime, collector: Collector) -> _Basis:
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
    others = others_beside(runtime, collector)
    if beside.returns(content, said):
        return _Basis(None, TRUST["environmental"], others)
    near = [shared_words(content, f"{e['source_entity'] or ''} {e['content']}") for e in entries]
    if not any(near) and len(entries) != 1:
        least = min((e["source_trust"] for e in entries), default=TRUST["inference"])
        return _Basis(None, min(least, LEAST_TRUST) if others else least, others)
    nearest = [e for e, words in zip(entries, near, strict=True) if words == max(near)]
    if others := await may_be_of_others(content, nearest, runtime, collector):
        owners = owners_in(runtime)
        named = [name for one in nearest for name in of_entry(one, owners)]
        return _Basis(None, LEAST_TRUST, [*dict.fromkeys([*named, *others])])
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


PLACES = 16
"""Places looked up in one query."""

MOST_OTHER_WORDS, LONGEST_PHRASE = 8, 80
"""Other words of a fact, and characters of each."""

SUGGESTION = (
    "Mend what each error names and store those facts again: cite ids that were shown; write about "
    "the world, people or events in the third person; name the speaker of what one says of oneself."
)

UNSAID = (
    "unsaid names, for an entry, the numbers in it that none of its facts says: "
    "store a fact with them if they matter."
)


class FactGiven(BaseModel):
    """One fact as the model gives it."""

    text: str = Field(
        description="One fact: a full sentence, names not pronouns, absolute dates; in the "
        "language and close to the words of what it stands on."
    )
    source_ids: Citations = Field(
        default_factory=list,
        description="Ids of what it stands on, as shown. Awake: left out, the event in hand.",
    )
    speaker: str | Absent = Field(None, description="Who said it.")
    entities: list[str] = Field(default_factory=list, description="Whom and what it is about.")
    other_words: list[str] = Field(default_factory=list, description="Its other names.")


@tool
@refusals_answered
async def store_memory(
    facts: Annotated[list[FactGiven], Field(description="The facts to keep for good.")],
    runtime: Runtime,
    reasoning: Reasoning = None,
) -> Answer:
    """Store facts about the world, people and events in long-term memory, each with its sources."""
    if not facts:
        raise Refusal("No facts were given", "Give at least one fact, or call noop.")
    collector = collector_of(runtime.config, runtime.store)
    facts = await _with_ids(facts, runtime, collector)
    sources = await _known_sources(facts, runtime, collector)
    facts = await _with_senders(facts, sources, runtime)
    event = event_of(runtime)
    default = [event["id"]] if event is not None else []
    shown = collector.shown or {}
    asked = journal.questions_answered(shown.values())
    places, check, owners = _Places(runtime, collector), FactCheck(runtime), owners_in(runtime)
    operations: dict[str, Operation] = {}
    rejected: list[dict[str, str]] = []
    for fact in facts:
        ids = with_questions(fact.source_ids or default, fact.text, shown, asked)
        error = _unsourced(ids, sources) or _problem(fact, ids, sources, check)
        doubts = collector.doubts if isinstance(error, Doubt) else None
        if error and doubts is None:
            rejected.append({"text": fact.text, "error": error})
            continue
        cited = _entries(ids, sources)
        draft = _draft(fact, cited, now_of(runtime).isoformat())
        others = await may_be_of_others(draft["text"], cited, runtime, collector, checked=True)
        draft = kept_origins(draft, cited, others, owners)
        operation = await places.operation(draft)
        operations[operation["id"]] = operation
        if error and doubts is not None:
            doubts[operation["id"]] = error
    written = await collector.write([*operations.values()]) if operations else []
    result = _result([*operations.values()], len(written), rejected, collector)
    return answer(runtime, result, artifact={"written": written})


async def _with_ids(
    facts: Sequence[FactGiven], runtime: Runtime, collector: Collector
) -> list[FactGiven]:
    """The facts with entries in place of numbers that a night shows, and of facts looked up."""
    ids = {one: [collector.resolve(one)] for fact in facts for one in fact.source_ids}
    exchange: list[AnyMessage] = runtime.state.get("exchange") or []
    told = " ".join(str(one.text) for one in exchange if one.name == "recall_memories")
    named = [one for one in ids if f'"{one}"' in told]
    if named and collector.shown is not None:
        scope, semantic = scope_of(runtime.config), resources_of(runtime.config).semantic
        known = await semantic.by_id(scope, named)
        ids |= {one: fact["source_entries"] for one, fact in known.items()}
        cited = sorted({id_ for one in known for id_ in ids[one]} - {*collector.shown})
        collector.looked_up |= await journal.read_many(store_of(runtime), scope, cited)
    return [
        one.model_copy(update={"source_ids": [id_ for each in one.source_ids for id_ in ids[each]]})
        for one in facts
    ]


async def _with_senders(
    facts: Sequence[FactGiven], sources: Mapping[str, JournalEntry], runtime: Runtime
) -> list[FactGiven]:
    """The facts, with the sender of a source as the speaker where another name of theirs stands."""
    said = dict.fromkeys(one["source_entity"] for one in sources.values())
    senders = [one for one in said if one not in (None, LOCAL_USER)]  # facts name the local user
    if all(fact.speaker in (None, LOCAL_USER, *senders) for fact in facts):
        return [*facts]
    known, _ = await entities.look_up(store_of(runtime), scope_of(runtime.config), senders=senders)
    found = [(who, one.profile) for who, one in zip(senders, known, strict=True) if one.profile]
    own = {name: who for who, profile in found for name in records.names_of(profile)}
    return [
        fact.model_copy(update={"speaker": own.get(name_key(fact.speaker or ""), fact.speaker)})
        for fact in facts
    ]


class _Places:
    """Operation ids for facts, made from their origin, their sources and a place.

    Places count from 0 among the facts with the same origin and sources. A place that holds the
    same text is that fact, so that a repeated call gives the same ids. A place with other text, as
    from an earlier try of the tick, is skipped, so that no fact is dropped.
    """

    def __init__(self, runtime: Runtime, collector: Collector) -> None:
        self._runtime = runtime
        self._origin = origin_of(runtime, collector)
        self._planned = isinstance(collector, PlanCollector)
        operations = collector.operations if isinstance(collector, PlanCollector) else []
        added = [one for one in operations if one["kind"] == "add_fact"]
        self._texts: dict[str, str] = {one["id"]: one["after"]["text"] for one in added}
        """Texts by operation id, planned ones included."""

    async def operation(self, draft: FactDraft) -> Operation:
        """The operation that adds `draft`."""
        sources = sorted([*draft["source_entries"], *draft["source_events"]])
        first = 0
        while True:
            places = range(first, first + PLACES)
            ops = [operation_id("fact", self._origin, *sources, str(place)) for place in places]
            standing = await self._standing(ops)
            for op in ops:
                if standing.get(op, draft["text"]) == draft["text"]:
                    self._texts[op] = draft["text"]
                    return add_fact({**draft, "op": op}, "store_memory")
            first += PLACES

    async def _standing(self, ops: Sequence[str]) -> Mapping[str, str]:
        """The texts under the ids `ops`: awake from semantic memory, in a night from its plan."""
        if self._planned:
            return self._texts
        config = self._runtime.config
        found = await resources_of(config).semantic.by_op(scope_of(config), ops)
        return {op: fact["text"] for op, fact in found.items()} | self._texts


def _draft(fact: FactGiven, entries: Sequence[JournalEntry], now: str) -> FactDraft:
    """The fact with speaker, trust and importance from its sources, never from the model.

    It is valid from the time of its newest source.
    """
    text = " ".join(fact.text.split())
    speaker = speaker_of(text, _person(fact), said_in(entries))
    vain = cited_in_vain(text, speaker, entries)
    entries = [one for one in entries if one["id"] not in vain]
    speaker = speakers_of(text, speaker, said_in(entries))
    events = dict.fromkeys(event for entry in entries for event in entry["sources"])
    phrases = [" ".join(one.split())[:LONGEST_PHRASE] for one in fact.other_words]
    kept = list(dict.fromkeys(one for one in phrases if one))[:MOST_OTHER_WORDS]
    draft: FactDraft = {
        "op": "",
        "text": text,
        "source_entries": [entry["id"] for entry in entries],
        "source_events": list(events),
        "speaker": speaker,
        "entities": list(dict.fromkeys(name.strip() for name in fact.entities if name.strip())),
        "trust": min(entry["source_trust"] for entry in entries),
        "importance": max(entry["importance"] for entry in entries),
        "created": now,
        "valid_from": max(entry["timestamp"] for entry in entries),
    }
    return {**draft, "other_words": kept} if kept else draft


def _unsourced(ids: Sequence[str], sources: Mapping[str, JournalEntry]) -> str | None:
    if not ids:
        return "It names no source: give source_ids"
    if unknown := [one for one in ids if one not in sources]:
        return f"Unknown source_ids: {', '.join(unknown)}"
    if exempt := [one for one in ids if sources[one]["consolidation"] == "exempt"]:
        return f"Never made into facts (archives, insights, notes on oneself): {', '.join(exempt)}"
    return None


def _problem(
    fact: FactGiven,
    ids: Sequence[str],
    sources: Mapping[str, JournalEntry],
    check: FactCheck,
) -> str | None:
    if not fact.text.strip():
        return "The text is empty"
    if len(fact.text) > LONGEST_FACT:
        return f"It has {len(fact.text):,} characters, more than {LONGEST_FACT:,}: split it"
    entries = _entries(ids, sources)
    beside = [one for one in sources.values() if one["id"] not in ids]
    why = check.unsupported(fact.text, _person(fact), entries, beside)
    if why and not isinstance(why, Doubt):
        return why
    return violation(fact.text, _in_own_words(fact, entries)) or why


def _in_own_words(fact: FactGiven, entries: Sequence[JournalEntry]) -> str | None:
    """The named speaker if the text is in their own words: a model writes "I" of itself."""
    given, speaker = _person(fact), speaker_of(fact.text, _person(fact), said_in(entries))
    if given is None or speaker is None or name_key(given) != name_key(speaker):
        return None
    own = [
        one["content"]
        for one in entries
        if one["source_entity"] == speaker and one["source_type"] not in journal.CONCLUDED
    ]
    return speaker if share(fact.text, own) >= OWN else None


def _entries(ids: Sequence[str], sources: Mapping[str, JournalEntry]) -> list[JournalEntry]:
    return [sources[one] for one in dict.fromkeys(ids)]


def _person(fact: FactGiven) -> str | None:
    """The speaker that the model named. Prompts show an unknown speaker as `-`."""
    given = (fact.speaker or "").strip(" -")
    return given if given and name_key(given) not in SPEAKER else None


async def _known_sources(
    facts: Sequence[FactGiven], runtime: Runtime, collector: Collector
) -> dict[str, JournalEntry]:
    """Sources that may be cited, by id: asleep the shown entries, awake events and the journal."""
    if collector.shown is not None:
        return {**collector.shown, **collector.looked_up}
    event = event_of(runtime)
    events = [*runtime.state["context_buffer"], *([event] if event else [])]
    cited = {one for fact in facts for one in fact.source_ids}
    store, scope = store_of(runtime), scope_of(runtime.config)
    found = await journal.read_many(store, scope, sorted(cited))
    familiar = await entities.familiar(store, scope, events)
    return found | {
        one["id"]: memory_events.entry_in(runtime.state, one, settings_of(runtime.context), known)
        for one, known in zip(events, familiar, strict=True)
    }


def _result(
    operations: Sequence[Operation],
    stored: int,
    rejected: Sequence[dict[str, str]],
    collector: Collector,
) -> dict[str, Any]:
    """The answer to the model. `stored`: number of facts that this call stored, each once."""
    made = collector.operations if isinstance(collector, PlanCollector) else operations
    facts = [one["after"] for one in made if one["kind"] == "add_fact"]
    cited = {one for fact in facts for one in fact["source_entries"]}
    result: dict[str, Any] = {
        "success": bool(operations),
        "stored": stored,
        "rejected": list(rejected),
        "not_cited": [collector.handle(one) for one in collector.shown or () if one not in cited],
    }
    if left := unsaid(facts, collector):
        result["unsaid"] = left
    if not operations:
        result["error"] = "No fact was stored; see rejected"
    if told := [SUGGESTION] * bool(rejected) + [UNSAID] * ("unsaid" in result):
        result["suggestion"] = " ".join(told)
    return result


MOST = 100
"""Largest limit of a recall."""


@tool
@refusals_answered
async def recall_memories(
    query: Annotated[str, Field(description="What to look for, in plain words.")],
    runtime: Runtime,
    limit: Annotated[int, Field(description="At most this many, 1 to 100.")] = 10,
    include_superseded: Annotated[bool, Field(description="Also what no longer holds.")] = False,
    reasoning: Reasoning = None,
) -> Answer:
    """Recall long-term memories near a query, best first, each with its sources."""
    if not query.strip():
        raise Refusal("Nothing to look for", "Give a query in plain words.")
    if not 1 <= limit <= MOST:
        raise Refusal(f"Limit {limit} is out of range", f"Give 1 to {MOST}.")
    resources, scope = resources_of(runtime.config), scope_of(runtime.config)
    asleep = collector_of(runtime.config, runtime.store).shown is not None
    settings, now, store = settings_of(runtime.context), now_of(runtime), store_of(runtime)
    memories = await recall(
        query,
        scope=scope,
        now=now,
        semantic=resources.semantic,
        store=store,
        settings=settings,
        limit=limit,
        max_tokens=settings.recall_tokens,
        include_superseded=include_superseded,
        facts_only=asleep,
    )
    if not asleep:  # A night may be a preview, which leaves no trace.
        memories = await fit_for(
            listeners_in(runtime),
            memories,
            scope=scope,
            semantic=resources.semantic,
            store=store,
            settings=settings,
        )
        most = settings.probes_kept
        await probes.keep(query, memories, store=store, scope=scope, now=now, most=most)
    # Without the parts of the scores, which would take more room than the memories.
    shown = [{key: value for key, value in one.items() if key != "parts"} for one in memories]
    note = {} if shown else {"note": "Nothing in memory fits this query."}
    return answer(runtime, {"query": query, "memories": shown, "count": len(shown), **note})
