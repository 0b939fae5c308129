"""Profiles of others, without what is a forgotten person's. Pure."""

from __future__ import annotations

from memory.forgetting.erasure import Erasure
from memory.profiles import Attribute, EntityProfile, Observation


def profile_after(profile: EntityProfile, erasure: Erasure) -> EntityProfile | None:
    """The profile as it stays; None where it is the person's own.

    An observation goes with any of its sources; an attribute with all of its evidence, or when its
    own words are the person's.
    """
    if profile["id"] in erasure.profiles:
        return None
    observations = [one for one in profile["observations"] if not _goes(one, erasure)]
    gone = {one["id"] for one in profile["observations"]} - {one["id"] for one in observations}
    attributes = {
        key: left
        for key, one in profile["attributes"].items()
        if not erasure.names.within(key)
        and (left := _attribute_after(one, gone, erasure)) is not None
    }
    relationship = profile["relationship"]
    answered = [one for one in relationship.get("answered", []) if one not in erasure.events]
    return {
        **profile,
        "aliases": [one for one in profile["aliases"] if not erasure.names.within(one)],
        "attributes": attributes,
        "observations": observations,
        "relationship": {**relationship, "answered": answered},
    }


def _goes(observation: Observation, erasure: Erasure) -> bool:
    names, text = erasure.names, observation["text"]
    if names.means(observation["speaker"]) or not erasure.gone.isdisjoint(observation["sources"]):
        return True
    return names.within(text) or erasure.scrubber.text(text, "unknown") != text


def _attribute_after(attribute: Attribute, gone: set[str], erasure: Erasure) -> Attribute | None:
    evidence = [one for one in attribute["evidence"] if one not in gone]
    value = attribute["value"]
    if attribute["evidence"] and not evidence:
        return None
    if erasure.scrubber.text(value, "mixed" if gone else "unknown") != value:
        return None
    replaced = [
        one
        for one in attribute["replaced"]
        if gone.isdisjoint(one.get("evidence", []))
        and erasure.scrubber.value(one, "unknown") == one
    ]
    return {**attribute, "evidence": evidence, "replaced": replaced}
