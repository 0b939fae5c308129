"""Tools that take notes: the journal, and what is noticed of people, places and things."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from itertools import count
from typing import Annotated, Any, NamedTuple

from langchain_core.messages import HumanMessage, ToolMessage
from pydantic import Field

from memory import entities, journal, records
from memory.compaction import covered_events
from memory.entities import NamedEntity, after
from memory.errors import Refusal
from memory.guards import (
    fold,
    from_elsewhere,
    is_assistant,
    is_courtesy,
    said_in,
    speaker_of,
    violation,
)
from memory.journal import TRUST
from memory.night import assistant_names
from memory.operations import Collector, PlanCollector, collector_of
from memory.records import (
    MOST_ALIASES,
    EntityProfile,
    JournalEntry,
    Observation,
    Operation,
    add_entry,
    names_of,
    observation_id,
    observe_entity,
    speaks_as,
)
from memory.runtime import scope_of, settings_of, store_of
from memory.settings import Settings
from memory.text import (
    LONGEST,
    PRONOUNS,
    SPEAKER,
    depends_on_speaker,
    encodable,
    name_key,
    one_line,
    says,
    shown_time,
    spellings,
)
from tools.answers import (
    Absent,
    Answer,
    Runtime,
    answer,
    built_in,
    event_of,
    now_of,
)
from tools.evidence import (
    RECALLED,
    WHERE_FROM,
    grounds,
    heard_from_others,
    in_sight,
    is_extracting,
    origin_of,
    shared_words,
    shown,
)
from tools.origins import (
    HEARSAY_TRUST,
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


@built_in
async def add_journal_entry(
    content: Annotated[str, Field(description="What happened or was learned, with dates.")],
    runtime: Runtime,
    importance: Annotated[
        int | Absent, Field(description="1 (trifle) to 10 (vital); leave out when unsure.")
    ] = None,
    tags: list[str] | Absent = None,
    source_entity: Annotated[str | Absent, Field(description="Whom it is from.")] = None,
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


@built_in
async def review_journal(
    runtime: Runtime,
    query: Annotated[str | None, Field(description="Words that an entry should hold.")] = None,
    tags: Annotated[list[str] | None, Field(description="Tags of which it has any.")] = None,
    limit: int = 10,
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
    shown = [_shown(one, settings_of(runtime.context).zone) for one in entries]
    return answer(runtime, {"entries": shown, "count": len(shown)})


def _hidden(runtime: Runtime) -> Callable[[JournalEntry], bool]:
    """A test for what a review leaves out: private entries, and notes on the assistant's work."""
    settings, listeners, own = settings_of(runtime.context), listeners_in(runtime), records.SELF
    reflecting = _reflecting(runtime)

    def hidden(entry: JournalEntry) -> bool:
        on_own_work = own in entry["tags"] and not reflecting
        return on_own_work or journal.is_private(entry, listeners, settings)

    return hidden


def _shown(entry: JournalEntry, zone: tzinfo) -> dict[str, Any]:
    keys = ("id", "timestamp", "content", "source_entity", "origins", "importance", "tags")
    told = {**entry, "timestamp": shown_time(entry["timestamp"], zone)}
    return {key: value for key, value in told.items() if key in keys}


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

    Raises a Refusal if the note repeats a memory or a rule.
    """
    if _reflecting(runtime):
        return _Basis(None, TRUST["inference"])
    entries = in_sight(runtime, collector)
    prompt, said = shown(runtime), grounds(entries)
    if is_courtesy(content) or prompt.recalls(content, said):
        raise Refusal(RECALLED, WHERE_FROM)
    others = others_beside(runtime, collector)
    if prompt.returns(content, said):
        return _Basis(None, TRUST["environmental"], others)
    near = [shared_words(content, f"{e['source_entity'] or ''} {e['content']}") for e in entries]
    if not any(near) and len(entries) != 1:
        least = min((e["source_trust"] for e in entries), default=TRUST["inference"])
        return _Basis(None, min(least, HEARSAY_TRUST) if others else least, others)
    nearest = [e for e, words in zip(entries, near, strict=True) if words == max(near)]
    if others := await may_be_of_others(content, nearest, runtime, collector):
        owners = owners_in(runtime)
        named = [name for one in nearest for name in of_entry(one, owners)]
        return _Basis(None, HEARSAY_TRUST, [*dict.fromkeys([*named, *others])])
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


# What is noticed


LONGEST_OBSERVATION = 1_000
"""Characters. A profile is read in every tick that involves its entity."""

THE_WORLD = "Profiles are about the world and its people, in the third person; not about you."


@built_in
async def update_entity_observation(
    entity: Annotated[str, Field(description="The person, place or thing, by its name.")],
    observation: Annotated[str, Field(description="One thing noticed, in the third person.")],
    runtime: Runtime,
    aliases: Annotated[
        list[str] | Absent, Field(description="Other names that were said to mean it.")
    ] = None,
) -> Answer:
    """Note in its profile what a person, place or thing is like."""
    settings, collector = settings_of(runtime.context), collector_of(runtime.config, runtime.store)
    name, text = _text(entity, "entity", LONGEST), _text(observation, "observation")
    source = await _source(f"{name} {text}", runtime, collector)
    speaker = source["source_entity"] if "event" in source["tags"] else None
    _check(name, text, source, speaker, settings)
    _check_source(text, source, runtime, collector)
    name = speaker if speaker and name_key(name) in SPEAKER else name
    planned = _planned(collector)
    known, own = await _meant(name, source, speaker, planned, runtime)
    other_names = [_text(one, "alias", LONGEST) for one in aliases or []]
    if own:
        other_names = [one for one in other_names if fold(name_key(one)) != fold(name_key(own))]
    joins = await _check_aliases(other_names, known, source, planned, runtime, settings)
    if own and name_key(name) != name_key(own):
        name, other_names = own, [*other_names, name]
    before = _profile_after(known, planned)
    known_names = names_of(before) if before else []  # an undo removes none of these
    noticed = _observation(known.id, text, speaker, source, before)
    noticed = await _with_origins(noticed, source, runtime, collector)
    noticed |= {"names": other_names} if other_names else {}
    operation = observe_entity(
        known.id,
        before["name"] if before else name,
        noticed,
        aliases=[one for one in other_names if name_key(one) not in known_names],
        kept=settings.observations_kept,
        now=now_of(runtime).isoformat(),
        reason="update_entity_observation",
    )
    operation["after"] |= {"joins": joins} if joins else {}
    await collector.write([operation])
    profile = _profile_after(known, [*planned, operation])
    assert profile is not None
    result = {
        "entity": profile["name"],
        "entity_id": profile["id"],
        "total_observations": len(profile["observations"]),
        "relationship": profile["relationship"]["state"],
    }
    again = {} if profile != before else {"message": "This was known already from this source."}
    return answer(runtime, {**result, **again})


def _text(given: str, what: str, longest: int = LONGEST_OBSERVATION) -> str:
    text = one_line(str(encodable(given)))
    if not text:
        raise Refusal(f"The {what} is empty", "Give a name and one thing noticed about it.")
    if len(text) > longest:
        told = f"The {what} has {len(text):,} characters, more than {longest:,}"
        raise Refusal(told, "One short observation a call; journal what is longer.")
    return text


async def _source(text: str, runtime: Runtime, collector: Collector) -> JournalEntry:
    """The observation's source, as a journal entry: no memory is without a source.

    In a tick it is the event. Of many entries in a night or an extraction it is the newest of those
    that share the most words with the observation.
    """
    found = list(enumerate(in_sight(runtime, collector)))
    if not found:
        raise Refusal(
            "No event is in hand that it could stand on",
            "What you conclude by yourself belongs into the journal: add_journal_entry.",
        )
    near = {n: shared_words(text, f"{e['source_entity'] or ''} {e['content']}") for n, e in found}
    place, entry = max(found, key=lambda numbered: (near[numbered[0]], numbered[0]))
    if len(found) > 1 and not near[place]:
        raise Refusal(
            "Nothing that was shown says so", "Note only what was said; name who it is about."
        )
    return await journal.read(store_of(runtime), scope_of(runtime.config), entry["id"]) or entry


def _check(
    name: str, text: str, source: JournalEntry, speaker: str | None, settings: Settings
) -> None:
    _check_name(name, settings)
    if name_key(name) in SPEAKER and speaker is None:
        raise Refusal(f"It is not known whom {name!r} means", "Name the person, place or thing.")
    # A quoted sentence may be in the first person; a model that writes "I" means itself.
    quoted = text.casefold() in one_line(source["content"]).casefold()
    wrong = violation(text, speaker if quoted else None, assistant_names(settings))
    if wrong:
        raise Refusal(f"The observation is refused: {wrong}", THE_WORLD)


def _check_source(text: str, source: JournalEntry, runtime: Runtime, collector: Collector) -> None:
    """Raise a Refusal if the text comes from elsewhere in the prompt and not from its source."""
    prompt, said = shown(runtime), grounds([source])
    others = prompt.everything
    if not collector.shown:
        others += heard_from_others(source["source_entity"], runtime)
    if prompt.recalls(text, said) or from_elsewhere(text, said, others):
        raise Refusal(RECALLED, WHERE_FROM)


def _check_name(name: str, settings: Settings) -> None:
    if name_key(name) in PRONOUNS:
        raise Refusal(f"{name!r} names nobody", "Name the person, place or thing.")
    if depends_on_speaker(name):
        told = f"{name!r} means somebody else to everyone who says it"
        raise Refusal(told, 'Give the name, or say whose: "Ada\'s sister".')
    if is_assistant(name, assistant_names(settings)):
        raise Refusal(f"{name!r} means the assistant", THE_WORLD)


async def _meant(
    name: str,
    source: JournalEntry,
    speaker: str | None,
    planned: Sequence[Operation],
    runtime: Runtime,
) -> tuple[NamedEntity, str | None]:
    """(the entity that `name` means, the speaker if it means them).

    It is the speaker, who may be giving this name, or else an entity of the plan or of the store.
    """
    store, scope = store_of(runtime), scope_of(runtime.config)
    known = (await entities.named(store, scope, [name]))[0]
    if speaker:
        ((own,), _) = await entities.look_up(store, scope, senders=[speaker])
        is_speaker = name_key(speaker) in spellings(name) or own.id == known.id
        is_new_name = known.profile is None and _is_given(name, speaker, source["content"], runtime)
        if is_speaker or is_new_name:
            return own, speaker
    claimed = _names_planned(planned)
    id_ = next((claimed[key] for key in spellings(name) if key in claimed), None)
    if id_ is not None:
        known = NamedEntity(id_, (await entities.read(store, scope, [id_])).get(id_))
    return known, None


def _is_given(name: str, speaker: str, text: str, runtime: Runtime) -> bool:
    """Whether speakers name themselves so; a name that a non-owner gives must extend theirs."""
    given = entities.names_given(text, speaker)
    adds = next((one for each, one in given.items() if name_key(each) == name_key(name)), None)
    return adds is not None and (adds or speaker in owners_in(runtime))


async def _check_aliases(
    aliases: Sequence[str],
    known: NamedEntity,
    source: JournalEntry,
    planned: Sequence[Operation],
    runtime: Runtime,
    settings: Settings,
) -> list[str]:
    """The aliases whose profiles a night is to join with this one. Raises a Refusal for others'."""
    if not aliases:
        return []
    joins, speaker = list[str](), source["source_entity"]
    _check_whose(known, speaker, runtime)
    believed = speaker in owners_in(runtime)
    store, scope = store_of(runtime), scope_of(runtime.config)
    claimed = _names_planned(planned)
    bearers = await entities.named(store, scope, aliases)
    for alias, bearer in zip(aliases, bearers, strict=True):
        _check_name(alias, settings)
        if name_key(alias) in SPEAKER or not says(source["content"], alias):
            told = f"The alias {alias!r} does not stand in what was said"
            raise Refusal(told, "Give only other names that were said to mean it.")
        taken = bearer.profile is not None and bearer.id != known.id
        if taken and believed and bearer.profile and not bearer.profile["senders"]:
            joins, taken = [*joins, alias], False  # an owner may join those who never wrote
        if taken or claimed.get(name_key(alias), known.id) != known.id:
            whom = bearer.profile["name"] if bearer.profile else alias
            told = f"{alias!r} means another entity already: {whom}"
            raise Refusal(told, "A name means one entity; note it without this alias.")
    standing = known.profile["aliases"] if known.profile else []
    if len({name_key(one) for one in (*standing, *aliases)}) > MOST_ALIASES:
        raise Refusal(f"It has {MOST_ALIASES} aliases already", "Note it without a new one.")
    return joins


def _check_whose(known: NamedEntity, speaker: str | None, runtime: Runtime) -> None:
    """Raise a Refusal for a person's alias that only others use: prompts show aliases as true."""
    profile = known.profile
    if profile is None or not profile["senders"] or speaker in owners_in(runtime):
        return
    if speaker is None or not speaks_as(profile, speaker):
        told = f"What {profile['name']} is called is for {profile['name']} to say"
        raise Refusal(told, "Note it without an alias.")


def _planned(collector: Collector) -> list[Operation]:
    """Observations that a night has planned; awake they are in the store already."""
    operations = collector.operations if isinstance(collector, PlanCollector) else []
    return [one for one in operations if one["kind"] == "observe_entity"]


def _names_planned(planned: Sequence[Operation]) -> Mapping[str, str]:
    return after({}, {}, planned)[1]


def _profile_after(known: NamedEntity, operations: Sequence[Operation]) -> EntityProfile | None:
    standing = {known.id: known.profile} if known.profile else {}
    mine = [one for one in operations if one["target"] == known.id]
    return after(standing, {}, mine)[0].get(known.id)


def _observation(
    id_: str, text: str, speaker: str | None, source: JournalEntry, profile: EntityProfile | None
) -> Observation:
    sources = [source["id"], *source["sources"]]
    standing = profile["observations"] if profile else []
    return {
        "id": observation_id(id_, sources, text, standing),
        "text": text,
        "at": source["timestamp"],
        "speaker": speaker,
        "trust": source["source_trust"],
        "sources": sources,
        "consolidated": False,
    }


async def _with_origins(
    noticed: Observation, source: JournalEntry, runtime: Runtime, collector: Collector
) -> Observation:
    """The observation; without a speaker and trusted little if it may be other people's words."""
    others = await may_be_of_others(noticed["text"], [source], runtime, collector)
    if not others:
        return noticed
    origins = [*of_entry(source, owners_in(runtime)), *others]
    trust = min(noticed["trust"], HEARSAY_TRUST)
    return {**noticed, "speaker": None, "trust": trust, "origins": list(dict.fromkeys(origins))}
