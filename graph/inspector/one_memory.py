"""One memory: its sources, what replaced it, its links; correcting and forgetting it.

Correcting and forgetting first show what they would do. The drawing of the links is pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from starlette.responses import Response

from graph.console import counted
from graph.documents import MemoryDetail, Paging, memory_detail, tick_page
from graph.inspector.jobs import Tell
from graph.inspector.memories import INSIGHT, Shown, find_lines, heard_by
from graph.inspector.visits import Visit
from graph.use_cases import AgentContext, correct, forget_entry, forget_fact, would_forget
from memory import entities, journal
from memory.errors import InputError, NotFoundError
from memory.forgetting import ForgetTarget
from memory.records import LONGEST_FACT, Fact, JournalEntry, TickReport
from memory.text import shortened

MOST_TICKS = 500
"""Newest ticks that are searched for those that showed or wrote a memory."""


async def one_memory(visit: Visit) -> Response:
    """A memory with its sources, its time line, its neighbourhood, its nights and its readers."""
    context = visit.context
    found = await memory_detail(context, visit.named("id"))
    hops = 2 if visit.asked("hops") == "2" else 1
    around = await surroundings(context, found.id, hops=hops)
    reports = (await tick_page(context, Paging(MOST_TICKS))).items
    return visit.show(
        "one_memory.html",
        found=found,
        text=_text(found),
        line=_time_line(found),
        around=around,
        drawing=draw(around, visit.url),
        told=told,
        hops=hops,
        readers=await _readers(visit, found.id, reports),
        wrote=next((one for one in reports if found.id in one["written"]), None),
        done=visit.asked("done"),
        before=found.replaced[-1]["text"] if found.replaced else "",
    )


def _text(found: MemoryDetail) -> str:
    return found.fact["text"] if found.fact else found.entry["content"] if found.entry else ""


def _time_line(found: MemoryDetail) -> list[Fact]:
    """Replaced facts, this fact, and the facts that replaced it; empty without replacements."""
    around = [*found.replaced, *found.replaced_by]
    return [*found.replaced, found.fact, *found.replaced_by] if found.fact and around else []


async def _readers(
    visit: Visit, id_: str, reports: Sequence[TickReport]
) -> list[tuple[TickReport, JournalEntry | None]]:
    """The ticks that showed the memory, each with the message it answered."""
    shown = [one for one in reports if id_ in one.get("shown", [])]
    heard = await heard_by(visit, shown)
    return [(one, heard.get(one["tick"])) for one in shown]


# Correcting


async def correct_form(visit: Visit) -> Response:
    """The fact to correct; with a text in the address, also the correction."""
    fact = await _fact(visit)
    if fact["invalid_at"] is not None:
        return visit.go("memory", fact["id"])  # Its page says what holds instead.
    text = visit.asked("text", LONGEST_FACT + 1)  # One that is too long is refused, not cut.
    same = text.strip() == fact["text"]
    problem = "These are the words of the fact already: write what is true." if same else None
    preview = bool(text) and not same
    return visit.show("correct.html", fact=fact, text=text, preview=preview, problem=problem)


async def do_correct(visit: Visit) -> Response:
    """Correct the fact, and show the new one."""
    fact = await _fact(visit)
    text = (await visit.form()).get("text", "").strip()
    try:
        new = await correct(visit.context, fact["id"], text)
    except InputError as error:
        problem = str(error)
        return visit.show("correct.html", 422, fact=fact, text=text, preview=False, problem=problem)
    return visit.go("memory", new["id"], done="corrected")


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
    would, nights = await would_forget(visit.context, target)
    return visit.show("forget.html", found=found, text=_text(found), would=would, nights=nights)


async def do_forget(visit: Visit) -> Response:
    """Forget the memory, with copies of its words and what was made from it."""
    found = await memory_detail(visit.context, visit.named("id"))

    async def work(tell: Tell) -> tuple[str, ...]:
        forget = forget_fact if found.fact else forget_entry
        done = await forget(visit.context, found.id, on_step=tell)
        await visit.host.forgotten(visit)
        tell(f"forgotten: {counted(sum(done['counts'].values()), 'record')}; this is for good")
        return ("memory",)

    visit.host.jobs.start(visit.owner, "Forgetting a memory", work)
    return visit.go("progress")


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
    known = await _known(context, near)
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


async def _known(context: AgentContext, near: dict[str, int]) -> dict[str, Shown]:
    people = [id_ for id_ in near if id_.startswith("entity_")]
    profiles = await entities.read(context.store, context.scope, people)
    lines = await find_lines(context, [id_ for id_ in near if id_ not in profiles])
    lines += [
        Shown(id_, "person", profile["name"], profile["updated"], None, holds=True)
        for id_, profile in profiles.items()
    ]
    return {line.id: line for line in lines}


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


class DrawnLink(NamedTuple):
    """A link in the drawing."""

    x1: float
    y1: float
    x2: float
    y2: float


class Drawing(NamedTuple):
    """The neighbourhood as circles and lines."""

    width: int
    top: float
    """Where the drawn part begins: few memories do not need the whole height."""
    height: float
    dots: list[DrawnMemory]
    lines: list[DrawnLink]


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
        [DrawnLink(*places[tie.first], *places[tie.second]) for tie in around.ties],
    )


def _towards(memory: Shown, around: Around, places: dict[str, tuple[float, float]]) -> float:
    """The angle towards the first linked memory that is already placed; 0 without one."""
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
