"""What an agent knows and did, as documents that the HTTP API, the inspector and `--json` share.

Memories first, in pages and each with where it comes from: a fact cites journal entries, and an
entry cites events. `MemoryDetail` leads from a fact back to the words, to what it replaced and to
what replaced it. Then people and things, and what was done: ticks, nights, the audit log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, NamedTuple, NotRequired, TypeVar, cast

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from graph.use_cases import (
    AgentContext,
    NightLine,
    complete_state,
    correct,
    find_fact,
    nights,
    successors,
)
from memory import audit, entities, journal, night, pages
from memory.audit import AuditEntry
from memory.errors import NotFoundError
from memory.events import inbox
from memory.facts import Listing, Row, fact_of
from memory.journal import links
from memory.records import (
    INSIGHT,
    Conversation,
    Earlier,
    EntityProfile,
    Fact,
    JournalEntry,
    NightStatus,
    RecallHit,
    Report,
    TickPrompt,
    TickReport,
    empty_report,
)
from memory.text import name_key, terms

T = TypeVar("T")

MemoryKind = Literal["fact", "entry", "insight"]
MemorySort = Literal["newest", "oldest", "importance", "learned"]

_ORDERS: dict[MemorySort, tuple[Literal["written", "valid_from", "importance"], bool]] = {
    "newest": ("valid_from", True),
    "oldest": ("valid_from", False),
    "importance": ("importance", True),
    "learned": ("written", True),
}


class Paging(NamedTuple):
    """Which items of a list are wanted. Routes and pages check the numbers."""

    limit: int = 50
    offset: int = 0

    def of(self, found: Sequence[T]) -> Listed[T]:
        """The wanted items of a whole list."""
        return self.listed(found[self.offset : self.offset + self.limit], len(found))

    def listed(self, items: Sequence[T], total: int) -> Listed[T]:
        """The wanted items as a document."""
        return Listed(items=list(items), total=total, limit=self.limit, offset=self.offset)


class Listed(BaseModel, Generic[T]):
    """A page of a list."""

    items: list[T]
    total: int = Field(description="Items on all pages.")
    limit: int
    offset: int = Field(description="Items on the pages before.")


FIRST = Paging()
"""The first page of a list."""

_INSIGHTS = {"gte": INSIGHT, "lt": "insight`"}
"""The range of the ids of insights: the backtick is the character after the underscore."""


class MemoryLine(BaseModel):
    """A fact, a journal entry or an insight in a list."""

    id: str
    kind: MemoryKind
    text: str
    at: str = Field(description="When it came to hold, or was said; ISO 8601, UTC.")
    speaker: str | None
    entities: list[str]
    importance: int = Field(description="1..10")
    trust: float = Field(description="0..1")
    holds: bool = Field(description="False: superseded.")
    superseded_by: str | None = Field(None, description="Id of the fact that holds instead.")
    disputed: bool = Field(False, description="Another fact contradicts it, unsettled.")


class Relation(BaseModel):
    """A link to another memory."""

    id: str
    text: str
    relation: str
    reason: str
    at: str


class NightTouch(BaseModel):
    """What a night did with a memory."""

    night: str
    kind: str
    reason: str


class MemoryDetail(BaseModel):
    """A memory with its sources, its links, what replaced it and what was made of it."""

    id: str
    kind: MemoryKind
    fact: Fact | None = None
    entry: JournalEntry | None = None
    sources: list[JournalEntry] = Field(description="The words that it comes from, oldest first.")
    events: list[str] = Field(description="Ids of the events behind them.")
    gone: list[str] = Field(description="Ids of sources that are no longer kept.")
    replaced: list[Fact] = Field(description="The facts that it superseded, oldest first.")
    replaced_by: list[Fact] = Field(description="What superseded it, up to what holds now.")
    disputed: list[Fact] = Field(description="Facts that contradict it, unsettled.")
    made: list[Fact] = Field(description="Facts that were made from this entry.")
    links: list[Relation]
    nights: list[NightTouch]


class RecalledMemory(TypedDict):
    """A recalled memory, as `recall --json` prints it. Flags are there only if they are set."""

    id: str
    kind: Literal["fact", "episode"]
    text: str
    score: float
    sources: list[str]
    at: str
    speaker: str | None
    earlier: NotRequired[list[Earlier]]
    """What it superseded, the newest first."""
    inference: NotRequired[bool]
    """An insight: the assistant's conclusion, and nobody's words."""
    superseded: NotRequired[bool]
    partly_superseded: NotRequired[bool]
    disputed: NotRequired[bool]
    doubtful: NotRequired[bool]
    faint: NotRequired[bool]
    """Found by what stands beside it: it does not fit by itself."""
    parts: NotRequired[dict[str, float]]
    """The parts of the score, by name."""


class Correction(TypedDict):
    """A corrected fact, as `correct --json` prints it."""

    fact: Fact
    superseded: Fact | None
    """The fact before; None if the text was in force already."""


@dataclass(frozen=True)
class MemoryFilter:
    """Which memories a list shows."""

    query: str = ""
    """Words that they must all have."""
    kind: MemoryKind | None = None
    person: str | None = None
    """The speaker, or somebody or something that it is about."""
    holds: bool | None = None
    since: str | None = None
    """ISO 8601; the time itself counts."""
    until: str | None = None
    """ISO 8601; the time itself does not count."""
    min_importance: int | None = None
    sort: MemorySort = "newest"


ALL = MemoryFilter()
"""Every memory, the newest first."""

LEAST_PART = 0.005
"""A smaller part of a score is not shown: it would round to 0.00."""

FLAGS = ("inference", "superseded", "partly_superseded", "disputed", "doubtful")


async def memory_page(
    context: AgentContext,
    wanted: MemoryFilter = ALL,
    paging: Paging = FIRST,
) -> Listed[MemoryLine]:
    """A page of facts and journal entries."""
    asked = tuple(dict.fromkeys(terms(wanted.query)))
    if wanted.query.strip() and not asked:
        return paging.listed([], 0)
    order, descending = _ORDERS[wanted.sort]
    people = await person_names(context, wanted.person)
    listing = Listing(_filters(wanted), asked, people, order, descending, *paging)
    rows, total = await context.semantic.listed(context.scope, listing)
    return paging.listed([_line(row) for row in rows], total)


def _filters(wanted: MemoryFilter) -> dict[str, object]:
    found: dict[str, object] = {}
    if wanted.kind is not None:
        found["kind"] = "fact" if wanted.kind == "fact" else "episode"
    if wanted.kind == "insight":
        found["op"] = _INSIGHTS
    if wanted.holds is not None:
        found["invalid_at"] = None if wanted.holds else {"gt": ""}
    bounds = {"gte": wanted.since, "lt": wanted.until}
    if spans := {sign: at for sign, at in bounds.items() if at is not None}:
        found["valid_from"] = spans
    if wanted.min_importance is not None:
        found["importance"] = {"gte": wanted.min_importance}
    return found


async def person_names(context: AgentContext, person: str | None) -> tuple[str, ...]:
    """All names of a person or thing: a fact may have any of them."""
    if person is None:
        return ()
    profile = await known_profile(context, person)
    more = (profile["name"], *profile["aliases"], *profile["senders"]) if profile else ()
    return tuple(dict.fromkeys((person, *more)))


async def known_profile(context: AgentContext, given: str) -> EntityProfile | None:
    """The profile with this id, name or alias."""
    by_id = await entities.read(context.store, context.scope, [given])
    [named] = await entities.named(context.store, context.scope, [given])
    return by_id.get(given, named.profile)


def _line(row: Row) -> MemoryLine:
    payload = row.payload
    is_fact = payload["kind"] == "fact"
    return MemoryLine(
        id=row.id if is_fact else payload["op"],
        kind="fact" if is_fact else kind_of(payload["op"]),
        text=payload["data"],
        at=payload["valid_from"],
        speaker=payload["speaker"],
        entities=payload["entities"],
        importance=payload["importance"],
        trust=payload["trust"],
        holds=payload.get("invalid_at") is None,
        superseded_by=payload.get("superseded_by"),
        disputed=bool(payload.get("disputed")),
    )


def kind_of(id_: str) -> Literal["entry", "insight"]:
    """What an entry of the journal is called in lists."""
    return "insight" if id_.startswith(INSIGHT) else "entry"


def recalled_memory(hit: RecallHit, *, explain: bool = False) -> RecalledMemory:
    """A hit as a document."""
    held: Mapping[str, object] = hit
    left_out = {flag for flag in (*FLAGS, "faint") if not held.get(flag)} | (
        set() if explain else {"parts"}
    )
    shown = [name for name in RecalledMemory.__annotations__ if name not in left_out]
    return cast(RecalledMemory, {name: held[name] for name in shown if name in held})


def weighty_parts(parts: Mapping[str, float]) -> list[tuple[str, float]]:
    """The parts of a score, the weightiest first, without those that hardly count."""
    ranked = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return [part for part in ranked if abs(part[1]) >= LEAST_PART]


async def corrected(context: AgentContext, given: str, text: str, by: str | None) -> Correction:
    """Supersede a fact, by its id or an unambiguous beginning of it, with what is true."""
    old = await find_fact(context, given)
    new = await correct(context, old["id"], text, by)
    before = await context.semantic.get(context.scope, old["id"])
    return {"fact": new, "superseded": before if new["id"] != old["id"] else None}


# One memory


async def memory_detail(context: AgentContext, id_: str) -> MemoryDetail:
    """One fact or journal entry. Raises NotFoundError."""
    entry = await journal.read(context.store, context.scope, id_)
    return await fact_detail(context, id_) if entry is None else await _entry(context, entry)


async def fact_detail(context: AgentContext, id_: str) -> MemoryDetail:
    """One fact, by its id or an unambiguous beginning of it. Raises NotFoundError."""
    found = await find_fact(context, id_)
    entries = await journal.read_many(context.store, context.scope, found["source_entries"])
    disputed = await context.semantic.by_op(context.scope, found.get("disputed", []))
    return MemoryDetail(
        id=found["id"],
        kind="fact",
        fact=found,
        sources=journal.by_time(entries.values()),
        events=found["source_events"],
        gone=[id_ for id_ in found["source_entries"] if id_ not in entries],
        replaced=await _replaced(context, found),
        replaced_by=await successors(context, found),
        disputed=list(disputed.values()),
        made=[],
        links=await _relations(context, found["id"]),
        nights=await _touches(
            context, {found["id"], found["op"]}, {found["created"], found["invalid_at"]}
        ),
    )


async def entry_detail(context: AgentContext, id_: str) -> MemoryDetail:
    """One journal entry. Raises NotFoundError."""
    found = await journal.read(context.store, context.scope, id_)
    if found is None:
        raise NotFoundError(f"there is no journal entry {id_!r:.80}")
    return await _entry(context, found)


async def _entry(context: AgentContext, found: JournalEntry) -> MemoryDetail:
    """An entry; its sources are the evidence of an insight, as far as that is in the journal."""
    store, scope, semantic = context.store, context.scope, context.semantic
    evidence = found.get("evidence", [])
    sources = await journal.read_many(store, scope, evidence)
    relations = await _relations(context, found["id"])
    linked = await semantic.by_id(scope, [relation.id for relation in relations])
    made = [fact for fact in linked.values() if found["id"] in fact["source_entries"]]
    facts = await semantic.by_id(scope, [id_ for id_ in evidence if id_ not in sources])
    return MemoryDetail(
        id=found["id"],
        kind=kind_of(found["id"]),
        entry=found,
        sources=journal.by_time(sources.values()),
        events=found["sources"],
        gone=[id_ for id_ in evidence if id_ not in sources and id_ not in facts],
        replaced=[],
        replaced_by=[],
        disputed=[],
        made=sorted(made, key=lambda one: (one["valid_from"], one["id"])),
        links=relations,
        nights=await _touches(context, {found["id"]}, {fact["created"] for fact in made}),
    )


async def _replaced(context: AgentContext, fact: Fact) -> list[Fact]:
    superseded = Listing({"kind": "fact", "invalid_at": {"gt": ""}})
    by_successor: dict[str, list[Fact]] = {}
    for row in (await context.semantic.listed(context.scope, superseded))[0]:
        earlier = fact_of(row)
        by_successor.setdefault(earlier["superseded_by"] or "", []).append(earlier)
    found: dict[str, Fact] = {}
    waiting = [fact["id"]]
    while waiting:
        for earlier in by_successor.get(waiting.pop(), []):
            if earlier["id"] not in found and earlier["id"] != fact["id"]:
                found[earlier["id"]] = earlier
                waiting.append(earlier["id"])
    return sorted(found.values(), key=lambda one: (one["valid_from"], one["id"]))


async def _relations(context: AgentContext, id_: str) -> list[Relation]:
    store, scope = context.store, context.scope
    ends = await links.read(store, scope, [id_])
    told = ends[id_]["relations"] if id_ in ends else {}
    entries = await journal.read_many(store, scope, [*told])
    facts = await context.semantic.by_id(scope, [id_ for id_ in told if id_ not in entries])
    texts = {id_: one["content"] for id_, one in entries.items()}
    texts |= {id_: one["text"] for id_, one in facts.items()}
    return [Relation(id=id_, text=texts[id_], **told[id_]) for id_ in sorted(told) if id_ in texts]


async def _touches(
    context: AgentContext, targets: Set[str], moments: Set[str | None]
) -> list[NightTouch]:
    """What nights did with `targets`. Nights date changes with their start: one of `moments`."""
    found: list[NightTouch] = []
    instants = {datetime.fromisoformat(at) for at in moments if at}
    for record in await night.records(context.store, context.scope):
        if datetime.fromisoformat(record["started"]) in instants:
            plans = await night.plans_of(context.store, context.scope, record["id"])
            found += [
                NightTouch(night=record["id"], kind=operation["kind"], reason=operation["reason"])
                for operation in plans.operations()
                if operation["target"] in targets
            ]
    return found


# People and things: a page of them, and one with what holds now of it


EntityType = Literal["person", "place", "thing", "unknown"]

NEWEST = Paging(limit=20)
"""The memories that a person's document shows."""


class PersonLine(BaseModel):
    """Somebody or something in a list."""

    id: str
    name: str
    aliases: list[str]
    entity_type: EntityType
    state: str = Field(description="stranger, acquaintance, friend or close")
    favorability: float = Field(description="0..1")
    interactions: int
    last_at: str | None
    attributes: int
    observations: int
    updated: str


class HeldLine(BaseModel):
    """A line of what holds now."""

    text: str
    attribute: str | None
    at: str
    speaker: str | None
    facts: list[str] = Field(description="Ids of the facts that it stands on.")
    sources: list[str] = Field(description="Ids of the entries and events behind them.")
    disputed: bool


class PersonDetail(BaseModel):
    """A profile, what holds now, and the newest memories about it."""

    profile: EntityProfile
    holds_now: list[HeldLine]
    memories: Listed[MemoryLine]
    conversations: list[Conversation] = Field(description="Open ones.")


async def people_page(
    context: AgentContext,
    query: str = "",
    kind: EntityType | None = None,
    paging: Paging = FIRST,
) -> Listed[PersonLine]:
    """A page of profiles by name, those whose name or alias contains `query`."""
    wanted = name_key(query)
    found = [
        profile
        for profile in await entities.everyone(context.store, context.scope)
        if kind in (None, profile["entity_type"])
        and any(wanted in name_key(name) for name in (profile["name"], *profile["aliases"]))
    ]
    found.sort(key=lambda profile: (name_key(profile["name"]), profile["id"]))
    return paging.of([_person_line(profile) for profile in found])


def _person_line(profile: EntityProfile) -> PersonLine:
    counted = {kind: len(profile[kind]) for kind in ("attributes", "observations")}
    return PersonLine.model_validate({**profile, **profile["relationship"], **counted})


async def find_profile(context: AgentContext, given: str) -> EntityProfile:
    """One profile, by its id, name or alias. Raises NotFoundError."""
    if (profile := await known_profile(context, given)) is None:
        raise NotFoundError(f"nobody and nothing is known as {given!r:.80}")
    return profile


async def person_detail(context: AgentContext, given: str) -> PersonDetail:
    """One profile with what is known of it, found as by `find_profile`."""
    store, scope = context.store, context.scope
    profile = await find_profile(context, given)
    shown = await pages.shown(store, context.semantic, scope, [profile])
    state = complete_state(await context.values())
    names = {name_key(name) for name in (profile["name"], *profile["aliases"])}
    return PersonDetail(
        profile=profile,
        holds_now=[
            HeldLine.model_validate({**line._asdict(), "facts": line.ids})
            for page in shown
            for line in page.lines
        ],
        memories=await memory_page(context, MemoryFilter(person=profile["id"]), NEWEST),
        conversations=[
            conversation
            for conversation in state["conversations"].values()
            if name_key(conversation["entity"]) in names
        ],
    )


# What was done: ticks, nights, the audit log


class TickDetail(BaseModel):
    """A tick: its report, and its entries in the audit log."""

    report: TickReport
    log: list[AuditEntry]
    prompt: TickPrompt | None = None
    """What the model was shown; None if it is not kept."""


async def night_page(
    context: AgentContext,
    status: NightStatus | None = None,
    paging: Paging = FIRST,
) -> Listed[NightLine]:
    """A page of the nights, newest first."""
    records = await night.records(context.store, context.scope)
    page = paging.of([one for one in records[::-1] if status in (None, night.status_told(one))])
    # A night's plans are read for the nights of this page alone.
    lines = [await nights.night_line(context, record) for record in page.items]
    return paging.listed(lines, page.total)


async def tick_page(context: AgentContext, paging: Paging = FIRST) -> Listed[TickReport]:
    """A page of the ticks whose reports are kept, newest first."""
    kept = await inbox.reports(context.store, context.scope)
    found = {report["tick"]: report for report in [*kept, *await _last_ticks(context)]}
    return paging.of([found[number] for number in sorted(found, reverse=True)])


async def tick_detail(context: AgentContext, number: int) -> TickDetail:
    """One tick. Raises NotFoundError if its report is no longer kept."""
    store, scope = context.store, context.scope
    report = await inbox.report_of(store, scope, number)
    if report is None:
        report = {made["tick"]: made for made in await _last_ticks(context)}.get(number)
    if report is None:
        raise NotFoundError(f"there is no tick {number}, or its report is no longer kept")
    return TickDetail(
        report=report,
        # A tick that was parked before has entries under this number, too.
        log=[
            entry
            for entry in await audit.of_tick(store, scope, number)
            if entry["origin"] == report["event_id"]
        ],
        prompt=await inbox.prompt_of(store, scope, number),
    )


async def _last_ticks(context: AgentContext) -> list[TickReport]:
    """The ticks of the last run: a server puts their reports into the store at the next run."""
    report: Report = (await context.values()).get("report") or empty_report()
    return report["ticks"]


async def log_page(
    context: AgentContext,
    paging: Paging = FIRST,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    **fields: str | int | None,
) -> Listed[AuditEntry]:
    """A page of the audit log, newest first: the entries before `until` with these fields.

    None as a field: any value. The field `origin` is the id of an event or a night.
    """
    asked = {name: value for name, value in fields.items() if value is not None}
    if not (asked or since or until):
        newest, total = await audit.newest(context.store, context.scope, *paging)
        return paging.listed(newest, total)
    found = await audit.read(context.store, context.scope, since=since, until=until)
    return paging.of([entry for entry in found[::-1] if asked.items() <= entry.items()])
