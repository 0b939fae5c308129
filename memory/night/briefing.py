"""The morning briefing: what an owner should know after a night, made without a model.

Changes come from the night's operations, as far as they hold; all else is of now.
Store namespace (below `(user, thread)`): `briefing` "shown" -> {night}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from itertools import starmap
from typing import Any

from langgraph.store.base import BaseStore, PutOp

from memory import pages
from memory.events import inbox
from memory.facts import SemanticMemory
from memory.guards import OF_DATES, content, languages, negates, speaks_of_oneself
from memory.night import record as night
from memory.operations import facts_named, undreamed_facts
from memory.records import (
    Briefing,
    Fact,
    NightRecord,
    OpenQuestion,
    Operation,
    Scope,
    last_heir,
    with_values,
)
from memory.settings import Settings
from memory.state import State
from memory.storage import write_batch
from memory.text import days_named, local, one_line, regex, says, shown_day

BRIEFING, SHOWN = "briefing", "shown"

MOST_WORDS = 150
"""Words of a briefing, its headings included."""

HEADINGS = 18
"""Words of the headings, the hint on how to answer, and what is left out."""

AHEAD = timedelta(days=7)
"""How far ahead a briefing looks for dates."""

MOST_CHANGED, MOST_QUESTIONS, MOST_DEADLINES, MOST_WAITING = 4, 2, 4, 4
WORDS_OF_A_FACT, WORDS_OF_A_CLAIM, WORDS_BEFORE = 20, 24, 8


async def briefing_of(
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    state: State,
    settings: Settings,
    now: datetime,
) -> Briefing | None:
    """The briefing after the newest night that was applied; None before the first one."""
    records = await night.records(store, scope)
    applied = [one for one in records if night.status_of(one) == "complete" and one["ended"]]
    if not applied:
        return None
    newest, today = applied[-1], local(now.isoformat(), settings.zone).date()
    plans = await night.plans_of(store, scope, newest["id"])
    operations = with_values(plans.operations())
    facts = await _with_heirs(
        await semantic.by_op(scope, sorted(facts_named(operations))), semantic, scope
    )
    open_ = await pages.open_questions(store, semantic, scope)
    # Of what rests on a fact that is only contradicted, which is asked first.
    fallen = [(one, behind) for one, behind in open_.doubts if behind["invalid_at"]]
    new = await semantic.by_op(scope, await undreamed_facts(store, scope))
    ahead = (today, today + AHEAD, settings.zone)
    dated = await pages.dated_within(store, semantic, scope, *ahead, also=new.values())
    goals = [one["description"] for one in state["goals"].values() if one["status"] == "active"]
    return within(
        {
            "night": newest["id"],
            "at": newest["ended"] or newest["started"],
            "changed": changed(operations, facts, [*settings.owners, scope.user]),
            "questions": [*starmap(question, open_.disputes), *starmap(doubt, fallen)],
            "deadlines": deadlines(dated, goals, today, settings.zone),
            "waiting": waiting(
                records,
                approvals=len(state["parked"]),
                aside=len(await inbox.set_aside(store, scope)),
                left=len(newest["held"]),
            ),
        }
    )


async def was_shown(store: BaseStore, scope: Scope, briefing: Briefing) -> bool:
    """Whether a chat has shown the briefing of this night."""
    item = await store.aget(scope.namespace(BRIEFING), SHOWN)
    return item is not None and item.value["night"] == briefing["night"]


async def mark_shown(store: BaseStore, scope: Scope, briefing: Briefing) -> None:
    """Record that a chat has shown the briefing of this night."""
    put = PutOp(scope.namespace(BRIEFING), SHOWN, {"night": briefing["night"]}, index=False)
    await write_batch(store, [put])


def changed(
    operations: Sequence[Operation], facts: Mapping[str, Fact], owners: Collection[str] = ()
) -> list[str]:
    """What the night learned and what no longer holds, the most important first. Pure.

    A value that was replaced in its turn, the same night or since, is told as what holds now, and
    not at all if that is the old one. What `owners` said themselves comes last: it is no news to
    them. `facts`: by operation id, those that superseded them included.
    """
    merged = {
        frozenset((one["target"], one["after"]["other"]))
        for one in operations
        if one["kind"] == "link" and one["after"]["relation"] == "duplicates"
    }
    replaced = dict[str, str]()
    for change in (one for one in operations if one["kind"] == "change_fact"):
        if by := (change["after"] or {}).get("superseded_by"):
            replaced[change["target"]] = by
    ended = [op for op, by in replaced.items() if frozenset((op, by)) not in merged]
    added = [one["target"] for one in operations if one["kind"] == "add_fact"]
    now, before = _in_place(facts), dict[str, Fact]()
    newest = sorted(
        (facts[op] for op in ended if op in facts), key=lambda one: one["valid_from"], reverse=True
    )
    # Of several values before, one that was known before the night is told.
    for old in sorted(newest, key=lambda one: one["op"] in added):
        if new := now.get(replaced[old["op"]]):
            before.setdefault(new["op"], old)
    pairs = [(now[op], old) for op, old in before.items() if now[op]["text"] != old["text"]]
    pairs.sort(key=lambda pair: (-max(one["importance"] for one in pair), pair[0]["op"]))
    lines = [f"{_said(new)} (before: {_cut(old['text'], WORDS_BEFORE)})" for new, old in pairs]
    held = {now[op]["op"]: now[op] for op in added if op in now and op not in replaced}
    fresh = [fact for op, fact in held.items() if op not in before]
    fresh.sort(key=lambda fact: (fact["speaker"] in owners, -fact["importance"], fact["op"]))
    lines += [_said(fact) for fact in fresh]
    counts = f"{len(added)} new {'fact' if len(added) == 1 else 'facts'}"
    counts += f", {len(ended)} outdated" if ended else ""
    return [f"{counts}.", *lines] if added or ended else []


def question(new: Fact, old: Fact) -> OpenQuestion:
    """A contradiction as a question."""
    text = f"{_claimed(new)} True? {_claimed(old)}"
    return {"text": text, "facts": [new["id"], old["id"]]}


def doubt(fact: Fact, fallen: Fact) -> OpenQuestion:
    """A doubtful fact as a question."""
    rests_on = _cut(fallen["text"], WORDS_OF_A_CLAIM).rstrip(".")
    text = f"{_claimed(fact)} Still so? It rests on what changed: {rests_on}."
    return {"text": text, "facts": [fact["id"], fallen["id"]]}


def deadlines(
    dated: Sequence[tuple[date, Fact]], goals: Iterable[str], today: date, zone: tzinfo
) -> list[str]:
    """The goals and the facts with a date in the next days, the nearest first.

    A day that a fact denies in favour of another is none of its dates. Of what says the same of a
    day, a goal stands for a fact, and a newer fact for an older one.
    """
    last = today + AHEAD
    found = [
        (day, goal, _cut(goal, WORDS_OF_A_FACT))
        for goal in goals
        for day in days_named(goal, zone, said=today.isoformat())
        if today <= day <= last
    ]
    newest = sorted(dated, key=lambda pair: pair[1]["valid_from"], reverse=True)
    found += [(day, one["text"], _said(one)) for day, one in newest if _is_on(day, one, zone)]
    kept = list[tuple[date, str, str]]()
    for day, text, line in found:
        if not any(day == other and _is_alike(text, its) for other, its, _ in kept):
            kept.append((day, text, line))
    kept.sort(key=lambda one: one[0])
    return [f"{_day(day, today, zone)}: {line}" for day, _, line in kept]


def _is_on(day: date, fact: Fact, zone: tzinfo) -> bool:
    """Whether a fact tells of the day; not if it denies this day and names another instead."""
    stated, denied = set[date](), set[date]()
    for part in _PARTS.split(fact["text"]):
        named = days_named(part, zone, said=fact["valid_from"])
        (denied if negates(part, languages(part)) else stated).update(named)
    instead = stated and _INSTEAD.search(fact["text"].lower())
    return day in stated or day not in denied or not instead


_INSTEAD = regex(
    r"\b(?:instead|rather|sondern|stattdessen|sino|en vez|en lugar|plutôt|au lieu|yerine)\b|而是"
)
_PARTS = regex(r"[;,.] | (?:because|but|weil|aber|porque|pero|parce|mais|çünkü|ama) ")

ALIKE = 0.5
"""Share of the words of the shorter of two texts that say the same of a day, dates aside."""


def _is_alike(one: str, other: str) -> bool:
    mine, theirs = ({*content(text)} - OF_DATES for text in (one, other))
    return len(mine & theirs) >= max(1, ALIKE * min(len(mine), len(theirs)))


def waiting(records: Sequence[NightRecord], *, approvals: int, aside: int, left: int) -> list[str]:
    """Counts of what waits for a person, each with the command that shows it."""
    held = [one["id"] for one in records if night.status_of(one) == "held"]
    counts = (
        (approvals, "question about a tool", "questions about tools", "circadian status"),
        (len(held), "night held back", "nights held back", "circadian nights"),
        (aside, "message set aside", "messages set aside", "circadian status"),
        (
            left,
            "journal entry left for the next night",
            "journal entries left for the next night",
            "",
        ),
    )
    return [
        f"{number} {singular if number == 1 else plural}{f' ({command})' if command else ''}"
        for number, singular, plural, command in counts
        if number
    ]


def within(briefing: Briefing, words: int = MOST_WORDS) -> Briefing:
    """The briefing in at most `words`: first questions, then dates, waiting items, changes."""
    left = words - HEADINGS
    kept: dict[str, list[Any]] = {}
    for name, most in (
        ("questions", MOST_QUESTIONS),
        ("deadlines", MOST_DEADLINES),
        ("waiting", MOST_WAITING),
        ("changed", MOST_CHANGED),
    ):
        kept[name] = []
        for line in briefing[name][:most]:  # type: ignore[literal-required] # names of its lists
            used = len((line if isinstance(line, str) else line["text"]).split())
            if used <= left:
                kept[name].append(line)
                left -= used
    if more := len(briefing["questions"]) - len(kept["questions"]):
        kept["waiting"].append(f"{more} more to settle, once these are")
    return {**briefing, **kept}  # type: ignore[typeddict-item] # the same lists, shorter


def lines_of(briefing: Briefing) -> list[tuple[str, list[str]]]:
    """The headings with their lines, without empty ones."""
    rows = [
        ("Changed", briefing["changed"]),
        ("To settle", [one["text"] for one in briefing["questions"]]),
        ("Coming up", briefing["deadlines"]),
        ("Waiting", briefing["waiting"]),
    ]
    return [(heading, lines) for heading, lines in rows if lines]


async def _with_heirs(
    facts: Mapping[str, Fact], semantic: SemanticMemory, scope: Scope
) -> dict[str, Fact]:
    """The facts, and those that superseded them, by operation id."""
    found, asked = dict(facts), set[str]()
    while new := {fact["superseded_by"] or "" for fact in found.values()} - asked - {""}:
        asked |= new
        found |= {one["op"]: one for one in (await semantic.by_id(scope, sorted(new))).values()}
    return found


def _in_place(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """For each fact, by operation id, what stands in its place by now: itself or its last heir."""
    known = {key: fact for fact in facts.values() for key in (fact["op"], fact["id"])}
    found = {op: last_heir(fact, known) for op, fact in facts.items()}
    return {op: fact for op, fact in found.items() if fact["invalid_at"] is None}


def _said(fact: Fact) -> str:
    """A fact as a bullet point; in the first person, its speaker comes first."""
    text = _cut(fact["text"], WORDS_OF_A_FACT)
    who = fact["speaker"]
    return f"{one_line(who)}: {text}" if who and speaks_of_oneself(text) else text


def _claimed(fact: Fact) -> str:
    """A fact as its speaker's claim; unchanged if it names the speaker itself."""
    text, who = _cut(fact["text"], WORDS_OF_A_CLAIM), fact["speaker"]
    if who and says(fact["text"], who) and not speaks_of_oneself(fact["text"]):
        return text
    return f'{one_line(who)} says: "{text}"' if who else f'It is noted: "{text}"'


def _cut(text: str, words: int) -> str:
    parts = one_line(text).split()
    return " ".join(parts) if len(parts) <= words else " ".join(parts[:words]).rstrip(",;:") + "..."


def _day(day: date, today: date, zone: tzinfo) -> str:
    names = {0: "Today", 1: "Tomorrow"}
    return names.get((day - today).days) or shown_day(day.isoformat(), zone)
