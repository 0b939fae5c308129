"""Entity profiles: people, places and things. Pure.

Two names are one entity only if somebody said so (an alias): "Ana" is not "Ana Lopez". A duplicate
profile can be found and merged; two people in one profile cannot be separated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple, NotRequired

from typing_extensions import TypedDict

from memory.records.records import Time
from memory.text import name_key, shown_name

RelationshipState = Literal["stranger", "acquaintance", "friend", "close"]

RISE = 0.1
"""Rise per day with an answered message, as a share of the distance from favorability to 1."""

STATES: tuple[tuple[float, RelationshipState], ...] = (
    (0.75, "close"),
    (0.5, "friend"),
    (0.25, "acquaintance"),
    (0.0, "stranger"),
)
"""Least favorability of each state."""

BONUS: Mapping[RelationshipState, int] = {"friend": 1, "close": 2}
"""Added to the importance of what somebody says."""

MOST_ALIASES = 20

_ANSWERED = 20
"""Newest answered events that a profile keeps, so that a repeated tick counts once."""


class Observation(TypedDict):
    """Something noticed about an entity."""

    id: str
    """Derived from its sources and position; a repeated write is one observation."""
    text: str
    at: Time
    speaker: str | None
    """None: the assistant concluded it."""
    trust: float
    """Trust of its source, 0..1."""
    sources: list[str]
    """Journal and event ids."""
    consolidated: bool
    """Whether a night used it for attributes."""
    origins: NotRequired[list[str]]
    """People other than owners on whose words it rests, unless that is the speaker alone."""
    names: NotRequired[list[str]]
    """Other names of the entity that its speaker gave with it."""


class Attribute(TypedDict):
    """A property derived from facts and observations."""

    value: str
    evidence: list[str]
    """Observation ids, and operation ids of facts."""
    at: Time
    replaced: list[dict[str, Any]]
    """Earlier values: {value, evidence, at}, oldest first."""
    origins: NotRequired[list[str]]
    """People other than owners on whose words it rests."""


class Relationship(TypedDict):
    """Relationship between somebody and the agent."""

    favorability: float
    """0..1."""
    state: RelationshipState
    """By rising thresholds of favorability: 0.25, 0.5, 0.75."""
    interactions: int
    """Answered direct messages."""
    last_at: Time | None
    risen_on: str | None
    """The day (UTC) of the last rise; at most one a day."""
    answered: list[str]
    """Newest event ids that counted, oldest first."""


class EntityProfile(TypedDict):
    """A person, place or thing that the agent knows."""

    id: str
    """`entity_<hash of the first known name>`; unchanged by a new name."""
    name: str
    aliases: list[str]
    """Other names; each belongs to one entity only."""
    senders: list[str]
    """Sender ids of this entity, in their exact spelling."""
    entity_type: Literal["person", "place", "thing", "unknown"]
    attributes: dict[str, Attribute]
    observations: list[Observation]
    """Oldest first, bounded."""
    relationship: Relationship
    created: Time
    updated: Time
    read_until: NotRequired[str]
    """When the newest fact was made that a night has read for attributes."""


class PageLine(TypedDict):
    """A line of a page. It has no text of its own, so that it is never older than its sources."""

    attribute: str | None
    """Name of the profile's attribute that it shows; None: it shows its fact."""
    facts: list[str]
    """Operation ids of its sources."""


class Page(TypedDict):
    """What holds now of a person, a thing or a project: the facts worth showing, in order."""

    id: str
    """The entity's id, or `project:<key>`."""
    lines: list[PageLine]


class Familiar(NamedTuple):
    """The sender of a text and the people it names, as far as profiles know them."""

    sender: str
    """Id of the sender's profile, which need not exist yet."""
    bonus: int
    """The sender's bonus, 0..2."""
    names: tuple[str, ...]
    """Names of the people mentioned, without the sender."""


def entity_id(key: str) -> str:
    """Id of the entity first known by this name key (`memory.text.words.name_key`)."""
    return f"entity_{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def sender_id(sender: str) -> str:
    """Id of a sender whose name already belongs to another sender, in another spelling."""
    return entity_id(f"sender\x1f{sender}")


def new_profile(id_: str, name: str, at: str) -> EntityProfile:
    """An empty profile with a name."""
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
    """Name keys of the profile; the key of its name comes first."""
    return list(dict.fromkeys(name_key(one) for one in (profile["name"], *profile["aliases"])))


def names_from(profile: EntityProfile, people: Collection[str]) -> list[str]:
    """The entity's name, and the aliases that it or `people` gave: anybody can claim one."""
    given = {
        name_key(name)
        for one in profile["observations"]
        if "origins" not in one and (who := one["speaker"])
        if who in people or speaks_as(profile, who)
        for name in one.get("names", ())
    }
    return [profile["name"], *(one for one in profile["aliases"] if name_key(one) in given)]


def speaks_as(profile: EntityProfile, sender: str) -> bool:
    """Whether `sender` is this entity; an alias is not enough, because anybody can claim one."""
    if sender in profile["senders"]:
        return True
    key = name_key(sender)
    return key == name_key(profile["name"]) and key not in map(name_key, profile["senders"])


def is_blank(profile: EntityProfile | None) -> bool:
    """Whether nothing but the name is known."""
    if profile is None:
        return True
    known = profile["aliases"] or profile["attributes"] or profile["observations"]
    return not known and profile["relationship"]["state"] == "stranger"


def state_of(favorability: float) -> RelationshipState:
    """The state at this favorability (0..1)."""
    return next((state for least, state in STATES if favorability >= least), "stranger")


def bonus_of(profile: EntityProfile | None) -> int:
    """Bonus on the importance of somebody's words, 0..2."""
    return BONUS.get(profile["relationship"]["state"], 0) if profile else 0


def met(profile: EntityProfile, *, sender: str, event_id: str, at: str, now: str) -> EntityProfile:
    """The profile after a direct message of `sender` at `at` was answered.

    Favorability rises at most once a day (UTC, of `now`); further messages only count as
    interactions. It takes 3 days with an answered message to become an acquaintance, 7 for a
    friend and 14 for close; favorability never falls.
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
    """Add an observation; at most `kept` stay.

    An observation with the same id, or with the same words from the same source, changes nothing.
    Observations that no attribute cites go first, consolidated ones before others, then the oldest.
    """
    standing = profile["observations"]
    if any(_same(earlier, observation) for earlier in standing):
        return profile
    cited = {id_ for made in profile["attributes"].values() for id_ in made["evidence"]}
    free = [earlier for earlier in standing if earlier["id"] not in cited]
    free.sort(key=lambda earlier: (not earlier["consolidated"], earlier["at"]))
    gone = {earlier["id"] for earlier in free[: max(0, len(standing) + 1 - kept)]}
    left = [earlier for earlier in standing if earlier["id"] not in gone]
    observations = sorted([*left, observation], key=lambda held: held["at"])
    return {**profile, "observations": observations, "updated": now}


def observation_id(
    id_: str, sources: Sequence[str], text: str, standing: Iterable[Observation]
) -> str:
    """Id of an observation: its entity, its sources and the first free position among theirs."""
    words = {one["id"]: _folded(one["text"]) for one in standing}
    mine = _folded(text)
    for place in count():
        made_of = "\x1f".join((id_, *sorted(sources), str(place)))
        found = f"observation_{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
        if words.get(found, mine) == mine:
            return found
    raise AssertionError


def _same(first: Observation, second: Observation) -> bool:
    if first["id"] == second["id"]:
        return True
    shared = set(first["sources"]) & set(second["sources"])
    return bool(shared) and _folded(first["text"]) == _folded(second["text"])


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".! ")
