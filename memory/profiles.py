"""Entity profiles: what is known of people, places and things (original-system, section 15). Pure.

Two names are one entity only where somebody said so (an alias): "Ana" is not "Ana Lopez", however
near the names are. A profile too many is seen and can be mended; two people in one cannot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

from memory.names import name_key, shown_name

RelationshipState = Literal["stranger", "acquaintance", "friend", "close"]

RISE = 0.1
"""Of what favorability lacks to 1, the part that a day with an answered message adds."""
STATES: tuple[tuple[float, RelationshipState], ...] = (
    (0.75, "close"),
    (0.5, "friend"),
    (0.25, "acquaintance"),
    (0.0, "stranger"),
)
"""From which favorability on a state holds."""
BONUS: Mapping[RelationshipState, int] = {"friend": 1, "close": 2}
"""What is added to the importance of what someone says (design, ruling 2)."""
MOST_ALIASES = 20
_ANSWERED = 20
"""Answered events that a profile keeps, the newest: one that is done again counts once."""


class Observation(TypedDict):
    """Something noticed about an entity (original-system, section 15: Pf)."""

    id: str
    """Derived from its sources and position: the same write twice is one observation."""
    text: str
    at: str
    speaker: str | None
    """Who said it; None: the assistant concluded it."""
    trust: float
    """0..1, that of its source."""
    sources: list[str]
    """Journal and event ids."""
    consolidated: bool
    """Whether a night has made attributes of it."""


class Attribute(TypedDict):
    """What observations come to (original-system, section 15: Pa)."""

    value: str
    evidence: list[str]
    """Observation ids."""
    at: str
    replaced: list[dict[str, Any]]
    """Earlier values: {value, evidence, at}, oldest first."""


class Relationship(TypedDict):
    """How someone stands to the agent."""

    favorability: float
    """0..1."""
    state: RelationshipState
    """By rising thresholds of favorability: 0.25, 0.5, 0.75."""
    interactions: int
    """Direct messages that were answered."""
    last_at: str | None
    risen_on: str | None
    """The day (UTC) on which favorability rose last; it rises once a day at most."""
    answered: list[str]
    """The newest event ids that counted, oldest first."""


class EntityProfile(TypedDict):
    """A person, place or thing that the agent knows."""

    id: str
    """`entity_<hash of the first name it was known by>`: stable through renaming."""
    name: str
    aliases: list[str]
    """Other names that mean it, each exactly one entity's."""
    senders: list[str]
    """The ids under which it wrote to the agent, as they are: another spelling is another's."""
    entity_type: Literal["person", "place", "thing", "unknown"]
    attributes: dict[str, Attribute]
    observations: list[Observation]
    """Oldest first, bounded."""
    relationship: Relationship
    created: str
    updated: str


class Familiar(NamedTuple):
    """What profiles know of who says something, and of whom it names."""

    sender: str = ""
    """The id of the sender's profile; it need not stand yet."""
    bonus: int = 0
    """0..2, the sender's."""
    names: tuple[str, ...] = ()
    """Names of those it mentions, other than the sender."""


NOBODY = Familiar()


def entity_id(key: str) -> str:
    """The id of the entity first known by this name (`memory.names.name_key`)."""
    return f"entity_{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def sender_id(sender: str) -> str:
    """The id of a sender whose name another sender bears already, spelled differently."""
    return entity_id(f"sender\x1f{sender}")


def new_profile(id_: str, name: str, at: str) -> EntityProfile:
    """A profile of which nothing is known but the name."""
    return {
        "id": id_,
        "name": shown_name(name),
        "aliases": [],
        "senders": [],
        "entity_type": "unknown",
        "attributes": {},
        "observations": [],
        "relationship": {
            "favorability": 0.0,
            "state": "stranger",
            "interactions": 0,
            "last_at": None,
            "risen_on": None,
            "answered": [],
        },
        "created": at,
        "updated": at,
    }


def names_of(profile: EntityProfile) -> list[str]:
    """The keys under which it is looked up, its name's first."""
    return list(dict.fromkeys(name_key(one) for one in (profile["name"], *profile["aliases"])))


def speaks_as(profile: EntityProfile, sender: str) -> bool:
    """Whether `sender` is this entity: an id it wrote under, or the first one of its name.

    An alias is not enough: anybody may say that another is called so.
    """
    if sender in profile["senders"]:
        return True
    key = name_key(sender)
    return key == name_key(profile["name"]) and key not in map(name_key, profile["senders"])


def is_blank(profile: EntityProfile | None) -> bool:
    """Whether it says nothing of the entity but its name."""
    if profile is None:
        return True
    known = profile["aliases"] or profile["attributes"] or profile["observations"]
    return not known and profile["relationship"]["state"] == "stranger"


def state_of(favorability: float) -> RelationshipState:
    """The state that `favorability` (0..1) comes to."""
    return next((state for least, state in STATES if favorability >= least), "stranger")


def bonus_of(profile: EntityProfile | None) -> int:
    """What someone's words add to their importance, 0..2."""
    return BONUS.get(profile["relationship"]["state"], 0) if profile else 0


def met(profile: EntityProfile, *, sender: str, event_id: str, at: str, now: str) -> EntityProfile:
    """The profile after a direct message of `sender` at `at` was answered.

    Favorability rises by a tenth of what it lacks to 1, once a day (UTC, of `now`): a message more
    on the same day counts as an interaction and no more. So it takes 3 days with an answered
    message to be an acquaintance, 7 to be a friend and 14 to be close; it never falls.
    """
    old, day = profile["relationship"], now[:10]
    if event_id in old["answered"]:
        return profile
    rises = old["risen_on"] is None or day > old["risen_on"]
    favorability = old["favorability"]
    if rises:
        favorability = min(1.0, max(0.0, favorability + RISE * (1 - favorability)))
    return {
        **profile,
        "entity_type": "person" if profile["entity_type"] == "unknown" else profile["entity_type"],
        "senders": list(dict.fromkeys([*profile["senders"], sender])),
        "relationship": {
            "favorability": favorability,
            "state": state_of(favorability),
            "interactions": old["interactions"] + 1,
            "last_at": max(old["last_at"] or at, at),
            "risen_on": day if rises else old["risen_on"],
            "answered": [*old["answered"], event_id][-_ANSWERED:],
        },
        "updated": now,
    }


def observed(
    profile: EntityProfile, observation: Observation, *, kept: int, now: str
) -> EntityProfile:
    """The profile with one observation more, of at most `kept`.

    The same one again changes nothing: by its id, or by its words from the same source.
    """
    standing = profile["observations"]
    if any(_same(one, observation) for one in standing):
        return profile
    cited = {one for made in profile["attributes"].values() for one in made["evidence"]}
    free = [one for one in standing if one["id"] not in cited]
    free.sort(key=lambda one: (not one["consolidated"], one["at"]))
    gone = {one["id"] for one in free[: max(0, len(standing) + 1 - kept)]}
    left = [one for one in standing if one["id"] not in gone]
    observations = sorted([*left, observation], key=lambda one: one["at"])
    return {**profile, "observations": observations, "updated": now}


def observation_id(
    id_: str, sources: Sequence[str], text: str, standing: Iterable[Observation]
) -> str:
    """The id of an observation: of its entity, its sources and its place among theirs.

    A place that holds the same words is this observation's; one that holds others, as those of a
    try that failed, is passed over.
    """
    words = {one["id"]: _folded(one["text"]) for one in standing}
    mine = _folded(text)
    for place in count():
        made_of = "\x1f".join((id_, *sorted(sources), str(place)))
        found = f"observation_{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
        if words.get(found, mine) == mine:
            return found
    raise AssertionError


def _same(one: Observation, other: Observation) -> bool:
    if one["id"] == other["id"]:
        return True
    shared = set(one["sources"]) & set(other["sources"])
    return bool(shared) and _folded(one["text"]) == _folded(other["text"])


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".! ")
