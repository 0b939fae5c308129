"""Pages of people and things: the list, one profile with its sources, forgetting somebody."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import NamedTuple

from starlette.responses import Response

from graph.documents import (
    MemoryFilter,
    MemoryLine,
    Paging,
    PersonDetail,
    find_profile,
    memory_page,
    people_page,
    person_detail,
)
from graph.inspector.memories import folded, of_line
from graph.inspector.visits import Tell, Visit, day_of
from graph.use_cases import forget, would_forget
from memory import night
from memory.errors import LongWork
from memory.forgetting import ForgetTarget
from memory.records import RISE
from memory.text import name_key

ON_A_PAGE = 60

TYPES = {"person": "People", "place": "Places", "thing": "Things", "unknown": "Others"}

MOST_ENTRIES = 500
"""Newest entries of somebody from which the days of their messages are read."""

WIDTH, HEIGHT = 640, 120


async def people_list(visit: Visit) -> Response:
    """Everybody and everything that is known, by name."""
    paging, query, kind = visit.paging(ON_A_PAGE), visit.asked("q"), visit.asked("kind")
    kind = kind if kind in TYPES else ""
    listed = await people_page(visit.context, query, kind or None, paging)  # type: ignore[arg-type]
    return visit.show_list(
        "people",
        listed.total,
        paging,
        people=listed.items,
        query=query,
        kind=kind,
        types=TYPES,
        done=visit.asked("done"),
    )


async def one_person(visit: Visit) -> Response:
    """A profile: what holds now, attributes with their sources, talks, favourability."""
    found = await person_detail(visit.context, visit.named("id"))
    semantic, scope = visit.context.semantic, visit.context.scope
    attributes = found.profile["attributes"].values()
    values = [value for one in attributes for value in (one, *one["replaced"])]
    cited = {id_ for value in values for id_ in value["evidence"]}
    facts = await semantic.by_op(scope, sorted(cited))
    ended = {op: fact for op, fact in facts.items() if fact["invalid_at"] is not None}
    return visit.show(
        "person.html",
        found=found,
        profile=found.profile,
        later=await _later(visit, found),
        memories=await folded(visit, map(of_line, found.memories.items)),
        observations={one["id"]: one for one in found.profile["observations"]},
        facts=facts,
        ended_facts=ended,
        instead=await semantic.by_id(scope, [str(one["superseded_by"]) for one in ended.values()]),
        favour=await _favour(visit, found),
    )


async def _later(visit: Visit, found: PersonDetail) -> list[MemoryLine]:
    """Facts about somebody since the last night: it wrote what holds, and could not know them."""
    nights = await night.records(visit.context.store, visit.context.scope)
    ended = [one["started"] for one in nights if night.status_of(one) == "complete"]
    slept, name = max(ended, default=""), name_key(found.profile["name"])
    held = {id_ for line in found.holds_now for id_ in line.facts}
    facts = [one for one in found.memories.items if one.kind == "fact" and one.id not in held]
    facts = [one for one in facts if one.holds and one.at > slept]
    return [one for one in facts if name in map(name_key, one.entities)]


class Favour(NamedTuple):
    """Favourability over time: the days on which it rose, as a line."""

    days: list[tuple[str, float]]
    points: str
    """Of the drawn line."""
    width: int = WIDTH
    height: int = HEIGHT


async def _favour(visit: Visit, found: PersonDetail) -> Favour | None:
    """It rises once on each day with an answered message, so those days tell its course."""
    profile = found.profile
    value = profile["relationship"]["favorability"]
    rises = round(math.log(1 - value) / math.log(1 - RISE)) if 0 < value < 1 else 0
    if not rises:
        return None
    wanted = MemoryFilter(kind="entry", person=profile["id"])
    said = await memory_page(visit.context, wanted, Paging(MOST_ENTRIES))
    senders = {profile["name"], *profile["senders"]}
    days = {day_of(line.at, visit.zone) for line in said.items if line.speaker in senders}
    if last := profile["relationship"]["risen_on"]:
        days = {day for day in days if day <= last} | {last}
    newest = sorted(days)[-rises:]
    course = [
        (day, 1 - (1 - RISE) ** (rises - len(newest) + place))
        for place, day in enumerate(newest, 1)
    ]
    step = WIDTH / max(1, len(course))
    steps = [(0.0, HEIGHT * (1 - course[0][1]))] if course else []
    steps += [((place + 1) * step, HEIGHT * (1 - value)) for place, (_, value) in enumerate(course)]
    return Favour(course, " ".join(f"{x:.1f},{y:.1f}" for x, y in steps))


# Forgetting somebody

FRESH = timedelta(minutes=1)
"""How long the shown list of what would go counts as current, as memory may change."""


async def forget_person_form(visit: Visit) -> Response:
    """What would be forgotten with a person or thing; looking for much of it is a job."""
    profile = await find_profile(visit.context, visit.named("id"))
    wanted, here = ForgetTarget("entity", profile["id"]), ("people", profile["id"], "forget")

    async def look(tell: Tell) -> tuple[str, ...]:
        tell("what goes is shown first, and nothing is changed")
        looking.found = (visit.context.now(), await would_forget(visit.context, wanted))
        return here

    job, found = visit.host.jobs.current(visit.owner), None
    if job is not None and job.result == here and job.found is not None:
        (at, found), job.found = job.found, None
        found = found if visit.context.now() - at < FRESH else None
    try:
        would, nights = found or await would_forget(visit.context, wanted, briefly=True)
    except LongWork:
        title = f"Looking for all of {profile['name']}"
        looking = visit.host.jobs.start(visit.owner, title, look)
        return visit.go("progress")
    return visit.show("forget_person.html", profile=profile, would=would, nights=nights)


async def forget_person(visit: Visit) -> Response:
    """Forget a person or thing, with everything that came of it."""
    profile = await find_profile(visit.context, visit.named("id"))
    return visit.forget("Forgetting somebody", forget, profile["id"], "people")
