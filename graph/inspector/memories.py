"""The searchable list of memories, and the lines that every list of memories shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple, cast

from starlette.responses import Response

from graph.documents import (
    MemoryFilter,
    MemoryKind,
    MemoryLine,
    Paging,
    kind_of,
    memory_page,
    person_names,
    weighty_parts,
)
from graph.inspector.visits import Visit
from graph.use_cases import AgentContext, recall
from memory import journal
from memory.errors import InputError
from memory.messages import prompt_lines
from memory.records import Fact, JournalEntry, RecallHit, TickReport
from memory.text import name_key, terms

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
    lines = [_of_hit(hit) for hit in hits if round(hit["score"], 2) > 0]
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
    found = {id_: _of_fact(fact) for id_, fact in facts.items()}
    found |= {id_: _of_entry(entry) for id_, entry in entries.items()}
    return [found[id_] for id_ in ids if id_ in found]


def _of_fact(fact: Fact) -> Shown:
    holds, disputed = fact["invalid_at"] is None, bool(fact.get("disputed"))
    at, speaker = fact["valid_from"], fact["speaker"]
    return Shown(fact["id"], "fact", fact["text"], at, speaker, holds, disputed)


def _of_entry(entry: JournalEntry) -> Shown:
    at, speaker = entry["timestamp"], entry["source_entity"]
    return Shown(entry["id"], kind_of(entry["id"]), entry["content"], at, speaker, holds=True)


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


def _of_hit(hit: RecallHit) -> Shown:
    return Shown(
        id=hit["id"],
        kind="fact" if hit["kind"] == "fact" else kind_of(hit["id"]),
        text=prompt_lines.with_earlier(hit),
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
