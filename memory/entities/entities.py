"""Entities in the store: profiles, and the names that lead to them.

Store namespaces (below `(user, thread)`):
`entities` id -> EntityProfile · `entity_names` name key (`memory.text.name_key`) -> {id}.
Profiles are read, changed and written back; the agent's lock admits one writing process at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore, GetOp, PutOp

from memory.entities.about import cited_by, holding
from memory.facts import SemanticMemory
from memory.journal import links
from memory.records import (
    MOST_ALIASES,
    Attribute,
    Conversation,
    EntityProfile,
    Event,
    Familiar,
    Observation,
    Operation,
    Scope,
    add_entity,
    bonus_of,
    change_entity,
    entity_id,
    is_blank,
    met,
    names_of,
    new_profile,
    observed,
    sender_id,
    speaks_as,
    with_values,
)
from memory.storage import list_items, read_ahead, read_values
from memory.text import longest, name_key, places, shown_name, spellings

ENTITIES, NAMES = "entities", "entity_names"

MOST_PEOPLE = 8
"""Most profiles in a prompt."""

KINDS = (
    *("add_entity", "remove_entity", "observe_entity", "unobserve_entity"),
    *("meet_entity", "change_entity"),
)
"""Kinds of operations on profiles."""


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
    ids, profiles = await _names_and_profiles(store, scope, keys, ids_of(senders))
    meant = [list(dict.fromkeys(ids[key] for key in longest(found, ids))) for found in said]
    known = [_known(sender, ids, profiles) for sender in senders]
    return known, [[profiles[id_] for id_ in some if id_ in profiles] for some in meant]


def ids_of(senders: Iterable[str]) -> list[str]:
    """The ids that profiles of these senders can have, unless they are known as somebody else."""
    return [id_ for one in senders for id_ in (entity_id(name_key(one)), sender_id(one))]


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


def talking(event: Event | None, conversations: Mapping[str, Conversation]) -> list[str]:
    """The event's sender, then the people of open conversations, newest first; each once."""
    talks = sorted(conversations.values(), key=lambda talk: talk["last_at"], reverse=True)
    sender = [event["sender"]] if event else []
    return list(dict.fromkeys([*sender, *(talk["entity"] for talk in talks[:MOST_PEOPLE])]))


async def in_conversation(
    store: BaseStore, scope: Scope, event: Event | None, conversations: Mapping[str, Conversation]
) -> list[EntityProfile]:
    """Profiles of the sender, the people mentioned, then those of open conversations, newest first.

    Except for the sender's, profiles with nothing but a name are left out.
    """
    asked = [event] if event else []
    people, texts = talking(event, conversations), [one["text"] for one in asked]
    known, mentioned = await look_up(store, scope, senders=people, texts=texts)
    profiles = [entity.profile for entity in known]
    sender, others = profiles[: len(asked)], profiles[len(asked) :]
    described = [p for p in (*chain.from_iterable(mentioned), *others) if not is_blank(p)]
    shown = {profile["id"]: profile for profile in (*sender, *described) if profile}
    return list(shown.values())[:MOST_PEOPLE]


async def as_of_now(
    store: BaseStore, semantic: SemanticMemory, scope: Scope, profiles: Sequence[EntityProfile]
) -> list[EntityProfile]:
    """The profiles without the attributes and observations whose facts no longer hold."""
    noticed = {id_ for one in profiles for each in one["observations"] for id_ in each["sources"]}
    ends = await links.read(store, scope, noticed) if noticed else {}
    linked = [row for end in ends.values() for row in end["relations"].items()]
    made = sorted({id_ for id_, one in linked if one["relation"] == "made_of"})
    cited = sorted(cited_by(profiles))
    facts = await semantic.by_op(scope, cited) if cited else {}
    told = (await semantic.by_id(scope, made)).values()
    return [holding(profile, facts, [*told]) for profile in profiles]


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


# What operations do to profiles: pure. An operation names observations by id and attributes by
# name; everything else in the profile stays, such as what was observed meanwhile.


def after(
    profiles: Mapping[str, EntityProfile], names: Mapping[str, str], operations: Iterable[Operation]
) -> tuple[dict[str, EntityProfile], dict[str, str]]:
    """Profiles by id and ids by name key after `operations`, in order.

    A name stays with its first owner, with one exception: somebody who writes under a name takes it
    from an entity that only has it as an alias.
    """
    found, keys = dict(profiles), dict(names)
    for operation in with_values(operations):
        match operation["kind"]:
            case "meet_entity":
                _meet(found, keys, operation)
            case "add_entity":
                _add(found, keys, operation)
            case "remove_entity" if operation["target"] in found:
                _remove(found, keys, operation["target"], operation["before"])
            case "observe_entity":
                _observe(found, keys, operation)
            case "unobserve_entity" if operation["target"] in found:
                _unobserve(found, keys, operation)
            case "change_entity" if operation["target"] in found:
                profile = found[operation["target"]]
                found[profile["id"]] = changed(profile, operation) or profile
    return found, keys


def _add(found: dict[str, EntityProfile], keys: dict[str, str], operation: Operation) -> None:
    id_, given = operation["target"], operation["after"]
    if "whole" in given:
        found[id_] = given["whole"]
        keys.update(dict.fromkeys(names_of(given["whole"]), id_))
        if heir := found.get(given["heir"]):
            left = [one for one in heir["aliases"] if one not in given["aliases"]]
            found[heir["id"]] = {**heir, "aliases": left}
        return
    profile = found.get(id_) or new_profile(id_, given["name"], given["now"])
    keys.setdefault(name_key(given["name"]), id_)
    known = profile["entity_type"] != "unknown"
    found[id_] = profile if known else {**profile, "entity_type": given["entity_type"]}


def _remove(found: dict[str, EntityProfile], keys: dict[str, str], id_: str, given: Any) -> None:
    """Remove a profile that was made at `now`, if nothing is known of it but its name.

    If it joins another, its `heir`, it goes with all that is known of it, unless that changed.
    """
    profile, heir = found[id_], given.get("heir")
    made = is_blank(profile) and not profile["senders"] and profile["created"] == given["now"]
    if profile != given["whole"] if heir else not made:
        return
    del found[id_]
    for key in names_of(profile):
        if keys.get(key, id_) == id_:
            keys.pop(key, None)
            keys |= {key: heir} if heir else {}
    if heir in found:
        found[heir] = {**found[heir], "aliases": [*found[heir]["aliases"], *given["aliases"]]}


def _meet(found: dict[str, EntityProfile], keys: dict[str, str], operation: Operation) -> None:
    id_, given = operation["target"], operation["after"]
    profile = found.get(id_) or new_profile(id_, given["name"], given["now"])
    _without_alias(found, keys, name_key(given["name"]), id_)
    keys.setdefault(name_key(given["name"]), id_)
    aliases = given.get("aliases", ())
    for key in map(name_key, aliases if given.get("owner") else ()):
        other = found.get(keys.get(key, id_))
        if other is not None and other["id"] != id_ and not other["senders"]:
            gone, moved = _joining(other, profile)
            _remove(found, keys, other["id"], gone["before"])
            profile, aliases = changed(profile, moved) or profile, [*aliases, *other["aliases"]]
    found[id_] = met(
        _called(profile, aliases, keys),
        sender=given["name"],
        event_id=given["event"],
        at=given["at"],
        now=given["now"],
    )


def joins(profiles: Mapping[str, EntityProfile]) -> list[Operation]:
    """The operations by which profiles join the one that has their name as an alias.

    Nobody who ever spoke joins another. `profiles`: every profile, by id.
    """
    whose = {key: id_ for id_, one in profiles.items() for key in names_of(one)[1:]}
    made, now = list[Operation](), dict(profiles)
    for id_, goes in profiles.items():
        keeps = now.get(whose.get(name_key(goes["name"]), id_))
        if keeps is not None and keeps["id"] != id_ and not goes["senders"]:
            new = _joining(now[id_], keeps)
            made, now = [*made, *new], after(now, {}, new)[0]
    return made


def _joining(goes: EntityProfile, keeps: EntityProfile) -> list[Operation]:
    reason, own = f"{goes['name']} is {keeps['name']}", keeps["attributes"]
    gone = add_entity(goes["id"], goes["name"], speaks=False, now=goes["created"], reason=reason)
    known = names_of(keeps)
    aliases = [one for one in goes["aliases"] if name_key(one) not in known]
    whole = {**gone["after"], "aliases": aliases, "whole": goes, "heir": keeps["id"]}
    both = {name: _newer(one, own.get(name, one)) for name, one in goes["attributes"].items()}
    moved = change_entity(keeps, both, [], [], [goes["id"]], reason, place=f"{goes['id']}:")
    moved["after"]["observations"] = {one["id"]: one for one in goes["observations"]}
    moved["before"]["observations"] = dict.fromkeys(moved["after"]["observations"])
    return [{**gone, "kind": "remove_entity", "before": whole, "after": None}, moved]


def _newer(one: Attribute, other: Attribute) -> Attribute:
    """The newer of two attributes of one name, with the older value among those before it."""
    old, new = sorted((one, other), key=lambda each: each["at"])
    if old["value"] == new["value"]:
        origins = {*old.get("origins", ()), *new.get("origins", ())}
        evidence = dict.fromkeys([*old["evidence"], *new["evidence"]])
        made: Attribute = {**new, "evidence": [*evidence]}
        return {**made, "origins": sorted(origins)} if origins else made
    was = {key: old[key] for key in ("value", "evidence", "at")}
    return {**new, "replaced": [*old["replaced"], was, *new["replaced"]]}


def _observe(found: dict[str, EntityProfile], keys: dict[str, str], operation: Operation) -> None:
    id_, given = operation["target"], operation["after"]
    profile = found.get(id_) or new_profile(id_, given["name"], given["now"])
    keys.setdefault(name_key(given["name"]), id_)
    profile = _called(profile, given["aliases"], keys, given.get("joins", ()))
    noticed, kept = given["observation"], given["kept"]
    found[id_] = observed(profile, noticed, kept=kept, now=given["now"])


def _unobserve(found: dict[str, EntityProfile], keys: dict[str, str], operation: Operation) -> None:
    """Remove an observation and its aliases, and the profile too if it was made for them."""
    id_, given = operation["target"], operation["before"]
    gone = {name_key(alias) for alias in given["aliases"]}
    profile = found[id_]
    left: EntityProfile = {
        **profile,
        "observations": [
            o for o in profile["observations"] if o["id"] != given["observation"]["id"]
        ],
        "aliases": [alias for alias in profile["aliases"] if name_key(alias) not in gone],
    }
    found[id_] = left
    for key in gone - {*names_of(left)}:
        if keys.get(key) == id_:
            del keys[key]
    _remove(found, keys, id_, given)


def changed(profile: EntityProfile, operation: Operation) -> EntityProfile | None:
    """The profile with its attributes and observations changed by `operation`.

    None on a conflict: one of them was changed meanwhile, so that it equals neither `before` nor
    `after`, or the evidence of an attribute is gone. A missing observation needs no mark.
    """
    before, given = operation["before"], operation["after"]
    attributes = dict(profile["attributes"])
    observations = {held["id"]: held for held in profile["observations"]}
    for name, value in given["attributes"].items():
        if attributes.get(name) not in (before["attributes"][name], value):
            return None
        shown = [id_ for id_ in (value or {}).get("evidence", ()) if id_ in given["observations"]]
        restored = [id_ for id_ in shown if before["observations"][id_] is None]
        if any(id_ not in observations and id_ not in restored for id_ in shown):
            return None
        attributes[name] = value
    for id_, wanted in given["observations"].items():
        merged = _merged(observations.get(id_), before["observations"][id_], wanted)
        if merged == _CONFLICT:
            return None
        observations[id_] = cast(Observation, merged)
    left = (held for held in observations.values() if held is not None)
    after: EntityProfile = {
        **profile,
        "attributes": {name: value for name, value in attributes.items() if value is not None},
        "observations": sorted(left, key=lambda held: held["at"]),
    }
    if "read_until" in given and profile.get("read_until") == before["read_until"]:
        return _read_until(after, given["read_until"])
    return after


def _read_until(profile: EntityProfile, at: str | None) -> EntityProfile:
    if at is not None:
        return {**profile, "read_until": at}
    return cast(EntityProfile, {key: one for key, one in profile.items() if key != "read_until"})


_CONFLICT = "conflict"


def _merged(
    standing: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> Mapping[str, Any] | str | None:
    """The changed observation, None if it is removed or gone, or `_CONFLICT`.

    `before` and `after` are its fields, or None where it does not exist.
    """
    if standing is None:
        return after if before is None else None
    if after is None:
        return None if _has(standing, before or {}) else _CONFLICT
    fits = _has(standing, after) or (before is not None and _has(standing, before))
    return {**standing, **after} if fits else _CONFLICT


def _has(standing: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    return all(standing[name] == value for name, value in fields.items())


def _called(
    profile: EntityProfile, aliases: Sequence[str], keys: dict[str, str], joins: Container[str] = ()
) -> EntityProfile:
    """`joins`: aliases that are another's name still, until a night joins the two profiles."""
    for alias in aliases:
        key = name_key(alias)
        known = key in names_of(profile) or len(profile["aliases"]) >= MOST_ALIASES
        if not known and (keys.setdefault(key, profile["id"]) == profile["id"] or alias in joins):
            profile = {**profile, "aliases": [*profile["aliases"], shown_name(alias)]}
    return profile


def _without_alias(
    found: dict[str, EntityProfile], keys: dict[str, str], key: str, id_: str
) -> None:
    """Free `key` if it is only an alias of another entity than `id_`."""
    owner = found.get(keys.get(key, id_))
    if owner is None or owner["id"] == id_ or key == name_key(owner["name"]):
        return
    rest = [alias for alias in owner["aliases"] if name_key(alias) != key]
    found[owner["id"]] = {**owner, "aliases": rest}
    del keys[key]
