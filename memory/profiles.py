"""Entity profiles: what is known of people, places and things (original-system, section 15)."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict


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


RelationshipState = Literal["stranger", "acquaintance", "friend", "close"]


class Relationship(TypedDict):
    """How someone stands to the agent."""

    favorability: float
    """0..1."""
    state: RelationshipState
    """By rising thresholds of favorability: 0.25, 0.5, 0.75."""
    interactions: int
    """Direct messages that were answered."""
    last_at: str | None


class EntityProfile(TypedDict):
    """A person, place or thing that the agent knows."""

    id: str
    """`entity_<hash of the first name it was known by>`: stable through renaming."""
    name: str
    aliases: list[str]
    """Other names that mean it, each exactly one entity's."""
    entity_type: Literal["person", "place", "thing", "unknown"]
    attributes: dict[str, Attribute]
    observations: list[Observation]
    """Oldest first, bounded."""
    relationship: Relationship
    created: str
    updated: str
