"""Tools of facts: store them with their sources, recall them, settle which of two holds.

`FactCheck` in tools/evidence.py says which evidence a fact needs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, ToolMessage
from pydantic import BaseModel, Field

from memory import entities, journal, night, pages
from memory.compaction import MASK
from memory.errors import Refusal
from memory.events import entry_in
from memory.guards import (
    OWN_SHARE,
    Doubt,
    cited_in_vain,
    said_in,
    share,
    speaker_of,
    speakers_of,
    violation,
)
from memory.messages import Citations, of_tick, prompt_lines
from memory.operations import Collector, PlanCollector, collector_of, with_doubts
from memory.recall import fit_for, recall
from memory.records import (
    LOCAL_USER,
    LONGEST_FACT,
    Event,
    Fact,
    FactDraft,
    JournalEntry,
    Operation,
    RecallHit,
    add_fact,
    change_fact,
    names_of,
    operation_id,
    supersede_fact,
)
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.state import held
from memory.text import SPEAKER, name_key, regex, shown_day, shown_time
from tools.answers import (
    Absent,
    Answer,
    Runtime,
    answer,
    built_in,
    event_of,
    now_of,
)
from tools.evidence import FactCheck, origin_of
from tools.origins import kept_origins, listeners_in, may_be_of_others, not_of_owner, owners_in

MOST_OTHER_WORDS, LONGEST_PHRASE = 8, 80
"""Other words of a fact, and characters of each."""

NUMBER = regex(r"\d+(?:[.,:]\d+)*")

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


@built_in
async def store_memory(
    facts: Annotated[list[FactGiven], Field(description="The facts to keep for good.")],
    runtime: Runtime,
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
    scope, texts = scope_of(runtime.config), [one.text for one in facts]
    _, named = await entities.look_up(store_of(runtime), scope, texts=texts)
    check = FactCheck(runtime, [one for some in named for one in some if one["aliases"]])
    places, owners = _Places(runtime, collector), owners_in(runtime)
    operations: dict[str, Operation] = {}
    rejected: list[dict[str, str]] = []
    for fact in facts:
        ids = _with_questions(fact.source_ids or default, fact.text, shown, asked)
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
    """The facts with entry ids in place of the numbers in a night, and of memories looked up."""
    ids = {cited: [collector.resolve(cited)] for fact in facts for cited in fact.source_ids}
    state, shown = runtime.state, collector.shown
    exchange: list[AnyMessage] = state.get("exchange") or []
    hits = hits_in(of_tick(state["messages"], state["tick"]) if shown is None else exchange)
    cited_by_hit = {
        hit["id"]: [id_ for id_ in (hit["id"], *hit.get("sources", ())) if id_ in ids]
        for hit in hits
    }
    if named := {hit for hit, cited in cited_by_hit.items() if cited}:
        scope, semantic = scope_of(runtime.config), resources_of(runtime.config).semantic
        known = await semantic.by_id(scope, sorted(named))
        behind = [id_ for one in known.values() for id_ in one["source_entries"]]
        ids |= {id_: known[id_]["source_entries"] for id_ in ids.keys() & known.keys()}
        cited_ids = {id_ for cited in cited_by_hit.values() for id_ in cited}
        for event in cited_ids - known.keys() - named:  # the rest are ids of events
            entries = [id_ for id_ in (*behind, *named) if id_.endswith(f"_{event}")]
            ids[event] = list(dict.fromkeys(entries)) or ids[event]
        if shown is not None:
            beside = sorted({id_ for entries in ids.values() for id_ in entries} - {*shown})
            collector.looked_up |= await journal.read_many(store_of(runtime), scope, beside)
    sources = ([id_ for cited in fact.source_ids for id_ in ids[cited]] for fact in facts)
    updates = ({"source_ids": found} for found in sources)
    return [fact.model_copy(update=new) for fact, new in zip(facts, updates, strict=True)]


async def _with_senders(
    facts: Sequence[FactGiven], sources: Mapping[str, JournalEntry], runtime: Runtime
) -> list[FactGiven]:
    """The facts with a sender's id as speaker where the model gave another name of the sender."""
    said = dict.fromkeys(one["source_entity"] for one in sources.values())
    senders = [one for one in said if one not in (None, LOCAL_USER)]  # facts name the local user
    if all(fact.speaker in (None, LOCAL_USER, *senders) for fact in facts):
        return [*facts]
    known, _ = await entities.look_up(store_of(runtime), scope_of(runtime.config), senders=senders)
    found = [(who, one.profile) for who, one in zip(senders, known, strict=True) if one.profile]
    called = [(name, who) for who, profile in found for name in names_of(profile)]
    meant = Counter(name for name, _ in called)
    own = {name: who for name, who in called if meant[name] == 1}
    return [
        fact
        if fact.speaker in senders
        else fact.model_copy(
            update={"speaker": own.get(name_key(fact.speaker or ""), fact.speaker)}
        )
        for fact in facts
    ]


def _with_questions(
    ids: Sequence[str], text: str, shown: Mapping[str, JournalEntry], asked: Mapping[str, str]
) -> list[str]:
    """The ids, with those of the questions that they answer, if the text takes words from these.

    A model that makes a fact of "Yes, on Monday" cites the answer alone. `asked`: id of an answer
    -> id of its question, among the entries `shown`.
    """
    cited = [shown[one]["content"] for one in ids if one in shown]
    questions = [asked[one] for one in ids if one in asked and asked[one] not in ids]
    shares = {id_: share(text, [*cited, shown[id_]["content"]]) for id_ in questions}
    return [*ids, *(id_ for id_, words in shares.items() if words > share(text, cited))]


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
        place = 0
        while True:
            op = operation_id("fact", self._origin, *sources, str(place))
            if await self._standing(op) in (None, draft["text"]):
                self._texts[op] = draft["text"]
                return add_fact({**draft, "op": op}, "store_memory")
            place += 1

    async def _standing(self, op: str) -> str | None:
        """The text under an id: in a night from its plan, awake from semantic memory as well."""
        if op in self._texts or self._planned:
            return self._texts.get(op)
        config = self._runtime.config
        found = await resources_of(config).semantic.by_op(scope_of(config), [op])
        return found[op]["text"] if op in found else None


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
    fact: FactGiven, ids: Sequence[str], sources: Mapping[str, JournalEntry], check: FactCheck
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
    said = [one for one in entries if one["source_type"] not in journal.CONCLUDED]
    own = [one["content"] for one in said if one["source_entity"] == speaker]
    return speaker if share(fact.text, own) >= OWN_SHARE else None


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
        event["id"]: entry_in(runtime.state, event, settings_of(runtime.context), known)
        for event, known in zip(events, familiar, strict=True)
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
    if unsaid := _unsaid(facts, collector):
        result["unsaid"] = unsaid
    if not operations:
        result["error"] = "No fact was stored; see rejected"
    if told := [SUGGESTION] * bool(rejected) + [UNSAID] * ("unsaid" in result):
        result["suggestion"] = " ".join(told)
    return result


def _unsaid(facts: Sequence[Mapping[str, Any]], collector: Collector) -> dict[str, list[str]]:
    """The numbers in the entries shown that no fact made of them says: a fact was overlooked."""
    found = dict[str, list[str]]()
    for id_, entry in (collector.shown or {}).items():
        made = [one["text"] for one in facts if id_ in one["source_entries"]]
        said = {*map(_digits, NUMBER.findall(" ".join(made)))}
        own = _QUOTED.sub("", _PASSED_ON.split(entry["content"], maxsplit=1)[0])
        numbers = dict.fromkeys(NUMBER.findall(own))
        left = [one for one in numbers if _digits(one) not in said]
        if made and left:
            found[collector.handle(id_)] = left
    return found


_PASSED_ON = regex(
    r"(?mi)^(?:-{3,} ?(?:forwarded|original|weitergeleitet|mensaje reenviado|message transf)"
    r"|(?:from|von|de): .*@)"
)
"""Where a message goes on with the words of somebody else, which the sender only passes on."""
_QUOTED = regex(r"(?m)^>.*$")


def _digits(number: str) -> str:
    """What two ways to write a number or a full hour have in common."""
    return "".join(filter(str.isdigit, number.removesuffix(":00"))).lstrip("0")


MOST = 100
"""Largest limit of a recall."""


DIGITS = 3
"""Decimals of a score that a model sees: the others cost tokens, and differ between machines."""


@built_in
async def recall_memories(
    query: Annotated[str, Field(description="What to look for, in plain words.")],
    runtime: Runtime,
    limit: Annotated[int, Field(description="At most this many, 1 to 100.")] = 10,
    include_superseded: Annotated[bool, Field(description="Also what no longer holds.")] = False,
) -> Answer:
    """Recall long-term memories near a query, best first, each with its sources."""
    if not query.strip():
        raise Refusal("Nothing to look for", "Give a query in plain words.")
    if not 1 <= limit <= MOST:
        raise Refusal(f"Limit {limit} is out of range", f"Give 1 to {MOST}.")
    resources, scope = resources_of(runtime.config), scope_of(runtime.config)
    asleep = collector_of(runtime.config, runtime.store).shown is not None
    settings, now, store = settings_of(runtime.context), now_of(runtime), store_of(runtime)
    [memories] = await recall(
        [query],
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
        await night.keep_probe(query, memories, store=store, scope=scope, now=now, most=most)
    shown = [_shown(one, settings.zone) for one in memories]
    note = {} if shown else {"note": "Nothing in memory fits this query."}
    return answer(runtime, {"query": query, "memories": shown, "count": len(shown), **note})


def _shown(hit: RecallHit, zone: tzinfo) -> dict[str, Any]:
    """A memory for the model: in local time, and without the parts of its score, to save tokens."""
    score = round(hit["score"], DIGITS)
    told: dict[str, Any] = {**hit, "score": score, "at": shown_time(hit["at"], zone)}
    if earlier := hit.get("earlier"):
        told["earlier"] = [{**one, "until": shown_day(one["until"], zone)} for one in earlier]
    return {key: value for key, value in told.items() if key not in ("parts", "faint")}


def hits_in(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """The memories that the recalls of a tick brought up."""
    answers = [one for one in messages if isinstance(one, ToolMessage) and one.status != "error"]
    named = [one for one in answers if one.name == recall_memories.name and one.content != MASK]
    return [hit for one in named for hit in json.loads(str(one.text))["memories"]]


# Contradictions


MOST_ALIKE = 20
"""Facts searched for a given text."""

OWNERS_ONLY = "Leave it open; an owner can settle it."


@built_in
async def settle_dispute(
    holds: Annotated[str, Field(description="Id or text of the fact that an owner says is true.")],
    falls: Annotated[
        str, Field(description="Id or text of the fact that contradicts it, or that it rests on.")
    ],
    runtime: Runtime,
) -> Answer:
    """Settle a contradiction or doubt that you were shown: an owner just said which fact holds."""
    settings = settings_of(runtime.context)
    if not_owners := not_of_owner(runtime.state, runtime.config, settings):
        raise Refusal(not_owners, OWNERS_ONLY)
    event = held(event_of(runtime))
    semantic, scope = resources_of(runtime.config).semantic, scope_of(runtime.config)
    open_ = await pages.open_questions(store_of(runtime), semantic, scope)
    meant = _meant(holds, falls, [*open_.disputes, *open_.doubts])
    meant = meant or _meant(holds, falls, await _pairs_with_texts(holds, falls, runtime))
    if meant is None:
        raise Refusal(
            f"{holds!r:.80} and {falls!r:.80} are no contradiction that is open",
            "Give the two ids, or the two texts, of one contradiction as they were shown.",
        )
    keeps, goes = meant
    told = {"holds": keeps["text"], "no_longer_holds": goes["text"]}
    if pages.in_dispute(keeps, goes):
        store = store_of(runtime)
        operations = await with_doubts(
            settled(keeps, goes, event), goes, keeps, store=store, semantic=semantic, scope=scope
        )
    elif pages.in_doubt(keeps, goes):
        operations = [confirmed(keeps, event)]
        told = told if goes["invalid_at"] else {"holds": keeps["text"]}
    else:
        raise Refusal(
            f"{goes['text']!r:.80} rests on {keeps['text']!r:.80}, and does not contradict it",
            "Say here only that it still holds. If it does not, store what is true now.",
        )
    await collector_of(runtime.config, runtime.store).write(operations)
    return answer(runtime, told)


def settled(keeps: Fact, goes: Fact, event: Event) -> list[Operation]:
    """The fact that falls is superseded by the other one, which is disputed no more."""
    sources, reason = [event["id"]], f"settled by {event['sender']}"
    left = [op for op in keeps.get("disputed", []) if op != goes["op"]]
    return [
        # It falls from the time at which it was said: it was never true.
        supersede_fact(goes, keeps["op"], goes["valid_from"], sources, reason),
        change_fact(keeps, {"disputed": left}, sources, reason, place=f"settled {goes['op']}"),
    ]


def confirmed(fact: Fact, event: Event) -> Operation:
    """A doubtful fact that an owner says still holds: it no longer depends on what fell."""
    left = [op for op in fact.get("depends_on", []) if op not in fact["doubtful"]]
    after = {"doubtful": [], "depends_on": left}
    reason = f"confirmed by {event['sender']}"
    return change_fact(fact, after, [event["id"]], reason, place=f"confirmed {event['id']}")


async def _pairs_with_texts(holds: str, falls: str, runtime: Runtime) -> list[tuple[Fact, Fact]]:
    """The contradictions and doubts among the facts with these texts: a page may leave some out."""
    semantic, scope = resources_of(runtime.config).semantic, scope_of(runtime.config)
    found = [
        fact
        for text in (holds, falls)
        for fact, _ in await semantic.keywords(scope, text, MOST_ALIKE, include_superseded=True)
        if _is_named(fact, text)
    ]
    pairs = [(one, other) for one in found for other in found]
    return [pair for pair in pairs if pages.in_dispute(*pair) or pages.in_doubt(*pair)]


def _meant(holds: str, falls: str, pairs: Sequence[tuple[Fact, Fact]]) -> tuple[Fact, Fact] | None:
    """(the fact that holds, the fact that falls) of the open contradiction or doubt meant."""
    for fact, other in pairs:
        for keeps, goes in ((fact, other), (other, fact)):
            if _is_named(keeps, holds) and _is_named(goes, falls):
                return keeps, goes
    return None


def _is_named(fact: Fact, given: str) -> bool:
    """Whether a model names the fact: by an id as shown, or else by the text."""
    around = " []()#.'\"\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
    ids, text = prompt_lines.claim_named(given, fact["speaker"])
    same = not ids and text.strip(around).lower() == fact["text"].strip(around).lower()
    known = [fact["id"]]
    return same or any(prompt_lines.cited(one.lower(), known) for one in ids or [given])
