"""Entities: profiles of people, places and things, found by name."""

from memory.entities.about import Subject, evidence_now, names_about, names_given, subjects
from memory.entities.entities import (
    ENTITIES,
    KINDS,
    NAMES,
    NamedEntity,
    after,
    called_in,
    changed,
    everyone,
    familiar,
    in_conversation,
    look_up,
    named,
    names_in,
    puts_after,
    read,
)

__all__ = [
    "ENTITIES",
    "KINDS",
    "NAMES",
    "NamedEntity",
    "Subject",
    "after",
    "called_in",
    "changed",
    "everyone",
    "evidence_now",
    "familiar",
    "in_conversation",
    "look_up",
    "named",
    "names_about",
    "names_given",
    "names_in",
    "puts_after",
    "read",
    "subjects",
]
