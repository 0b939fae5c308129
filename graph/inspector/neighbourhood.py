"""The memories around one: links of one or two steps, drawn in circles. The drawing is pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from graph.use_cases import AgentContext
from memory import entities, journal
from memory.records import INSIGHT
from memory.text import shortened

MOST = 24
"""Memories that are drawn; the list beside has as many."""

WIDTH, HEIGHT = 640, 440
RINGS = {0: 0.0, 1: 0.52, 2: 1.0}
"""Distance from the middle, as a share of the largest circle."""

RADIUS = (250.0, 180.0)
MARGIN = 44
"""Around the outermost ones, for their labels."""

LABEL = 24
"""Characters of a label."""


class NearMemory(NamedTuple):
    """A memory near the one in the middle."""

    id: str
    kind: str
    text: str
    holds: bool
    hop: int
    """Steps from the middle; 0 is the middle."""


class Tie(NamedTuple):
    """A link between two memories."""

    first: str
    second: str
    relation: str
    reason: str


class Around(NamedTuple):
    """A memory with those around it, the nearest first."""

    memories: list[NearMemory]
    ties: list[Tie]
    left: int
    """Memories that are not shown."""
    more: bool
    """Whether others are one step further away."""

    def of(self, id_: str) -> NearMemory:
        """One of them."""
        return next(one for one in self.memories if one.id == id_)


async def surroundings(context: AgentContext, id_: str, *, hops: int) -> Around:
    """The memories within `hops` links of one, at most MOST, each link once."""
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
                told = Tie(end, other, relation["relation"], relation["reason"])
                ties.setdefault(frozenset((end, other)), told)
    ends = await journal.links.read(context.store, context.scope, edge)
    more = any(other not in near for end in ends.values() for other in end["relations"])
    known = await _known(context, near)
    shown = [known[one] for one in near if one in known]
    kept = [tie for tie in ties.values() if tie.first in known and tie.second in known]
    return Around(shown, kept, left, more)


async def _known(context: AgentContext, near: dict[str, int]) -> dict[str, NearMemory]:
    """The memories by id; what is gone is left out."""
    store, scope = context.store, context.scope
    facts = await context.semantic.by_id(scope, list(near))
    entries = await journal.read_many(store, scope, [id_ for id_ in near if id_ not in facts])
    profiles = await entities.read(store, scope, [id_ for id_ in near if id_.startswith("entity_")])
    found = {
        id_: NearMemory(id_, "fact", fact["text"], fact["invalid_at"] is None, near[id_])
        for id_, fact in facts.items()
    }
    found |= {
        id_: NearMemory(
            id_,
            "insight" if id_.startswith(INSIGHT) else "entry",
            entry["content"],
            True,
            near[id_],
        )
        for id_, entry in entries.items()
    }
    return found | {
        id_: NearMemory(id_, "person", profile["name"], True, near[id_])
        for id_, profile in profiles.items()
    }


class DrawnMemory(NamedTuple):
    """A memory in the drawing."""

    x: float
    y: float
    anchor: str
    """Where its label begins: start, middle or end."""
    label_y: float
    label: str
    href: str
    memory: NearMemory


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
        ring = [one for one in around.memories if one.hop == hop]
        ring.sort(key=lambda one: _towards(one, around, places))
        turn = 0.3 * (hop - 1) - math.pi / 2
        for place, one in enumerate(ring):
            angle = turn + 2 * math.pi * place / max(1, len(ring))
            x = WIDTH / 2 + share * RADIUS[0] * math.cos(angle)
            y = HEIGHT / 2 + share * RADIUS[1] * math.sin(angle)
            places[one.id] = (round(x, 1), round(y, 1))
    heights = [y for _, y in places.values()]
    top = min(heights) - MARGIN
    return Drawing(
        WIDTH,
        top,
        max(heights) + MARGIN - top,
        [_dot(one, places[one.id], url) for one in around.memories],
        [DrawnLink(*places[tie.first], *places[tie.second]) for tie in around.ties],
    )


def _towards(one: NearMemory, around: Around, places: dict[str, tuple[float, float]]) -> float:
    """The direction of a memory's link to those that have their place."""
    for tie in around.ties:
        other = {tie.first: tie.second, tie.second: tie.first}.get(one.id)
        if other in places:
            x, y = places[other]
            return math.atan2(y - HEIGHT / 2, x - WIDTH / 2) % (2 * math.pi)
    return 0.0


def _dot(one: NearMemory, place: tuple[float, float], url: Callable[..., str]) -> DrawnMemory:
    x, y = place
    side = (x - WIDTH / 2) / WIDTH
    anchor = "middle" if abs(side) < 0.18 else "start" if side < 0 else "end"
    label = shortened(" ".join(one.text.split()), LABEL)
    where = "people" if one.kind == "person" else "memory"
    lower = y >= HEIGHT / 2
    return DrawnMemory(x, y, anchor, y + (28 if lower else -16), label, url(where, one.id), one)
