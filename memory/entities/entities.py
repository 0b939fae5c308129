"""Entities in the store: profiles, and the names that lead to them.

Store namespaces (below `(user, thread)`):
`entities` id -> EntityProfile · `entity_names` name key (`memory.text.name_key`) -> {id}.
Profiles are read, changed and written back; the agent's lock admits one writing process at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore, GetOp, PutOp

from memory.entities.changes import KINDS, after
from memory.records import (
    Conversation,
    EntityProfile,
    Event,
    Familiar,
    Operation,
    Scope,
    bonus_of,
    entity_id,
    is_blank,
    sender_id,
    speaks_as,
)
from memory.storage import list_items, read_ahead, read_values
from memory.text import longest, name_key, places, spellings

ENTITIES, NAMES = "entities", "entity_names"

MOST_PEOPLE = 8
"""Most profiles in a prompt."""


class NamedEntity(NamedTuple):
    """The entity behind a name."""

    id: str
    """If there is no profile yet, its future id."""
    profile: EntityProfile | None


async def read(store: BaseStore, scope: Scope, ids: Iterable[str]) -> dict[str, EntityProfile]:
    """Read the existing profiles among `ids`."""
    namespace = scope.namespace(ENTITIES)
    return (await read_values(store, {namespace: ids}))[namespace]


async def everyone(store: BaseStore, scope: Scope) -> list[EntityProfile]:
    """All profiles, sorted by id."""
    items = await list_items(store, scope.namespace(ENTITIES))
    return [cast(EntityProfile, item.value) for item in items]


async def named(store: BaseStore, scope: Scope, names: Sequence[str]) -> list[NamedEntity]:
    """The entity of each name or alias; part of a name finds nothing."""
    guessed = {name: entity_id(name_key(name)) for name in names}
    keys = [key for name in names for key in spellings(name)]
    ids, profiles = await _names_and_profiles(store, scope, keys, guessed.values())
    meant = [
        next((ids[key] for key in spellings(name) if key in ids), guessed[name]) for name in names
    ]
    return [NamedEntity(id_, profiles.get(id_)) for id_ in meant]


async def look_up(
    store: BaseStore, scope: Scope, *, senders: Sequence[str] = (), texts: Sequence[str] = ()
) -> tuple[list[NamedEntity], list[list[EntityProfile]]]:
    """The entity of each sender id, and the entities that each text names, in order.

    Sender ids are compared exactly: the first sender with a name has its profile, and another
    spelling ("ana", "@Ana") gets a profile of its own. In texts, names and aliases count as whole
    words. Costs one batch of reads, or two where a name leads to an entity first known by another.
    """
    said = [places(text) for text in texts]
    keys = [*map(name_key, senders), *(place.key for found in said for place in found)]
    guessed = [
        id_ for sender in senders for id_ in (entity_id(name_key(sender)), sender_id(sender))
    ]
    ids, profiles = await _names_and_profiles(store, scope, keys, guessed)
    meant = [list(dict.fromkeys(ids[key] for key in longest(found, ids))) for found in said]
    known = [_known(sender, ids, profiles) for sender in senders]
    return known, [[profiles[id_] for id_ in some if id_ in profiles] for some in meant]


def _known(
    sender: str, ids: Mapping[str, str], profiles: Mapping[str, EntityProfile]
) -> NamedEntity:
    key = name_key(sender)
    own, spelled = entity_id(key), sender_id(sender)
    profile = profiles.get(ids.get(key, own))
    if profile is None or key != name_key(profile["name"]):
        # Nobody has this name yet, or it is only an alias of somebody else.
        return NamedEntity(own, profiles.get(own))
    if speaks_as(profile, sender):
        return NamedEntity(profile["id"], profile)
    return NamedEntity(spelled, profiles.get(spelled))


async def in_conversation(
    store: BaseStore,
    scope: Scope,
    event: Event | None,
    conversations: Mapping[str, Conversation],
) -> list[EntityProfile]:
    """Profiles of the sender, the people mentioned, then those of open conversations, newest first.

    Except for the sender's, profiles with nothing but a name are left out.
    """
    talks = sorted(conversations.values(), key=lambda talk: talk["last_at"], reverse=True)
    asked = [event] if event else []
    people = [one["sender"] for one in asked] + [talk["entity"] for talk in talks[:MOST_PEOPLE]]
    texts = [one["text"] for one in asked]
    known, mentioned = await look_up(store, scope, senders=people, texts=texts)
    profiles = [entity.profile for entity in known]
    sender, others = profiles[: len(asked)], profiles[len(asked) :]
    described = [p for p in (*chain.from_iterable(mentioned), *others) if not is_blank(p)]
    shown = {profile["id"]: profile for profile in (*sender, *described) if profile}
    return list(shown.values())[:MOST_PEOPLE]


async def familiar(store: BaseStore, scope: Scope, events: Sequence[Event]) -> list[Familiar]:
    """For each event: the sender's profile id and bonus, and the names of the people mentioned."""
    if not events:
        return []
    known, named = await look_up(
        store,
        scope,
        senders=[event["sender"] for event in events],
        texts=[event["text"] for event in events],
    )
    return [
        Familiar(sender.id, bonus_of(sender.profile), _names(others, but=sender.id))
        for sender, others in zip(known, named, strict=True)
    ]


async def names_in(store: BaseStore, scope: Scope, text: str) -> tuple[str, ...]:
    """Names and aliases of the entities that `text` names."""
    _, named = await look_up(store, scope, texts=[text])
    return _names(named[0])


async def called_in(store: BaseStore, scope: Scope, text: str, *, beside: str) -> set[str]:
    """Names and aliases of the entities that `text` names, and names in the namespace `beside`.

    One batch of reads, or two where there are entities.
    """
    found = places(text)
    keys = [place.key for place in found]
    named, spoken = scope.namespace(NAMES), scope.namespace(beside)
    known = await read_values(store, {named: keys, spoken: keys})
    ids = {key: str(value["id"]) for key, value in known[named].items()}
    profiles = await read(store, scope, {ids[key] for key in longest(found, ids)})
    return {str(one["name"]) for one in known[spoken].values()} | {*_names(profiles.values())}


def _names(profiles: Iterable[EntityProfile], *, but: str | None = None) -> tuple[str, ...]:
    others = (one for one in profiles if one["id"] != but)
    return tuple(name for one in others for name in (one["name"], *one["aliases"]))


async def puts_after(
    store: BaseStore, scope: Scope, operations: Sequence[Operation]
) -> list[PutOp]:
    """Store writes for the operations on entities: profiles and their names."""
    mine = [operation for operation in operations if operation["kind"] in KINDS]
    if not mine:
        return []
    given = (one["after"] or one["before"] for one in mine if one["kind"] != "change_entity")
    keys = {name_key(name) for one in given for name in (one["name"], *one.get("aliases", []))}
    targets = [operation["target"] for operation in mine]
    names, standing = await _names_and_profiles(store, scope, keys, targets)
    profiles, claimed = after(standing, names, mine)
    changed = [one for id_, one in profiles.items() if standing.get(id_) != one]
    entities, called = scope.namespace(ENTITIES), scope.namespace(NAMES)
    return [
        *(PutOp(entities, one["id"], cast(Any, one)) for one in changed),
        *(PutOp(entities, id_, None) for id_ in standing.keys() - profiles.keys()),
        *(PutOp(called, key, {"id": id_}) for key, id_ in claimed.items() if names.get(key) != id_),
        *(PutOp(called, key, None) for key in names.keys() - claimed.keys()),
    ]


async def _names_and_profiles(
    store: BaseStore, scope: Scope, keys: Iterable[str], ids: Collection[str]
) -> tuple[dict[str, str], dict[str, EntityProfile]]:
    """Entity ids by name key, and profiles by id: those of `ids`, and of the names' entities."""
    called, entities = scope.namespace(NAMES), scope.namespace(ENTITIES)
    # A text has many runs of words that may be names, and most agents know few: all are read.
    store = await read_ahead(store, [called], [GetOp(entities, id_) for id_ in ids])
    found = await read_values(store, {called: keys, entities: ids})
    names = {key: str(value["id"]) for key, value in found[called].items()}
    missing = set(names.values()) - {*ids}
    return names, found[entities] | (await read(store, scope, missing) if missing else {})
