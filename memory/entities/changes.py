"""Applying operations on entities to their profiles. Pure.

An operation names observations by id and attributes by name. Everything else in the profile stays,
such as what was observed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from memory.records import (
    MOST_ALIASES,
    EntityProfile,
    Observation,
    Operation,
    is_blank,
    met,
    names_of,
    new_profile,
    observed,
    told,
)
from memory.text import name_key, shown_name

KINDS = (
    *("add_entity", "remove_entity", "observe_entity", "unobserve_entity"),
    *("meet_entity", "change_entity"),
)
"""Kinds of operations on profiles."""


def after(
    profiles: Mapping[str, EntityProfile], names: Mapping[str, str], operations: Iterable[Operation]
) -> tuple[dict[str, EntityProfile], dict[str, str]]:
    """Profiles by id and ids by name key after `operations`, in order.

    A name stays with its first owner, with one exception: somebody who writes under a name takes it
    from an entity that only has it as an alias.
    """
    found, keys = dict(profiles), dict(names)
    for operation in told(operations):
        match operation["kind"]:
            case "meet_entity":
                _meet(found, keys, operation)
            case "add_entity":
                _add(found, keys, operation)
            case "remove_entity" if operation["target"] in found:
                _remove(found, keys, operation["target"], operation["before"]["now"])
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
    profile = found.get(id_) or new_profile(id_, given["name"], given["now"])
    keys.setdefault(name_key(given["name"]), id_)
    known = profile["entity_type"] != "unknown"
    found[id_] = profile if known else {**profile, "entity_type": given["entity_type"]}


def _remove(found: dict[str, EntityProfile], keys: dict[str, str], id_: str, made: str) -> None:
    """Remove a profile that was made at `made`, if nothing is known of it but its name."""
    profile = found[id_]
    if not is_blank(profile) or profile["senders"] or profile["created"] != made:
        return
    del found[id_]
    for key in names_of(profile):
        if keys.get(key) == id_:
            del keys[key]


def _meet(found: dict[str, EntityProfile], keys: dict[str, str], operation: Operation) -> None:
    id_, given = operation["target"], operation["after"]
    profile = found.get(id_) or new_profile(id_, given["name"], given["now"])
    _without_alias(found, keys, name_key(given["name"]), id_)
    keys.setdefault(name_key(given["name"]), id_)
    aliases = given.get("aliases", ())
    for key in map(name_key, aliases if given.get("owner") else ()):
        profile = _with_silent(found, keys, key, profile)
    found[id_] = met(
        _called(profile, aliases, keys),
        sender=given["name"],
        event_id=given["event"],
        at=given["at"],
        now=given["now"],
    )


def _with_silent(
    found: dict[str, EntityProfile], keys: dict[str, str], key: str, profile: EntityProfile
) -> EntityProfile:
    """The profile with all that is known of the entity under `key`, unless that one ever spoke."""
    other = found.get(keys.get(key, ""))
    if other is None or other["id"] == profile["id"] or other["senders"]:
        return profile
    del found[other["id"]]
    for name in names_of(other):
        if keys.get(name, other["id"]) == other["id"]:
            keys[name] = profile["id"]
    aliases = dict.fromkeys([*profile["aliases"], other["name"], *other["aliases"]])
    noticed = [*profile["observations"], *other["observations"]]
    return {
        **profile,
        "aliases": list(aliases)[:MOST_ALIASES],
        "attributes": {**other["attributes"], **profile["attributes"]},
        "observations": sorted(noticed, key=lambda one: one["at"]),
    }


def _observe(found: dict[str, EntityProfile], keys: dict[str, str], operation: Operation) -> None:
    id_, given = operation["target"], operation["after"]
    profile = found.get(id_) or new_profile(id_, given["name"], given["now"])
    keys.setdefault(name_key(given["name"]), id_)
    profile = _called(profile, given["aliases"], keys)
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
    if is_blank(left) and not left["senders"] and left["created"] == given["now"]:
        del found[id_]
        gone |= set(names_of(profile))
    for key in gone - (set(names_of(left)) if id_ in found else set()):
        if keys.get(key) == id_:
            del keys[key]


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


def _called(profile: EntityProfile, aliases: Sequence[str], keys: dict[str, str]) -> EntityProfile:
    """The profile with the aliases that no other entity has."""
    for alias in aliases:
        key = name_key(alias)
        known = key in names_of(profile) or len(profile["aliases"]) >= MOST_ALIASES
        if not known and keys.setdefault(key, profile["id"]) == profile["id"]:
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
