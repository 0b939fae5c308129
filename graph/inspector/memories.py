"""Pages of memories: the searchable list, one with its sources and links, correcting, forgetting.

Correcting and forgetting first show what they would do. The drawing of the links is pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, NamedTuple, cast

from starlette.responses import Response

from graph.documents import (
    MemoryDetail,
    MemoryFilter,
    MemoryKind,
    MemoryLine,
    Paging,
    kind_of,
    memory_detail,
    memory_page,
    person_names,
    tick_page,
    weighty_parts,
)
from graph.inspector.visits import Visit
from graph.use_cases import (
    AgentContext,
    checked_correction,
    correct,
    forget_entry,
    forget_fact,
    likely_speaker,
    recall,
)
from memory import entities, journal
from memory.errors import InputError, NotFoundError
from memory.forgetting import ForgetTarget
from memory.messages import prompt_lines
from memory.records import LONGEST_FACT, Fact, JournalEntry, RecallHit, TickReport
from memory.text import name_key, shortened, terms

ON_A_PAGE = 30

FOUND = 60
"""Memories that a search shows at most."""

FEW = 10
"""If a search's filters leave fewer of the best memories than this, it looks for others."""

INSIGHT = "insight"

KINDS = {"fact": "Facts", "entry": "Journal entries", INSIGHT: "Insights"}


class Wanted(NamedTuple):
    """The search and the filters of the list."""

    query: str
    holds: str
    """`now`, `ended` or empty for both."""
    kind: str
    person: str
    day: str

    @classmethod
    def of(cls, visit: Visit) -> Wanted:
        """The filters in the address."""
        holds, kind = visit.asked("holds"), visit.asked("kind")
        return cls(
            visit.asked("q"),
            holds if holds in ("now", "ended") else "",
            kind if kind in KINDS else "",
            visit.asked_name("person"),
            visit.asked("day"),
        )

    def filter(self, visit: Visit) -> MemoryFilter:
        """The filters for `memory_page`."""
        since, until = day_bounds(self.day, visit) if self.day else (None, None)
        return MemoryFilter(
            kind=cast(MemoryKind | None, self.kind or None),
            person=self.person or None,
            holds={"now": True, "ended": False}.get(self.holds),
            since=since,
            until=until,
        )


class Shown(NamedTuple):
    """One memory in a list."""

    id: str
    kind: str
    text: str
    at: str
    speaker: str | None
    holds: bool
    disputed: bool = False
    score: float | None = None
    parts: Sequence[tuple[str, float]] = ()
    """The parts of the score, the weightiest first."""
    said: tuple[Any, ...] = ()
    """The entries that say a fact in the same words; the page shows them below the fact."""
    in_answer: bool = False
    """Whether a tick's answer uses its words."""


async def memory_list(visit: Visit) -> Response:
    """The list of memories, or what a search finds."""
    wanted, paging = Wanted.of(visit), visit.paging(ON_A_PAGE)
    if wanted.query:
        found = paging.of(await _found(visit, wanted))
        lines, total = found.items, found.total
    else:
        listed = await memory_page(visit.context, wanted.filter(visit), paging)
        lines, total = [of_line(line) for line in listed.items], listed.total
    lines = await folded(visit, lines)
    most = max((abs(value) for one in lines for _, value in one.parts), default=1)
    return visit.show_list(
        "memory", total, paging, wanted=wanted, lines=lines, kinds=KINDS, most=most, best=FOUND
    )


async def _found(visit: Visit, wanted: Wanted) -> list[Shown]:
    """The memories that a search finds and the filters pass, best first.

    Where filters leave few of the best, those with all words of the search follow.
    """
    hits = await recall(visit.context, wanted.query, FOUND, include_superseded=True)
    lines = [_of_hit(hit, visit.zone) for hit in hits if round(hit["score"], 2) > 0]
    if wanted.holds:
        lines = [line for line in lines if line.holds == (wanted.holds == "now")]
    if wanted.kind:
        kinds = ("entry", INSIGHT) if wanted.kind == "entry" else (wanted.kind,)
        lines = [line for line in lines if line.kind in kinds]
    if wanted.day:
        since, until = map(datetime.fromisoformat, day_bounds(wanted.day, visit))
        lines = [line for line in lines if since <= datetime.fromisoformat(line.at) < until]
    if wanted.person:
        names = {name_key(name) for name in await person_names(visit.context, wanted.person)}
        facts = await visit.context.semantic.by_id(visit.context.scope, [one.id for one in lines])
        about = {id_: {*map(name_key, fact["entities"])} for id_, fact in facts.items()}
        lines = [
            one for one in lines if names & {name_key(one.speaker or ""), *about.get(one.id, ())}
        ]
    filtered = wanted.holds or wanted.kind or wanted.day or wanted.person
    if filtered and len(lines) < FEW:
        having = replace(wanted.filter(visit), query=wanted.query)
        known = {line.id for line in lines}
        more = await memory_page(visit.context, having, Paging(FOUND))
        lines += [of_line(line) for line in more.items if line.id not in known]
    return lines[:FOUND]


async def folded(visit: Visit, lines: Iterable[Shown]) -> list[Shown]:
    """The lines; an entry whose words a listed fact repeats moves below that fact."""
    found = {line.id: line for line in lines}
    facts = await visit.context.semantic.by_id(visit.context.scope, list(found))
    under: dict[str, str] = {}
    for id_, fact in facts.items():
        said = {*terms(fact["text"])}
        for entry in (one for one in fact["source_entries"] if one in found):
            if {*terms(found[entry].text)} <= said:
                under.setdefault(entry, id_)
    return [
        line._replace(said=tuple(found[one] for one, by in under.items() if by == line.id))
        for line in found.values()
        if line.id not in under
    ]


def of_line(line: MemoryLine) -> Shown:
    """A memory of an unranked list."""
    return Shown(line.id, line.kind, line.text, line.at, line.speaker, line.holds, line.disputed)


async def find_lines(context: AgentContext, ids: Sequence[str]) -> list[Shown]:
    """The memories with these ids, in this order; what is gone is left out."""
    facts = await context.semantic.by_id(context.scope, ids)
    rest = [id_ for id_ in ids if id_ not in facts]
    entries = await journal.read_many(context.store, context.scope, rest)
    found: dict[str, Shown] = {}
    for id_, fact in facts.items():
        holds, disputed = fact["invalid_at"] is None, bool(fact.get("disputed"))
        at, speaker = fact["valid_from"], fact["speaker"]
        found[id_] = Shown(id_, "fact", fact["text"], at, speaker, holds, disputed)
    for id_, entry in entries.items():
        at, speaker = entry["timestamp"], entry["source_entity"]
        found[id_] = Shown(id_, kind_of(id_), entry["content"], at, speaker, holds=True)
    return [found[id_] for id_ in ids if id_ in found]


async def heard_by(visit: Visit, reports: Sequence[TickReport]) -> dict[int, JournalEntry]:
    """The journal entry of the message that set off each tick, by the tick's number."""
    written = {
        one["tick"]: [id_ for id_ in one["written"] if id_.startswith("event_")] for one in reports
    }
    wanted = [id_ for ids in written.values() for id_ in ids]
    entries = await journal.read_many(visit.context.store, visit.context.scope, wanted)
    return {
        report["tick"]: entries[id_]
        for report in reports
        for id_ in written[report["tick"]]
        if id_ in entries and report["event_id"] in entries[id_]["sources"]
    }


def _of_hit(hit: RecallHit, zone: tzinfo) -> Shown:
    return Shown(
        id=hit["id"],
        kind="fact" if hit["kind"] == "fact" else kind_of(hit["id"]),
        text=prompt_lines.with_earlier(hit, zone),
        at=hit["at"],
        speaker=hit["speaker"],
        holds=not hit.get("superseded"),
        disputed=bool(hit.get("disputed")),
        score=hit["score"],
        parts=weighty_parts(hit.get("parts", {})),
    )


def day_bounds(day: str, visit: Visit) -> tuple[str, str]:
    """(start of a day in the reader's time zone, start of the next day); both in UTC.

    Raises InputError if `day` is not a date.
    """
    try:
        first = date.fromisoformat(day)
        days = (first, first + timedelta(days=1))
        start, end = (datetime.combine(one, time(), visit.zone).astimezone(UTC) for one in days)
    except (ValueError, OverflowError):
        raise InputError(f"day: a date such as 2026-05-02, not {day!r:.40}") from None
    return start.isoformat(), end.isoformat()


# One memory: its sources, what replaced it, its links


MOST_TICKS = 500
"""Newest ticks that are searched for those that showed or wrote a memory."""


async def one_memory(visit: Visit) -> Response:
    """A memory with its sources, its time line, its neighbourhood, its nights and its readers."""
    context = visit.context
    found = await memory_detail(context, visit.named("id"))
    hops = 2 if visit.asked("hops") == "2" else 1
    around = await surroundings(context, found.id, hops=hops)
    reports = (await tick_page(context, Paging(MOST_TICKS))).items
    shown = [one for one in reports if found.id in one.get("shown", [])]
    heard = await heard_by(visit, shown)
    line = [*found.replaced, found.fact, *found.replaced_by]
    return visit.show(
        "one_memory.html",
        found=found,
        text=_text(found),
        line=line if len(line) > 1 else [],
        around=around,
        drawing=draw(around, visit.url),
        told=told,
        hops=hops,
        readers=[(one, heard.get(one["tick"])) for one in shown],
        wrote=next((one for one in reports if found.id in one["written"]), None),
        done=visit.asked("done"),
        before=found.replaced[-1]["text"] if found.replaced else "",
    )


def _text(found: MemoryDetail) -> str:
    return found.fact["text"] if found.fact else found.entry["content"] if found.entry else ""


# Correcting


async def correct_form(visit: Visit) -> Response:
    """The fact to correct; with a text in the address, also the correction."""
    fact = await _fact(visit)
    if fact["invalid_at"] is not None:
        return visit.go("memory", fact["id"])  # Its page says what holds instead.
    text = visit.asked("text", LONGEST_FACT + 1)  # A text that is too long is refused, not cut.
    named = visit.asked_name("by")
    by = named or likely_speaker(fact, text or fact["text"], visit.context.owner)
    problem = _problem(fact, text, by) if text else None
    shown: dict[str, Any] = {"preview": bool(text) and not problem, "problem": problem}
    return visit.show("correct.html", fact=fact, text=text, by=by, named=named, **shown)


async def do_correct(visit: Visit) -> Response:
    """Correct the fact, and show the new one."""
    fact, form = await _fact(visit), await visit.form()
    text, by = form.get("text", "").strip(), form.get("by", "").strip() or visit.context.owner
    problem = _problem(fact, text, by)
    if problem is None:
        try:
            new = await correct(visit.context, fact["id"], text, by)
        except InputError as error:
            problem = str(error)
        else:
            return visit.go("memory", new["id"], done="corrected")
    shown: dict[str, Any] = {"preview": False, "problem": problem}
    return visit.show("correct.html", 422, fact=fact, text=text, by=by, named=by, **shown)


def _problem(fact: Fact, text: str, by: str) -> str | None:
    try:
        said, _ = checked_correction(fact, text, by)
    except InputError as error:
        return str(error)
    same = "These are the words of the fact already: write what is true."
    return same if said == fact["text"] else None


async def _fact(visit: Visit) -> Fact:
    found = await visit.context.semantic.get(visit.context.scope, visit.named("id"))
    if found is None:
        raise NotFoundError(
            "there is no such fact. Only facts can be corrected; journal entries record what was "
            "said, and can only be forgotten"
        )
    return found


# Forgetting


async def forget_form(visit: Visit) -> Response:
    """What would be forgotten with a fact, an entry or an insight."""
    found = await memory_detail(visit.context, visit.named("id"))
    target = ForgetTarget("fact" if found.fact else "entry", found.id)
    looked = await visit.would_forget(target, "Looking for what goes", "forget", found.id)
    if looked is None:
        return visit.go("progress")
    would, nights = looked
    return visit.show("forget.html", found=found, text=_text(found), would=would, nights=nights)


async def do_forget(visit: Visit) -> Response:
    """Forget the memory, with copies of its words and what was made from it."""
    found = await memory_detail(visit.context, visit.named("id"))
    erase = forget_fact if found.fact else forget_entry
    return visit.forget("Forgetting a memory", erase, found.id, "memory")


# Neighbouring memories


MOST = 24
"""Most neighbours in the drawing, and in the list beside it."""

WIDTH, HEIGHT = 640, 440
RINGS = {0: 0.0, 1: 0.52, 2: 1.0}
"""Distance from the middle, as a share of the largest circle."""

RADIUS = (250.0, 180.0)
MARGIN = 44
"""Pixels around the outermost memories, for their labels."""

LABEL = 24
"""Characters of a label."""


class Tie(NamedTuple):
    """A link between two memories, the nearer one first."""

    first: str
    second: str
    relation: str
    reason: str


class Around(NamedTuple):
    """A memory and its neighbours, nearest first."""

    memories: list[Shown]
    hops: dict[str, int]
    """Links from the middle to each memory, by id; the middle has 0."""
    ties: list[Tie]
    left: int
    """Memories that are not shown."""
    more: bool
    """Whether more memories are one link further away."""

    def of(self, id_: str) -> Shown:
        """The memory of this id."""
        return next(one for one in self.memories if one.id == id_)


async def surroundings(context: AgentContext, id_: str, *, hops: int) -> Around:
    """A memory and its neighbours within `hops` links, at most MOST, each link once."""
    near: dict[str, int] = {id_: 0}
    ties: dict[frozenset[str], Tie] = {}
    edge, left = [id_], 0
    for hop in range(1, hops + 1):
        ends = await journal.links.read(context.store, context.scope, edge)
        edge = []
        for end in (end for end in ends if end in near):
            for other, relation in ends[end]["relations"].items():
                if other not in near and len(near) > MOST:
                    left += 1
                    continue
                if other not in near:
                    near[other] = hop
                    edge.append(other)
                tie = Tie(end, other, relation["relation"], relation["reason"])
                ties.setdefault(frozenset((end, other)), tie)
    ends = await journal.links.read(context.store, context.scope, edge)
    more = any(other not in near for end in ends.values() for other in end["relations"])
    people = [id_ for id_ in near if id_.startswith("entity_")]
    profiles = await entities.read(context.store, context.scope, people)
    lines = await find_lines(context, [id_ for id_ in near if id_ not in profiles])
    lines += [
        Shown(id_, "person", profile["name"], profile["updated"], None, holds=True)
        for id_, profile in profiles.items()
    ]
    known = {line.id: line for line in lines}
    shown = [known[one] for one in near if one in known]
    kept = [tie for tie in ties.values() if tie.first in known and tie.second in known]
    return Around(shown, near, kept, left, more)


RELATIONS = {
    "relates": "relates to",
    "duplicates": "says the same as",
    "depends_on": "one holds only with the other:",
}


def told(relation: str, near: Shown, other: Shown) -> str:
    """A link in words, read from `near` to `other`: kept links have no direction. Pure."""
    if relation == "made_of":
        return "made into" if near.kind != "fact" else "made from"
    if relation == "evidence":
        return "rests on" if near.kind == INSIGHT else "led to"
    if relation == "supersedes":
        newer = near.holds or (not other.holds and near.at > other.at)
        return "replaces" if newer else "replaced by"
    return RELATIONS.get(relation, relation)


class DrawnMemory(NamedTuple):
    """A memory in the drawing."""

    x: float
    y: float
    anchor: str
    """Where its label begins: start, middle or end."""
    label_y: float
    label: str
    href: str
    memory: Shown
    hop: int


class Drawing(NamedTuple):
    """The neighbourhood as circles and lines."""

    width: int
    top: float
    """Where the drawn part begins: few memories do not need the whole height."""
    height: float
    dots: list[DrawnMemory]
    lines: list[tuple[float, ...]]
    """The ends of each link: x, y, x, y."""


def draw(around: Around, url: Callable[..., str]) -> Drawing:
    """Place the memories in circles around the middle, the linked ones near each other. Pure."""
    places: dict[str, tuple[float, float]] = {}
    for hop, share in RINGS.items():
        ring = [one for one in around.memories if around.hops[one.id] == hop]
        ring.sort(key=lambda one: _towards(one, around, places))
        turn = 0.3 * (hop - 1) - math.pi / 2
        for place, memory in enumerate(ring):
            angle = turn + 2 * math.pi * place / max(1, len(ring))
            x = WIDTH / 2 + share * RADIUS[0] * math.cos(angle)
            y = HEIGHT / 2 + share * RADIUS[1] * math.sin(angle)
            places[memory.id] = (round(x, 1), round(y, 1))
    heights = [y for _, y in places.values()]
    top = min(heights) - MARGIN
    return Drawing(
        WIDTH,
        top,
        max(heights) + MARGIN - top,
        [_dot(one, around.hops[one.id], places[one.id], url) for one in around.memories],
        [(*places[tie.first], *places[tie.second]) for tie in around.ties],
    )


def _towards(memory: Shown, around: Around, places: dict[str, tuple[float, float]]) -> float:
    for tie in around.ties:
        other = {tie.first: tie.second, tie.second: tie.first}.get(memory.id)
        if other in places:
            x, y = places[other]
            return math.atan2(y - HEIGHT / 2, x - WIDTH / 2) % (2 * math.pi)
    return 0.0


def _dot(memory: Shown, hop: int, at: tuple[float, float], url: Callable[..., str]) -> DrawnMemory:
    x, y = at
    side = (x - WIDTH / 2) / WIDTH
    anchor = "middle" if abs(side) < 0.18 else "start" if side < 0 else "end"
    label = shortened(" ".join(memory.text.split()), LABEL)
    where = "people" if memory.kind == "person" else "memory"
    label_y = y + (28 if y >= HEIGHT / 2 else -16)
    return DrawnMemory(x, y, anchor, label_y, label, url(where, memory.id), memory, hop)
